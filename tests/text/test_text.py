"""Tokens and vocabularies, against Multi30k's own files, sacremoses, and published counts."""

import gzip
import json
import unicodedata
from collections import Counter
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import regex
from hypothesis import assume, given
from hypothesis import strategies as st
from shell import python

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.settings.strict import SettingsError
from pipeline_lib.settings.text import Tokenizer
from pipeline_lib.text.letters import letters
from pipeline_lib.text.moses import punctuation_normalizer
from pipeline_lib.text.tokenizers import TOKENIZERS, build_tokenizer, tokenize_captions
from pipeline_lib.text.vocabulary import END, PAD, SPECIALS, START, UNK, Vocabulary

MOSES = Tokenizer(tokenizer="moses", lowercase=True, normalize=True)

# Types, and types of four or more occurrences, in Multi30k's public training files.
TASK1_TYPES = {"en": (10210, 3806), "de": (18722, 4244), "fr": (11219, 3995), "cs": (22396, 5520)}
TASK2_TYPES = {"en": (19585, 8340), "de": (41713, 9988)}
TASK2_TEST_UNKNOWN_PERCENT = {"en": 1.01, "de": 3.87}
KADAR_POOLED_ENTRIES = 17831

WORDS = st.sampled_from(["a", "b", "c", "hat", "in", "<unk>", "<pad>", "ß", "Straße", "猫"])
SENTENCES = st.lists(st.lists(WORDS, max_size=8), max_size=8)
SOME_SENTENCES = st.lists(st.lists(WORDS, min_size=1, max_size=8), min_size=1, max_size=8)


def moses(language: str):
    return build_tokenizer(language, **MOSES.model_dump())


def build(tokens_by_language: dict, **changes: object) -> Vocabulary:
    options = {
        "pooled": False, "min_count": 1, "markers": "none", "oov": "unk", "max_tokens": 100
    }  # fmt: skip
    return Vocabulary.build(tokens_by_language, **{**options, **changes})


def words(vocabulary: Vocabulary, language: str) -> tuple[str, ...]:
    return next(table.words for table in vocabulary.tables if language in table.languages)


def read_lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.removesuffix("\n") for line in file]


# --- Moses -------------------------------------------------------------------------------------


@pytest.mark.real_data
@pytest.mark.parametrize("language", ["en", "de", "fr", "cs"])
def test_moses_tokens_equal_all_training_lines_of_multi30k(real_data, language):
    folder = real_data / "multi30k" / "data" / "task1"
    raw = read_lines(folder / "raw" / f"train.{language}.gz")
    expected = read_lines(folder / "tok" / f"train.lc.norm.tok.{language}.gz")
    assert len(raw) == len(expected) == 29000
    tokens = list(map(moses(language), raw))
    # One reference line has two spaces in a row and one at its end: spaces only separate.
    differing = [i for i in range(29000) if tokens[i] != expected[i].split()]
    assert differing == []
    counts = Counter(word for sentence in tokens for word in sentence)
    frequent = sum(count >= 4 for count in counts.values())
    assert (len(counts), frequent) == TASK1_TYPES[language]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "levi‘s and levi’s", "levi's and levi's"),
        ("fr", "bob l’éponge", 'bob l"éponge'),  # the script reads bytes: é is no letter to it
        ("en", 'a sign: "stop".', 'a sign: "stop."'),
        ("de", 'ein schild: „halt.“', 'ein schild: "halt".'),
        ("cs", 'nápis "stop".', 'nápis "stop".'),
        ("de", "10\u00a0000", "10,000"),
        ("en", "10\u00a0000", "10.000"),
    ],
)  # fmt: skip
def test_punctuation_follows_the_script_by_language(language, text, expected):
    assert punctuation_normalizer(language, apostrophes=False)(text) == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("fr", "bob l’éponge", "bob l'éponge"),
        ("it", "c’è un cane", "c'è un cane"),
        ("en", "the café’s “door”", 'the café\'s "door"'),
        ("uk", "м’яч", "м'яч"),
        ("en", "levi‘s and levi’s", "levi's and levi's"),
    ],
)
def test_an_apostrophe_stays_one_beside_any_letter_where_it_is_asked_for(language, text, expected):
    assert punctuation_normalizer(language, apostrophes=True)(text) == expected


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("yo", "Pẹ̀lú ọmọ́de kan.", ["pẹ̀lú", "ọmọ́de", "kan", "."]),
        ("ln", "mɔ̌kɔ́, 3.5", ["mɔ̌kɔ́", ",", "3.5"]),
        ("fa", "می\u200cدود در پارک", ["می\u200cدود", "در", "پارک"]),
        ("uk", "М’яч (на) траві!", ["м'яч", "(", "на", ")", "траві", "!"]),
        ("ar", "كِتَابٌ، ولد؟", ["كِتَابٌ", "،", "ولد", "؟"]),
        ("ko", "개가 뛴다.", ["개가", "뛴다", "."]),
        ("fa", "سگ \u200fمی\u200cدود در \u200c پارک\u200f", ["سگ", "می\u200cدود", "در", "پارک"]),
        ("yo", "a \u0301b", ["a", "\u0301b"]),
    ],
)
def test_words_keep_their_marks_joiners_and_apostrophes_by_unicode(language, text, tokens):
    tokenize = build_tokenizer(language, "unicode", lowercase=True, normalize="unicode")
    assert tokenize(text) == tokens


