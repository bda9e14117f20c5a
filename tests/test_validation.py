"""Scores that select a model's best weights, against ranks counted one candidate at a time."""

import numpy as np
import pytest
import tiny
import torch
from tiny_models import image, pairs_in, prepare, sentence, without

from pipeline_lib.evaluation.validation import validation_scores

PAIRS = without(without(without(pairs_in("en", "de"), 0, "de"), 1, "de"), 4, "en", [1])
"""Two images have no German caption, one has one English caption instead of two."""


def ranks(images, captions):
    """Return the rank of each image's best caption and of each caption's image."""
    scores = {(i, c): float(images[i] @ v) for i in images for c, (_, v) in enumerate(captions)}
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
def test_scores_count_the_captions_that_are_there():
    """mulisera takes five captions of each image for granted (audit, §3.5 and §3.6)."""
    model, corpus, _ = prepare("alternating", PAIRS)
    sides, sums = [], {}
    for key, of in corpus.sentences.items():
        captions = [
            (int(of.image_index[r]), sentence(model, corpus, key, r)) for r in range(len(of))
        ]
        images = {i: image(model, corpus, i) for i in sorted({i for i, _ in captions})}
        both = ranks(images, captions)
        sides += both
        recalls = [100 * np.mean(np.array(side) <= k) for side in both for k in (1, 5, 10)]
        sums[f"recall_sum_{key[0]}_{key[1]}"] = sum(recalls)
    assert [len(side) for side in sides] == [tiny.IMAGES - 2, 8, tiny.IMAGES, 11]
    found = validation_scores(model, corpus)
    expected = {"recall_sum": sum(sums.values()), "mean_rank": np.mean([np.mean(s) for s in sides])}
    assert found == pytest.approx(expected | sums, abs=0.01)
    assert expected["mean_rank"] != np.mean([np.median(s) for s in sides])
