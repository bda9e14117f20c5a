"""Reporting: what a study has measured, read once, as frames, tables and one page.

``results`` reads; ``figures``, ``intervals``, ``summary``, ``curves``, ``differences``,
``comparisons``, ``claims``, ``published`` and ``verdicts`` make pandas frames of it;
``figure_tables`` and ``study_tables`` put these into cells, which ``table`` writes as Markdown and
LaTeX and the room ``page`` as HTML, with its charts and pictures. ``pages`` copies tables into
README.md and docs/.
"""