@given(st.text())
def test_by_unicode_nothing_but_spaces_is_lost(text):
    tokens = build_tokenizer("xx", "unicode", lowercase=False, normalize=False)(text)
    composed = unicodedata.normalize("NFC", text)
    joiners = regex.compile(r"\p{Cf}")
    assert joiners.sub("", "".join(tokens)) == joiners.sub("", "".join(composed.split()))
    assert all(token.split() == [token] for token in tokens)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Eine Straße über den Fluß.", "eine straße über den fluß ."),
        ("Sie füllt, er fällt.", "sie füllt , er fällt ."),
        ("Sie fährt, er führt.", "sie fährt , er führt ."),
    ],
)
def test_umlauts_and_sharp_s_survive(text, expected):
    assert moses("de")(text) == expected.split()


def test_decomposed_text_gives_the_tokens_of_composed_text():
    text = "Ein Mädchen hört zu."
    decomposed = unicodedata.normalize("NFD", text)
    assert decomposed != text
    assert moses("de")(decomposed) == moses("de")(text)


def test_apostrophes_and_ampersands_are_entities_as_in_multi30k():
    assert moses("en")("A man's R&B band") == ["a", "man", "&apos;s", "r", "&amp;", "b", "band"]
    assert moses("fr")("L'homme d'Éponge") == ["l&apos;", "homme", "d&apos;", "éponge"]


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("tr", "İki kedi KIRMIZI", ["iki", "kedi", "kırmızı"]),
        ("aze", "I\u0307t IŞIQ", ["it", "ışıq"]),
        ("en", "İstanbul IT", ["istanbul", "it"]),
    ],
)
def test_the_two_i_of_turkish_stay_two_letters(language, text, tokens):
    tokenize = build_tokenizer(language, "moses", lowercase=True, normalize=True)
    assert tokenize(text) == tokens


def test_vowel_signs_are_letters_and_marks_between_words_are_none():
    assert letters("की") != letters("का")
    assert letters("Straße, 2!") == letters("STRASSE 2")
    assert letters("a_b") == "ab"
    assert letters("A dog ❤\ufe0f") == letters("a dog")  # U+FE0F asks for a heart in colours


def test_letters_of_another_width_and_joined_ones_are_the_same_letters():
    assert letters("ﬁt Ａ１") == "fita1"


def test_lowercase_and_normalize_are_choices():
    assert build_tokenizer("en", "whitespace", False, False)("A „Hat“") == ["A", "„Hat“"]
    assert build_tokenizer("en", "whitespace", True, False)("A „Hat“") == ["a", "„hat“"]
    assert build_tokenizer("en", "whitespace", False, True)("A „Hat“") == ["A", '"Hat"']


# --- Japanese and Chinese ----------------------------------------------------------------------


def test_mecab_reads_on_after_a_null_character():
    tokenize = build_tokenizer("ja", "mecab", True, False)
    assert tokenize("犬が\0猫と走る") == tokenize("犬が 猫と走る")


def test_mecab_segments_japanese():
    tokenize = build_tokenizer("ja", "mecab", True, False)
    tokens = tokenize("男性が草の上で\u3000サッカーをしています。")
    assert " ".join(tokens) == "男性 が 草 の 上 で サッカー を し て い ます 。"


