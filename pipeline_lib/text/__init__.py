"""Sentences to tokens, and tokens to ids."""
