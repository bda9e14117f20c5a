"""Semantic textual similarity: correlation of cosines with human scores."""
