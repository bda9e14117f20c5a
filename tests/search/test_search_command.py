"""``polyview search`` as a user types it."""

import json
import shutil

import pytest
from click.testing import CliRunner
from shell import python

from pipeline_lib.cli.main import main
from pipeline_lib.contract.digests import write_sums

pytestmark = pytest.mark.usefixtures("as_a_user")


@pytest.fixture
def search(colours, tmp_path, monkeypatch):
    """Return a function that runs the command; its index is in a cache of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*arguments, photos=colours / "photos"):
        words = ["search", str(colours / "model"), str(photos), *map(str, arguments)]
        return CliRunner().invoke(main, words)

    return run


def test_the_best_are_printed_with_scores_and_paths(search, colours):
    result = search("a red photo", "-k", 2)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [len(lines), lines[0][1]] == [2, str(colours / "photos/red.png")]
    assert float(lines[0][0]) >= float(lines[1][0])
    assert "'a red photo' read as en" in result.stderr


def test_paths_begin_with_the_folder_as_the_user_named_it(search, colours, monkeypatch):
    monkeypatch.chdir(colours)
    found = search("a red photo", "-k", 1, photos="photos").stdout.split()[1]
    listed = json.loads(search("a red photo", "-k", 1, "--json", photos="photos").stdout)
    assert found == "photos/red.png"
    assert listed["photos"][0]["path"] == str(colours.resolve() / found)


def test_words_need_no_quotes_and_terms_combine(search):
    result = search("a", "red", "photo", "-", "ein", "blau", "Foto", "--json")
    terms = json.loads(result.stdout)["terms"]
    assert [(term["text"], term["sign"], term["language"]) for term in terms] == [
        ("a red photo", 1, "en"),
        ("ein blau Foto", -1, "de"),
    ]


def test_json_holds_all_that_is_printed(search, colours, tmp_path):
    photos = shutil.copytree(colours / "photos", tmp_path / "photos")
    (photos / "broken.jpg").write_bytes(b"x")
    content = json.loads(search("Zebra", "--language", "de", "--json", photos=photos).stdout)
    assert content["terms"][0]["unknown_words"] == ["zebra"]
    assert len(content["photos"]) == 4
    assert [*content["unreadable"]] == ["broken.jpg"]
    said = search("Zebra", "--language", "de", photos=photos).stderr
    assert "unreadable: broken.jpg: expected an image" in said
    assert "unknown words: zebra" in said


def test_what_is_not_read_of_a_long_query_is_said(search):
    long = " ".join(["red"] * 200)
    unread = json.loads(search(long, "--language", "en", "--json").stdout)["terms"][0]
    assert 0 < unread["unread_words"] < 200
    said = search(long, "--language", "en").stderr
    assert f"too long: its last {unread['unread_words']} words are not read" in said
    assert "too long" not in search("red", "--language", "en").stderr


def test_a_guess_says_which_languages_there_are(search):
    """Of Spanish, which the model lacks, it knows one word as English."""
    said = search("a perro").stderr
    assert "'a perro' read as en, a guess: the model has de, en; unknown words: perro" in said
    assert json.loads(search("a perro", "--json").stdout)["terms"][0]["guessed"]
    assert not json.loads(search("a red photo", "--json").stdout)["terms"][0]["guessed"]


def test_by_a_photo_with_words_taken_away(search, colours):
    red = colours / "photos/red.png"
    content = json.loads(search("--image", red, "--json").stdout)
    assert content["photos"][0]["path"] == str(red)
    content = json.loads(search("--image", red, "-", "a red photo", "--json").stdout)
    assert [term["sign"] for term in content["terms"]] == [-1, 1]


def test_the_index_lies_in_the_cache_or_where_it_is_named(search, tmp_path):
    search("red")
    assert len([*(tmp_path / "cache/polyview").glob("*.parquet")]) == 1
    search("red", "--index", tmp_path / "own.parquet")
    assert (tmp_path / "own.parquet").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected words or --image"),
        (("\udcffhund am Strand",), "query: expected UTF-8, found '\\udcffhund am Strand'"),
        (("red", "--index", ""), "--index: expected the name of a file, found ''"),
        (("+",), "expected words after '+'"),
        (("red", "-"), "expected words after '-'"),
        (("red", "+", "-", "blue"), "expected words before '-'"),
        (("red", "--language", "fr"), "expected one of de, en; found 'fr'"),
        (("koira juoksee metsässä",), "looks like fi. If it is one of them, name it: --language"),
        (("--image", "TMP/broken.jpg", "--language", "en"), "expected with words, found with"),
        (("red", "-k", "0"), "0 is not in the range"),
        (("--image", "missing.jpg"), "File 'missing.jpg' does not exist"),
        (("--image", "TMP/broken.jpg"), "broken.jpg: expected an image"),
    ],
)
def test_what_a_user_can_mend_is_said_before_photos_are_indexed_and_exits_with_2(
    search, tmp_path, arguments, said
):
    (tmp_path / "broken.jpg").write_bytes(b"x")
    result = search(*(str(each).replace("TMP", str(tmp_path)) for each in arguments))
    assert not [*tmp_path.glob("cache/polyview/*")]
    assert (result.exit_code, isinstance(result.exception, SystemExit)) == (2, True)
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_name_with_a_line_break_is_one_line(search, colours, tmp_path):
    photos = shutil.copytree(colours / "photos", tmp_path / "photos")
    (photos / "red.png").rename(photos / "r\ned.png")
    (photos / "cut\n.png").write_bytes(b"x")
    result = search("a red photo", "-k", 1, photos=photos)
    assert result.stdout.splitlines() == [result.stdout.rstrip("\n")]
    assert result.stdout.endswith("/r\\ned.png\n")
    assert "unreadable: cut\\n.png: expected an image" in result.stderr


def test_a_name_moves_nothing_else_of_a_line(search, colours, tmp_path):
    photos = shutil.copytree(colours / "photos", tmp_path / "photos")
    (photos / "red.png").rename(photos / "r\x9b31m\x85\u2028\u202egpj.png")
    result = search("a red photo", "-k", 1, photos=photos)
    assert result.stdout.endswith("/r\\x9b31m\\x85\\u2028\\u202egpj.png\n")


def test_a_folder_that_holds_no_model(colours):
    result = CliRunner().invoke(main, ["search", str(colours), str(colours / "photos"), "red"])
    assert result.exit_code == 2
    assert "holds no model" in result.output


def test_a_model_of_features_that_were_given_says_that_it_reads_no_photos(colours, tmp_path):
    model = shutil.copytree(colours / "model", tmp_path / "model")
    file = model / "preprocessing.json"
    content = json.loads(file.read_text())
    given = {"dataset": "tiny", "images": "given.h5", "backbone": "given"}
    file.write_text(json.dumps(content | {"extractor": given}))
    write_sums(model)
    words = ["search", str(model), str(colours / "photos"), "a red photo"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "expected a model with a network for photos" in result.output


def test_a_terminal_without_a_letter_of_a_name_shows_its_code(colours, tmp_path):
    photos = shutil.copytree(colours / "photos", tmp_path / "photos")
    (photos / "red.png").rename(photos / "日.png")
    words = [str(colours / "model"), str(photos), "a red photo", "-k", "1"]
    code = "import sys; from pipeline_lib.cli.main import main; main(['search', *sys.argv[1:]])"
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = python(code, *words, PYTHONIOENCODING="latin-1", **cache)
    assert "/\\u65e5.png" in done.stdout