def test_jieba_segments_chinese_with_its_model_of_unknown_words():
    tokenize = build_tokenizer("zh", "jieba", True, False)
    assert tokenize("小男孩 在草地上踢足球") == ["小男孩", "在", "草地", "上", "踢足球"]
    # From jieba's own documentation: 杭研 is not in its dictionary.
    expected = ["他", "来到", "了", "网易", "杭研", "大厦"]
    assert tokenize("他来到了网易杭研大厦") == expected


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("language", "tokenizer", "file"),
    [("ja", "mecab", "ja.machine_translation.tsv"), ("zh", "jieba", "zh.human.tsv")],
)
def test_segmentation_loses_no_character_of_real_captions(real_data, language, tokenizer, file):
    table = pd.read_csv(
        real_data / "flickr8k" / "captions" / file, sep="\t", quoting=3, keep_default_na=False
    )
    tokenize = build_tokenizer(language, tokenizer, False, False)
    for text in table["text"].iloc[::10]:
        nfc = unicodedata.normalize("NFC", text)
        assert "".join(tokenize(text)) == "".join(nfc.split())


@pytest.mark.parametrize(("language", "tokenizer"), [("ja", "mecab"), ("zh", "jieba")])
def test_a_text_of_one_long_run_is_cut_in_parts(language, tokenizer):
    """MeCab ends the process on 200,000 letters in a row; jieba takes minutes for the other."""
    tokenize = build_tokenizer(language, tokenizer, True, False)
    for run in ("a" * 200_000, "1" * 200_000, "犬" * 50_000):
        assert "".join(tokenize(run)) == run


def test_jieba_is_silent_and_leaves_no_file(tmp_path):
    code = """
from pipeline_lib.text.tokenizers import build_tokenizer
print(len(build_tokenizer("zh", "jieba", True, False)("两个男孩")))
"""
    done = python(code, TMPDIR=str(tmp_path))
    assert (done.stdout, done.stderr) == ("2\n", "")
    assert list(tmp_path.iterdir()) == []


def test_packages_of_other_tokenizers_are_not_imported():
    code = """
import sys
from pipeline_lib.text.tokenizers import build_tokenizer
build_tokenizer("en", "whitespace", True, False)("a hat")
print({"sacremoses", "fugashi", "ipadic", "jieba"} & set(sys.modules))
"""
    assert python(code).stdout == "set()\n"


# --- Captions ----------------------------------------------------------------------------------


def test_every_tokenizer_that_settings_allow_exists():
    assert set(get_args(Tokenizer.model_fields["tokenizer"].annotation)) == set(TOKENIZERS)


def test_unknown_tokenizer_lists_the_legal_names():
    with pytest.raises(SettingsError, match=r"'spacy'.*jieba, mecab, moses, unicode, whitespace"):
        build_tokenizer("en", "spacy", True, True)


