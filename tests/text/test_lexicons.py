"""Lexicons: MUSE's own counts, its 100 % leak and the protocol without it, malformed files."""

import pandas as pd
import pytest
from lone_stage import run_stage
from refusals import refused

from pipeline_lib.contract.lexicons import (
    check_lexicon,
    empty_lexicon,
    leaked,
    read_lexicon,
    write_lexicon,
)
from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.contract.tables import write_pairs
from pipeline_lib.corpora.world.generate import generate
from pipeline_lib.settings.text import Lexicon
from pipeline_lib.text.lexicons import load_lexicon, parse_dictionary
from pipeline_lib.text.training_text import training_images, training_sentences, training_words
from stages import lexicon as stage
from tests import tiny

MUSE_LINES = {  # (0-5000, 5000-6500, full): data/README.md and the files' own counts
    "en-de": (14677, 3660, 101931),
    "en-fr": (10872, 2943, 113286),
    "en-cs": (11112, 2554, 64216),
    "en-ja": (7270, 1835, 35353),
    "en-zh": (8728, 2230, 39334),
}
WORDS = {"en": {"dog", "cat", "red"}, "de": {"hund", "köter", "katze", "rot"}}


def options(folder, **changes):
    values = {"source": str(folder), "pairs": "tiny", "languages": ["en", "de"]}
    return Lexicon(**values | {"train": ["full.txt"], "test": ["test.txt"]} | changes)


def muse(real_data, languages):
    pair = "-".join(languages)
    return options(
        real_data / "lexicons/muse",
        languages=languages,
        train=[f"{pair}.txt", f"{pair}.5000-6500.txt"],
        test=[f"{pair}.0-5000.txt"],
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "full.txt").write_text(
        "dog hund\ndog köter\ncat katze\ncat tier\nred\trot\nbird vogel\n", encoding="utf-8"
    )
    (tmp_path / "test.txt").write_text("dog hund\nbird vogel\n", encoding="utf-8")
    return tmp_path


def rows(lexicon, protocol, fold):
    kept = lexicon[(lexicon["protocol"] == protocol) & (lexicon["fold"] == fold)]
    return list(zip(kept["source_word"], kept["target_word"], strict=True))


def test_pairs_are_kept_where_captions_have_both_words(folder):
    lexicon = load_lexicon(options(folder), WORDS)
    assert rows(lexicon, "paper", "test") == [("dog", "hund")]
    assert rows(lexicon, "paper", "train") == [
        ("cat", "katze"),
        ("dog", "hund"),
        ("dog", "köter"),
        ("red", "rot"),
    ]


def test_the_clean_training_fold_has_no_translation_of_a_test_word(folder):
    """``dog köter`` is no test pair, but tells what a tested word means."""
    lexicon = load_lexicon(options(folder), WORDS)
    assert rows(lexicon, "clean", "test") == rows(lexicon, "paper", "test")
    assert rows(lexicon, "clean", "train") == [("cat", "katze"), ("red", "rot")]
    assert len(leaked(lexicon, "paper")) == 2
    assert leaked(lexicon, "clean").empty


def test_a_byte_order_mark_is_no_part_of_the_first_word(folder):
    (folder / "full.txt").write_text("cat katze\nred rot\n", encoding="utf-8-sig")
    lexicon = load_lexicon(options(folder), WORDS)
    assert rows(lexicon, "paper", "train") == [("cat", "katze"), ("red", "rot")]


def test_words_are_compared_in_one_unicode_form(folder):
    (folder / "full.txt").write_text("dog ko\u0308ter\ncat katze\n", encoding="utf-8")
    (folder / "test.txt").write_text("cat katze\n", encoding="utf-8")
    assert rows(load_lexicon(options(folder), WORDS), "clean", "train") == [("dog", "köter")]


def test_all_faults_of_all_files_are_listed_with_their_lines(folder):
    (folder / "full.txt").write_text("dog hund\ndog\na b c\n", encoding="utf-8")
    (folder / "latin.txt").write_bytes("dog köter\n".encode("latin-1"))
    chosen = options(folder, test=["absent.txt", "latin.txt"], languages=["en", "fr"])
    with refused(
        "5 problem(s)",
        "full.txt: line 2: expected two words, found 'dog'",
        "full.txt: line 3: expected two words, found 'a b c'",
        "absent.txt: not found",
        "latin.txt: expected UTF-8",
        "no training caption of pairs.tiny is in 'fr': expected one of de, en",
    ):
        load_lexicon(chosen, WORDS)


def test_reading_stops_in_a_file_of_another_form():
    pairs, problems = parse_dictionary(["one"] * 1000)
    assert (len(pairs), len(problems)) == (0, 21)
    assert problems[-1] == "the lines after 20 were not read"


def test_a_lexicon_that_leaves_nothing_is_refused(folder):
    swapped = options(folder, languages=["de", "en"])
    with refused("4 problem", "paper: none of 6 pairs is left to train on"):
        load_lexicon(swapped, WORDS)
    (folder / "full.txt").write_text("dog köter\n", encoding="utf-8")
    with refused("1 problem", "clean: none of 1 pairs is left to train on"):
        load_lexicon(options(folder), WORDS)


