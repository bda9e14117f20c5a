"""BLEU, TER and chrF against sacrebleu, METEOR against its published scores."""

import json
import shutil

import numpy as np
import pytest
from refusals import refused
from sacrebleu.metrics import BLEU, TER
from translations import draw_lists, garbled, sentences

from pipeline_lib.evaluation.machine_translation import meteor as meteor_module
from pipeline_lib.evaluation.machine_translation.bleu import bleu, bleu_statistics
from pipeline_lib.evaluation.machine_translation.meteor import meteor
from pipeline_lib.evaluation.machine_translation.quality import (
    ter,
    ter_statistics,
    translation_quality,
)

NEEDS_METEOR = pytest.mark.skipif(
    meteor_module._meteor_jar() is None or shutil.which("java") is None,
    reason="METEOR needs Java and the package pycocoevalcap",
)
BOOTSTRAP = {"resamples": 1000, "confidence": 0.95, "seed": 0}


@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_bleu_of_summed_statistics_is_that_of_sacrebleu(share):
    generator = np.random.default_rng(0)
    for size in (1, 2, 30):
        references = sentences(generator, size)
        hypotheses = [garbled(generator, reference, share) for reference in references]
        found = bleu(bleu_statistics(hypotheses, references, "13a").sum(axis=0))
        assert found == pytest.approx(BLEU().corpus_score(hypotheses, [references]).score)


def test_bleu_of_hopeless_translations_is_that_of_sacrebleu():
    for hypothesis in ("", "x", "x y z u v", "a dog", "a dog x y z"):
        totals = bleu_statistics([hypothesis], ["a dog sits ."], "13a")[0]
        assert bleu(totals) == pytest.approx(
            BLEU().corpus_score([hypothesis], [["a dog sits ."]]).score
        )


def test_statistics_know_their_tokenizer():
    apart, joined = (bleu_statistics(["a dog."], ["a dog ."], name)[0] for name in ("13a", "none"))
    assert apart.tolist() == [3, 2, 1, 0, 3, 2, 1, 0, 3, 3]
    assert joined.tolist() == [1, 0, 0, 0, 2, 1, 0, 0, 2, 3]


def test_quality_is_that_of_sacrebleu_with_signatures():
    references, hypotheses, _, _ = draw_lists(5, 80, 1)
    found = translation_quality(hypotheses, references, tokenize="13a", **BOOTSTRAP)
    assert json.loads(json.dumps(found)) == found
    assert found["bleu"] == BLEU().corpus_score(hypotheses, [references]).score
    assert found["n_segments"] == 80
    for name, expected in (("bleu", "tok:13a"), ("ter", "tok:tercom"), ("chrf", "nc:6")):
        assert expected in found[f"{name}_signature"]
        assert "version:" in found[f"{name}_signature"]
    statistics = ter_statistics(hypotheses, references, "13a")
    assert ter(statistics.sum(axis=0)) == pytest.approx(found["ter"])
    for metric, name in ((BLEU(), "bleu"), (TER(), "ter")):
        theirs = metric.corpus_score(hypotheses, [references], n_bootstrap=1000)
        half = float(json.loads(theirs.format(is_json=True, signature="a:b"))["confidence_var"])
        low, high = found[f"{name}_interval"]
        assert (high - low) / 2 == pytest.approx(half, rel=0.12)
        assert low < found[name] < high


def test_text_without_spaces_is_edited_by_characters():
    """4 of 13 are inserted or changed; as one word, all of the sentence would be."""
    found = translation_quality(
        ["一只狗在海滩上奔跑。"], ["一只棕色的狗在沙滩上奔跑。"], tokenize="zh", **BOOTSTRAP
    )
    assert found["ter"] == pytest.approx(100 * 4 / 13)
    assert "asian:yes" in found["ter_signature"]
    japanese = ["犬が走る。"], ["犬は走る。"]
    edits, length = ter_statistics(*japanese, "char")[0]
    assert (edits, length) == (1, 5)


@pytest.mark.parametrize(
    ("found", "expected", "edits"),
    [
        ("いぬがこうえんではしる", "ねこがこうえんではしる", 2),  # kana alone
        ("สุนัขวิ่งบนชายหาด", "สุนัขวิ่งบนชายหาดค", 1),
        ("ຫມາແລ່ນ", "ຫມາແລ່ນ", 0),
    ],
)
def test_scripts_that_sacrebleu_does_not_part_are_edited_by_characters_too(found, expected, edits):
    assert ter_statistics([found], [expected], "char").tolist() == [[edits, len(expected)]]
    whole = translation_quality([found], [expected], tokenize="char", **BOOTSTRAP)
    assert whole["ter"] == pytest.approx(100 * edits / len(expected))
    assert whole["ter_signature"].endswith("|split:char")


def test_all_that_meteor_lacks_is_listed(monkeypatch):
    monkeypatch.setattr(meteor_module, "_meteor_jar", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    lacking = "Java runtime", "uv sync --group meteor", "among en, de, fr, cs, es, found ja"
    with refused("3 problem", *lacking):
        meteor(["a"], ["a"], "ja")


@NEEDS_METEOR
def test_meteor_gives_the_score_that_others_had_from_its_jar():
    """Issue 105 of Maluuba/nlg-eval, which calls the same program."""
    found = meteor(["the cat was sat on the mat"], ["the cat sat on the mat"], "en")
    assert found["meteor"] == pytest.approx(51.19556177)
    assert found["meteor_signature"].endswith("m:exact+stem+synonym+paraphrase")


@NEEDS_METEOR
def test_meteor_prefers_the_better_translation():
    references = ["ein Hund rennt über den Strand .", "zwei Männer sitzen im Park ."]
    same = meteor(references, references, "de")
    stems = meteor(
        ["ein Hund rannte über die Strände .", "zwei Mann sitzt im Park ."], references, "de"
    )
    none = meteor(["kein", "nichts"], references, "de")
    assert same["meteor"] == pytest.approx(100)
    assert 30 < stems["meteor"] < 100
    assert none["meteor"] == 0
    assert same["meteor_signature"].startswith("meteor-1.5|l:de|norm:yes|m:exact+stem")
