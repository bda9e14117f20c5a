"""A recipe trained on less: what each run sees, and what it is to do without."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny
import tiny_study
from click.testing import CliRunner
from refusals import refused

from pipeline_lib.contract.features import Features, write_features
from pipeline_lib.contract.tables import write_pairs
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.running.publishing import publish
from pipeline_lib.settings.growth import Growth
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import SettingsError
from pipeline_lib.settings.text import LatentSemanticVectors
from pipeline_lib.training import growth
from pipeline_lib.training.growth import COLUMNS, Growing, Run, of_recipe, runs, training_photos
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.material import Material
from stages import growth as stage

PHOTOS = 40
OPTIONS = {"method": "latent_semantic", "source": "data/pairs/mine.parquet", "pairs": "none"}
OPTIONS |= {"dim": 4, "min_count": 1}
ENTRY = {"pairs": "mine", "features": "world_lite0", "word_vectors": "mine"}
ENTRY |= {"photos": [0.25, 0.5], "seeds": [1]}


def captions(photos=PHOTOS, text=8):
    """Return captions of photos, and training captions of photos that are never seen."""
    rows = [
        (split, number, language)
        for split, numbers in (("train", range(photos + text)), ("val", range(1000, 1010)))
        for number in numbers
        for language in ("en", "de")
    ]
    common = {"dataset": "world", "annotation": "caption", "position": 0, "text": ""}
    return pd.DataFrame(
        {
            **common,
            "caption_id": f"{number}/{language}",
            "image_id": f"mine:{number:04}",
            "split": split,
            "language": language,
            "tokens": [f"{language}{number % 7}", f"{language}x{number % 5}", language],
            "source_caption_id": None,
            "set": "mine",
            "seed": None,
        }
        for split, number, language in rows
    )


def features(photos=PHOTOS):
    numbers = [*range(photos), *range(1000, 1010)]
    vectors = np.random.default_rng(0).normal(size=(len(numbers), 20)).astype(np.float32)
    return Features(np.array([f"mine:{n:04}" for n in numbers], object), vectors, {})


@pytest.fixture
def whole():
    recipe = tiny.polyview(word_dim=4, max_epochs=10, pairs="mine", word_vectors="mine")
    return Material(recipe, captions(), features(), tiny.lexicon()[:0], {}, Path(), {})


def part(whole, share=1.0, languages=("en", "de"), drawing_seed=1):
    options = LatentSemanticVectors.model_validate(OPTIONS)
    growing = Growing("mine", whole, options, drawing_seed, validation_scores)
    return growing.material(Run(1, share, languages))


def test_runs_have_fewer_photos_and_then_fewer_languages():
    entry = Growth.model_validate(ENTRY | {"seeds": [1, 2]})
    found = runs(entry, ["en", "de", "fr"])
    every = ("en", "de", "fr")
    expected = [(0.25, every), (0.5, every), (1.0, ("en",)), (1.0, ("en", "de"))]
    assert found == [Run(seed, *less) for less in expected for seed in (1, 2)]


def test_a_share_of_the_photos_holds_the_smaller_ones_and_all_text_and_validation(whole):
    quarter, half = (part(whole, share) for share in (0.25, 0.5))
    photos = [set(training_photos(each)) for each in (quarter, half, whole)]
    assert [*map(len, photos)] == [10, 20, 40]
    assert photos[0] < photos[1] < photos[2]
    assert photos[1] != set(sorted(photos[2])[:20])
    assert set(training_photos(part(whole, 0.5, drawing_seed=2))) != photos[1]
    for each in (quarter, half):
        kept = each.pairs[~each.pairs["image_id"].isin(photos[2])]
        unseen = whole.pairs[~whole.pairs["image_id"].isin(photos[2])]
        pd.testing.assert_frame_equal(kept, unseen)
        assert len(unseen) == 2 * (8 + 10)


def test_fewer_languages_leave_all_photos(whole):
    english = part(whole, languages=("en",))
    assert training_photos(english) == training_photos(whole)
    assert set(english.pairs["language"]) == {"en"}
    assert english.recipe.languages == ["en"]
    assert english.word_vectors.keys() == {"en"}


def test_word_vectors_know_nothing_of_what_is_left_out(whole):
    taken = set(training_photos(part(whole, 0.5)))
    changed = whole.pairs.copy()
    left_out = ~changed["image_id"].isin(taken) & (changed["split"] == "train")
    left_out &= changed["image_id"].isin(whole.features.image_ids)
    changed.loc[left_out, "tokens"] = pd.Series(
        [["other"]] * int(left_out.sum()), changed.index[left_out]
    )
    altered = Material(whole.recipe, changed, whole.features, whole.lexicon, {}, Path(), {})
    for share, same in ((0.5, True), (1.0, False)):
        found, other = (part(each, share).word_vectors["en"] for each in (whole, altered))
        assert (found[0] == other[0] and np.array_equal(found[1], other[1])) is same


def test_updates_follow_the_root_of_the_share(whole):
    assert [part(whole, share).recipe.max_epochs for share in (0.25, 0.5, 1.0)] == [20, 14, 10]


def test_decays_keep_their_place_among_the_epochs():
    recipe = tiny.polyview(schedule="steps", decay_epochs=[5, 8], decay_factor=0.1, max_epochs=10)
    whole = Material(recipe, captions(), features(), tiny.lexicon()[:0], {}, Path(), {})
    assert part(whole, 0.25).recipe.decay_epochs == [10, 16]
    assert part(whole).recipe.decay_epochs == [5, 8]


def test_scores_are_those_of_the_weights_that_were_kept(whole):
    sums = pd.DataFrame(
        {
            "recall_sum_a_en": [90.0, 100.0, 1.0],
            "recall_sum_a_de": [5.0, 20.0, 1.0],
            "recall_sum_b_en": [10.0, 40.0, 1.0],
        }
    )
    history = sums.assign(
        update=[5, 10, 15], image_to_text_r1_a_en=99.0, recall_sum=sums.sum(axis=1)
    )
    seeds = pd.concat([history.assign(seed=seed) for seed in (1, 2)])
    found = of_recipe(seeds, whole)
    assert [*found.columns] == COLUMNS
    assert found.to_numpy().tolist() == [[1, 40, 2, "en", 70.0], [1, 40, 2, "de", 20.0]]


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Write a study whose recipe is trained in a moment."""
    tiny_study.make(tmp_path)
    params = json.loads((tmp_path / "params.yaml").read_text())
    pairs = params["pairs"][params["recipes"][tiny_study.NAME]["pairs"]]
    names = {"dataset": "world", "pairs": "mine", "features": "world_lite0", "word_vectors": "mine"}
    sizes = {"word_dim": 4, "max_epochs": 2, "batch_size": 8, "validate_every_updates": 5}
    recipe = tiny.polyview(paper="polyview", **names, **sizes)
    params["recipes"] = {"mine": recipe.model_dump()}
    params["pairs"]["mine"] = pairs
    params["word_vectors"] = {"mine": OPTIONS}
    params["growth"] = {"mine": dict(ENTRY)}
    (tmp_path / "params.yaml").write_text(json.dumps(params))
    write_pairs(captions(), tmp_path / "data/pairs/mine.parquet")
    write_features(features(), tmp_path / "data/features/world_lite0.h5", shard_rows=30)
    history = {"update": 5, "seed": 1, "recall_sum": 70.0}
    history |= {"recall_sum_mine_en": 30.0, "recall_sum_mine_de": 40.0}
    curve = tmp_path / "metrics/reports/recipes/mine/training.csv"
    curve.parent.mkdir(parents=True)
    pd.DataFrame([history]).to_csv(curve, index=False)
    monkeypatch.chdir(tmp_path)
    return params