def test_round_trip_with_equal_bytes_whatever_the_order(folder, tmp_path):
    lexicon = load_lexicon(options(folder), WORDS)
    write_lexicon(lexicon, tmp_path / "a.parquet")
    write_lexicon(lexicon[::-1], tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    found = read_lexicon(tmp_path / "a.parquet")
    assert set(found.itertuples(index=False)) == set(lexicon.itertuples(index=False))


def test_an_empty_lexicon_is_a_lexicon(tmp_path):
    write_lexicon(empty_lexicon(), tmp_path / "none.parquet")
    assert read_lexicon(tmp_path / "none.parquet").empty


def test_the_contract_lists_what_is_wrong(folder, tmp_path):
    lexicon = load_lexicon(options(folder), WORDS)
    leak = lexicon[lexicon["protocol"] == "paper"].assign(protocol="clean")
    broken = pd.concat([leak, leak.tail(1), leak.head(1).assign(fold="dev", target_word="")])
    with refused("4 problem(s)", "repeated", "no target_word", "'dev'", "2 rows of the clean"):
        raise_problems("lexicon", check_lexicon(broken))
    with pytest.raises(ContractError, match="columns missing: fold"):
        write_lexicon(lexicon.drop(columns="fold"), tmp_path / "x.parquet")
    write_pairs(tiny.pairs(), tmp_path / "pairs.parquet")
    with pytest.raises(ContractError, match="expected columns"):
        read_lexicon(tmp_path / "pairs.parquet")


def test_only_training_captions_count_and_each_once():
    pairs = tiny.pairs()
    pairs.loc[pairs["split"] == "val", "tokens"] = pd.Series(
        [["unseen"]] * len(pairs), index=pairs.index
    )
    twice = pd.concat([pairs, pairs.assign(set="other")])
    assert "unseen" not in training_words(twice)["en"]
    assert {k: len(v) for k, v in training_sentences(twice).items()} == {"de": 12, "en": 12}
    assert training_images(twice) == [f"tiny:{number}" for number in range(tiny.IMAGES)]


def test_the_stage_writes_the_lexicon_of_its_pairs(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (folder / "full.txt").write_text("en0 de0\nen1 de1\nen9 de9\n", encoding="utf-8")
    (folder / "test.txt").write_text("en1 de1\n", encoding="utf-8")
    write_pairs(tiny.pairs(), tmp_path / "data/pairs/tiny.parquet")
    run_stage(stage, "tiny", monkeypatch, lexicons={"tiny": options(folder)})
    found = read_lexicon(tmp_path / "data/lexicons/tiny.parquet")
    assert rows(found, "clean", "train") == [("en0", "de0")]


def test_world_s_lexicon_shares_no_source_word_so_both_protocols_are_one(tmp_path):
    sizes = {"train": 30, "val": 1, "test": 1}
    nothing = {"graded_pairs": 0, "parallel": dict.fromkeys(sizes, 0)}
    generate(tmp_path / "world", name="world", seed=1, style="flat", images=sizes, **nothing)
    folder = tmp_path / "world/lexicon"
    own = {
        fold: sorted(tuple(line.split()) for line in text.splitlines())
        for fold in ("train", "test")
        for text in [(folder / f"en-de.{fold}.txt").read_text(encoding="utf-8")]
    }
    words = {
        language: {pair[i] for pairs in own.values() for pair in pairs}
        for i, language in enumerate(("en", "de"))
    }
    chosen = options(folder, train=["en-de.train.txt"], test=["en-de.test.txt"])
    lexicon = load_lexicon(chosen, words)
    for protocol in ("paper", "clean"):
        assert {fold: rows(lexicon, protocol, fold) for fold in own} == own


@pytest.mark.real_data
@pytest.mark.parametrize("pair", MUSE_LINES)
def test_muse_has_its_counts_and_leaks_entirely(real_data, pair):
    """Each pair of MUSE's training file, on which AME is tested, is in the full one it learns."""
    found = []
    for ending in ("0-5000.txt", "5000-6500.txt", "txt"):
        path = real_data / "lexicons/muse" / f"{pair}.{ending}"
        pairs, problems = parse_dictionary(path.read_text(encoding="utf-8").splitlines())
        assert not problems
        found.append(pairs)
    assert tuple(map(len, found)) == MUSE_LINES[pair]
    assert found[0] <= found[2]


@pytest.mark.real_data
def test_of_the_paper_s_test_words_all_are_learnt_and_of_the_clean_ones_none(real_data):
    everything = [
        line.split()
        for line in (real_data / "lexicons/muse/en-de.txt").read_text("utf-8").splitlines()
    ]
    words = {"en": {a for a, _ in everything[::2]}, "de": {b for _, b in everything}}
    lexicon = load_lexicon(muse(real_data, ["en", "de"]), words)
    test = set(rows(lexicon, "paper", "test"))
    assert test
    assert test <= set(rows(lexicon, "paper", "train"))
    assert test == set(rows(lexicon, "clean", "test"))
    assert not {a for a, _ in test} & {a for a, _ in rows(lexicon, "clean", "train")}
    assert all(a in words["en"] for a in lexicon["source_word"])


def test_where_all_learnt_words_are_tested_the_refusal_says_so(folder):
    same = options(folder, train=["full.txt"], test=["full.txt"])
    with refused("clean: none of", "Each source word that captions have is one of the test's"):
        load_lexicon(same, WORDS)


def test_a_byte_that_is_no_utf_8_has_its_line_wherever_it_stands(folder):
    lines = [b"dog hund"] * 50_000 + [b"dog k\xf6ter"]
    (folder / "full.txt").write_bytes(b"\n".join(lines))
    said = "full.txt: expected UTF-8, found byte 0xf6 in line 50001. Convert the file to UTF-8"
    with refused(said):
        load_lexicon(options(folder), WORDS)
