"""The library behind the stages: a map of its rooms, in import order.

``settings``, ``contract``, ``publishing``, ``device``, ``exact``, ``fingerprints``
    The typed view of params.yaml, the schemas of what passes between stages, atomic output, where
    torch runs, sums that are the same on every machine, what the code of each stage does.
``corpora``, ``images``, ``text``
    Raw captions to tables, images to features, sentences to tokens and tokens to ids.
``models``
    Encoders, similarities, losses, and the JointSpace that composes them.
``training``
    Batches, the update loop, checkpoints.
``synthesis``, ``evaluation``
    Translated captions and pseudopairs; ranking, the scores of every task, confidence intervals.
``reporting``
    Tables of results beside published numbers.

A room imports only rooms named before it (tests/test_graph.py holds that). The stages import
the library; the library never imports a stage.
"""
