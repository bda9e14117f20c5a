"""A corpus of a few images and captions, and the recipe of a model small enough for it."""

import numpy as np
import pandas as pd

from pipeline_lib.contract.features import Features
from pipeline_lib.models.preprocessing import Preprocessing
from pipeline_lib.settings.recipes import make_recipe, recipe_form
from pipeline_lib.training.examples import build_examples, build_vocabulary
from pipeline_lib.training.preparation import new_learner

COMMON = {
    "paper": "tiny",
    "dataset": "tiny",
    "pairs": "tiny",
    "features": "tiny",
    "more_features": "none",
    "initial": "none",
    "word_vectors": "random",
    "lexicon": "none",
    "languages": ["en", "de"],
    "seeds": [1],
    "loss": "hinge",
    "text_encoder": "recurrent",
    "image_head": "mlp",
    "tune_words": True,
    "word_dim": 8,
    "orthogonal_map": False,
    "universal_dim": "none",
    "recurrent": "gru",
    "recurrent_sharing": "shared",
    "hidden_dim": 16,
    "projection": "none",
    "image_hidden_dims": [],
    "embed_dim": 16,
    "image_dropout": 0.0,
    "sentence_dropout": 0.0,
    "initialization": "xavier",
    "vocabulary": "pooled",
    "min_count": 1,
    "markers": "both",
    "oov": "unk",
    "max_tokens": 20,
    "normalize_features": True,
    "similarity": "cosine",
    "absolute": False,
    "margin": 0.2,
    "violations": "max",
    "batch_size": 4,
    "learning_rate": 0.01,
    "optimizer": "adam",
    "schedule": "steps",
    "decay_epochs": [],
    "decay_factor": 0.1,
    "clip_norm": 2.0,
    "validate_every_updates": 20,
    "select_by": "recall_sum",
    "patience_validations": 100,
    "max_epochs": 20,
    "precision": "f32",
}
OWN = {
    "alternating": {"caption_caption_probability": 0.5, "caption_caption_below_loss": "none"},
    "joint": {
        "beta": 0.5,
        "language_pairs": "once",
        "contrastive_terms": "all",
        "violations": "sum",
        "vocabulary": "per_language",
        "recurrent_sharing": "per_language",
        "projection": "shared",
    },
    "mixed": {
        "lexicon": "tiny",
        "lexicon_protocol": "clean",
        "alignment_every_updates": 7,
        "alignment_learning_rate": 1.0,
        "alignment_neighbours": 3,
        "violations": "sum",
        "vocabulary": "per_language",
        "orthogonal_map": True,
    },
    "multiview": {
        "caption_caption_weight": 0.5,
        "text_photos": 2,
        "violations": "sum",
        "vocabulary": "per_language",
    },
    "two_branch": {
        "captions_per_image": 2,
        "caption_image_weight": 1.5,
        "image_caption_weight": 1.0,
        "same_language_weight": 0.05,
        "sentence_neighbourhood_weight": 1.0,
        "word_neighbourhood_weight": 1.0,
        "classifier_weight": 1e-3,
        "anchor_weight": 5e-7,
        "pretraining_epochs": 1,
        "violations": 10,
        "vocabulary": "per_language",
        "universal_dim": 12,
        "projection": "shared",
        "image_hidden_dims": [20],
        "recurrent": "lstm",
    },
}
IMAGES = 6


def recipe(objective="alternating", **changes):
    """Return a recipe of the objective, small enough for six images; None takes a key away."""
    values = COMMON | OWN[objective] | {"objective": objective} | changes
    return make_recipe({key: value for key, value in values.items() if value is not None})


POLYVIEW = {
    "text_encoder": "bag",
    "image_head": "residual",
    "image_crops": 2,
    "image_hidden_dim": 12,
    "loss": "infonce",
    "temperature": 0.1,
    "tune_temperature": True,
    "optimizer": "adamw",
    "weight_decay": 0.1,
    "schedule": "cosine",
    "warmup_epochs": 1.0,
    "oov": "pieces",
}


def polyview(**changes):
    """Return the recipe of our own, with parts that no paper's has."""
    values = COMMON | OWN["multiview"] | {"objective": "multiview"} | POLYVIEW | changes
    form = recipe_form(values)
    return form.model_validate({key: values[key] for key in form.model_fields})


def learner(recipe, seed=1, captions=None, dim=10, vectors=None):
    """Return an untrained model of the recipe, with the words of these captions."""
    vocabulary = build_vocabulary(pairs() if captions is None else captions, recipe)
    return new_learner(recipe, vocabulary, dim, seed, vectors)


def space(*arguments, **options):
    """Return the joint space of :func:`learner`, in evaluation mode."""
    return learner(*arguments, **options).space.eval()


def model(objective="alternating", **changes):
    """Return the joint space of a recipe of the objective."""
    return space(recipe(objective, **changes), seed=3)


def examples(learner, split="train", captions=None):
    """Return what the learner is trained on, or validated with, of these captions."""
    captions = pairs() if captions is None else captions
    words, chosen = learner.space.vocabulary, learner.recipe
    return build_examples(captions, split, features(), words, chosen, lexicon())


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
            "seed": None,
        }
        for split in ("train", "val")
        for number in range(IMAGES)
        for language in ("en", "de")
        for position in range(2)
    ]
    return pd.DataFrame(rows)


def lexicon():
    """Return translations of the words that name an image, in both folds of both protocols."""
    return pd.DataFrame(
        [
            {
                "source_language": "de",
                "target_language": "en",
                "source_word": f"de{number}",
                "target_word": f"en{number}",
                "fold": fold,
                "protocol": protocol,
            }
            for number in range(IMAGES)
            for fold in ("train", "test")
            for protocol in ("paper", "clean")
        ]
    )


PREPROCESSING = Preprocessing.model_validate(
    {
        "tokenizers": {
            language: {"tokenizer": "whitespace", "lowercase": True, "normalize": False}
            for language in ("en", "de")
        },
        "extractor": {
            "dataset": "tiny",
            "images": "images",
            "backbone": "efficientnet_lite0",
            "weights": "package",
            "transform": "squash",
            "resize": 224,
            "crop": 224,
            "precision": "f32",
            "batch_size": 2,
        },
    }
)


def extractor(**changes):
    """Return settings of a small network on small crops."""
    small = {"transform": "center", "resize": 40, "crop": 32, "batch_size": 4}
    return PREPROCESSING.extractor.model_copy(update=small | changes)
