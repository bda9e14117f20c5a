"""benchmarks.time_to_score: how many updates count, of which seeds and languages."""

import pandas as pd
from tiny_study import NAME, make

from benchmarks import time_to_score
from benchmarks.time_to_score import of_languages, rounds_of, sums, updates_anew, updates_until
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.settings.loading import load_settings

CURVE = pd.DataFrame(
    {"seed": [1, 1, 1, 2, 2, 2], "update": [10, 20, 30] * 2, "sum": [1.0, 3.0, 2.0, 2.0, 2.5, 4.0]}
)


def test_the_first_validation_that_is_high_enough_counts_in_each_seed():
    assert updates_until(CURVE, 2.5) == (20 + 20) / 2
    assert updates_until(CURVE, CURVE.groupby("seed")["sum"].max()) == (20 + 30) / 2


def test_a_seed_that_never_gets_there_is_not_left_out():
    assert updates_until(CURVE, 3.5) == float("inf")


def test_languages_that_the_baseline_does_not_read_do_not_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "metrics/reports/recipes/row/training.csv"
    path.parent.mkdir(parents=True)
    header = "update,recall_sum,recall_sum_of_six_de,recall_sum_of_six_en,recall_sum_of_six_fr,seed"
    path.write_text(f"{header}\n10,6.0,1.0,2.0,3.0,1\n", encoding="utf-8")
    assert sums("row", ["en", "de"])["sum"].tolist() == [3.0]


def test_a_recipe_is_trained_anew_until_it_is_as_high(tmp_path, monkeypatch):
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    languages, heights = load_settings().recipe(NAME).languages, []

    def rising(model, val, tested):
        scores = validation_scores(model, val, tested)
        name = of_languages(scores, languages)[0]
        heights.append(len(heights))
        return {each: 0.0 for each in scores} | {name: float(len(heights))}

    monkeypatch.setattr(time_to_score, "validation_scores", rising)
    assert updates_anew(NAME, languages, 3.0, 2) == 3 * 2
    assert len(heights) == 3
    assert updates_anew(NAME, languages, 1e9, 2) == float("inf")


def test_updates_of_a_study_are_timed(tmp_path, monkeypatch):
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    rounds = rounds_of(NAME, seconds=0.01)
    assert next(rounds) > 0
    assert next(rounds) > 0