def test_the_stage_scores_each_run_and_takes_the_whole_from_the_recipe(study, monkeypatch):
    monkeypatch.setattr(stage, "cores", lambda: 1)
    CliRunner().invoke(stage.main, ["mine"], catch_exceptions=False)
    found = pd.read_csv("metrics/reports/growth/mine.csv")
    assert found[["photos", "languages", "language"]].to_numpy().tolist() == [
        [10, 2, "en"], [10, 2, "de"], [20, 2, "en"], [20, 2, "de"], [40, 1, "en"],
        [40, 2, "en"], [40, 2, "de"],
    ]  # fmt: skip
    assert found["recall_sum"].tolist()[-2:] == [30.0, 40.0]
    assert found["recall_sum"].between(0, 600).all()


def test_a_run_that_ended_is_not_trained_again(study, monkeypatch):
    trained = []
    learn = growth.fit
    devices, to_best_device = [], Learner.to_best_device
    monkeypatch.setattr(
        Learner, "to_best_device", lambda self: devices.append(1) or to_best_device(self)
    )
    monkeypatch.setattr(
        stage, "on_all_cores", lambda function, items, at_once: map(function, items)
    )
    monkeypatch.setattr(growth, "fit", lambda *a: trained.append(a[5]) or learn(*a))
    monkeypatch.setattr(stage, "publish", _fails_on("mine.csv"))
    with pytest.raises(OSError, match="full"):
        CliRunner().invoke(stage.main, ["mine"], catch_exceptions=False)
    assert len(trained) == len(devices) == 3
    assert not [*Path(".resume").rglob("checkpoint.pt")]
    assert trained[0].startswith("mine: 25.0% of the photos, en de, seed 1")
    monkeypatch.setattr(stage, "publish", publish)
    monkeypatch.setattr(growth, "fit", lambda *a: pytest.fail("trained again"))
    CliRunner().invoke(stage.main, ["mine"], catch_exceptions=False)


def _fails_on(name):
    def publish_or_fail(path):
        if path.name == name:
            raise OSError("the disk is full")
        return publish(path)

    return publish_or_fail


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": "world_six"}, "growth.mine.pairs: the recipe has mine, found world_six"),
        ({"seeds": [4]}, "growth.mine.seeds: the recipe has [1], found [4]"),
        ({"photos": [1.5]}, "growth.mine.photos.0"),
        ({"word_vectors": "random"}, "method: latent_semantic and source: data/pairs/mine.parquet"),
    ],
)
def test_what_an_entry_contradicts_is_said(study, change, message):
    study["growth"]["mine"] |= change
    Path("params.yaml").write_text(json.dumps(study))
    with refused(message, by=SettingsError):
        load_settings()


def test_an_entry_names_a_recipe(study):
    study["growth"] = {"mien": ENTRY}
    Path("params.yaml").write_text(json.dumps(study))
    with pytest.raises(SettingsError, match="Did you mean 'mine'"):
        load_settings()
