"""The library behind the stages: a map of its rooms, in import order.

``settings``, ``contract``, ``publishing``, ``fingerprints``
    The typed view of params.yaml, the schemas of what passes between stages, atomic output, what
    the code of each stage does.
``warm``, ``ahead``, ``progress``, ``edge``
    Stages that start at once, work ahead and say how far the run is; errors as messages.
``forks``, ``scheduling``
    Work on all cores; work in shards, on this process or on a cluster.
``device``, ``products``, ``arithmetic``, ``exact``
    Where torch runs and in which numbers; fast matrix products; numbers that are the same on every
    machine, in torch and in numpy.
``corpora``, ``images``, ``text``
    Raw captions to tables, images to features, sentences to tokens and tokens to ids.
``checks``
    What can be known of a study before its work.
``models``
    Encoders, similarities, losses, and the JointSpace that composes them.
``training``
    Batches, the update loop, checkpoints.
``synthesis``, ``evaluation``
    Translated captions and pseudopairs; ranking, the scores of every task, confidence intervals.
``reporting``
    Tables of results beside published numbers.
``search``, ``export``
    A trained model in use: on a user's own photos, and in the form of other tools.
``cli``
    The command ``polyview``.

A room imports only rooms named before it (tests/test_graph.py holds that). The stages import
the library; the library never imports a stage.
"""
