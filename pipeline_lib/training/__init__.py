"""Training: captions and features as tensors, batches of indices, the update loop, checkpoints."""
