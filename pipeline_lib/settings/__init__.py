"""The typed, strict view of params.yaml: one module per part of the file, ``study`` for all of it.

``loading`` reads and checks a study; ``references`` are the checks of the names in it.

Every number of an experiment stands in params.yaml and nowhere in the code: no field has a default
(but ``layers`` of an extractor, which is younger than the others), and unknown keys are errors that
name the closest legal one. All keys and values of a wrong form are reported at once; where there is
none, all names that name nothing.
"""
