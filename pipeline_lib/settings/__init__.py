"""The typed, strict view of params.yaml: one module per part of the file, ``study`` for all of it.

Every number of an experiment stands in params.yaml and nowhere in the code: no field has a
default, unknown keys are errors that name the closest legal one, and all problems of the file are
reported at once.
"""
