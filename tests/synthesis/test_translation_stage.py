"""Parallel text, leaks, engines and translated captions."""

import gzip
import json
import pickle
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from lone_stage import run_stage
from pydantic import TypeAdapter
from refusals import refused
from sacrebleu.metrics import BLEU
from tiny_translation import recipe, toy_pairs, toy_subwords

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.tables import (
    check_captions,
    empty_pairs,
    images_outside,
    read_captions,
    write_captions,
    write_images,
    write_pairs,
)
from pipeline_lib.contract.translations import read_translations, write_translations
from pipeline_lib.corpora.multi30k import read_multi30k
from pipeline_lib.corpora.parallel import parallel_text
from pipeline_lib.evaluation.reranking.nbest import read_nbest, write_nbest
from pipeline_lib.models.translator import Hypothesis, Translator
from pipeline_lib.scheduling.each import computation
from pipeline_lib.scheduling.shards import Shard
from pipeline_lib.settings.synthesis import Translation
from pipeline_lib.settings.text import Tokenizer
from pipeline_lib.synthesis import translate as translate_module
from pipeline_lib.synthesis.engines import Engine, build_engine
from pipeline_lib.synthesis.leaks import (
    check_images_seen,
    check_training_pairs,
    images_seen,
    protected_images,
    without_images,
)
from pipeline_lib.synthesis.translate import (
    captions_to_translate,
    distinct_sentences,
    translate_sentences,
    translated_captions,
)
from pipeline_lib.synthesis.validation import bleu_tokenizer, greedy_bleu, measure, nbest_lists
from pipeline_lib.text.subwords import Subwords
from pipeline_lib.text.vocabulary import SPECIALS
from stages import evaluate_translator, train_translator, translate

TOKENIZERS = {
    language: Tokenizer(tokenizer="whitespace", lowercase=True, normalize=False)
    for language in ("en", "de", "fr")
}


def settings(engine="file", model="x", **more):
    content = {"dataset": "toy", "source_language": "en", "annotation": "caption",
               "target_language": "de", "engine": engine, "model": str(model)}  # fmt: skip
    return TypeAdapter(Translation).validate_python(content | more)


def captions():
    """Return two English captions per image, of which the second has a German translation."""
    rows = []
    splits = ["train", "train", "train", "val", "test"]
    for number, ((one, _), (two, translated)) in enumerate(
        zip(toy_pairs(5, seed=7), toy_pairs(5, seed=8), strict=True)
    ):
        source = f"toy/{number}/en/caption/1"
        for language, annotation, position, text, of in (
            ("en", "caption", 0, one, None),
            ("en", "caption", 1, two, None),
            ("de", "translation", 0, translated, source),
        ):
            rows.append(
                {
                    "caption_id": f"toy/{number}/{language}/{annotation}/{position}",
                    "image_id": f"photo:{number}",
                    "dataset": "toy",
                    "split": splits[number],
                    "language": language,
                    "annotation": annotation,
                    "position": position,
                    "text": text,
                    "tokens": text.split(),
                    "source_caption_id": of,
                }
            )
    return pd.DataFrame(rows)


def images(splits):
    return pd.DataFrame({"image_id": list(splits), "split": list(splits.values())})


def test_subwords_give_back_every_sentence_and_are_the_same_each_time():
    sentences = [text for pair in toy_pairs(50) for text in pair]
    first, second = Subwords.train(sentences, 50), Subwords.train(sentences, 50)
    assert first.model == second.model
    assert len(first) == 50
    ids = first.encode(sentences)
    assert first.decode(ids) == sentences
    assert min(min(each) for each in ids) >= len(SPECIALS)


def test_text_that_normalisation_would_change_is_kept():
    text = "Ein “Hund”，½ ﬁt ﹣ Straße"
    assert Subwords.train([text], 30).decode(Subwords.train([text], 30).encode([text]))[0] == text


def test_too_many_subwords_are_refused():
    with pytest.raises(ContractError, match="5000 subwords"):
        Subwords.train(["a b c"], 5000)


def test_parallel_text_joins_translations_to_their_source():
    pairs = parallel_text(captions(), "en", "de")
    assert pairs["source_id"].tolist() == [f"toy/{number}/en/caption/1" for number in range(5)]
    assert list(zip(pairs["source"], pairs["target"], strict=True)) == toy_pairs(5, seed=8)
    assert pairs["split"].tolist() == ["train", "train", "train", "val", "test"]
    back = parallel_text(captions(), "de", "en")
    assert list(zip(back["target"], back["source"], strict=True)) == toy_pairs(5, seed=8)


