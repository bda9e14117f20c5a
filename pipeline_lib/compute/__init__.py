"""How the machine is used: its cores, its device, and in which numbers it computes.

``forks``, ``device``
    Work on all cores; where torch runs, and in which types.
``products``
    Fast matrix products of float32.
``exact``, ``arithmetic``
    Numbers that are the same on every machine, in numpy and in torch.
"""
