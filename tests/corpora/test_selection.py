"""The training selection: halves, captions per image, languages and kinds."""

import hashlib
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lone_stage import run_stage
from refusals import refused

from pipeline_lib.contract import tables
from pipeline_lib.corpora import selection
from pipeline_lib.settings.corpora import PairSet
from stages import pairs as stage


def select(captions, *, kinds, validation=None, excluded=(), **options):
    validation = kinds if validation is None else validation
    options |= {"validation": validation, "excluded": excluded}
    return selection.select(captions, kinds=kinds, **options)


SEEDS = range(20)
IMAGES = {"train": 41, "val": 6, "test": 5}


def table(images: dict[str, int] = IMAGES) -> pd.DataFrame:
    """Return EN and DE with 5 captions each, DE and FR with a translation; FR for even images."""
    rows = []
    for split, count in images.items():
        for number in range(count):
            image = f"set:{split}{number}"
            kinds = [("en", "caption", 5), ("de", "caption", 5), ("de", "translation", 1)]
            for language, annotation, captions in [*kinds, ("fr", "translation", (number + 1) % 2)]:
                for position in range(captions):
                    name = f"{image}/{language}/{annotation}/{position}"
                    rows.append((name, image, split, language, annotation, position))
    columns = ["caption_id", "image_id", "split", "language", "annotation", "position"]
    return pd.DataFrame(rows, columns=columns)


def ids(captions: pd.DataFrame, *, split: str = "train", language: str | None = None) -> set[str]:
    rows = captions[captions["split"] == split]
    return set(
        rows["caption_id"] if language is None else rows[rows["language"] == language]["caption_id"]
    )


def trained_images(captions: pd.DataFrame) -> set[str]:
    return set(captions.loc[captions["split"] == "train", "image_id"])


def half_of(captions: pd.DataFrame, which: str, seed: int, kinds: dict, excluded=()) -> set[str]:
    """Return the training images of half of the captions."""
    options = {"per_image": 1, "images": f"{which}_half", "excluded": excluded, "seed": seed}
    return trained_images(select(captions, kinds=kinds, **options))


EVERYTHING = {"en": ["caption"], "de": ["caption", "translation"], "fr": ["translation"]}
"""Kinds that select every row of :func:`table`."""


def test_selecting_everything_drops_nothing_but_the_other_splits():
    captions = table()
    chosen = select(captions, kinds=EVERYTHING, per_image=6, images="all", seed=0)
    pd.testing.assert_frame_equal(chosen, captions[captions["split"] != "test"])


@pytest.mark.parametrize("seed", SEEDS)
def test_halves_are_disjoint_cover_all_and_are_equal_in_every_language(seed):
    captions = table()
    all_images = trained_images(captions)
    halves = {
        (language, half): half_of(captions, half, seed, {language: ["caption"]})
        for language in ("en", "de")
        for half in ("first", "second")
    }
    assert halves["en", "first"] == halves["de", "first"]
    assert halves["en", "second"] == halves["de", "second"]
    assert not halves["en", "first"] & halves["de", "second"]
    assert halves["en", "first"] | halves["de", "second"] == all_images
    assert sorted(map(len, halves.values())) == [20, 20, 21, 21]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_language_of_few_images_keeps_the_halves_of_the_others(seed):
    captions = table()
    chosen = half_of(captions, "first", seed, {"fr": ["translation"]})
    assert chosen
    assert not chosen & half_of(captions, "second", seed, {"en": ["caption"]})


@pytest.mark.parametrize("seed", SEEDS)
def test_halves_are_those_of_the_whole_data_set_where_images_are_excluded(seed):
    captions = table()
    excluded = {"set:train3", "set:train4", "set:train5", "set:train6", "set:val1"}
    for half in ("first", "second"):
        whole = half_of(captions, half, seed, EVERYTHING)
        assert half_of(captions, half, seed, EVERYTHING, excluded) == whole - excluded


