"""Per-query results against plain loops, and the paired test over them."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.queries import QUERIES, read_queries, write_queries
from pipeline_lib.evaluation.retrieval import queries as module
from pipeline_lib.evaluation.retrieval.hits import (
    HITS,
    image_contributions,
    image_hits,
    pool_of,
    read_hits,
)
from pipeline_lib.evaluation.retrieval.pools import rank_pools, ranks_in_folds
from pipeline_lib.evaluation.retrieval.queries import best_candidates, query_table
from pipeline_lib.evaluation.retrieval.recalls import summarise
from pipeline_lib.evaluation.retrieval.scores import SCORES
from pipeline_lib.evaluation.vectors import Embeddings


def space(seed, images=40, noise=1.0):
    """Draw images with one to three captions near them: embeddings and the captions table."""
    generator = np.random.default_rng(seed)
    owner = np.repeat(np.arange(images), generator.integers(1, 4, images))
    vectors = generator.standard_normal((images, 6))
    captions = vectors[owner] + noise * generator.standard_normal((len(owner), 6))
    ids = np.array([f"i{number}" for number in range(images)], object)
    caption_ids = np.array([f"c{number}" for number in range(len(owner))], object)
    table = pd.DataFrame(
        {
            "caption_id": caption_ids,
            "image_id": ids[owner],
            "language": "en",
            "annotation": "caption",
        }
    ).sample(frac=1, random_state=seed)
    return Embeddings(ids, vectors, caption_ids, captions), table


def found(seed, similarity="cosine", noise=1.0):
    """Rank one corpus; noise moves its captions away from their images."""
    vectors, captions = space(0, noise=noise)
    scores = SCORES[similarity]
    ranked = {seed: rank_pools(vectors, captions, {"en": "caption"}, scores)}
    return ranked[seed]["en"], query_table(ranked, scores)


@pytest.mark.parametrize("similarity", ["cosine", "order"])
def test_ranks_and_best_candidates_equal_plain_loops(similarity):
    pool, table = found(7, similarity)
    scores = SCORES[similarity](pool.images, pool.sentences)
    caption_ids = pool.captions["caption_id"].to_numpy()
    owner = pool.captions["image_id"].to_numpy()
    right = pool.image_ids[:, None] == owner
    ways = {
        "image_to_text": (scores, right, pool.image_ids, pool.image_ids, caption_ids),
        "text_to_image": (scores.T, right.T, caption_ids, owner, pool.image_ids),
    }
    assert set(table["seed"]) == {7}
    for direction, (matrix, matches, query_ids, image_ids, candidate_ids) in ways.items():
        rows = table[table["direction"] == direction].set_index("query_id")
        assert len(rows) == len(query_ids)
        for q, (query, image) in enumerate(zip(query_ids, image_ids, strict=True)):
            best = max(matrix[q][matches[q]])
            row = rows.loc[query]
            assert row["rank"] == 1 + (matrix[q][~matches[q]] >= best).sum()
            assert row["right_id"] == candidate_ids[matrix[q] == best][0]
            wrong = np.where(matches[q], -np.inf, matrix[q])
            assert row["wrong_id"] == candidate_ids[wrong.argmax()]
            assert row["image_id"] == image
    assert (table["rank"] > 1).sum() > 20


@pytest.mark.parametrize(("fold_images", "sizes"), [(10, [10] * 4), (14, [14, 13, 13]), (90, [40])])
def test_folds_are_ranked_as_if_each_were_the_pool(fold_images, sizes):
    pool, _ = found(7)
    ranks = ranks_in_folds(pool, fold_images, SCORES["cosine"])
    assert ranks.folds == len(sizes)
    scores = pool.images @ pool.sentences.T
    owner = ranks.caption_image
    for rows in np.split(np.arange(40), np.cumsum(sizes)[:-1]):
        offered = [c for c in range(len(owner)) if owner[c] in rows]
        for image in rows:
            best = max(scores[image, c] for c in offered if owner[c] == image)
            wrong = [c for c in offered if owner[c] != image]
            assert ranks.image_to_text[image] == 1 + sum(scores[image, c] >= best for c in wrong)
        for c in offered:
            wrong = [image for image in rows if image != owner[c]]
            above = sum(scores[image, c] >= scores[owner[c], c] for image in wrong)
            assert ranks.text_to_image[c] == 1 + above
    found_in_folds = summarise(ranks, resamples=10, confidence=0.9, seed=0)
    assert found_in_folds["text_to_image"]["n_candidates"] == 40 // len(sizes)
    assert found_in_folds["image_to_text"]["n_candidates"] == len(owner) // len(sizes)
    assert found_in_folds["image_to_text"]["r1"] == 100 * np.mean(ranks.image_to_text == 1)


def test_chunks_do_not_change_what_is_found(monkeypatch):
    generator = np.random.default_rng(1)
    queries, candidates = generator.standard_normal((50, 4)), generator.standard_normal((30, 4))
    groups = generator.integers(0, 5, 50), generator.integers(0, 5, 30)
    whole = best_candidates(queries, candidates, groups, SCORES["cosine"])
    monkeypatch.setattr(module, "_CHUNK", 7)
    for side, part in zip(
        whole, best_candidates(queries, candidates, groups, SCORES["cosine"]), strict=True
    ):
        np.testing.assert_array_equal(side, part)


def test_a_pool_of_one_image_has_no_wrong_candidate(tmp_path):
    vectors = Embeddings(
        np.array(["i"], object), np.ones((1, 2)), np.array(["a", "b"], object), np.ones((2, 2))
    )
    captions = pd.DataFrame(
        {"caption_id": ["a", "b"], "image_id": "i", "language": "en", "annotation": "caption"}
    )
    ranked = {1: rank_pools(vectors, captions, {"en": "caption"}, SCORES["cosine"])}
    write_queries(query_table(ranked, SCORES["cosine"]), tmp_path / "q.parquet")
    table = read_queries(tmp_path / "q.parquet")
    assert table["wrong_id"].isna().all()
    assert len(table) == 3
    assert set(table["rank"]) == {1}


def test_contributions_of_images_add_up_to_the_sum_of_recalls():
    (pool, table), (other, noisy) = found(1), found(1, noise=2.0)
    hits = image_hits(pd.concat([noisy.assign(seed=2), table]))
    contributions = image_contributions(hits, "en")
    assert contributions.shape == (2, len(pool.image_ids))
    for row, ranked in zip(contributions, (pool, other), strict=True):
        scores = summarise(ranked.ranks, resamples=10, confidence=0.9, seed=0)
        assert row.sum() == pytest.approx(scores["sum_of_recalls"])
    assert image_contributions(hits, "de").shape == (0, 0)


def test_hits_are_counted_one_query_at_a_time_and_read_back(tmp_path):
    _, table = found(1)
    both = pd.concat([table, found(1, noise=2.0)[1].assign(seed=2), table.assign(language="nan")])
    hits = image_hits(both.sample(frac=1, random_state=0))
    assert list(hits) == HITS
    assert list(zip(hits["language"], hits["seed"], strict=True)) == [
        ("en", 1),
        ("en", 2),
        ("nan", 1),
    ]
    hits.to_csv(tmp_path / "hits.csv", index=False)
    pd.testing.assert_frame_equal(read_hits(tmp_path / "hits.csv"), hits, check_dtype=False)
    for _, row in hits.iterrows():
        asked = both[(both["seed"] == row["seed"]) & (both["language"] == row["language"])]
        images = sorted(asked["image_id"].unique())
        texts = asked.loc[asked["direction"] == "text_to_image", "image_id"]
        assert row["per_image"] == "".join(f"{(texts == image).sum():x}" for image in images)
        for way in ("image_to_text", "text_to_image"):
            width = len(row[way]) // len(images)
            for place, image in enumerate(images):
                own = (asked["image_id"] == image) & (asked["direction"] == way)
                right = sum((r <= 1) + (r <= 5) + (r <= 10) for r in asked.loc[own, "rank"])
                assert int(row[way][width * place : width * (place + 1)], 16) == right


def test_an_image_of_many_captions_takes_more_digits():
    rows = [("a", "image_to_text", "a"), *(("a", "text_to_image", f"a{n}") for n in range(6))]
    rows += [("b", "image_to_text", "b"), ("b", "text_to_image", "b0")]
    table = pd.DataFrame(rows, columns=["image_id", "direction", "query_id"])
    hits = image_hits(table.assign(seed=1, language="en", rank=1))
    assert hits["text_to_image"].tolist() == ["1203"]
    assert hits["per_image"].tolist() == ["61"]
    np.testing.assert_allclose(image_contributions(hits, "en"), [[300, 300]])


@pytest.mark.parametrize(("images", "captions"), [(1, 5), (2, 16), (3, 16), (2, 300)])
def test_equal_numbers_of_captions_are_read_back(images, captions):
    rows = [(f"i{n}", "image_to_text", f"i{n}", 1) for n in range(images)]
    rows += [
        (f"i{n}", "text_to_image", f"i{n}/{k}", 1 + k % 20)
        for n in range(images)
        for k in range(captions)
    ]
    table = pd.DataFrame(rows, columns=["image_id", "direction", "query_id", "rank"])
    found = image_contributions(image_hits(table.assign(seed=1, language="en")), "en")
    recalls = [np.mean(1 + np.arange(captions) % 20 <= k) for k in (1, 5, 10)]
    np.testing.assert_allclose(found, [[(300 + 100 * sum(recalls)) / images] * images])


def test_hits_of_an_earlier_version_are_to_be_made_again(tmp_path):
    hits = image_hits(found(1)[1])
    hits.rename(columns={"per_image": "captions"}).to_csv(tmp_path / "hits.csv", index=False)
    with pytest.raises(
        ContractError, match=r"expected the columns .*per_image.*dvc repro evaluate"
    ):
        read_hits(tmp_path / "hits.csv")
    hits.assign(text_to_image="123").to_csv(tmp_path / "hits.csv", index=False)
    with pytest.raises(ContractError, match="each of 40 images in en, seed 1, found 3 digits"):
        read_hits(tmp_path / "hits.csv")
    hits.assign(per_image=41 * "1").to_csv(tmp_path / "hits.csv", index=False)
    with pytest.raises(ContractError, match="each of 40 images in en, or one for all, found 41"):
        read_hits(tmp_path / "hits.csv")


def test_hits_of_1000_images_and_three_seeds_stay_small():
    images = [f"flickr8k:{n}" for n in range(1000)]
    rows = [(i, "image_to_text", i) for i in images]
    rows += [(i, "text_to_image", f"{i}/{n}") for i in images for n in range(5)]
    one = pd.DataFrame(rows, columns=["image_id", "direction", "query_id"])
    table = pd.concat([one.assign(seed=seed) for seed in (1, 2, 3)])
    table["rank"] = np.random.default_rng(0).integers(1, 20, len(table))
    both = pd.concat([table.assign(language="en"), table.assign(language="de")])
    assert len(image_hits(both).to_csv(index=False)) < 13_000


def test_pools_are_told_apart_by_their_queries():
    _, table = found(1)
    other = table["image_id"].where(table["image_id"] != table["image_id"].iloc[0], "new")
    digests = {
        pool_of(image_hits(queries), "en")
        for queries in (table, table[table["query_id"] != "c3"], table.assign(image_id=other))
    }
    assert len(digests) == 3
    assert pool_of(image_hits(table.assign(rank=9)), "en") == pool_of(image_hits(table), "en")
    assert pool_of(image_hits(table), "de") is None


def test_queries_round_trip_and_bad_ones_are_refused(tmp_path):
    _, table = found(1)
    write_queries(table, tmp_path / "q.parquet")
    read = read_queries(tmp_path / "q.parquet")
    assert list(read.columns) == QUERIES.names
    assert len(read) == len(table)
    bad = table.assign(direction="sideways", rank=0)
    bad.loc[0, "right_id"] = ""
    with refused("4 problem", "a direction not in", "a rank below 1", "no right_id", "repeated"):
        write_queries(pd.concat([bad, bad.iloc[:1]]), tmp_path / "bad")
    assert not (tmp_path / "bad").exists()
    with pytest.raises(ContractError, match="are missed, but name no wrong candidate"):
        write_queries(table.assign(rank=2, wrong_id=None), tmp_path / "bad")