def test_two_translations_of_one_caption_are_parallel_and_machine_ones_are_not():
    german = captions()[lambda rows: rows["language"] == "de"]
    french = german.assign(
        caption_id=german["caption_id"] + "/fr", language="fr", text="fr " + german["text"]
    )
    pairs = parallel_text(pd.concat([captions(), french]), "fr", "de")
    assert (pairs["source"] == "fr " + pairs["target"]).all()
    assert len(pairs) == 5
    with pytest.raises(ContractError, match="split train, found none"):
        parallel_text(pd.concat([captions(), french.assign(annotation="machine")]), "fr", "de")


def test_protected_images_are_left_out_and_their_presence_is_an_error():
    pairs = parallel_text(captions(), "en", "de")
    table = images({"photo:1": "test", "photo:2": "train", "photo:3": "val", "photo:4": "test"})
    protected = images_outside(table, "train")
    with refused("photo:1", "photo:3"):
        check_training_pairs(pairs, protected, "translators.x")
    kept = without_images(pairs, protected)
    assert images_seen(kept) == {"train": ["photo:0", "photo:2"], "val": []}
    with pytest.raises(ContractError, match=r"split val, found none that exclude_images and"):
        check_training_pairs(kept, protected, "translators.x")
    check_training_pairs(without_images(pairs, {"photo:1"}), {"photo:1"}, "translators.x")
    assert "test" in set(kept["split"])


def test_a_translator_sees_no_photo_of_an_excluded_pair_set():
    """The translator of half_translated knew human German of most photos of the English half."""
    pairs = parallel_text(captions(), "en", "de")
    table = images({"photo:0": "train", "photo:3": "val", "photo:4": "test"})
    learnt = pd.DataFrame({"image_id": ["photo:0", "photo:1"]})
    protected = protected_images(table, learnt)
    assert protected == {"photo:0", "photo:1", "photo:3", "photo:4"}
    assert images_seen(without_images(pairs, protected)) == {"train": ["photo:2"], "val": []}


def test_a_translator_may_know_validation_images_as_such_but_no_test_image():
    seen = images_seen(parallel_text(captions(), "en", "de"))
    own = {"photo:0": "train", "photo:1": "train", "photo:2": "train", "photo:3": "val",
           "photo:4": "test"}  # fmt: skip
    check_images_seen(seen, images(own), "translations.x")
    for changed in ({"photo:0": "val"}, {"photo:2": "test"}, {"photo:3": "test"}):
        with pytest.raises(ContractError, match=next(iter(changed))):
            check_images_seen(seen, images(own | changed), "translations.x")


def shouting(calls, fail_at=None):
    def translate(sentences):
        calls.append(list(sentences))
        if len(calls) == fail_at:
            raise KeyboardInterrupt
        return [[Hypothesis(f"  {text.upper()}\u00a0!", -1.5, -1.0)] for text in sentences]

    return Engine({"engine": "shouting"}, translate, lambda sentences: None, {})


def test_an_interrupted_translation_does_no_chunk_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(translate_module, "CHUNK", 3)
    sentences = distinct_sentences(captions())
    expected = translate_sentences(shouting([]), settings(), sentences, tmp_path / "whole", "toy")
    first, second = [], []
    with pytest.raises(KeyboardInterrupt):
        translate_sentences(
            shouting(first, fail_at=3), settings(), sentences, tmp_path / "cut", "toy"
        )
    found = translate_sentences(shouting(second), settings(), sentences, tmp_path / "cut", "toy")
    assert found == expected
    assert [text for chunk in first[:2] + second for text in chunk] == sentences


