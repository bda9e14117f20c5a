"""Pools that languages share: which captions are taken, and how alike what they find is."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pipeline_lib.evaluation.retrieval import languages
from pipeline_lib.evaluation.retrieval.languages import (
    consistency,
    one_per_image,
    translated_alike,
)
from pipeline_lib.evaluation.retrieval.pools import ranked_pool
from pipeline_lib.evaluation.retrieval.ranking import dot_products
from pipeline_lib.evaluation.vectors import Embeddings

BOOTSTRAP = {"resamples": 500, "confidence": 0.9, "seed": 1}
COLUMNS = ["caption_id", "image_id", "language", "annotation", "position", "source_caption_id"]


def corpus():
    """Give two images five English captions, each in Chinese, and the third one in French, too."""
    rows = []
    for image in ("a", "b", "c"):
        for n in range(5):
            rows.append((f"{image}/en/{n}", image, "en", "caption", n, None))
            if image != "c":
                rows.append((f"{image}/zh/{n}", image, "zh", "translation", n, f"{image}/en/{n}"))
        rows.append((f"{image}/fr", image, "fr", "translation", 0, f"{image}/en/2"))
        rows.append((f"{image}/ja", image, "ja", "caption", 0, None))
        rows.append((f"{image}/zh/m", image, "zh", "machine", 9, f"{image}/en/0"))
    return pd.DataFrame(rows, columns=COLUMNS).sample(frac=1, random_state=0)


def test_exact_translations_are_of_the_same_images_and_sentences_in_all_languages():
    captions = corpus().query("annotation != 'machine'")
    chosen = captions[translated_alike(captions)]
    assert sorted(chosen["caption_id"]) == [
        "a/en/2", "a/fr", "a/zh/2", "b/en/2", "b/fr", "b/zh/2",
    ]  # fmt: skip
    pair = captions[captions["language"].isin(["en", "fr"])]
    assert translated_alike(pair).sum() == 6


def test_where_no_image_is_shared_one_translation_of_each_counts():
    """Others of an image would count against it."""
    captions = corpus().query("annotation != 'machine'")
    of = {"en": ["a", "b", "c"], "zh": ["a"], "fr": ["c"]}
    apart = captions[[i in of.get(k, ()) for k, i in captions[["language", "image_id"]].to_numpy()]]
    chosen = apart[translated_alike(apart)]
    assert chosen["language"].value_counts().to_dict() == {"en": 2, "fr": 1, "zh": 1}


def test_a_rare_translation_does_not_take_the_others_candidates():
    captions = corpus().query("annotation != 'machine'")
    own = ["caption_id", "image_id", "source_caption_id"]
    more = captions[(captions["image_id"] == "a") & (captions["language"] != "fr")]
    more = more.assign(**{name: more[name].str.replace("a", "d") for name in own})
    rare = captions[~((captions["language"] == "fr") & (captions["image_id"] != "a"))]
    rare = pd.concat([rare, more], ignore_index=True)  # of 15 translated sentences, one in French
    chosen = rare[translated_alike(rare)]
    assert chosen["language"].value_counts().to_dict() == {"en": 3, "zh": 3}
    alone = captions[captions["language"] == "en"]
    assert not translated_alike(alone).any()


@pytest.mark.parametrize(("complete", "kept"), [(0, 40), (1, 41), (3, 43), (5, 5)])
def test_a_few_images_of_all_languages_do_not_take_the_others_candidates(complete, kept):
    """40 images with English, half of them in German, half in French, and some of these in both."""
    rows = []
    for n in range(40):
        image = f"{n:02}"
        rows.append((f"{image}/en", image, "en", "caption", 0, None))
        both = n < complete
        for language in ("de", "fr") if both else ("de",) if n % 2 else ("fr",):
            rows.append((f"{image}/{language}", image, language, "translation", 0, f"{image}/en"))
    captions = pd.DataFrame(rows, columns=COLUMNS)
    chosen = captions[translated_alike(captions)]
    assert chosen["language"].value_counts()["en"] == (kept if kept == complete else 40)
    assert (chosen["language"] != "en").sum() == (2 * complete if kept == complete else kept)


def test_one_caption_of_each_image_is_the_sentence_that_most_languages_know():
    kinds = {"en": "caption", "fr": "translation", "ja": "caption", "zh": "translation"}
    chosen = one_per_image(corpus(), kinds)
    # Image c has no human Chinese caption.
    assert sorted(chosen["caption_id"]) == [
        "a/en/2", "a/fr", "a/ja", "a/zh/2", "b/en/2", "b/fr", "b/ja", "b/zh/2",
    ]  # fmt: skip
    alone = one_per_image(corpus(), {"en": "caption"})
    assert sorted(alone["caption_id"]) == ["a/en/0", "b/en/0", "c/en/0"]


@pytest.mark.parametrize("step", [1, -1])
def test_a_sentence_stays_with_its_translation_whatever_their_positions_and_rows(step):
    rows = [
        ("a/en/0", "a", "en", "caption", 0, None),
        ("a/en/1", "a", "en", "caption", 1, None),
        ("a/de/1", "a", "de", "translation", 1, "a/en/0"),
        ("a/de/0", "a", "de", "translation", 0, "a/en/1"),
    ]
    captions = pd.DataFrame(rows[::step], columns=COLUMNS)
    shared = one_per_image(captions, {"en": "caption", "de": "translation"})
    for chosen in (shared, captions[translated_alike(captions)]):
        assert sorted(chosen["caption_id"]) == ["a/de/1", "a/en/0"]


def pools(noise, images=40):
    """Return pools of two languages whose vectors lie about their images, in another order."""
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((images, 8))
    ids = np.array([f"i{n}" for n in range(images)], object)
    found = []
    for language in ("en", "de"):
        order = generator.permutation(images)
        captions = pd.DataFrame(
            {"caption_id": [f"{language}/{n}" for n in order], "image_id": ids[order]}
        )
        moved = vectors[order] + noise * generator.standard_normal((images, 8))
        every = Embeddings(ids, vectors, captions["caption_id"].to_numpy(), moved)
        found.append(ranked_pool(every, captions, dot_products))
    return found


def test_equal_captions_find_the_same():
    found = consistency(*pools(0.0), dot_products, **BOOTSTRAP)
    assert found["overlap"] == 100
    assert found["overlap_interval"] == [100, 100]
    assert found["rank_correlation"] == pytest.approx(1)
    assert found["n_queries"] == 40


def test_ranks_that_are_all_the_same_have_no_correlation():
    ids = np.array([f"i{n:02}" for n in range(12)], object)
    found = consistency(*(_perfect(ids, code) for code in ("en", "de")), dot_products, **BOOTSTRAP)
    assert found["overlap"] == 100
    assert found["rank_correlation"] is None
    assert "rank_correlation_interval" not in found


def _perfect(ids, language):
    captions = pd.DataFrame({"caption_id": [f"{language}/{n}" for n in ids], "image_id": ids})
    vectors = np.eye(len(ids), dtype=np.float32)
    every = Embeddings(ids, vectors, captions["caption_id"].to_numpy(), vectors)
    return ranked_pool(every, captions, dot_products)


@pytest.mark.parametrize("at_once", [7, 1024])
def test_what_captions_find_is_compared_image_by_image(monkeypatch, at_once):
    monkeypatch.setattr(languages, "_CAPTIONS", at_once)
    one, other = pools(0.7)
    found = consistency(one, other, dot_products, **BOOTSTRAP)
    nearest, ranks = [], []
    for pool in (one, other):
        own = {image: n for n, image in enumerate(pool.captions["image_id"])}
        scores = [pool.images @ pool.sentences[own[image]] for image in pool.image_ids]
        nearest.append([set(np.argsort(-row)[:10]) for row in scores])
        ranks.append([(row >= row[place]).sum() for place, row in enumerate(scores)])
    overlap = np.mean([len(a & b) / 10 for a, b in zip(*nearest, strict=True)])
    assert found["overlap"] == pytest.approx(100 * overlap)
    assert found["rank_correlation"] == pytest.approx(stats.spearmanr(*ranks).statistic)
    for name in ("overlap", "rank_correlation"):
        low, high = found[f"{name}_interval"]
        assert low < found[name] < high
