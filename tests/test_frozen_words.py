"""benchmarks.frozen_words: an orthogonal map of words that one brings together, or none does."""

import re

import numpy as np
import pandas as pd
import pytest
import tiny_study
from click.testing import CliRunner
from scipy.stats import ortho_group

from benchmarks.frozen_words import fitted_map, main
from pipeline_lib.contract.lexicons import write_lexicon
from pipeline_lib.contract.word_vectors import WordVectors, write_word_vectors

RNG = np.random.default_rng(7)
WORDS = 60


def test_the_map_is_the_one_that_turned_the_words():
    turned, source = ortho_group.rvs(6, random_state=1), RNG.normal(size=(WORDS, 6))
    pairs = np.repeat(np.arange(20)[:, None], 2, axis=1)
    np.testing.assert_allclose(fitted_map(source, source @ turned, pairs), turned, atol=1e-9)


@pytest.mark.parametrize(("noise", "least", "most"), [(0, 100, 100), (1e6, 0, 20)])
def test_turned_words_find_each_other_and_others_do_not(tmp_path, monkeypatch, noise, least, most):
    tiny_study.begin(tmp_path)
    monkeypatch.chdir(tmp_path)
    source = RNG.normal(size=(WORDS, 30))
    target = source @ ortho_group.rvs(30, random_state=1) + noise * RNG.normal(size=source.shape)
    sides = {
        language: ([f"{language}{n}" for n in range(WORDS)], vectors.astype(np.float32))
        for language, vectors in (("en", source), ("de", target))
    }
    write_word_vectors(WordVectors(sides, [], {}), tmp_path / "data/word_vectors/planted.h5")
    rows = [
        ("en", "de", f"en{n}", f"de{n}", "test" if n >= 50 else "train", "clean")
        for n in range(WORDS)
    ]
    columns = [*("source_language", "target_language", "source_word", "target_word")]
    lexicon = pd.DataFrame(rows, columns=[*columns, "fold", "protocol"])
    write_lexicon(lexicon, tmp_path / "data/lexicons/world_en_de.parquet")
    result = CliRunner().invoke(main, ["planted", "world_en_de"], catch_exceptions=False)
    test, train = (re.split(r" *\| *", line.strip("| ")) for line in result.output.split("\n")[2:4])
    assert test[:4] == ["clean", "50", "test", "10"]
    assert train[:4] == ["clean", "50", "train", "50"]
    assert all(least <= float(value) <= most for value in test[4:6])