def write_inputs(captions: pd.DataFrame, excluded: set[str]) -> None:
    """Write what the stage reads: a data set, and some of its images, those of another one."""
    rows = captions.assign(dataset="set", text="A dog.", source_caption_id=None)
    rows["tokens"] = [["a", "dog"]] * len(rows)
    rows["position"] = rows["position"].astype("int16")
    tables.write_captions(rows[tables.CAPTIONS.names], Path("data/captions/set.parquet"))
    images = rows[rows["image_id"].isin(excluded)].drop_duplicates("image_id").assign(path="a.jpg")
    tables.write_images(images[tables.IMAGES.names], Path("data/images/other.parquet"))
    tables.write_images(images[tables.IMAGES.names][:0], Path("data/images/none.parquet"))
    tables.write_pairs(tables.empty_pairs(), Path("data/pairs/none.parquet"))


def test_pair_sets_of_which_one_excludes_images_have_disjoint_halves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    captions = table()
    write_inputs(captions, {f"set:train{number}" for number in range(9)})
    common = {"dataset": "set", "captions": {"en": ["caption"]}, "per_image": 1}
    common |= {"validation": "same", "plus": "none"}
    halves = {"first": "other", "second": "none"}
    sets = {
        half: PairSet(**common, images=f"{half}_half", exclude_images=excluded)
        for half, excluded in halves.items()
    }
    for half in halves:
        run_stage(stage, half, monkeypatch, pairs=sets, selection_seed=1)
    first, second = (
        trained_images(tables.read_pairs(Path(f"data/pairs/{half}.parquet"))) for half in halves
    )
    assert not first & second
    assert second == half_of(captions, "second", 1, {"en": ["caption"]})


def test_excluded_images_have_no_caption_and_leave_the_others_as_they_are():
    captions = table()
    options = {"kinds": EVERYTHING, "per_image": 2, "images": "all", "seed": 3}
    excluded = {"set:train3", "set:val1"}
    whole = select(captions, **options)
    expected = whole[~whole["image_id"].isin(excluded)]
    pd.testing.assert_frame_equal(select(captions, **options, excluded=excluded), expected)
    everything = captions["image_id"].unique()
    with refused("4 problem(s)", "en/caption"):
        select(captions, **options, excluded=everything)


def test_halves_differ_between_seeds():
    captions = table()
    halves = {frozenset(half_of(captions, "first", seed, EVERYTHING)) for seed in SEEDS}
    assert len(halves) == len(SEEDS)


@pytest.mark.parametrize("per_image", range(1, 7))
def test_so_many_captions_are_drawn_per_image_and_language(per_image):
    chosen = select(table(), kinds=EVERYTHING, per_image=per_image, images="all", seed=3)
    train = chosen[chosen["split"] == "train"]
    counts = train.groupby(["language", "image_id"]).size()
    assert set(counts["en"]) == {min(per_image, 5)}
    assert set(counts["de"]) == {min(per_image, 6)}
    assert set(counts["fr"]) == {1}
    assert len(counts["en"]) == len(counts["de"]) == IMAGES["train"]


def test_all_captions_of_an_image_may_be_taken():
    captions = table()
    taken = ids(select(captions, kinds=EVERYTHING, per_image="all", images="all", seed=3))
    assert taken == ids(captions[captions["split"].isin(["train", "val"])])
    halves = [
        ids(select(captions, kinds=EVERYTHING, per_image=count, images="first_half", seed=3))
        for count in ("all", 1000)
    ]
    assert halves[0] == halves[1] < taken


def test_a_smaller_draw_is_part_of_a_larger_one():
    draws = [
        ids(select(table(), kinds=EVERYTHING, per_image=count, images="all", seed=3))
        for count in range(1, 7)
    ]
    assert all(fewer < more for fewer, more in itertools.pairwise(draws))