def test_chunks_of_another_kind_of_machine_are_not_mixed_with_those_of_this_one(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(translate_module, "CHUNK", 3)
    sentences = distinct_sentences(captions())
    expected = translate_sentences(shouting([]), settings(), sentences, tmp_path / "whole", "toy")
    with pytest.raises(KeyboardInterrupt):
        translate_sentences(shouting([], fail_at=3), settings(), sentences, tmp_path / "cut", "toy")
    here = computation()
    other = {**here, "device": "another"}
    monkeypatch.setattr(translate_module, "computation", lambda: other)
    anew = []
    found = translate_sentences(shouting(anew), settings(), sentences, tmp_path / "cut", "toy")
    assert found == expected
    assert [text for chunk in anew for text in chunk] == sentences
    monkeypatch.setattr(translate_module, "computation", lambda: {**here, "code": "of today"})
    more = []  # the stage's own code names the folder already: another module's change costs none
    translate_sentences(shouting(more), settings(), sentences, tmp_path / "cut", "toy")
    assert [text for chunk in more for text in chunk] == sentences[6:]


def test_damaged_translations_are_made_anew(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(translate_module, "CHUNK", 3)
    sentences = distinct_sentences(captions())
    expected = translate_sentences(shouting([]), settings(), sentences, tmp_path, "toy")
    [damaged] = tmp_path.glob("*/000000001.shard")
    damaged.write_bytes(damaged.read_bytes()[:-9])
    anew = []
    assert translate_sentences(shouting(anew), settings(), sentences, tmp_path, "toy") == expected
    assert anew == [sentences[3:6]]
    assert f"{damaged}: this part of the work is damaged" in capsys.readouterr().err


def test_a_worker_elsewhere_builds_the_engine_anew(tmp_path):
    table = tmp_path / "table.tsv"
    table.write_text("source\ttranslation\na dog\tein Hund\n", encoding="utf-8")
    chosen = settings(model=table)
    engine = build_engine(chosen)
    with pytest.raises(AttributeError):  # its functions stay where they are
        pickle.dumps(engine)
    load = pickle.loads(pickle.dumps(translate_module._Load(engine, chosen)))
    worker = load()
    assert worker.description == {**engine.description, **computation()}
    best = json.loads(worker.compute(worker.read(Shard(0, ["a dog"]))))
    assert best == [{"text": "ein Hund", "log_likelihood": None, "score": None}]


def test_translations_stand_beside_the_originals_with_their_origin(tmp_path):
    table, chosen = captions(), settings()
    originals = captions_to_translate(table, chosen)
    assert len(originals) == 10
    best = {text: Hypothesis(f"  {text.upper()}\u00a0!", -1.5, -1.0) for text in originals["text"]}
    rows, origin = translated_captions(originals, best, chosen, "mt", shouting([]), TOKENIZERS)
    everything = pd.concat([table, rows])
    assert list(check_captions(everything)) == []
    write_captions(everything, tmp_path / "captions.parquet")
    read = read_captions(tmp_path / "captions.parquet").set_index("caption_id")
    assert len(read) == 25
    row = read.loc["toy/3/en/caption/0/de/mt"]
    source = read.loc[row["source_caption_id"]]
    assert row["text"] == f"{source['text'].upper()} !"
    assert row["tokens"] == [*source["tokens"], "!"]
    assert (row["language"], row["annotation"]) == ("de", "machine")
    assert (row["image_id"], row["split"]) == (source["image_id"], source["split"])
    write_translations(origin, tmp_path / "origin.parquet")
    origin = read_translations(tmp_path / "origin.parquet").set_index("caption_id")
    assert set(origin.index) == set(read.index[read["annotation"] == "machine"])
    assert json.loads(origin["engine"].iloc[0]) == {"engine": "shouting"}
    assert (origin["log_likelihood"] == -1.5).all()


def test_a_translation_of_a_translation_means_what_the_original_does():
    chosen = captions().query("annotation == 'translation'")
    best = {text: Hypothesis(f"le {text}", None, None) for text in chosen["text"]}
    into = settings(source_language="de", target_language="fr", annotation="translation")
    rows, origin = translated_captions(chosen, best, into, "mt", shouting([]), TOKENIZERS)
    assert rows["source_caption_id"].tolist() == chosen["source_caption_id"].tolist()
    assert origin["source_caption_id"].tolist() == chosen["caption_id"].tolist()


def test_captions_that_have_changed_are_translated_anew(tmp_path, monkeypatch):
    """As many as before, by the same engine: of the work that is kept, nothing is theirs."""
    monkeypatch.chdir(tmp_path)
    before = captions()
    photos = before[["image_id", "split", "dataset"]].drop_duplicates("image_id")
    write_images(photos.assign(path=photos["image_id"]), Path("data/images/toy.parquet"))
    versions = before, before.assign(text=before["text"] + " now")
    english = {text for table in versions for text in table["text"]}
    lines = "".join(f"{text}\t{text.upper()}\n" for text in sorted(english))
    Path("ready.tsv").write_text(f"source\ttranslation\n{lines}")
    for table in versions:
        write_captions(table, Path("data/captions/toy.parquet"))
        sections = {"toy_de": settings(model="ready.tsv")}
        run_stage(translate, "toy_de", monkeypatch, translations=sections, tokenizers=TOKENIZERS)
        made = read_captions(Path("data/captions/toy_de.parquet"))
        made = made[made["annotation"] == "machine"]
        sources = table.set_index("caption_id")["text"]
        assert len(made) == 10
        assert list(made["text"]) == [sources[each].upper() for each in made["source_caption_id"]]


@pytest.mark.parametrize("blank", ["", " \u00a0", "\u200b", "\ufeff \u2060"])
def test_empty_translations_are_left_out_and_counted(capsys, blank):
    """A beam may end after a piece that is nothing but a space, or a character of width zero."""
    chosen = settings()
    originals = captions_to_translate(captions(), chosen)
    best = {text: Hypothesis("ein Hund", -1.5, -1.0) for text in originals["text"]}
    silent = originals["text"].iloc[3]
    best[silent] = Hypothesis(blank, -0.5, -0.5)
    rows, origin = translated_captions(originals, best, chosen, "mt", shouting([]), TOKENIZERS)
    left = originals[originals["text"] != silent]
    assert rows["source_caption_id"].tolist() == left["caption_id"].tolist()
    assert origin["caption_id"].tolist() == rows["caption_id"].tolist()
    assert (origin["log_likelihood"] == -1.5).all()
    gone = originals[originals["text"] == silent]
    assert (
        f"warning: mt: {len(gone)} translations are empty (first: of "
        f"{gone['caption_id'].iloc[0]!r})" in capsys.readouterr().err
    )


def test_captions_that_cannot_be_translated_are_reported():
    with pytest.raises(ContractError, match="en/machine"):
        captions_to_translate(captions(), settings(annotation="machine"))
    done = captions().assign(annotation="machine", language="de")
    with pytest.raises(ContractError, match="found 15"):
        captions_to_translate(pd.concat([captions(), done]), settings())


def test_ready_translations_come_from_a_file(tmp_path):
    path = tmp_path / "ready.tsv"
    path.write_text("source\ttranslation\na dog\tein Hund\na cat\teine Katze\n", encoding="utf-8")
    engine = build_engine(settings(model=path))
    engine.check(["a cat", "a dog"])
    found = engine.translate(["a cat", "a dog"])
    assert [each[0].text for each in found] == ["eine Katze", "ein Hund"]
    assert engine.description["model"] == "ready.tsv"
    with refused("2 problem", "'a bird'", "'a fish'"):
        engine.check(["a bird", "a cat", "a fish"])


def test_a_file_finds_captions_however_it_spells_their_blanks_and_accents(tmp_path):
    path = tmp_path / "ready.tsv"
    lines = ["source\ttranslation", "A dog  runs .\tein Hund", "Un cafe\u0301 \tein Café"]
    path.write_text("\n".join([*lines, "Two\u00a0dogs\tzwei Hunde\n"]), encoding="utf-8")
    cleaned = ["A dog runs .", "Un café", "Two dogs"]
    engine = build_engine(settings(model=path))
    engine.check(cleaned)
    assert [each[0].text for each in engine.translate(cleaned)] == [
        "ein Hund", "ein Café", "zwei Hunde",
    ]  # fmt: skip
    with refused("21 problem", "and of 10 more sentences"):
        engine.check([f"a sentence {number}" for number in range(30)])


def test_a_file_that_contradicts_itself_is_refused(tmp_path):
    path = tmp_path / "ready.tsv"
    path.write_text(
        "line\tsource\ttranslation\nx\ta dog\tein Hund\nx\ta dog\tHunde\n"
        "x\ta cat\teine\x1bKatze\nx\ta cow\teine Kuh\nx\ta cow\t eine  Kuh \nx\ta hen\t \n"
        + "".join(f"x\ta {side} pig\tein {n} Schwein\n" for n in range(30) for side in "ab"),
        encoding="utf-8",
    )
    with refused(
        "22 problem(s)",
        "ready.tsv:2: expected one translation per source, found 'a dog'",
        "ready.tsv:3: expected one translation per source, found 'a dog'",
        "ready.tsv:4: expected text, found the control character U+001B",
        "ready.tsv: and 42 more lines like the last one",
    ):
        build_engine(settings(model=path))


@pytest.fixture
def trained(tmp_path):
    translator = Translator(recipe("transformer"), toy_subwords()).eval()
    translator.save(tmp_path / "toy")
    seen = images_seen(parallel_text(captions(), "en", "de"))
    (tmp_path / "toy" / "images.json").write_text(json.dumps(seen))
    return tmp_path / "toy", translator


def test_an_own_translator_is_an_engine_that_knows_what_it_saw(trained):
    folder, translator = trained
    engine = build_engine(settings("translator", folder))
    sentences = [source for source, _ in toy_pairs(6)]
    expected = translator.translate(sentences, beam=3, n_best=1, alpha=1.0)
    assert engine.translate(sentences) == expected
    assert engine.images_seen["train"] == ["photo:0", "photo:1", "photo:2"]
    assert engine.description["beam"] == 3
    assert str(folder.parent) not in json.dumps(engine.description)
    with pytest.raises(ContractError, match="from en to fr, found one from en to de"):
        build_engine(settings("translator", folder, target_language="fr"))


def test_a_ctranslate2_folder_without_its_files_is_refused(tmp_path):
    more = {"beam": 5, "length_penalty": 1.0}
    with pytest.raises(ContractError, match="3 problem"):
        build_engine(settings("ctranslate2", tmp_path, **more))


def test_nbest_lists_are_moses_files_with_log_likelihoods(trained, tmp_path):
    _, translator = trained
    sentences = [source for source, _ in toy_pairs(3)]
    lists = nbest_lists(translator, sentences, str.split)
    write_nbest(lists, tmp_path / "toy.nbest")
    read = read_nbest(tmp_path / "toy.nbest")
    assert np.bincount(read.sentence).tolist() == [4, 4, 4]
    assert read.names == ("log_likelihood",)
    # The beam grows to the length of the list; scores fall within it.
    found = translator.translate(sentences, beam=4, n_best=4, alpha=1.0)
    assert read.features[:, 0].tolist() == [h.log_likelihood for each in found for h in each]
    assert all((np.diff(read.scores[read.sentence == row]) <= 0).all() for row in range(3))


@pytest.mark.parametrize("language", ["th", "tha", "ja", "jpn", "zh", "zho", "km"])
def test_bleu_of_a_language_without_spaces_is_not_of_whole_sentences(language):
    # One character is missing: as a word without spaces, all of it would be wrong.
    metric = BLEU(tokenize=bleu_tokenizer(language))
    reference = "คนขี่จักรยานบนถนน" if language.startswith("th") else "一个男人在街上骑自行车。"
    assert metric.corpus_score([reference[:-1]], [[reference]]).score > 50
    assert bleu_tokenizer("de") == bleu_tokenizer("deu") == "13a"


def test_quality_is_measured_on_every_split_but_the_training_one(trained):
    _, translator = trained
    pairs = parallel_text(captions(), "en", "de")
    found = measure(translator, pairs, resamples=10, confidence=0.9, seed=1)
    assert set(found) == {"val", "test"}
    assert found["test"]["bleu_signature"].startswith("nrefs:1|case:mixed")


def test_translations_are_held_against_targets_and_those_reported_found_as_the_recipe_says():
    german = {
        "a red dog runs": "ein roter Hund rennt",
        "a dog sees a cat": "ein Hund sieht eine Katze",
        "a red cat sees a dog": "eine rote Katze sieht einen Hund",
    }
    pairs = pd.DataFrame(german.items(), columns=["source", "target"])
    pairs["split"] = ["train", "val", "test"]
    searches = []

    def translate(sentences, **search):
        searches.append(search)
        return [[Hypothesis(german[text], -1.0, -1.0)] for text in sentences]

    own = recipe("transformer", length_normalization=0.6)
    translator = SimpleNamespace(recipe=own, translate=translate)
    assert greedy_bleu(translator, pairs) == pytest.approx(100)
    found = measure(translator, pairs, resamples=10, confidence=0.9, seed=1)
    assert [found[split]["bleu"] for split in ("val", "test")] == pytest.approx([100, 100])
    reported = {"beam": 3, "n_best": 1, "alpha": 0.6, "each": None}
    assert searches == [{"beam": 1, "n_best": 1, "alpha": 0}, reported, reported]


def test_a_data_set_without_test_split_has_lists_of_validation_alone(tmp_path, monkeypatch):
    own = recipe("transformer")
    lay_out(tmp_path, monkeypatch, captions()[lambda rows: rows["split"] != "test"], own)
    photos = images({"photo:4": "test"}).assign(dataset="toy", path="4.png")
    write_images(photos, Path("data/images/none.parquet"))
    assert set(evaluated(own, monkeypatch)["quality"]) == {"val"}
    assert {path.name for path in Path("data/nbest/toy").iterdir()} == {"val.nbest", "val.tsv"}


def lay_out(tmp_path, monkeypatch, known, own):
    """Go to the folder of a study with an untrained translator and these captions."""
    monkeypatch.chdir(tmp_path)
    write_captions(known, Path("data/captions/toy.parquet"))
    write_pairs(empty_pairs(), Path("data/pairs/none.parquet"))
    Translator(own, toy_subwords()).save(Path("data/translators/toy"))
    Path("data/translators/toy/training.json").write_text("{}")


def evaluated(own, monkeypatch):
    """Run the stage and return its report."""
    bootstrap = {"resamples": 10, "confidence": 0.9, "seed": 1}
    run_stage(
        evaluate_translator,
        "toy",
        monkeypatch,
        translators={"toy": own},
        tokenizers=TOKENIZERS,
        evaluations=SimpleNamespace(retrieval=SimpleNamespace(bootstrap=bootstrap)),
    )
    return json.loads(Path("metrics/reports/translators/toy.json").read_text())


def test_photos_that_a_translator_must_not_see_have_lists_and_no_part_in_its_quality(
    tmp_path, monkeypatch
):
    own = recipe("transformer", exclude_images="others")
    twice = captions().assign(image_id=lambda rows: rows["image_id"] + "b")
    twice["caption_id"] += "b"
    twice["source_caption_id"] += "b"
    lay_out(tmp_path, monkeypatch, pd.concat([captions(), twice]), own)
    photos = images({"photo:3b": "test"}).assign(dataset="others", path="3.png")
    write_images(photos, Path("data/images/others.parquet"))
    report = evaluated(own, monkeypatch)
    assert {split: found["n_segments"] for split, found in report["quality"].items()} == {
        "val": 1,
        "test": 2,
    }
    listed = pd.read_csv("data/nbest/toy/val.tsv", sep="\t")
    assert sorted(listed["image_id"]) == ["photo:3", "photo:3b"]


def test_a_translator_of_other_sentences_starts_from_the_beginning(tmp_path, monkeypatch):
    """Of the work that is kept, nothing is theirs."""
    own = recipe("transformer", subwords=30)
    lay_out(tmp_path, monkeypatch, captions(), own)
    write_images(
        images({"other": "test"}).assign(dataset="toy", path="a"), Path("data/images/none.parquet")
    )

    def weights(known):
        write_captions(known, Path("data/captions/toy.parquet"))
        run_stage(train_translator, "toy", monkeypatch, translators={"toy": own})
        return Path("data/translators/toy/weights.safetensors").read_bytes()

    first = weights(captions())
    turned = captions().assign(text=lambda rows: rows["text"].str.split().str[::-1].str.join(" "))
    found = weights(turned)
    shutil.rmtree(".resume")
    assert found == weights(turned) != first


@pytest.mark.real_data
def test_parallel_text_of_multi30k_is_that_of_its_files(real_data):
    corpus = read_multi30k(
        real_data / "multi30k", "multi30k", languages=["en", "de"], splits=["train", "val", "test"]
    )
    pairs = parallel_text(corpus.captions, "en", "de")
    assert pairs["split"].value_counts().to_dict() == {"train": 29000, "val": 1014, "test": 1000}
    folder = real_data / "multi30k" / "data" / "task1" / "raw"
    for split, name in (("val", "val"), ("test", "test_2016_flickr")):
        lines = [
            [" ".join(line.split()) for line in _lines(folder / f"{name}.{language}")]
            for language in ("en", "de")
        ]
        rows = pairs[pairs["split"] == split]
        found = sorted(zip(rows["source"], rows["target"], strict=True))
        assert found == sorted(zip(*lines, strict=True))


def _lines(path):
    if path.is_file():
        return path.read_text(encoding="utf-8").splitlines()
    return gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes()).decode().splitlines()


def test_what_translates_a_translation_of_something_unknown_is_parallel_to_it():
    german = captions()[lambda rows: rows["language"] == "de"].assign(source_caption_id=None)
    french = german.assign(
        caption_id=german["caption_id"] + "/fr",
        language="fr",
        text="fr " + german["text"],
        source_caption_id=german["caption_id"],
    )
    pairs = parallel_text(pd.concat([german, french]), "fr", "de")
    assert (pairs["source"] == "fr " + pairs["target"]).all()
    assert len(pairs) == 5


def test_a_split_of_another_name_is_asked_after():
    named_dev = captions().assign(split=captions()["split"].replace({"val": "dev"}))
    with pytest.raises(ContractError, match="Did you mean 'val' for 'dev'"):
        parallel_text(named_dev, "en", "de")
