"""Word translation (bilingual lexicon induction) by nearest neighbours and CSLS."""
