"""What can be known of a study before its work: parameters against tables, folders and memory.

``study``
    The whole check: what would fail, what is not there, what may be meant.
``data``, ``shown``, ``known``
    What raw data sets hold, which photos stand behind what is learnt, and all that is known.
``sources``, ``selections``, ``translated``
    What would fail of that which recipes are made from.
``recipes``, ``features``, ``leaks``, ``growth``, ``memory``
    What would fail of recipes.
``files``, ``photos``
    Files that are not there, or that no stage could read; photos that two splits share.
``suspicious``
    What may be meant, and more likely is not.
"""
