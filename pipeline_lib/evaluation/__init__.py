"""Evaluation of trained models: a report per task and recipe.

Rooms: ``retrieval`` (images and captions, and sentences of two languages), ``similarity`` of
sentences, ``words`` and their translations, ``machine_translation`` quality, ``reranking`` of
n-best lists. Beside them stand what all share: ``tasks``, what they measure (``evaluated``,
``embedding``, ``vectors``), ``probes`` of a space, ``validation`` while a model trains, and the
``significance`` of scores.
"""
