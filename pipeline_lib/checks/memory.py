"""Whether what a recipe, a translator or an extractor holds at once fits into memory."""

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from pipeline_lib.checks.known import Known
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.settings.images import Extractor
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.synthesis import AnyTranslator

COPIES = 5
"""Of all weights while they learn: themselves, gradients, two moments of Adam, the best so far."""

BATCHES = 3
"""Of photos that an extractor holds at once."""

_GATES = {"gru": 3, "lstm": 4}


def memory_problems(known: Known) -> Iterator[str]:
    """Yield what cannot fit, by the sizes that a study gives it."""
    for name, recipe in known.recipes.items():
        captions = known.training_captions(recipe)
        needed = recipe_bytes(recipe, recipe.batch_size if captions is None else captions)
        yield from _too_large(f"recipes.{name}", needed, "sizes of layers and batch_size")
    for name, translator in known.settings.translators.items():
        needed = translator_bytes(translator)
        yield from _too_large(f"translators.{name}", needed, "sizes of layers")
    for name, extractor in known.settings.networks.items():
        needed = extractor_bytes(extractor)
        yield from _too_large(f"extractors.{name}", needed, "batch_size, crop and resize")


def weights(recipe: Recipe) -> int:
    """Return how many weights a recipe has without its words and without its first image layer.

    How many words and features there are shows later, so this is the least that it can be.
    """
    languages, hidden = len(recipe.languages), getattr(recipe, "hidden_dim", 0)
    universal = getattr(recipe, "universal_dim", "none")
    read = recipe.word_dim if universal == "none" else universal
    shares = {"none": 0, "shared": 1, "per_language": languages}
    recurrent = shares[getattr(recipe, "recurrent_sharing", "none")]
    projections = shares[getattr(recipe, "projection", "none")]
    one = [recipe.image_hidden_dim] if hasattr(recipe, "image_hidden_dim") else []
    image = [*getattr(recipe, "image_hidden_dims", one), recipe.embed_dim]
    return (
        recurrent * _GATES.get(getattr(recipe, "recurrent", ""), 0) * hidden * (read + hidden)
        + projections * hidden * recipe.embed_dim
        + (languages * recipe.word_dim * read if universal != "none" else 0)
        + sum(a * b for a, b in pairwise(image))
    )


def recipe_bytes(recipe: Recipe, captions: int) -> int:
    """Return the least that training holds: its weights, and the similarities of a batch."""
    size = 8 if recipe.precision == "f64" else 4
    batch = min(recipe.batch_size, captions)
    return size * (COPIES * weights(recipe) + batch * batch)


def translator_bytes(recipe: AnyTranslator) -> int:
    """Return the least that training a translator holds: its weights, without its words."""
    size = 8 if recipe.precision == "f64" else 4
    if recipe.architecture == "transformer":
        # Two attentions of a layer of the decoder, one of the encoder's.
        attentions, maps = 3 * 4 * recipe.dim**2, 2 * 2 * recipe.dim * recipe.feed_forward
        each = recipe.layers * (attentions + maps)
    else:
        each = 3 * _GATES["gru"] * recipe.hidden_dim * (recipe.word_dim + recipe.hidden_dim)
    return size * COPIES * each


def extractor_bytes(extractor: Extractor) -> int:
    """Return the least that extraction holds: the pixels of its batches, in 8 bits."""
    transform = TRANSFORMS[extractor.transform]
    side = transform.side(extractor.resize, extractor.crop)
    resized = transform.resized(extractor.resize, extractor.crop)
    batch = extractor.batch_size * transform.crops * side**2
    return 3 * (BATCHES * batch + max(side, resized) ** 2)


def machine_bytes() -> int:
    """Return the memory that this process may use: the machine's, or its container's."""
    own = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.is_file() else "max"
    return min(own, int(text)) if text.isdigit() else own


def _too_large(where: str, needed: int, keys: str) -> Iterator[str]:
    """Yield a sentence if something needs more memory than there is."""
    there = machine_bytes()
    if needed > there:
        yield (
            f"{where}: needs {needed / 1e9:,.0f} GB at least, by {keys}; this machine has "
            f"{there / 1e9:,.0f} GB. Make them smaller"
        )
