"""Words outside the vocabulary, read as pieces that other words share."""

from pipeline_lib.text.pieces import LONGEST, MARK, SHARED_BY, cut, shared_pieces
from pipeline_lib.text.vocabulary import Vocabulary

DOGS = ["hunde", "hundes", "hundin", "hunden", "katze"]


def test_pieces_are_runs_that_enough_words_share():
    found = [piece.removeprefix(MARK) for piece in shared_pieces(DOGS)]
    assert SHARED_BY == 4
    assert "<hund" in found
    assert "hund" in found
    assert "hunde" not in found  # of three words
    assert "<" not in found
    assert max(map(len, found)) <= LONGEST
    assert found == sorted(found)


def test_a_character_of_chinese_is_a_piece():
    assert MARK + "犬" in shared_pieces(["大犬", "小犬", "犬小屋", "犬"])


def test_a_word_is_cut_from_the_left_into_the_longest_pieces():
    known = {MARK + piece for piece in ("<hu", "<hund", "un", "e>", "hütt")}
    assert cut("hundehütte", known) == [MARK + piece for piece in ("<hund", "hütt", "e>")]
    assert cut("xyz", known) == []


def build(oov):
    tokens = [[word, word] for word in DOGS[:4]] + [["hundert"], ["katze"]]
    return Vocabulary.build(
        {"de": tokens}, pooled=False, min_count=2, markers="none", oov=oov, max_tokens=3
    )


def test_rare_and_unknown_words_are_read_as_pieces():
    vocabulary = build("pieces")
    (table,) = vocabulary.tables
    pieces = {i: entry for i, entry in enumerate(table.entries, start=4)}
    read = [pieces[i] for i in vocabulary.encode(["hunde", "hundert"], "de")]
    assert read[0] == "hunde"
    assert read[1] == MARK + "<hunde"
    assert vocabulary.size("de") == 4 + len(table.entries)


def test_a_word_that_is_spelled_as_a_piece_is_that_piece():
    piece = shared_pieces(DOGS[:4])[0]
    tokens = [[word, word, piece] for word in DOGS[:4]]
    vocabulary = Vocabulary.build(
        {"de": tokens}, pooled=False, min_count=2, markers="none", oov="pieces", max_tokens=3
    )
    (table,) = vocabulary.tables
    assert len({*table.entries}) == len(table.entries)
    assert vocabulary.size("de") == 4 + len(table.entries)
    assert vocabulary.encode([piece], "de") == [4 + table.entries.index(piece)]


def test_a_sentence_keeps_its_first_words_with_all_their_pieces():
    vocabulary = build("pieces")
    word = vocabulary.encode(["hundehunde"], "de")
    assert len(word) == 2
    assert vocabulary.encode(["hundehunde"] * 4, "de") == word * 3


def test_a_sentence_of_nothing_known_is_one_unknown_word():
    assert build("pieces").encode(["zzz"], "de") == [1]


def test_pieces_are_saved_and_words_alone_are_words():
    vocabulary = build("pieces")
    again = Vocabulary.from_json(vocabulary.to_json())
    assert again == vocabulary
    assert not any(word.startswith(MARK) for word in again.tables[0].words)
    old = vocabulary.to_json()
    for table in old["tables"]:
        del table["pieces"]  # a model saved before there were pieces
    assert Vocabulary.from_json(old).tables[0].pieces == ()
