"""Whether every name in a study names something, and what goes together goes together.

``sections``
    All of it, one section after the other.
``sources``, ``recipes``, ``questions``
    What recipes are made from; the recipes; what is asked of them.
"""
