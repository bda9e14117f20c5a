"""No recipe is tested on photos that it, or a model that it builds upon, learnt."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from graph import ROOT

from pipeline_lib.checks.data import Data
from pipeline_lib.checks.known import Known
from pipeline_lib.checks.leaks import leaks
from pipeline_lib.checks.shown import translations_of
from pipeline_lib.checks.translated import reranking_problems, translation_problems
from pipeline_lib.corpora.selection import half_of
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.pseudopairs import Side

KINDS = [("en", "caption"), ("de", "caption"), ("en", "translation"), ("de", "translation")]


def data(parallel=None, **splits):
    """Return what is known of a data set whose photos have captions of all kinds.

    Each of the translators in ``parallel`` learns from all of them.
    """
    images = pd.DataFrame(
        [(photo, split) for split, photos in splits.items() for photo in photos],
        columns=["image_id", "split"],
    )
    captioned = {(split, *kind): set(photos) for split, photos in splits.items() for kind in KINDS}
    counts = {kind: len(photos) for kind, photos in captioned.items()}
    text = {name: {split: {*ids} for split, ids in splits.items()} for name in parallel or ()}
    return Data(counts, captioned, images["split"].value_counts().to_dict(), images, text)


KNOWN = {
    "flickr8k": data(train="ab", val="c", test="d"),
    "multi30k": data(train="acde", val="b", test="f"),  # has c and d, which flickr8k tests on
    "photos_of_multi30k": data(train="ac", val="d", test="b"),
}


@pytest.fixture
def study(monkeypatch):
    """Return a function that finds the leaks of flickr8k with some entries changed."""
    monkeypatch.chdir(ROOT / "studies/flickr8k")
    settings = load_settings()

    def found(known=KNOWN, **sections):
        changed = {
            section: getattr(settings, section)
            | {
                name: {**entry, **changes}
                if isinstance(entry := getattr(settings, section)[name], dict)
                else entry.model_copy(update=changes)
                for name, changes in entries.items()
            }
            for section, entries in sections.items()
        }
        study = settings.model_copy(update=changed)
        return {each.partition(":")[0]: each for each in leaks(Known(study, known))}

    return found


def test_a_study_by_one_split_has_none(study):
    assert study() == {}


def test_pairs_of_another_split_are_named_with_their_photos(study):
    found = study(pairs={"flickr8k_en": {"dataset": "multi30k"}})
    assert found["recipes.vse_en"] == (
        "recipes.vse_en: it learns from flickr8k_en, which shows 2 photos (first: c) that flickr8k "
        "validates or tests on. Name flickr8k in exclude_images of flickr8k_en, or pairs of its "
        "own split"
    )
    hidden = {"flickr8k_en": {"dataset": "multi30k", "exclude_images": "flickr8k"}}
    assert "recipes.vse_en" not in study(pairs=hidden)


def test_a_model_that_a_recipe_starts_from_counts(study):
    found = study(recipes={"vse_de": {"initial": "multi30k_split_c2c"}})
    assert [*found] == ["recipes.vse_de"]
    assert (
        "multi30k_split_c2c, whose weights it starts from, learnt from " in found["recipes.vse_de"]
    )
    assert "shows 2 photos (first: c)" in found["recipes.vse_de"]  # and is validated on d


def test_a_teacher_and_what_it_builds_upon_count(study):
    half = {"half_disjoint": {"initial": "multi30k_split_c2c"}}
    found = study(recipes=half)
    assert {"recipes.half_disjoint", "recipes.half_pseudo", "recipes.half_pseudo_tuned"} <= {*found}
    assert "vse_de" not in "".join(found)
    found = study(pseudopairs={"pseudo": {"teacher": "multi30k_split_c2c"}})
    assert (
        "multi30k_split_c2c, which chose the captions of pseudo, learnt from"
        in (found["recipes.half_pseudo"])
    )


def test_photos_of_lent_captions_count(study):
    lent = {"pseudo": {"captions_of": Side(pairs="flickr8k_de", language="de", facts="none")}}
    other = {"flickr8k_de": {"dataset": "multi30k"}}
    found = study(pseudopairs=lent, pairs=other)
    assert "it learns from pseudo, which shows 2 photos" in found["recipes.half_pseudo"]


def test_weights_may_be_chosen_by_no_photo_that_is_tested_on(study):
    chosen = {"flickr8k_en": {"dataset": "photos_of_multi30k", "exclude_images": "none"}}
    known = KNOWN | {"photos_of_multi30k": data(train="a", val="d", test="b")}
    assert "shows 1 photos (first: d)" in study(known, pairs=chosen)["recipes.vse_en"]
    hidden = {"flickr8k_en": chosen["flickr8k_en"] | {"exclude_images": "flickr8k"}}
    assert "recipes.vse_en" not in study(known, pairs=hidden)
    known["photos_of_multi30k"] = data(train="a", val="c", test="b")  # which flickr8k validates on
    assert "recipes.vse_en" not in study(known, pairs=chosen)


def test_word_vectors_count(study):
    source = {"flickr8k_fasttext": {"source": "data/pairs/flickr8k_de.parquet"}}
    found = study(word_vectors=source, pairs={"flickr8k_de": {"dataset": "multi30k"}})
    assert "it learns from flickr8k_de" in found["recipes.ame_sym"]


def test_a_teacher_behind_word_vectors_counts(study):
    source = {"flickr8k_fasttext": {"source": "data/pairs/pseudo.parquet"}}
    found = study(word_vectors=source, pseudopairs={"pseudo": {"teacher": "multi30k_split_c2c"}})
    assert (
        "multi30k_split_c2c, which chose the captions of pseudo, learnt from"
        in (found["recipes.ame_sym"])
    )


def test_of_a_half_only_its_own_photos_count(study):
    ids = [f"p{number}" for number in range(8)]
    halves = [{*half_of(np.array(ids, object), half, 1)} for half in ("first_half", "second_half")]
    assert halves[0] | halves[1] == {*ids}
    tested = min(halves[1])
    known = KNOWN | {
        "multi30k": data(train=ids),
        "flickr8k": data(train="ab", val="c", test=[tested]),
    }
    for half, has_it in (("first_half", False), ("second_half", True), ("all", True)):
        changes = {"flickr8k_en": {"dataset": "multi30k", "images": half}}
        assert ("recipes.vse_en" in study(known, pairs=changes)) == has_it


def test_what_is_not_there_yet_is_no_leak(study):
    changes = {"flickr8k_en": {"dataset": "multi30k"}}
    for name in KNOWN:
        known = {other: data for other, data in KNOWN.items() if other != name}
        assert ("recipes.vse_en" in study(known, pairs=changes)) == (name == "photos_of_multi30k")


def test_photos_that_a_translator_learnt_count(study):
    """Its translations of other photos say what it read of those that are tested on."""
    others = data(train="xyz")
    known = KNOWN | {
        "others": others,
        "multi30k": data(train="acde", val="b", test="f", parallel=["en_de"]),
    }
    machine = {("train", "de", "machine"): {"x"}}
    known["flickr8k_machine"] = replace(others, captioned=others.captioned | machine)
    own = {"dataset": "flickr8k_machine", "captions": {"de": ["machine"]}, "validation": {}}

    def found(captions=("machine",), known=known, **excluded):
        nothing = {"exclude_images": "none", "exclude_pairs": "none"}
        said = study(
            known,
            pairs={"flickr8k_de": own | {"captions": {"de": [*captions]}}},
            translations={"flickr8k_machine": {"dataset": "others"}},
            translators={"en_de": nothing | excluded},
        )
        return said.get("recipes.vse_de")

    assert found() == (
        "recipes.vse_de: it learns from flickr8k_de, translated by en_de, which learnt 2 photos "
        "(first: c) that flickr8k validates or tests on. Name flickr8k in exclude_images of en_de"
    )
    assert not found(exclude_images="flickr8k", exclude_pairs="multi30k_split_de")
    assert "learnt 1 photos (first: c)" in found(exclude_images="photos_of_multi30k")
    assert not found(exclude_pairs="multi30k_split_de")  # a and c, and d, which it validates on
    assert not found(captions=["caption"])  # people's alone
    assert not found(known={k: v for k, v in known.items() if k != "multi30k"})


def test_a_translator_of_a_data_set_learnt_none_of_its_photos(monkeypatch):
    """The stage that translates refuses it, once the translator has been trained."""
    monkeypatch.chdir(ROOT / "studies/flickr8k")
    settings = load_settings()
    known = {**KNOWN, "multi30k": data(train="acde", val="b", test="f", parallel=["en_de"])}
    assert [*translation_problems(Known(settings, known))] == []
    changes = {"exclude_images": "none", "exclude_pairs": "none"}
    seeing = settings.translators["en_de"].model_copy(update=changes)
    changed = settings.model_copy(update={"translators": settings.translators | {"en_de": seeing}})
    assert [*translation_problems(Known(changed, known))] == [
        "translations.flickr8k_machine.model: en_de learnt 2 photos (first: c) that flickr8k "
        "validates or tests on. Name it in exclude_images of en_de"
    ]


def test_translations_of_translations_are_two_translators_work():
    first = SimpleNamespace(
        dataset="photos", source_language="en", annotation="caption", target_language="de"
    )
    french = SimpleNamespace(dataset="again", captions={"fr": ["machine"]}, validation_kinds={})

    def found(annotation):
        again = SimpleNamespace(
            dataset="first", source_language="de", annotation=annotation, target_language="fr"
        )
        translations = {"first": first, "again": again}
        study = SimpleNamespace(translations=translations, pseudopairs={}, pairs={"fr": french})
        return [made.target_language for made in translations_of(study, "fr")]

    assert found("machine") == ["fr", "de"]
    assert found("caption") == ["fr"]  # of German that people wrote


def test_a_photo_that_one_set_trains_on_and_another_validates_on_is_named(study):
    known = KNOWN | {"others": data(train="xyz", val="a")}
    also = {"flickr8k_de": {"dataset": "others", "plus": "flickr8k_en"}}
    assert study(known, pairs=also)["recipes.vse_de.pairs"] == (
        "recipes.vse_de.pairs: flickr8k_en trains on 1 photos (first: a) that flickr8k_de "
        "validates on. Name sets of one split, or the data set of flickr8k_de in exclude_images "
        "of flickr8k_en"
    )
    known["others"] = data(train="xyz", val="u")
    assert "recipes.vse_de.pairs" not in study(known, pairs=also)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({}, {}),
        ({"train": "acf"}, {"images": "f", "sentences": "f"}),  # translations of f are tested
        ({"train": "ace", "val": "f"}, {"images": "f", "sentences": "f"}),
        ({"train": "acb"}, {"images": "b", "sentences": "b"}),  # weights are tuned on those of b
        ({"val": "b"}, {}),  # as a model's may be, too
        ({"train": "acg"}, {"sentences": "g"}),  # no image of g has features
    ],
)
def test_translations_of_photos_that_a_recipe_learnt_are_not_ranked(monkeypatch, changed, named):
    monkeypatch.chdir(ROOT / "studies/flickr8k")
    known = {
        "flickr8k": data(train="ab", val="c", test="df"),
        "multi30k": data(["en_de"], train="ac", val="b", test="fg"),
        "photos_of_multi30k": data(**{"train": "ac", "val": "d", "test": "e"} | changed),
    }
    assert reranked(known) == {
        name: f"rerankings.{name}.recipe: multi30k_split_c2c learns from 1 of the photos whose "
        f"translations multi30k_split_c2c would rank (first: {photo}). Name a recipe that has not "
        "seen them"
        for name, photo in named.items()
    }


def reranked(known, **recipes):
    """Return what is wrong with the re-rankings of two kinds, with some recipes changed."""
    settings = load_settings()
    changed = {name: {**settings.recipes[name], **keys} for name, keys in recipes.items()}
    study = settings.model_copy(update={"recipes": settings.recipes | changed})
    found = reranking_problems(Known(study, known))
    by_name = {each.partition(":")[0].split(".")[1]: each for each in found}
    return {name: by_name[name] for name in ("images", "sentences") if name in by_name}


@pytest.mark.parametrize("learnt", ["", "f"])
def test_translations_of_photos_that_a_recipes_translator_learnt_are_not_ranked(
    monkeypatch, learnt
):
    monkeypatch.chdir(ROOT / "studies/flickr8k")
    settings = load_settings()
    alone = {"dataset": "more", "exclude_images": "none", "exclude_pairs": "none"}
    translators = {"another": settings.translators["en_de"].model_copy(update=alone)}
    by_it = {"model": "data/translators/another"}
    made = {"flickr8k_machine": settings.translations["flickr8k_machine"].model_copy(update=by_it)}
    recipes = {"multi30k_split_c2c": settings.recipes["multi30k_split_c2c"]}
    recipes["multi30k_split_c2c"] |= {"pairs": "half_translated"}
    changed = {"translators": translators, "translations": made, "recipes": recipes}
    study = settings.model_copy(
        update={section: getattr(settings, section) | own for section, own in changed.items()}
    )
    known = {
        "flickr8k": data(train="ae", val="c", test="d"),
        "multi30k": data(["en_de"], train="ac", val="b", test="fg"),
        "photos_of_multi30k": data(train="ac", val="d", test="e"),
        "more": data(["another"], train="x" + learnt, val="y"),
    }
    said = (
        "rerankings.sentences.recipe: multi30k_split_c2c learns from half_translated, translated "
        "by another, which learnt 1 of the photos whose translations multi30k_split_c2c would rank "
        "(first: f). Name a recipe whose translator has not seen them"
    )
    found = [each for each in reranking_problems(Known(study, known)) if ".sentences." in each]
    assert found == ([said] if learnt else [])


def test_translations_of_photos_that_an_initial_model_learnt_are_not_ranked(monkeypatch):
    monkeypatch.chdir(ROOT / "studies/flickr8k")
    known = {
        "flickr8k": data(train="abf", val="c", test="de"),
        "multi30k": data(["en_de"], train="ac", val="b", test="fg"),
        "photos_of_multi30k": data(train="ac", val="d", test="e"),
    }
    assert reranked(known) == {}
    found = reranked(known, multi30k_split_c2c={"initial": "vse_en"})
    assert found["sentences"] == (
        "rerankings.sentences.recipe: vse_en, whose weights it starts from, learnt from 2 of the "
        "photos whose translations multi30k_split_c2c would rank (first: b). Name a recipe that "
        "has not seen them"
    )
