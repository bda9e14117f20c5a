"""A corpus of a few images and captions, and the recipe of a model small enough for it."""

import numpy as np
import pandas as pd

from pipeline_lib.contract import Features
from pipeline_lib.settings import Recipe

RECIPE = {
    "paper": "tiny",
    "dataset": "tiny",
    "pairs": "tiny",
    "features": "tiny",
    "more_features": "none",
    "languages": ["en", "de"],
    "seeds": [1],
    "word_dim": 8,
    "embed_dim": 16,
    "vocabulary": "pooled",
    "min_count": 1,
    "markers": "both",
    "oov": "unk",
    "max_tokens": 20,
    "normalize_features": True,
    "similarity": "cosine",
    "margin": 0.2,
    "violations": "max",
    "warmup_updates": 0,
    "batch_size": 4,
    "length_window_batches": 1,
    "caption_caption_probability": 0.5,
    "learning_rate": 0.01,
    "clip_norm": 2.0,
    "validate_every_updates": 20,
    "patience_validations": 100,
    "max_epochs": 20,
    "precision": "f32",
}
IMAGES = 6


def recipe(**changes):
    return Recipe(**(RECIPE | changes))


def features(seed=0):
    ids = np.array([f"tiny:{number}" for number in range(IMAGES)], object)
    vectors = np.random.default_rng(seed).normal(size=(IMAGES, 10)).astype(np.float32)
    return Features(ids, vectors, {})


def pairs(set_name="tiny"):
    """Return two captions per image and language that name the image; train equals val."""
    rows = [
        {
            "caption_id": f"{split}/{number}/{language}/{position}",
            "image_id": f"tiny:{number}",
            "dataset": "tiny",
            "split": split,
            "language": language,
            "annotation": "caption",
            "position": position,
            "text": "",
            "tokens": [f"{language}{number}", *["filler"] * position, "in"],
            "source_caption_id": None,
            "set": set_name,
        }
        for split in ("train", "val")
        for number in range(IMAGES)
        for language in ("en", "de")
        for position in range(2)
    ]
    return pd.DataFrame(rows)
