"""Raw corpora to captions and images tables: one reader per format, and the training selection.

``columns``, ``files``, ``corpus``
    Raw files with their problems, and what every reader builds its tables from.
``table``, ``multi30k``, ``flickr8k``, ``coco``, ``bitext``
    The formats, one module each; ``readers`` names them. ``own_table`` completes a user's table,
    ``parallel`` pairs sentences with their translations.
``scored_pairs``
    Sentences that people scored, for evaluation.
``selection``
    The training captions that a recipe may see.
``world``
    The corpus that the project generates for itself.
"""
