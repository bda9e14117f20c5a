"""Queries: exact scores, terms, languages."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from tiny_photos import COLOURS, GERMAN

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.decoding import ImageError
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.models.similarity import SIMILARITIES
from pipeline_lib.search.index import PhotoIndex, update_index
from pipeline_lib.search.languages import LanguageDetector
from pipeline_lib.search.searcher import Searcher, Term, top


@pytest.fixture(scope="module")
def searcher(colours, tmp_path_factory):
    embedder = Embedder.load(colours / "model")
    file = tmp_path_factory.mktemp("index") / "index.parquet"
    return Searcher(embedder, update_index(embedder, colours / "photos", file))


def paths(searcher, hits):
    return [searcher.index.paths[hit.number] for hit in hits]


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("colour", COLOURS)
def test_the_right_photo_is_first(searcher, colour, language):
    text = f"a {colour} photo" if language == "en" else f"ein {GERMAN[colour]} Foto"
    term = searcher.words(text)
    assert (term.language, term.unknown) == (language, [])
    assert paths(searcher, searcher.best([term], 1)) == [f"{colour}.png"]


def test_terms_are_added_and_taken_away(searcher):
    red, blue = (searcher.words(f"a {colour} photo") for colour in ("red", "blue"))
    no_red = searcher.words("a red photo", sign=-1)
    assert set(paths(searcher, searcher.best([red, blue], 2))) == {"red.png", "blue.png"}
    assert paths(searcher, searcher.best([red, blue, no_red], 1)) == ["blue.png"]
    assert paths(searcher, searcher.best([no_red], 4))[-1] == "red.png"
    alone = {hit.number: hit.score for hit in searcher.best([red], 4)}
    both = {hit.number: hit.score for hit in searcher.best([red, no_red], 4)}
    assert both == pytest.approx(dict.fromkeys(alone, 0), abs=1e-6)


def test_a_photo_finds_itself(searcher, colours):
    for number, path in enumerate(searcher.index.paths):
        for term in (searcher.indexed(number), searcher.photo(colours / "photos" / path, path)):
            hit = searcher.best([term], 1)[0]
            assert hit.number == number
            assert hit.score == pytest.approx(1, abs=1e-5)


def test_a_photo_that_cannot_be_read(searcher, tmp_path):
    (tmp_path / "x.jpg").write_bytes(b"x")
    with pytest.raises(ImageError, match="expected an image"):
        searcher.photo(tmp_path / "x.jpg", "x")


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_scores_are_those_of_all_photos(similarity):
    """Against one pair at a time in float64."""
    space = tiny.space(tiny.recipe(similarity=similarity, absolute=similarity.endswith("order")))
    random = np.random.default_rng(0)
    vectors = random.normal(size=(301, 16))
    vectors = np.abs(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    names, photos = [str(n) for n in range(300)], np.float32(vectors[:300])
    index = PhotoIndex(None, names, photos, {}, np.arange(300))
    found = Searcher(Embedder(space, tiny.PREPROCESSING), index).best(
        [Term("", np.float32(vectors[300]))], 300
    )
    a, b = torch.from_numpy(vectors[:300]), torch.from_numpy(vectors[300:])
    expected = np.array([float(SIMILARITIES[similarity](row[None], b)) for row in a])
    scores = np.array([hit.score for hit in sorted(found, key=lambda hit: hit.number)])
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert [hit.score for hit in found] == sorted(scores, reverse=True)


def test_copies_of_a_photo_come_in_the_order_of_their_paths():
    """A product of matrices gave a row and its copy scores that differ in the last bit."""
    random = np.random.default_rng(0)
    space = tiny.space(tiny.recipe())
    for _ in range(50):
        count = int(random.integers(20, 90))
        vectors = np.float32(random.normal(size=(count, 16)))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[-1] = vectors[3]
        originals = np.arange(count)
        originals[-1] = 3
        index = PhotoIndex(None, [str(n) for n in range(count)], vectors, {}, originals)
        searcher = Searcher(Embedder(space, tiny.PREPROCESSING), index)
        hits = searcher.best([Term("", vectors[3])], 2)
        assert [hit.number for hit in hits] == [3, count - 1]
        assert hits[0].score == hits[1].score


@pytest.mark.parametrize("count", [1, 3, 5, 100])
def test_top_is_a_stable_sort(count):
    for seed in range(20):
        scores = np.float32(np.random.default_rng(seed).integers(0, 4, 12))  # many ties
        expected = sorted(range(12), key=lambda row: (-scores[row], row))[:count]
        assert [hit.number for hit in top(scores, count)] == expected


def test_unknown_words_are_named(searcher):
    assert searcher.words("a red Zebra ! photo").unknown == ["zebra"]
    assert searcher.words("ein Zebra", "de").unknown == ["zebra"]


def test_a_model_can_be_handed_to_another_process(searcher):
    searcher.words("a red photo")  # by now it holds tokenisers
    again = pickle.loads(pickle.dumps(searcher.embedder))
    np.testing.assert_array_equal(
        again.embed_sentences(["a red photo"], "en"), [searcher.words("a red photo", "en").vector]
    )


@pytest.mark.parametrize(("more", "unread"), [(0, 0), (3, 3)])
def test_words_that_a_model_reads_no_more_are_counted(searcher, more, unread):
    most = searcher.embedder.model.vocabulary.max_tokens
    whole, longer = searcher.words(" ".join(["red"] * most)), "red " * most + "blue " * more
    term = searcher.words(longer, "en")
    assert (whole.unread, term.unread) == (0, unread)
    np.testing.assert_array_equal(term.vector, whole.vector)


def test_marks_that_moses_writes_with_letters_are_no_words(searcher, monkeypatch):
    tokens = ["a", "&quot;", "red", "&quot;", "&amp;", "&#91;", "zebra", "d&apos;or"]
    monkeypatch.setitem(vars(searcher.embedder), "_tokenize", {"en": lambda _: tokens})
    assert searcher.words("marks", "en").unknown == ["zebra", "d'or"]


@pytest.mark.parametrize(
    ("text", "language", "guessed"),
    [
        ("a zebra", None, True),  # half unknown
        ("a red zebra", None, False),
        ("a zebra", "en", False),
        ("zebra", "en", False),
    ],
)
def test_a_language_by_half_of_the_words_is_a_guess_unless_it_is_named(
    searcher, text, language, guessed
):
    assert searcher.words(text, language).guessed == guessed


def test_a_language_that_is_named_is_not_detected(searcher):
    assert searcher.words("red", "de").unknown == ["red"]
    with pytest.raises(ContractError, match="expected one of de, en; found 'fr'"):
        searcher.words("rouge", "fr")


@pytest.mark.parametrize("text", ["koira juoksee metsässä järven rannalla", "собака на пляже"])
def test_a_language_that_the_model_lacks_is_said(searcher, text):
    with pytest.raises(ContractError, match=r"languages \(de, en\), found .* looks like [a-z]+"):
        searcher.words(text)


@pytest.mark.parametrize(
    ("text", "language"),
    [("old bicycle", "en"), ("a laptop on desk", "en"), ("alte Kirche", "de")],
)
def test_words_that_look_like_a_language_of_the_model_are_a_guess_however_unsure(
    searcher, text, language
):
    """py3langid divides what it gives between a hundred languages: the likeliest has .1 to .2."""
    term = searcher.words(text)
    assert (term.language, term.guessed) == (language, True)


def test_codes_that_the_identifier_lacks_are_told_by_known_words():
    known = {"eng": {"the", "dog"}, "deu": {"der", "hund"}}
    embedder = SimpleNamespace(
        languages=[*known],
        words=lambda text, language: {word: word in known[language] for word in text.split()},
    )
    detector = LanguageDetector(embedder)
    assert detector.detect("the dog is running on the beach") == "eng"
    assert detector.detect("der hund rennt am strand entlang") == "deu"


@pytest.mark.parametrize("text", ["", "  ", "\n", "-", "\U0001f436"])
@pytest.mark.parametrize("language", [None, "en"])
def test_no_words(searcher, text, language):
    with pytest.raises(ContractError, match="query: expected words, found"):
        searcher.words(text, language)


def test_known_words_decide_where_letters_do_not(searcher):
    """py3langid alone takes several of these for a third language."""
    for word in COLOURS:
        assert searcher.languages.detect(word) == "en"
    for word in GERMAN.values():
        assert searcher.languages.detect(word) == "de"
