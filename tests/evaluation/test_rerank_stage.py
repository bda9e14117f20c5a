"""Re-ranking with a model's similarities: features, gaps in the images, leaks, and the stage."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from lone_stage import run_stage
from refusals import refused
from sacrebleu.metrics import BLEU
from tiny import model
from translations import draw_lists

from pipeline_lib.contract.features import write_features
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.tables import write_captions, write_pairs
from pipeline_lib.evaluation.reranking import report as reranking_report
from pipeline_lib.evaluation.reranking.lists import check_lists, with_images
from pipeline_lib.evaluation.reranking.nbest import NBest, write_nbest
from pipeline_lib.evaluation.reranking.report import Lists, rerank
from pipeline_lib.evaluation.reranking.similarities import list_similarities, with_own_features
from pipeline_lib.settings.evaluations import RetrievalEvaluation, Significance
from pipeline_lib.settings.rerankings import Reranking
from stages import rerank as stage

RETRIEVAL = RetrievalEvaluation(
    split="test", bootstrap_samples=200, confidence=0.95, seed=1, fold_images=1000
)
EVALUATIONS = SimpleNamespace(
    retrieval=RETRIEVAL,
    significance=Significance(draws=300),
    drawn={**RETRIEVAL.bootstrap, "resamples": 300},
)
VALUES = {
    "translator": "toy",
    "dataset": "toy",
    "recipe": "tiny",
    "seeds": [1, 2],
    "pairs": "tiny",
    "features": "tiny",
    "similarities": ["sentence", "image"],
    "step_cap": 0.01,
    "decay": 0.999,
    "epochs": 10,
    "order_seed": 1,
    "meteor": False,
}
SETTINGS = Reranking.model_validate(VALUES)


def nbest(sizes):
    """Return lists of translations of tiny's captions, of these sizes."""
    generator = np.random.default_rng(0)
    sentence = np.repeat(np.arange(len(sizes)), sizes)
    text = [" ".join(generator.choice([f"de{n}" for n in range(6)], 3)) for _ in sentence]
    own = -np.sort(generator.random(len(sentence)))
    return NBest(sentence, text, ("log_likelihood",), own[:, None], own)


def rows(*images):
    tokens = [[f"en{number}", "in"] for number in images]
    ids = [f"tiny:{number}" for number in images]
    return pd.DataFrame({"image_id": ids, "source_tokens": tokens})


@pytest.mark.parametrize("similarity", ["cosine", "order"])
@pytest.mark.parametrize("source", ["en", "de"])
def test_features_are_the_recipes_similarities_one_pair_at_a_time(similarity, source):
    """Of two sentences the one of the language that comes first lies above, as in training."""
    made, lists, features = model(similarity=similarity), nbest([2, 1, 3]), tiny.features()
    target = "de" if source == "en" else "en"
    turned = tiny.recipe(similarity=similarity).compares_turned(source, target)
    found = list_similarities(
        lists, rows(4, 0, 4), made, (source, target), features, ["image", "sentence"], turned
    )

    def embed(tokens, language):
        ids, lengths = made.vocabulary.encode_all([tokens], language)
        return made.embed_tokens(torch.from_numpy(ids).long(), torch.from_numpy(lengths), language)

    for row, (number, text) in enumerate(zip(lists.sentence, lists.text, strict=True)):
        image = (4, 0, 4)[number]
        translation = embed(text.split(), target)
        original = embed([f"en{image}", "in"], source)
        photo = made.embed_features(torch.from_numpy(features.vectors[image][None]))
        above, below = (original, translation) if source == "de" else (translation, original)
        expected = [made.scores(photo, translation).item(), made.scores(above, below).item()]
        np.testing.assert_allclose(found[row], expected, atol=1e-5)


def test_features_of_the_translator_are_its_score_its_own_and_the_length():
    lists = nbest([2, 1, 3])
    found = with_own_features(lists)
    assert found.names == ("score", "log_likelihood", "length")
    np.testing.assert_array_equal(found.features[:, 0], lists.scores)
    np.testing.assert_array_equal(found.features[:, 1], lists.features[:, 0])
    assert found.features[:, 2].tolist() == [len(text.split()) for text in lists.text]


def test_sentences_without_an_image_are_left_out_with_their_lists():
    lists = nbest([2, 1, 3])
    kept, remaining = with_images(lists, rows(4, 0, 2), {"tiny:4", "tiny:2"})
    assert kept.sentence.tolist() == [0, 0, 1, 1, 1]
    assert kept.text == lists.text[:2] + lists.text[3:]
    assert remaining["image_id"].tolist() == ["tiny:4", "tiny:2"]
    np.testing.assert_array_equal(kept.scores, np.delete(lists.scores, 2))


