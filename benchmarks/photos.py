"""JPEGs to decode, drawn: no photos are at hand offline."""

from pathlib import Path

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 500, 375
"""Pixels of a photo of Flickr."""


def draw_photos(folder: Path, count: int) -> list[Path]:
    """Write JPEGs of a photo's usual size and detail: soft shapes under fine noise."""
    folder.mkdir()
    paths = [folder / f"{seed:05d}.jpg" for seed in range(count)]
    for seed, path in enumerate(paths):
        rng = np.random.default_rng(seed)
        shapes = Image.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8))
        pixels = np.asarray(shapes.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC), np.float32)
        noisy = np.clip(pixels + rng.normal(0, 8, pixels.shape), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(path, quality=90)
    return paths
