"""Models: similarities, losses, the recurrent layer, encoders, and the Embedder made of them."""
