"""The life of a stage under DVC: why it runs, how it starts, what it tells and what it leaves.

``fingerprints``
    What the code of a stage does: it runs again if that changes.
``warm``, ``ahead``
    Stages that start at once; trainings that begin before their turn.
``edits``, ``resolved``
    What is edited while DVC runs is not recorded as if it had not been.
``progress``, ``notes``
    How far the run is; the last outputs of a stage that fails; what runs note for later ones.
``edge``
    Errors as messages and exit codes.
``publishing``
    Outputs whole or not at all; work that a kill does not lose.
"""
