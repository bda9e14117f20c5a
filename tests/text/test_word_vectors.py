"""Word vectors: files against gensim's own reader and writer, and what fastText learns."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from gensim.models import FastText, KeyedVectors
from lone_stage import run_stage
from pydantic import TypeAdapter, ValidationError
from refusals import refused
from shell import python

from pipeline_lib.contract.hdf5 import writing_hdf5
from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.contract.tables import empty_pairs, write_pairs
from pipeline_lib.contract.word_vectors import (
    WordVectors,
    check_unseen,
    check_word_vectors,
    empty_word_vectors,
    read_word_vectors,
    write_word_vectors,
)
from pipeline_lib.running.publishing import file_sha256
from pipeline_lib.settings.text import FastTextVectors, VectorFiles, WordVectorSource
from pipeline_lib.text.tokenizers import build_tokenizer
from pipeline_lib.text.training_text import training_sentences, training_words
from pipeline_lib.text.word_vectors import load_vectors, read_vec, train_fasttext, vec_dim
from stages import word_vectors as stage
from tests import tiny

FASTTEXT = {
    "method": "fasttext",
    "source": "data/pairs/tiny.parquet",
    "pairs": "tiny",
    "dim": 16,
    "epochs": 8,
    "window": 3,
    "min_count": 2,
    "min_n": 3,
    "max_n": 4,
    "buckets": 1000,
    "negatives": 4,
    "subsampling": 0.1,
    "learning_rate": 0.05,
    "seed": 1,
}


def fasttext(**changes):
    return FastTextVectors(**FASTTEXT | changes)


def files(folder, **names):
    return VectorFiles(method="files", source=str(folder), pairs="tiny", files=names)


def vectors(**changes):
    matrix = np.array([[1, 2], [3, 4]], np.float32)
    values = {"by_language": {"en": (["a", "b"], matrix), "de": (["ä", "b"], 2 * matrix)}}
    return WordVectors(**values | {"image_ids": ["d:1"], "attributes": {"method": "x"}} | changes)


@pytest.fixture
def published(tmp_path):
    """Write 50 words as gensim does, some with spaces of Unicode, and return path and oracle."""
    words = [f"wort{i}" for i in range(46)] + ["größe", "a\u00a0b", "犬", "x\u2028y"]
    oracle = KeyedVectors(7)
    matrix = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    oracle.add_vectors(words, matrix)
    oracle.save_word2vec_format(tmp_path / "x.vec")
    return tmp_path / "x.vec", KeyedVectors.load_word2vec_format(tmp_path / "x.vec")


def test_a_file_is_read_as_gensim_reads_it(published):
    path, oracle = published
    words, matrix = read_vec(path, set(oracle.key_to_index))
    assert words == sorted(oracle.key_to_index)
    np.testing.assert_array_equal(matrix, oracle[words])
    assert matrix.dtype == np.float32


def test_only_words_that_are_needed_are_kept(published):
    path, oracle = published
    words, matrix = read_vec(path, {"犬", "größe", "a\u00a0b", "nirgends"})
    assert words == ["a\u00a0b", "größe", "犬"]
    np.testing.assert_array_equal(matrix, oracle[words])


def test_accents_of_a_file_may_be_decomposed(tmp_path):
    """Captions are in NFC; a word of the file that is spelt otherwise would start at random."""
    path = tmp_path / "wiki.fr.vec"
    path.write_text("2 2\ncafe\u0301 1 0\nman 0 1\n", encoding="utf-8")
    assert read_vec(path, {"café", "man"})[0] == ["café", "man"]


def test_what_moses_writes_with_an_entity_has_the_vector_of_its_plain_spelling(tmp_path):
    tokens = build_tokenizer("fr", "moses", True, False)("L'homme & d'un \"chien\"")
    plain = ["l'", "d'", '"', "&", "homme", "un", "chien"]
    lines = [f"{word} {number} 1" for number, word in enumerate(plain)]
    (tmp_path / "x.vec").write_text("\n".join(["7 2", *lines]), encoding="utf-8")
    words, vectors = read_vec(tmp_path / "x.vec", {*tokens})
    assert (
        {*words} == {*tokens} == {"l&apos;", "d&apos;", "&quot;", "&amp;", "homme", "un", "chien"}
    )
    assert vectors[words.index("d&apos;")].tolist() == [1, 1]
    (tmp_path / "x.vec").write_text("2 2\n' 1 1\n&apos; 2 1\n", encoding="utf-8")
    assert read_vec(tmp_path / "x.vec", {"&apos;"})[1].tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("spelt", "counts"),
    [(["fu\u0308r", "für"], 1), (["für", "fu\u0308r"], 0), (["für", "für"], 0),
     (["fu\u0308r", "fu\u0308r"], 0), (["fu\u0308r", "für", "für"], 1)],
)  # fmt: skip
def test_of_a_word_that_a_file_repeats_the_first_as_captions_spell_it_counts(
    tmp_path, spelt, counts
):
    lines = [f"{len(spelt)} 2", *(f"{word} {line} 9" for line, word in enumerate(spelt))]
    (tmp_path / "x.vec").write_text("\n".join(lines), encoding="utf-8")
    assert read_vec(tmp_path / "x.vec", {"für"})[1].tolist() == [[counts, 9]]


def test_a_space_before_the_line_end_as_fasttext_writes_it_is_no_number(tmp_path):
    (tmp_path / "x.vec").write_bytes(b"1 2\na 1 2 \n")
    assert read_vec(tmp_path / "x.vec", {"a"})[1].tolist() == [[1, 2]]


def test_every_fault_is_listed_with_its_line(tmp_path):
    lines = ["8 2", "a 1 2", "b 1", "c 1 x", "d nan 1", "e 0 0", "a 3 4", "unneeded 1 2 3"]
    (tmp_path / "x.vec").write_text("\n".join(lines), encoding="utf-8")
    with refused(
        "6 problem(s)",
        "line 3, 'b': expected 2 numbers after the word, found 1",
        "line 4, 'c': could not convert",
        "line 5, 'd': expected a vector with a direction",
        "line 6, 'e': expected a vector with a direction",
        "line 8, 'unneeded': expected 2 numbers after the word, found 3",
        "expected 8 words by the header, found 7",
    ):
        read_vec(tmp_path / "x.vec", set("abcde"))


def test_a_file_of_another_form_is_refused_soon(tmp_path):
    (tmp_path / "x.vec").write_text("the 0.1 0.2\n")
    with pytest.raises(ContractError, match="line 1: expected the numbers of words and of dim"):
        read_vec(tmp_path / "x.vec", {"the"})
    (tmp_path / "x.vec").write_text("900 2\n" + "word\n" * 900)
    with refused("lines after 21 were not read", "21 problem(s)"):
        read_vec(tmp_path / "x.vec", {"word"})


def test_a_header_of_endless_digits_is_no_header(tmp_path):
    (tmp_path / "x.vec").write_text(f"{'9' * 5000} 2\nthe 1 2\n")
    with pytest.raises(ContractError, match="line 1: expected the numbers of words and of dim"):
        read_vec(tmp_path / "x.vec", {"the"})


def test_the_size_of_vectors_is_in_the_first_line(tmp_path):
    (tmp_path / "x.vec").write_bytes(b"\xef\xbb\xbf2 300\n")
    assert vec_dim(tmp_path / "x.vec") == 300


def test_a_file_of_another_encoding_is_refused(tmp_path):
    words = ["straße", "hund", "über", "grün"]
    lines = [f"{len(words)} 2", *(f"{word} 1 2" for word in words)]
    (tmp_path / "x.vec").write_text("\n".join(lines), encoding="latin-1")
    with refused(
        "UTF-8, found 3 of 3 words with letters beyond ASCII that are none (first: line 2"
    ):
        read_vec(tmp_path / "x.vec", {*words})


def test_a_few_words_that_are_no_utf_8_are_passed_over(tmp_path):
    words = [f"grün{number}" for number in range(10)]
    lines = [f"{len(words) + 1} 2", *(f"{word} 1 2" for word in words)]
    content = "\n".join(lines).encode() + b"\n\xfcber 1 2\n"
    (tmp_path / "x.vec").write_bytes(content)
    assert len(read_vec(tmp_path / "x.vec", {*words})[0]) == 10


def test_a_file_without_any_needed_word_is_refused(published):
    with pytest.raises(ContractError, match="none of 2 words is in it"):
        read_vec(published[0], {"dog", "cat"})


def test_what_is_wrong_with_several_files_is_listed_at_once(published):
    path, _ = published
    words = {"de": {"größe"}, "en": {"dog"}}
    said = "absent.vec: not found", "none of 1 words", "no training caption in fr"
    with refused("3 problem", *said):
        load_vectors(files(path.parent, de="absent.vec", en="x.vec", fr="x.vec"), words)


def test_fasttext_puts_words_of_like_contexts_side_by_side():
    random = np.random.default_rng(0)
    groups = [[f"{c}{c}{c}{i}{i}{i}" for i in range(4)] for c in "xy"]
    sentences = [list(random.choice(groups[i % 2], 6)) for i in range(600)]
    words = {"en": {word for group in groups for word in group}}
    found, matrix = train_fasttext({"en": sentences}, words, fasttext(max_n=3))["en"]
    assert found == sorted(words["en"])
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, rtol=1e-6)
    cosines = matrix @ matrix.T
    same = np.array([[a[0] == b[0] and a != b for b in found] for a in found])
    other = np.array([[a[0] != b[0] for b in found] for a in found])
    assert cosines[same].min() > cosines[other].max() + 0.3


def test_fasttext_is_gensims_skip_gram_with_every_number_of_the_recipe():
    random = np.random.default_rng(0)
    sentences = [[f"wort{i}" for i in random.zipf(1.5, 12) % 900] for _ in range(200)]
    words = {word for sentence in sentences for word in sentence}
    options = fasttext(min_n=2, subsampling=0.01, seed=3)  # these too unlike gensim's own
    oracle = FastText(
        sentences, sg=1, vector_size=16, epochs=8, window=3, min_count=2, min_n=2, max_n=4,
        bucket=1000, negative=4, sample=0.01, alpha=0.05, seed=3, workers=1,
    ).wv  # fmt: skip
    found, matrix = train_fasttext({"en": sentences}, {"en": words}, options)["en"]
    expected = np.stack([oracle[word] / np.linalg.norm(oracle[word]) for word in found])
    np.testing.assert_allclose(matrix, expected, atol=1e-6)


def test_every_training_word_has_a_vector_rare_ones_by_their_n_grams():
    """``drifting`` occurs once, below min_count; it shares n-grams with one of two words."""
    random = np.random.default_rng(0)
    sentences = [list(random.permutation(["drifted", "river", "boat"])) for _ in range(200)]
    sentences += [list(random.permutation(["smiling", "baby", "mother"])) for _ in range(200)]
    sentences.append(["drifter", "a"])
    words = {"en": {word for tokens in sentences for word in tokens}}
    found, matrix = train_fasttext({"en": sentences}, words, fasttext(max_n=5))["en"]
    assert set(found) == words["en"]
    rare, near, far = (matrix[found.index(word)] for word in ("drifter", "drifted", "smiling"))
    assert rare @ near > rare @ far + 0.3
    without_n_gram, _ = train_fasttext({"en": sentences}, words, fasttext(min_n=4))["en"]
    assert set(found) - set(without_n_gram) == {"a"}


def test_what_fasttext_cannot_train_is_listed_at_once():
    words = {"en": {"a"}, "de": {"b"}}
    said = "min_n at most max_n, found 5 and 4", "en: no word", "de: no word"
    with refused("3 problem", *said):
        train_fasttext({"en": [["a"]]}, words, fasttext(min_n=5))


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(ContractError, match=r"no training caption in data/pairs/tiny\.parquet"):
        train_fasttext({}, {}, fasttext())


def trained_digest(seed):
    """Return the hash of what is trained on the tiny captions."""
    sentences = training_sentences(tiny.pairs())
    by_language = train_fasttext(sentences, training_words(tiny.pairs()), fasttext(seed=seed))
    content = [(k, words, matrix.tobytes()) for k, (words, matrix) in by_language.items()]
    return hashlib.sha256(repr(content).encode()).hexdigest()


def test_equal_seeds_give_equal_vectors_in_another_process_too():
    code = "from test_word_vectors import trained_digest; print(trained_digest(1))"
    printed = python(code, tests=True, PYTHONHASHSEED="123").stdout
    assert printed.strip() == trained_digest(1)
    assert trained_digest(1) != trained_digest(2)


def test_round_trip_with_equal_bytes(tmp_path):
    for name in "ab":
        write_word_vectors(vectors(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    found = read_word_vectors(tmp_path / "a")
    assert found.by_language["de"][0] == ["ä", "b"]
    np.testing.assert_array_equal(found.by_language["de"][1], [[2, 4], [6, 8]])
    assert (found.image_ids, found.attributes) == (["d:1"], {"method": "x"})


def test_no_vectors_are_vectors(tmp_path):
    write_word_vectors(empty_word_vectors(), tmp_path / "random.h5")
    assert read_word_vectors(tmp_path / "random.h5") == empty_word_vectors()


def test_the_contract_lists_what_is_wrong(tmp_path):
    matrix = np.array([[1, 2], [np.nan, 0], [0, 0]], np.float32)
    by_language = {
        "en": (["a", "a", ""], matrix),
        "de": (["b"], np.ones((2, 2))),
        "fr": (["c"], np.ones((1, 3))),
    }
    with refused(
        "6 problem",
        "en: 1 rows are repeated",
        "en: 1 rows have no word",
        "en: 1 rows have NaN",
        "en: 1 rows are all zero",
        "de: expected one row per word; found 1 words",
        "one size in all languages, found {'de': 2, 'en': 2, 'fr': 3}",
    ):
        raise_problems("words", check_word_vectors(vectors(by_language=by_language)))
    with writing_hdf5(tmp_path / "x.h5", 2, {}):
        pass
    with pytest.raises(ContractError, match="expected vectors of version 1, found 2"):
        read_word_vectors(tmp_path / "x.h5")


def test_vectors_of_held_out_captions_are_told():
    assert not list(check_unseen(vectors(), ["d:2"], "test"))
    (problem,) = check_unseen(vectors(image_ids=["d:1", "d:2"]), ["d:2", "d:3"], "test")
    assert "captions of 1 test images (first: 'd:2')" in problem


def test_settings_tell_the_two_methods_apart():
    adapter = TypeAdapter(WordVectorSource)
    assert adapter.validate_python(FASTTEXT) == fasttext()
    assert adapter.validate_python(files("x", en="en.vec").model_dump()) == files("x", en="en.vec")
    with pytest.raises(ValidationError, match="dim"):
        adapter.validate_python({k: v for k, v in FASTTEXT.items() if k != "dim"})
    with pytest.raises(ValidationError, match="glove"):
        adapter.validate_python(FASTTEXT | {"method": "glove"})


def learn(options, folder, monkeypatch):
    monkeypatch.chdir(folder)
    run_stage(stage, "tiny", monkeypatch, word_vectors={"tiny": options})


def own_images(pairs):
    """Return pairs whose validation captions are about images of their own."""
    held_out = pairs["split"] == "val"
    return pairs.assign(image_id=pairs["image_id"].where(~held_out, "val:" + pairs["image_id"]))


def test_the_stage_trains_on_training_captions_only(tmp_path, monkeypatch):
    pairs = own_images(tiny.pairs())
    unseen = pd.Series([["unseen"]] * len(pairs), index=pairs.index)
    pairs["tokens"] = pairs["tokens"].where(pairs["split"] == "train", unseen)
    write_pairs(pairs, tmp_path / "data/pairs/tiny.parquet")
    learn(fasttext(), tmp_path, monkeypatch)
    found = read_word_vectors(tmp_path / "data/word_vectors/tiny.h5")
    assert found.by_language["en"][0] == sorted(training_words(pairs)["en"])
    assert "unseen" not in found.by_language["en"][0]
    assert found.image_ids == [f"tiny:{number}" for number in range(tiny.IMAGES)]
    assert found.attributes["library"].startswith("gensim ")
    assert found.attributes["dim"] == 16


def test_words_of_the_text_get_a_vector_and_those_of_another_pair_set_too(tmp_path, monkeypatch):
    text = own_images(tiny.pairs())
    write_pairs(text, tmp_path / "data/pairs/tiny.parquet")
    write_pairs(empty_pairs(), tmp_path / "data/pairs/none.parquet")
    more = text[text["language"] == "en"]
    tokens = pd.Series([["fillers"]] * len(more), index=more.index)
    more = more.assign(tokens=tokens, caption_id="more/" + more["caption_id"])
    write_pairs(more, tmp_path / "data/pairs/more.parquet")
    own = {language: sorted(words) for language, words in training_words(text).items()}
    for pairs, expected in (("none", own), ("more", own | {"en": sorted([*own["en"], "fillers"])})):
        learn(fasttext(pairs=pairs), tmp_path, monkeypatch)
        found = read_word_vectors(tmp_path / "data/word_vectors/tiny.h5").by_language
        assert {language: words for language, (words, _) in found.items()} == expected


def test_the_stage_refuses_to_learn_from_held_out_images(tmp_path, monkeypatch):
    write_pairs(own_images(tiny.pairs()), tmp_path / "data/pairs/tiny.parquet")
    leaky = tiny.pairs().assign(image_id="val:" + tiny.pairs()["image_id"])
    write_pairs(leaky, tmp_path / "data/pairs/leaky.parquet")
    with pytest.raises(ContractError, match="captions of 6 held-out images"):
        learn(fasttext(source="data/pairs/leaky.parquet"), tmp_path, monkeypatch)
    assert not (tmp_path / "data/word_vectors").exists()


def test_the_stage_reads_files_and_records_their_hash(tmp_path, monkeypatch):
    write_pairs(tiny.pairs(), tmp_path / "data/pairs/tiny.parquet")
    (tmp_path / "en.vec").write_text("3 2\nen1 1 2\nfiller 3 4\nother 5 6\n")
    learn(files(".", en="en.vec"), tmp_path, monkeypatch)
    found = read_word_vectors(tmp_path / "data/word_vectors/tiny.h5")
    assert found.by_language["en"][0] == ["en1", "filler"]
    assert found.image_ids == []
    expected = {"en": {"name": "en.vec", "sha256": file_sha256(tmp_path / "en.vec")}}
    assert found.attributes == {"method": "files", "files": expected}


@pytest.mark.parametrize(
    ("spelt", "counts"),
    [(["Hund", "und"], 0), (["HUND", "Hund"], 0), (["Hund", "hund"], 1), (["hund", "Hund"], 0)],
)
def test_a_word_that_stands_there_with_capitals_alone_has_their_vector(tmp_path, spelt, counts):
    """As nouns do in German; captions are in lower case."""
    lines = [f"{len(spelt)} 2", *(f"{word} {line} 9" for line, word in enumerate(spelt))]
    (tmp_path / "x.vec").write_text("\n".join(lines), encoding="utf-8")
    assert read_vec(tmp_path / "x.vec", {"hund"})[1].tolist() == [[counts, 9]]


def test_capitals_with_accents_and_a_byte_order_mark(tmp_path):
    (tmp_path / "x.vec").write_text("2 2\nO\u0308l 1 0\nÄrmel 0 1\n", encoding="utf-8-sig")
    assert read_vec(tmp_path / "x.vec", {"öl", "ärmel"})[0] == ["ärmel", "öl"]


@pytest.mark.parametrize("end", ["\n\n", "\r\n \r\n", "\n"])
def test_empty_lines_at_the_end_are_no_words(tmp_path, end):
    (tmp_path / "x.vec").write_text(f"1 2\na 1 2{end}", newline="")
    assert read_vec(tmp_path / "x.vec", {"a"})[1].tolist() == [[1, 2]]


def test_a_number_is_not_written_with_an_underscore(tmp_path):
    (tmp_path / "x.vec").write_text("1 2\na 1_0 2\n")
    with refused("line 2, 'a': expected numbers such as -0.01, found '1_0 2'"):
        read_vec(tmp_path / "x.vec", {"a"})
