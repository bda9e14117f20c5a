"""The generated corpus: scenes that the project draws and describes, so that the truth is known.

``concepts``, ``scenes``, ``messages``
    What can exist, one scene, and which part of a scene a sentence tells.
``wording``, ``patterns``, ``european``, ``languages`` and one module per language
    Sentences in six languages from one message. A language is tables of words, patterns of
    sentences and, where words change their form, a function that inflects.
``canvas``, ``palette``, ``layout``, ``drawing`` and one module per kind of thing
    The picture of a scene, in two styles.
``pictures``, ``lexicon``, ``similarity``, ``parallel``, ``generate``
    The files of the corpus; :func:`generate.generate` is the entry.
"""