def test_the_draw_is_uniform_over_positions_and_pairs():
    captions = table({"train": 5000, "val": 1})
    chosen = select(captions, kinds={"en": ["caption"]}, per_image=2, images="all", seed=11)
    train = chosen[chosen["split"] == "train"]
    pairs = Counter(train.groupby("image_id")["position"].apply(frozenset))
    observed = np.array(list(pairs.values()))
    expected = 5000 / 10
    assert len(pairs) == 10
    # 99.9 % quantile of chi-squared with 9 degrees of freedom
    assert ((observed - expected) ** 2 / expected).sum() < 27.88


def test_the_draw_depends_on_the_seed_only():
    captions = table()
    options = {"per_image": 2, "images": "first_half", "seed": 5}
    chosen = select(captions, kinds=EVERYTHING, **options)
    shuffled = captions.sample(frac=1, random_state=1)
    assert ids(select(shuffled, kinds=EVERYTHING, **options)) == ids(chosen)
    alone = select(captions, kinds={"en": ["caption"]}, **options)
    assert ids(alone) == ids(chosen, language="en")
    other = select(captions, kinds=EVERYTHING, **{**options, "seed": 6})
    assert ids(other) != ids(chosen)


def test_the_draw_is_the_same_on_every_platform():
    captions = table({"train": 4, "val": 1})
    chosen = select(captions, kinds={"en": ["caption"]}, per_image=1, images="first_half", seed=7)
    assert ids(chosen) == {"set:train1/en/caption/0", "set:train2/en/caption/1"}


def test_the_draw_takes_the_lowest_hashes_under_the_seed():
    captions = table()
    seed, half, per_image = 13, IMAGES["train"] // 2, 2

    def place(name: str) -> str:
        return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()

    expected = set()
    for image in sorted(trained_images(captions), key=place)[half:]:
        for language in EVERYTHING:
            mine = captions[(captions["image_id"] == image) & (captions["language"] == language)]
            expected |= set(sorted(mine["caption_id"], key=place)[:per_image])
    chosen = select(
        captions, kinds=EVERYTHING, per_image=per_image, images="second_half", seed=seed
    )
    assert ids(chosen) == expected


@pytest.mark.parametrize(
    ("per_image", "images"), [(1, "all"), (1, "first_half"), (2, "second_half")]
)
def test_validation_rows_are_never_altered(per_image, images):
    captions = table()
    kinds = {"de": ["translation"], "en": ["caption"]}
    chosen = select(captions, kinds=kinds, per_image=per_image, images=images, seed=2)
    val = captions[captions["split"] == "val"]
    asked = (val["language"] == "en") | (val["annotation"] == "translation") & (
        val["language"] == "de"
    )
    pd.testing.assert_frame_equal(chosen[chosen["split"] == "val"], val[asked])
    assert set(chosen["split"]) == {"train", "val"}


def test_languages_and_kinds_without_training_captions_are_all_named():
    kinds = {"en": ["caption", "machine"], "ja": ["caption"]}
    with refused("2 problem(s)", "en/machine", "ja/caption"):
        select(table(), kinds=kinds, per_image=5, images="all", seed=0)


def test_validation_captions_are_chosen_apart():
    """half_aligned counted the German ones of its plus twice, half_translated a machine's."""
    captions = table()
    options = {"kinds": {"de": ["caption"]}, "per_image": 5, "images": "first_half", "seed": 1}
    same, none, other = (
        select(captions, validation=kinds, **options)
        for kinds in (None, {}, {"de": ["translation"], "en": ["caption"]})
    )
    assert ids(same) == ids(none) == ids(other) != set()
    assert not ids(none, split="val")
    val = captions[captions["split"] == "val"]
    kind = val["language"] + " " + val["annotation"]
    assert ids(same, split="val") == set(val["caption_id"][kind == "de caption"])
    expected = kind.isin(["de translation", "en caption"])
    assert ids(other, split="val") == set(val["caption_id"][expected])
