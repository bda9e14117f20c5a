"""The library behind the stages: a map of its rooms, in import order.

``settings``
    The typed view of params.yaml.
``compute``
    Work on all cores; where torch runs and in which numbers; fast matrix products; numbers that are
    the same on every machine.
``contract``, ``running``
    The schemas of what passes between stages; the life of a stage under DVC: why it runs, how it
    starts, work ahead, progress, errors as messages, atomic output.
``scheduling``
    Work in shards, on this process or on a cluster.
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
