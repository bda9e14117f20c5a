"""A toy pair of languages, and translators small enough to learn it in a test."""

import random
from functools import lru_cache

from pipeline_lib.settings.synthesis import AttentionGRURecipe, TransformerRecipe
from pipeline_lib.text.subwords import Subwords

COMMON = {
    "dataset": "toy",
    "source_language": "en",
    "target_language": "de",
    "exclude_images": "none",
    "exclude_pairs": "none",
    "subwords": 60,
    "dropout": 0.1,
    "label_smoothing": 0.1,
    "learning_rate": 3e-3,
    "warmup_updates": 20,
    "clip_norm": 1.0,
    "batch_tokens": 200,
    "max_updates": 16,
    "validate_every_updates": 4,
    "patience_validations": 5,
    "averaged_checkpoints": 2,
    "beam": 3,
    "length_normalization": 1.0,
    "n_best": 4,
    "precision": "f32",
    "seed": 1,
}
SIZES = {
    "transformer": {"layers": 2, "dim": 16, "feed_forward": 24, "heads": 4},
    "gru_attention": {"word_dim": 12, "hidden_dim": 16},
}
FORMS = {"transformer": TransformerRecipe, "gru_attention": AttentionGRURecipe}
WORDS = {"red": "rot", "dog": "hund", "runs": "rennt", "a": "ein", "cat": "katze", "sees": "sieht"}


def recipe(architecture, **changes):
    values = COMMON | {"architecture": architecture} | SIZES[architecture] | changes
    return FORMS[architecture].model_validate(values)


def toy_pairs(count, seed=0):
    """Return sentences of random words, and their words translated in reversed order."""
    drawn = random.Random(seed)
    sentences = [drawn.choices(list(WORDS), k=drawn.randint(1, 5)) for _ in range(count)]
    return [
        (" ".join(words), " ".join(WORDS[word] for word in reversed(words))) for words in sentences
    ]


@lru_cache
def toy_subwords():
    return Subwords.train([text for pair in toy_pairs(100) for text in pair], COMMON["subwords"])