def seen(**images):
    """Return the pairs of a model that saw these images in these splits."""
    rows = [(split, f"tiny:{number}") for split, numbers in images.items() for number in numbers]
    return pd.DataFrame(rows, columns=["split", "image_id"])


def test_every_reason_not_to_rank_is_listed():
    lists = {"val": (nbest([1, 1]), rows(1, 2)), "test": (nbest([2]), rows(3, 4))}
    # A model may be validated on the images of the lists that the weights are tuned on.
    check_lists("x", {"val": lists["val"]}, seen(train=[5], val=[1, 2]))
    with refused(
        "rerankings.x",
        "split val: 1 of the translated images are among",
        "tiny:2",
        "split test: expected a list for each of 2 sentences, found 1",
        "split test: 1 of the translated images are among",
        "tiny:4",
    ):
        check_lists("x", lists, seen(train=[2, 9], val=[4]))
    with pytest.raises(ContractError, match="split test: expected sentences whose image has feat"):
        check_lists("x", {"test": (nbest([]), rows())}, seen())


def told_apart(seed):
    """Return lists in whose similarity the share of right words hides, by two models."""
    references, hypotheses, sentence, statistics = draw_lists(seed, 60, 6)
    generator = np.random.default_rng(seed)
    own = generator.standard_normal(len(sentence))
    right = statistics[:, 0] / np.maximum(statistics[:, 4], 1)
    noise = 0.05 * generator.standard_normal((2, len(own)))
    similarities = {model: (right + noise[model - 1])[:, None] for model in (1, 2)}
    lists = NBest(sentence, hypotheses, ("log_likelihood",), own[:, None], own)
    return Lists(lists, similarities, references)


def test_a_feature_that_knows_raises_bleu_towards_the_oracle():
    lists = told_apart(2)
    settings = SETTINGS.model_copy(update={"similarities": ["image"]})
    found, best = rerank(told_apart(1), lists, "de", settings, EVALUATIONS)
    test = found["test"]
    assert set(found["control"]["weights"]) == {"log_likelihood"}
    assert test["control"] == test["own"]
    assert test["bleu_gain_over_control"] == test["bleu_gain"]
    assert test["own"]["n_segments"] == 60
    assert test["n_hypotheses"] == 360
    json.dumps(found)
    gained = []
    for seed in ("1", "2"):
        weights = found["reranked"][seed]["weights"]
        assert found["reranked"][seed]["epoch"] > 0
        assert weights["image"] > 10 * abs(weights["log_likelihood"])
        of_seed = test["reranked"][seed]
        assert test["random_bleu"] < of_seed["bleu"] <= test["oracle_bleu"]
        assert of_seed["bleu"] > test["own"]["bleu"] + 10
        assert of_seed["ter"] < test["own"]["ter"]
        chosen = BLEU(tokenize="none").corpus_score(best["test"][int(seed)], [lists.references])
        assert chosen.score == pytest.approx(of_seed["bleu"])
        gained.append(of_seed["bleu"] - test["own"]["bleu"])
    assert test["bleu_gain"]["difference"] == pytest.approx(np.mean(gained))
    assert max(test["bleu_gain"]["p"], test["ter_gain"]["p"]) < 0.02
    assert test["ter_gain"]["interval"][1] < 0 < test["bleu_gain"]["interval"][0]


def test_the_gain_over_the_control_is_what_the_similarities_add_to_the_own_features():
    hinted = []
    for seed in (1, 2):
        lists = told_apart(seed)
        hint = lists.similarities[1] + np.random.default_rng(seed).normal(0, 0.3, (360, 1))
        own = np.hstack([lists.nbest.features, hint])
        nbest = replace(lists.nbest, names=("log_likelihood", "hint"), features=own)
        hinted.append(replace(lists, nbest=nbest))
    settings = SETTINGS.model_copy(update={"similarities": ["image"]})
    found, best = rerank(*hinted, "de", settings, EVALUATIONS)
    scores = {
        ranking: BLEU(tokenize="none").corpus_score(chosen, [hinted[1].references]).score
        for ranking, chosen in best["test"].items()
    }
    assert scores["own"] + 5 < scores["control"] < min(scores[1], scores[2])
    for name, before in (("bleu_gain", "own"), ("bleu_gain_over_control", "control")):
        gained = np.mean([scores[1], scores[2]]) - scores[before]
        assert found["test"][name]["difference"] == pytest.approx(gained)


