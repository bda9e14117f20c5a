"""Whether every name in a study names something, and what goes together goes together.

``every``
    All of it, section by section.
``sources``, ``recipes``, ``questions``
    What recipes are made from; the recipes; what is asked of them.
"""
