"""A model of six colours, trained on nothing but their names, and photos of these colours."""

import numpy as np
import tiny
import torch
from PIL import Image

from pipeline_lib.images.encoding import PhotoEncoder
from pipeline_lib.running.publishing import file_sha256

COLOURS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220), "white": (250,) * 3}
GERMAN = {"red": "rot", "green": "grün", "blue": "blau", "white": "weiß"}


def captions():
    """Return the pairs of tiny whose captions name a colour instead of an image."""
    pairs = tiny.pairs()
    names = [*COLOURS, "black", "grey"]
    german = [*GERMAN.values(), "schwarz", "grau"]
    words = {"en": ("a", names, "photo"), "de": ("ein", german, "foto")}
    pairs["tokens"] = [
        [before, colours[int(image.split(":")[1])], after]
        for image, (before, colours, after) in zip(
            pairs["image_id"], pairs["language"].map(words), strict=True
        )
    ]
    pairs["text"] = pairs["tokens"].map(" ".join)
    return pairs


def encoded(photos, settings):
    """Return the features ``float32 [photos, dim]`` of an extractor."""
    return np.stack([*PhotoEncoder(settings).encode_each(photos)])


def save_model(folder, **changes):
    """Train a model that tells the colours apart; write it and photos of them."""
    space = tiny.space(
        tiny.recipe(**{"vocabulary": "per_language", **changes}), captions=captions(), dim=1280
    )
    photos = write_photos(folder / "photos")
    features = encoded([photos / f"{name}.png" for name in COLOURS], tiny.PREPROCESSING.extractor)
    _learn(space, torch.from_numpy(features).to(space.dtype))
    space.save(folder / "model", tiny.PREPROCESSING, {"pairs": "tiny", "paper": "tiny"})


def write_photos(folder):
    """Write a photo of each colour, and return the folder."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        pixels = np.clip(random.normal(colour, 5, (60, 80, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{name}.png")
    return folder


def _learn(space, features):
    sentences = {
        "en": [["a", colour, "photo"] for colour in COLOURS],
        "de": [["ein", colour, "foto"] for colour in GERMAN.values()],
    }
    ids = {
        language: [*map(torch.from_numpy, space.vocabulary.encode_all(tokens, language))]
        for language, tokens in sentences.items()
    }
    optimizer = torch.optim.Adam(space.parameters(), 0.02)
    right = torch.arange(len(features))
    for _ in range(60):
        images = space.image_vectors(features)
        scores = [
            space.scores(images, space.sentence_vectors(*each, language))
            for language, each in ids.items()
        ]
        loss = sum(torch.nn.functional.cross_entropy(10 * each.T, right) for each in scores)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def named(path):
    """Name a file after its content, as weights of one's own are; return it."""
    return path.rename(path.with_stem(f"{path.stem}-{file_sha256(path)[:8]}"))