def test_weights_start_from_the_translators_score_alone():
    settings = SETTINGS.model_copy(update={"similarities": ["image"], "epochs": 0})
    found, _ = rerank(told_apart(1), told_apart(2), "de", settings, EVALUATIONS)
    assert found["control"]["weights"] == {"log_likelihood": 1}
    for seed in ("1", "2"):
        assert found["reranked"][seed]["weights"] == {"log_likelihood": 1, "image": 0}


def test_weights_are_tuned_without_a_look_at_the_tested_lists():
    settings = SETTINGS.model_copy(update={"similarities": ["image"], "epochs": 2})
    one, other = (
        rerank(told_apart(1), told_apart(seed), "de", settings, EVALUATIONS)[0] for seed in (2, 3)
    )
    assert one["reranked"] == other["reranked"]
    assert one["test"] != other["test"]


def test_meteor_is_measured_where_it_is_asked_for(monkeypatch):
    asked = []

    def length(hypotheses, references, language):
        asked.append((len(hypotheses), len(references), language))
        return {"meteor": float(len(" ".join(hypotheses)))}

    monkeypatch.setattr(reranking_report, "meteor", length)
    settings = SETTINGS.model_copy(update={"meteor": True, "similarities": ["image"]})
    found, best = rerank(told_apart(1), told_apart(2), "de", settings, EVALUATIONS)
    assert asked == [(60, 60, "de")] * 8
    for split in ("val", "test"):
        by_ranking = found[split] | {int(k): v for k, v in found[split]["reranked"].items()}
        for ranking, hypotheses in best[split].items():
            assert by_ranking[ranking]["meteor"] == len(" ".join(hypotheses))


def write_inputs(folder, images):
    """Write all that the stage reads; the n-best lists are of captions of these images."""
    pairs = tiny.pairs()
    captions = pairs.drop(columns=["set", "seed"]).assign(
        image_id=pairs["image_id"].str.replace("tiny", "toy"),
        text=pairs["tokens"].map(" ".join),
        split=pairs["split"].replace("train", "test"),
    )
    features = tiny.features()
    named = np.array([name.replace("tiny", "toy") for name in features.image_ids], object)
    write_features(type(features)(named, features.vectors, {}), folder / "data/features/tiny.h5")
    write_captions(captions, folder / "data/captions/toy.parquet")
    write_pairs(pairs.assign(text="words"), folder / "data/pairs/tiny.parquet")
    for split, name in (("val", "val"), ("test", "train")):
        write_nbest(nbest([3] * len(images)), folder / f"data/nbest/toy/{split}.nbest")
        table = pd.DataFrame(
            {
                "source_id": [f"{name}/{number}/en/0" for number in images],
                "target_id": [f"{name}/{number}/de/0" for number in images],
                "image_id": [f"toy:{number}" for number in images],
            }
        )
        table.to_csv(folder / f"data/nbest/toy/{split}.tsv", sep="\t", index=False)
    for seed in (1, 2):
        model().save(folder / f"data/models/tiny/seed-{seed}", tiny.PREPROCESSING, {})


def test_the_stage_ranks_lists_by_a_saved_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path, images=[0, 1, 2, 3])
    translator = SimpleNamespace(source_language="en", target_language="de")
    sections = {"rerankings": {"toy": SETTINGS}, "translators": {"toy": translator}}
    sections["recipe"] = lambda name: tiny.recipe()
    run_stage(stage, "toy", monkeypatch, **sections, evaluations=EVALUATIONS)
    found = json.loads(Path("metrics/reports/rerankings/toy.json").read_text())
    own = ["score", "log_likelihood", "length"]
    assert list(found["control"]["weights"]) == own
    for seed in ("1", "2"):
        assert list(found["reranked"][seed]["weights"]) == [*own, "sentence", "image"]
    assert found["test"]["n_hypotheses"] == found["val"]["n_hypotheses"] == 12
    kept = pd.read_csv("data/rerankings/toy/test.tsv", sep="\t")
    assert kept["source_id"].tolist() == [f"train/{number}/en/0" for number in range(4)]
    assert set(kept) == {
        "source_id",
        "target_id",
        "image_id",
        "reference",
        "own",
        "control",
        "seed-1",
        "seed-2",
    }
    assert kept.notna().all(axis=None)