def captions_table(rows: list[tuple[str, str, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["caption_id", "language", "text"])


def test_captions_are_tokenized_by_their_language_in_their_order():
    table = captions_table([("3", "de", "Ein Hut"), ("1", "en", "It's"), ("2", "de", "Zwei Hüte")])
    table.index = [7, 7, 1]
    tokenized = tokenize_captions(table, {"de": MOSES, "en": MOSES})
    assert list(tokenized["tokens"]) == [["ein", "hut"], ["it", "&apos;s"], ["zwei", "hüte"]]
    assert list(tokenized["caption_id"]) == ["3", "1", "2"]
    assert "tokens" not in table


def test_no_captions_give_no_tokens():
    assert len(tokenize_captions(captions_table([]), {})["tokens"]) == 0


def test_every_caption_without_token_is_listed():
    table = captions_table([("x1", "en", " "), ("x2", "en", "a hat"), ("x3", "en", "\u200a")])
    with pytest.raises(ContractError, match="2 problem") as error:
        tokenize_captions(table, {"en": MOSES})
    assert "x1" in str(error.value)
    assert "x2" not in str(error.value)
    assert "x3" in str(error.value)


def test_every_language_without_tokenizer_is_listed():
    table = captions_table([("1", "en", "a"), ("2", "sv", "en"), ("3", "da", "en")])
    with pytest.raises(ContractError, match=r"tokenizers\.da[\s\S]*tokenizers\.sv"):
        tokenize_captions(table, {"en": MOSES})


# --- Vocabulary --------------------------------------------------------------------------------


@pytest.mark.real_data
def test_vocabulary_of_multi30k_has_the_published_counts(real_data):
    folder = real_data / "multi30k" / "data" / "task2" / "raw"

    def tokens(split: str, language: str) -> list[list[str]]:
        files = [folder / f"{split}.{i}.{language}.gz" for i in range(1, 6)]
        return [moses_of[language](line) for file in files for line in read_lines(file)]

    moses_of = {language: moses(language) for language in TASK2_TYPES}
    train = {language: tokens("train", language) for language in TASK2_TYPES}
    every, frequent = build(train), build(train, min_count=4)
    for language, expected in TASK2_TYPES.items():
        assert (len(words(every, language)), len(words(frequent, language))) == expected
        ids, lengths = frequent.encode_all(tokens("test_2016", language), language)
        unknown = 100 * (ids == UNK).sum() / lengths.sum()
        assert round(unknown, 2) == TASK2_TEST_UNKNOWN_PERCENT[language]
    pooled = build(train, pooled=True, min_count=4)
    assert pooled.size("en") == pooled.size("de") == KADAR_POOLED_ENTRIES


def test_specials_have_the_first_ids():
    assert (PAD, UNK, START, END) == (0, 1, 2, 3)
    assert [SPECIALS[i] for i in (PAD, UNK, START, END)] == ["<pad>", "<unk>", "<start>", "<end>"]


def test_words_are_ordered_by_count_then_spelling():
    vocabulary = build({"en": [["b", "c", "a"], ["c"]]})
    assert words(vocabulary, "en") == ("c", "a", "b")
    assert vocabulary.encode(["c", "a", "b"], "en") == [4, 5, 6]


def test_min_count_keeps_words_that_occur_exactly_so_often():
    sentences = [["four"] * 4, ["three"] * 3]
    assert words(build({"en": sentences}, min_count=4), "en") == ("four",)
    assert words(build({"en": sentences}, min_count=3), "en") == ("four", "three")


def test_pooled_counts_add_up_over_languages():
    tokens = {"en": [["hat", "in", "in"]], "de": [["hat", "hut", "hut"]]}
    pooled = build(tokens, pooled=True, min_count=2)
    assert words(pooled, "en") == words(pooled, "de") == ("hat", "hut", "in")
    assert pooled.encode(["hut"], "en") == pooled.encode(["hut"], "de") != [UNK]
    separate = build(tokens, min_count=2)
    assert (words(separate, "en"), words(separate, "de")) == (("in",), ("hut",))
    assert separate.encode(["hut"], "en") == [UNK]
    assert (separate.size("en"), pooled.size("en")) == (5, 7)


@pytest.mark.parametrize(
    ("markers", "expected"),
    [("both", [START, 4, 5, END]), ("end", [4, 5, END]), ("none", [4, 5])],
)
def test_markers_stand_around_the_sentence(markers, expected):
    assert build({"en": [["a", "b"]]}, markers=markers).encode(["a", "b"], "en") == expected


def test_unknown_words_become_unk_or_go():
    sentence = ["x", "a", "y", "a"]
    assert build({"en": [["a"]]}, oov="unk").encode(sentence, "en") == [UNK, 4, UNK, 4]
    assert build({"en": [["a"]]}, oov="drop").encode(sentence, "en") == [4, 4]


@pytest.mark.parametrize("oov", ["unk", "drop"])
@pytest.mark.parametrize("sentence", [["x"], []])
def test_a_sentence_without_known_word_is_one_unk(oov, sentence):
    vocabulary = build({"en": [["a"]]}, oov=oov, markers="both")
    assert vocabulary.encode(sentence, "en") == [START, UNK, END]


def test_long_sentences_are_cut_inside_their_markers():
    vocabulary = build({"en": [["a", "b", "c"]]}, markers="both", max_tokens=2)
    assert vocabulary.encode(["a", "b", "c"], "en") == [START, 4, 5, END]


def test_words_are_cut_before_unknown_ones_are_dropped():
    vocabulary = build({"en": [["a", "b"]]}, oov="drop", max_tokens=2)
    assert vocabulary.encode(["x", "a", "b"], "en") == [4]


def test_words_spelled_like_specials_are_words():
    vocabulary = build({"en": [["<unk>", "<pad>"]]}, oov="drop")
    assert sorted(vocabulary.encode(["<unk>", "<pad>"], "en")) == [4, 5]
    assert vocabulary.size("en") == 6


@given(
    train=SOME_SENTENCES,
    sentences=SENTENCES,
    min_count=st.integers(1, 3),
    markers=st.sampled_from(["both", "end", "none"]),
    oov=st.sampled_from(["unk", "drop"]),
    max_tokens=st.integers(1, 5),
)
def test_encoding_equals_a_word_by_word_encoding(
    train, sentences, min_count, markers, oov, max_tokens
):
    counts = Counter(word for sentence in train for word in sentence)
    assume(max(counts.values()) >= min_count)
    vocabulary = build(
        {"en": train}, min_count=min_count, markers=markers, oov=oov, max_tokens=max_tokens
    )
    ids, lengths = vocabulary.encode_all(sentences, "en")
    assert (ids.dtype, lengths.dtype) == (np.int64, np.int64)
    assert len(ids) == len(lengths) == len(sentences)
    assert not sentences or ids.shape[1] == max(lengths)
    spelled = dict(enumerate([*SPECIALS, *words(vocabulary, "en")]))
    for row, length, sentence in zip(ids.tolist(), lengths, sentences, strict=True):
        known = [(word, counts[word] >= min_count) for word in sentence[:max_tokens]]
        expected = [word if is_known else "<unk>" for word, is_known in known]
        if oov == "drop":
            expected = [word for word, is_known in known if is_known]
        expected = expected or ["<unk>"]
        expected = ["<start>"] * (markers == "both") + expected + ["<end>"] * (markers != "none")
        assert [spelled[i] for i in row[:length]] == expected
        assert row[length:] == [PAD] * (len(row) - length)
        assert vocabulary.encode(sentence, "en") == row[:length]


@given(train=SOME_SENTENCES, test=SENTENCES, pooled=st.booleans())
def test_encoding_test_captions_never_changes_the_vocabulary(train, test, pooled):
    vocabulary = build({"en": train, "de": train[:1]}, pooled=pooled)
    before = json.dumps(vocabulary.to_json())
    vocabulary.encode_all([*test, ["only", "in", "test"]], "en")
    assert json.dumps(vocabulary.to_json()) == before
    assert "only" not in words(vocabulary, "en")


@given(train=SOME_SENTENCES, pooled=st.booleans())
def test_order_of_captions_and_languages_does_not_matter(train, pooled):
    forward = build({"en": train, "de": train[:1]}, pooled=pooled)
    backward = build({"de": train[:1], "en": train[::-1]}, pooled=pooled)
    assert json.dumps(forward.to_json()) == json.dumps(backward.to_json())


@given(train=SOME_SENTENCES, sentence=st.lists(WORDS), pooled=st.booleans())
def test_json_round_trip(train, sentence, pooled):
    vocabulary = build({"en": train, "de": train}, pooled=pooled, markers="both", oov="drop")
    again = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert again == vocabulary
    assert again.languages == ("de", "en")
    assert again.encode(sentence, "de") == vocabulary.encode(sentence, "de")


def test_json_with_other_specials_is_refused():
    content = build({"en": [["a"]]}).to_json()
    with pytest.raises(ContractError, match="special entries"):
        Vocabulary.from_json({**content, "specials": ["<unk>", "<pad>"]})


def test_every_language_without_frequent_word_is_listed():
    with pytest.raises(ContractError, match=r"in de occurs[\s\S]*in fr occurs"):
        build({"en": [["a", "a"]], "fr": [["b"]], "de": []}, min_count=2)


def test_language_that_was_not_trained_is_an_error_that_names_the_others():
    vocabulary = build({"en": [["a"]], "de": [["b"]]})
    for use in (vocabulary.size, lambda language: vocabulary.encode(["a"], language)):
        with pytest.raises(ContractError, match="de, en; found 'cs'"):
            use("cs")


@pytest.mark.parametrize("tokenizer", ["moses", "unicode", "whitespace"])
def test_letters_that_are_composed_in_lower_case_only_are_composed(tokenizer):
    """H with a line below has no capital of its own in Unicode: ẖ has a code, its capital two."""
    tokenize = build_tokenizer("en", tokenizer, lowercase=True, normalize=False)
    assert tokenize("H\u0331amas") == tokenize("\u1e96amas") == ["\u1e96amas"]
