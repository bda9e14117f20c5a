"""Re-ranking of n-best lists by similarities of a joint space, with weights that MIRA tunes."""
