"""A model that is queried by translations: as by captions with the same words."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import tiny
import torch
from graph import ROOT, read_yaml
from lone_stage import run_stage
from pydantic import TypeAdapter
from refusals import refused

from pipeline_lib.contract.features import write_features
from pipeline_lib.contract.published import read_published
from pipeline_lib.contract.queries import read_queries
from pipeline_lib.contract.tables import write_captions, write_images
from pipeline_lib.evaluation.retrieval.recalls import retrieval_ranks, summarise
from pipeline_lib.settings.evaluations import RetrievalEvaluation
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import SettingsError
from pipeline_lib.settings.synthesis import Translation
from pipeline_lib.settings.translated_queries import TranslatedQueries
from stages import translated_queries as stage

BOOTSTRAP = {"resamples": 50, "confidence": 0.9, "seed": 1}
RETRIEVAL = RetrievalEvaluation(
    split="val", bootstrap_samples=50, confidence=0.9, seed=1, fold_images=1000
)
TRANSLATION = {
    "dataset": "toy", "source_language": "en", "annotation": "caption", "target_language": "de",
    "engine": "file", "model": "ready.tsv",
}  # fmt: skip


def machine(captions):
    """Return German captions as if they translated English ones, one per image."""
    german = captions[(captions["language"] == "de") & (captions["position"] == 0)]
    return german.assign(
        caption_id=german["caption_id"] + "/mt",
        annotation="machine",
        source_caption_id=german["caption_id"].str.replace("/de/", "/en/"),
    )


def test_translations_query_as_captions_with_the_same_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = tiny.recipe(seeds=[1, 2])
    pairs, features = tiny.pairs(), tiny.features()
    captions = pairs[pairs["split"] == "val"].drop(columns=["set", "seed"])
    captions = captions.assign(text=captions["tokens"].map(" ".join))
    translated = machine(captions)
    elsewhere = translated.assign(
        caption_id=translated["caption_id"] + "-train",
        image_id=translated["image_id"] + "-train",
        split="train",
    )
    known = pd.concat([captions, translated, elsewhere])
    write_captions(known, Path("data/captions/toy_de.parquet"))
    images = known[["image_id", "split"]].drop_duplicates("image_id")
    images = images.assign(dataset="tiny", path=images["image_id"] + ".jpg")
    write_images(images, Path("data/images/toy_de.parquet"))
    write_features(features, Path("data/features/tiny.h5"))
    models = {seed: tiny.space(recipe, seed, pairs) for seed in recipe.seeds}
    for seed, model in models.items():
        model.save(Path(f"data/models/tried/seed-{seed}"), tiny.PREPROCESSING, {})
    chosen = TranslatedQueries(recipe="tried", features="tiny", translation="toy_de")
    translation = TypeAdapter(Translation).validate_python(TRANSLATION)
    sections = {"translations": {"toy_de": translation}, "translated_queries": {"en_to_de": chosen}}
    evaluations = SimpleNamespace(retrieval=RETRIEVAL)
    sections |= {"recipe": {"tried": recipe}.get, "evaluations": evaluations}
    run_stage(stage, "en_to_de", monkeypatch, **sections)
    report = json.loads(Path("metrics/reports/translated_queries/en_to_de.json").read_text())
    assert (report["recipe"], report["source_language"], report["target_language"]) == (
        "tried", "en", "de",
    )  # fmt: skip

    ids = list(captions["image_id"].unique())
    place = {name: row for row, name in enumerate(features.image_ids)}
    for seed, model in models.items():
        tokens, lengths = model.vocabulary.encode_all(list(translated["tokens"]), "de")
        sentences = model.embed_tokens(
            torch.from_numpy(tokens).long(), torch.from_numpy(lengths).long(), "de"
        ).numpy()
        shown = torch.from_numpy(features.vectors[[place[name] for name in ids]])
        vectors = model.embed_features(shown).numpy()
        ranks = retrieval_ranks(vectors, ids, sentences, list(translated["image_id"]))
        expected = summarise(ranks, **BOOTSTRAP)
        found = report["per_seed"][str(seed)]
        assert found["sum_of_recalls"] == pytest.approx(expected["sum_of_recalls"], abs=1e-3)
        assert found["text_to_image"]["mean_rank"] == pytest.approx(
            expected["text_to_image"]["mean_rank"], abs=1e-3
        )
    queries = read_queries(Path("data/translated_queries/en_to_de.parquet"))
    assert set(queries["seed"]) == {1, 2}
    by_text = queries[(queries["seed"] == 1) & (queries["direction"] == "text_to_image")]
    assert set(by_text["query_id"]) == set(translated["caption_id"])


def test_names_that_do_not_fit_are_refused(tmp_path):
    content = read_yaml(ROOT / "params.yaml")
    right = content["translated_queries"]["world_en_to_de"]
    content["translated_queries"] = {
        "reads_english": {**right, "recipe": "kadar_en"},
        "reads_both": {**right, "recipe": "kadar_en_de_translated_c2c"},
        "nobody": {**right, "recipe": "none_such", "features": "none_such"},
    }
    shutil.copy(ROOT / "papers.yaml", tmp_path)
    path = tmp_path / "params.yaml"
    path.write_text(json.dumps(content), encoding="utf-8")
    with refused(
        "translated_queries.reads_english.recipe: kadar_en does not read de",
        "translated_queries.reads_both.recipe: expected a recipe that needs a translator, found "
        "kadar_en_de_translated_c2c, which reads en itself",
        "translated_queries.nobody.recipe: nothing is called 'none_such'",
        "translated_queries.nobody.features: nothing is called 'none_such'",
        by=SettingsError,
    ):
        load_settings(path)


def test_the_paper_translates_into_the_language_of_its_english_model():
    """Table 4b of Kim et al. 2020: each printed figure is of an entry from its language."""
    home = ROOT / "studies/multi30k"
    settings = load_settings(home / "params.yaml")
    published = read_published(home / "published.csv")
    printed = published[published["task"] == "translated_queries"]
    entries = {
        (chosen.recipe, settings.translations[chosen.translation].source_language)
        for chosen in settings.translated_queries.values()
        if settings.translations[chosen.translation].target_language == "en"
    }
    assert entries == set(zip(printed["recipe"], printed["language"], strict=True))
    for recipe, _ in entries:
        assert settings.recipe(recipe).languages == ["en"]
