"""The stages of dvc.yaml: one thin command per file, run as ``python -m stages.<stage> <name>``.

A stage reads its inputs, calls the library and publishes its outputs, in the folder of a study.
"""

from pipeline_lib.running.warm import run_warm

run_warm(__name__)
