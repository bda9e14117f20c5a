"""Scores that select a model's best weights, against ranks counted one candidate at a time."""

import numpy as np
import pytest
import tiny
import torch
from tiny_models import image, pairs_in, prepare, sentence, without

from pipeline_lib.evaluation.validation import validation_scores

PAIRS = without(without(without(pairs_in("en", "de"), 0, "de"), 1, "de"), 4, "en", [1])
"""Two images have no German caption, one has one English caption instead of two."""


PLAIN = {
    "cosine": lambda photo, caption: float(photo @ caption),
    "squared_order": lambda photo, caption: -float(((caption - photo).clamp(min=0) ** 2).sum()),
}
"""Similarities, of unit vectors."""


def ranks(images, captions, similarity):
    """Return the rank of each image's best caption and of each caption's image."""
    scores = {
        (i, c): PLAIN[similarity](images[i], v) for i in images for c, (_, v) in enumerate(captions)
    }
    of_images = [
        1 + sum(scores[i, c] >= best for c, (own, _) in enumerate(captions) if own != i)
        for i in images
        for best in [max(scores[i, c] for c, (own, _) in enumerate(captions) if own == i)]
    ]
    of_captions = [
        1 + sum(scores[i, c] >= scores[own, c] for i in images if i != own)
        for c, (own, _) in enumerate(captions)
    ]
    return of_images, of_captions


@torch.no_grad()
@pytest.mark.parametrize("similarity", PLAIN)
def test_scores_count_the_captions_that_are_there(similarity):
    """mulisera takes five captions of each image for granted (audit, §3.5 and §3.6)."""
    changes = {"similarity": similarity, "absolute": similarity != "cosine"}
    model, corpus, _ = prepare("alternating", PAIRS, **changes)
    sides, scores = [], {}
    for key, of in corpus.sentences.items():
        captions = [
            (int(of.image_index[r]), sentence(model, corpus, key, r)) for r in range(len(of))
        ]
        images = {i: image(model, corpus, i) for i in sorted({i for i, _ in captions})}
        both = ranks(images, captions, similarity)
        sides += both
        recalls = [100 * np.mean(np.array(side) <= k) for side in both for k in (1, 5, 10)]
        scores[f"recall_sum_{key[0]}_{key[1]}"] = sum(recalls)
        scores[f"image_to_text_r1_{key[0]}_{key[1]}"] = recalls[0]
    assert [len(side) for side in sides] == [tiny.IMAGES - 2, 8, tiny.IMAGES, 11]
    found = validation_scores(model, corpus, {})
    total = sum(value for name, value in scores.items() if name.startswith("recall_sum"))
    expected = {"recall_sum": total, "mean_rank": np.mean([np.mean(s) for s in sides])}
    assert found == pytest.approx(expected | scores, abs=0.01)
    assert expected["mean_rank"] != np.mean([np.median(s) for s in sides])


def test_weights_that_are_too_large_for_vectors_of_numbers():
    model, corpus, _ = prepare("alternating", PAIRS)
    with torch.no_grad():
        for weight in model.image_encoder.parameters():
            weight.fill_(torch.finfo(weight.dtype).max)
    with pytest.raises(FloatingPointError, match="vectors of the validation are no numbers"):
        validation_scores(model, corpus, {})


def test_words_are_tested_in_the_directions_that_are_given():
    model, corpus, _ = prepare("mixed", PAIRS)
    words = {
        language: dict(zip(*model.embed_words(language), strict=True)) for language in ("en", "de")
    }
    english, german = sorted(words["en"])[:5], sorted(words["de"])
    pairs = [(a, b) for a, b in zip(english, german, strict=False)] + [(english[0], german[-1])]

    def nearest(word):
        return max(german, key=lambda b: _cosine(words["en"][word], words["de"][b]))

    hits = [any((word, nearest(word)) == pair for pair in pairs) for word in english]
    tested = {("en", "de"): [*pairs, ("unknown", german[0])], ("de", "en"): [("unknown", "too")]}
    found = validation_scores(model, corpus, tested)
    assert found["word_translation_p1_en_de"] == pytest.approx(100 * np.mean(hits), abs=0.01)
    assert "word_translation_p1_de_en" not in found


def _cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def test_words_of_a_pooled_vocabulary_are_not_tested_while_training():
    """It does not say whose words are whose: each would be its own nearest neighbour."""
    model, corpus, _ = prepare("alternating", PAIRS, vocabulary="pooled")
    word = model.embed_words("en")[0][0]
    found = validation_scores(model, corpus, {("en", "de"): [(word, word)]})
    assert not [key for key in found if key.startswith("word_translation")]
