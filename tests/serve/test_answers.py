"""What the page asks of the server, without a browser."""

import asyncio
import io
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import ExifTags, Image

pytest.importorskip("uvicorn", reason="the group serve is not installed")

from serving import answer, request, serving

from pipeline_lib.models.embedder import Embedder
from pipeline_lib.search.index import update_index
from pipeline_lib.search.searcher import Searcher
from pipeline_lib.search.server import build_app


@pytest.fixture
def ask(port):
    return asking(port)


def asking(port):
    """Return a function that sends a request and returns the JSON of the answer."""

    def asked(path, content=None, kind="application/json"):
        host = f"127.0.0.1:{port}"
        if content is None:
            return json.loads(answer(port, request(path=path, host=host))[2])
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return json.loads(answer(port, request("POST", path, body, host, kind))[2])

    return asked


def found(answered):
    return [photo["path"] for photo in answered["photos"]]


def test_what_the_page_shows_first(ask):
    about = ask("/about")
    assert (about["photos"], about["languages"], about["captions"]) == (4, ["de", "en"], True)


def test_words_find_photos_in_the_language_that_is_detected_or_named(ask):
    german = ask("/search", {"terms": [{"text": "ein blau Foto"}]})
    assert (found(german)[0], german["terms"][0]["language"]) == ("blue.png", "de")
    named = ask("/search", {"terms": [{"text": "ein blau Foto", "language": "en"}]})
    assert named["terms"][0]["unknown"] == ["ein", "blau", "foto"]


def test_what_is_wrong_with_a_query_is_said_in_plain_words(ask):
    parts = ask("/about")["max_terms"]
    assert found(ask("/search", {"terms": [{"photo": 0}] * parts}))[-1]
    said = ask("/search", {"terms": [{"photo": 0}] * (parts + 1)})["error"]
    assert said.startswith(f"query.terms: List should have at most {parts} items")
    assert "pydantic" not in said
    assert "input_value" not in said


def test_a_language_that_the_model_lacks_is_to_be_chosen_on_the_page(ask):
    said = ask("/search", {"terms": [{"text": "koira juoksee metsässä"}]})["error"]
    assert "looks like fi. If it is one of them, choose it beside the box" in said
    assert "--language" not in said


def test_a_result_and_a_dropped_photo_are_terms(ask, colours):
    green = ask("/search", {"terms": [{"text": "green"}]})["photos"][0]["photo"]
    assert found(ask("/search", {"terms": [{"photo": green}]}))[0] == "green.png"
    content = (colours / "photos/white.png").read_bytes()
    upload = ask("/photos", content, "application/octet-stream")["upload"]
    assert found(ask("/search", {"terms": [{"upload": upload}]}))[0] == "white.png"
    less = ask("/search", {"terms": [{"upload": upload, "sign": -1}]})
    assert found(less)[-1] == "white.png"


def test_all_that_the_page_lets_type_is_read(ask):
    """At most so many parts of 1,000 characters each, of up to four bytes."""
    parts = ask("/about")["max_terms"]
    terms = [{"text": "𝕒" * 1000, "language": "en"}] * parts
    body = json.dumps({"terms": terms}, ensure_ascii=False).encode()
    assert len(found(ask("/search", body))) == 4


def test_a_number_of_another_index_is_refused(ask, port, colours, tmp_path):
    """A page stays open while photos are added and the server is started anew."""
    photos = shutil.copytree(colours / "photos", tmp_path / "photos")
    shutil.copy(photos / "red.png", photos / "a.png")
    embedder = Embedder.load(colours / "model")
    index = update_index(embedder, photos, tmp_path / "index.parquet")
    before = ask("/search", {"terms": [{"text": "red"}]})
    number = {"photo": before["photos"][0]["photo"], "index": before["index"]}
    paths = [f"/photos/{number['photo']}/{kind}?index=" for kind in ("small", "captions")]
    with serving(build_app(Searcher(embedder, index), None)) as other:
        later = asking(other)
        assert "search again" in later("/search", {"terms": [number]})["error"]
        fresh = later("/search", {"terms": [{"text": "red"}]})["index"]
        assert fresh != before["index"]
        for path in paths:
            host = f"127.0.0.1:{other}"
            for named, status in ((before["index"], 409), (fresh, 200)):
                assert answer(other, request(path=path + named, host=host))[0] == status


def test_few_dropped_photos_are_kept(ask, colours, monkeypatch):
    from pipeline_lib.search import server

    monkeypatch.setattr(server, "_UPLOADS", 2)
    names = [
        ask("/photos", (colours / f"photos/{name}.png").read_bytes(), "application/octet-stream")
        for name in ("red", "green", "blue")
    ]
    first, *kept = ({"terms": [each]} for each in names)
    assert "no longer here" in ask("/search", first)["error"]
    assert [found(ask("/search", each))[0] for each in kept] == ["green.png", "blue.png"]


def test_a_photo_that_is_dropped_again_stays(ask, colours, monkeypatch):
    from pipeline_lib.search import server

    monkeypatch.setattr(server, "_UPLOADS", 2)
    _, _, again, _ = (
        ask("/photos", (colours / f"photos/{name}.png").read_bytes(), "application/octet-stream")
        for name in ("red", "green", "red", "blue")
    )
    assert found(ask("/search", {"terms": [again]}))[0] == "red.png"


def test_why_names_training_captions_of_each_language(ask):
    red = ask("/search", {"terms": [{"text": "red"}]})["photos"][0]["photo"]
    near = ask(f"/photos/{red}/captions")
    assert (near["en"][0], near["de"][0]) == ("a red photo", "ein rot foto")


def test_other_languages_read_the_nearest_caption(ask):
    answered = ask("/languages", {"text": "a blue photo"})
    assert answered["language"] == "en"
    assert answered["found"]["de"]["term"]["text"] == "ein blau foto"
    assert {language: found(each)[0] for language, each in answered["found"].items()} == {
        "en": "blue.png", "de": "blue.png",
    }  # fmt: skip


def photo_of_a_camera(path, colour):
    """Write a large photo that lies on its side and says where it was taken."""
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    exif.get_ifd(ExifTags.IFD.GPSInfo)[ExifTags.GPS.GPSLatitude] = (52.0, 31.0, 12.0)
    Image.new("RGB", (2000, 1000), colour).save(path, exif=exif)
    with Image.open(path) as image:
        assert image.getexif().get_ifd(ExifTags.IFD.GPSInfo)


def test_photos_are_sent_as_jpeg_of_their_size_without_metadata_as_they_are_now(colours, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    photo_of_a_camera(photos / "a.jpg", "red")
    embedder = Embedder.load(colours / "model")
    index = update_index(embedder, photos, tmp_path / "index.parquet")
    with serving(build_app(Searcher(embedder, index), None)) as port:
        for colour, size, wanted in (
            ("red", "small", (160, 320)), ("red", "large", (800, 1600)),
            ("blue", "small", (160, 320)), ("blue", "large", (800, 1600)),
        ):  # fmt: skip
            if colour == "blue":
                photo_of_a_camera(photos / "a.jpg", "blue")
            host = f"127.0.0.1:{port}"
            body = answer(port, request(path=f"/photos/0/{size}", host=host))[2]
            with Image.open(io.BytesIO(body)) as image:
                assert (image.format, image.size, len(image.getexif())) == ("JPEG", wanted, 0)
                red, _, blue = image.getpixel((10, 10))
                assert (red > blue) == (colour == "red")


def test_many_at_once_get_their_own_answers(ask):
    texts = {"red": "red.png", "grün": "green.png", "blau": "blue.png", "white": "white.png"}
    asked = [*texts] * 10
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda text: ask("/search", {"terms": [{"text": text}]}), asked)
        assert [found(each)[0] for each in answers] == [texts[text] for text in asked]


def test_names_that_are_not_utf8_are_shown_with_question_marks(colours, tmp_path):
    photos = shutil.copytree(colours / "photos", tmp_path / os.fsdecode(b"\xffphotos"))
    (photos / "red.png").rename(photos / os.fsdecode(b"\xffrot.png"))
    (photos / os.fsdecode(b"\xffbroken.jpg")).write_bytes(b"no photo")
    embedder = Embedder.load(colours / "model")
    index = update_index(embedder, photos, tmp_path / "index.parquet")
    with serving(build_app(Searcher(embedder, index), None)) as port:
        ask = asking(port)
        about = ask("/about")
        assert (about["folder"], about["unreadable"]) == ("?photos", 1)
        answered = ask("/search", {"terms": [{"photo": index.paths.index("\udcffrot.png")}]})
        assert (answered["terms"][0]["text"], found(answered)[0]) == ("?rot.png", "?rot.png")


def test_an_upload_that_is_given_up_is_no_fault(app):
    """A page gives it up when another photo is dropped, or when it is closed."""
    received = iter([
        {"type": "http.request", "body": b"x" * 500, "more_body": True},
        {"type": "http.disconnect"},
    ])  # fmt: skip
    sent = []

    async def receive():
        return next(received)

    async def send(message):
        sent.append(message)

    kind = (b"content-type", b"application/octet-stream")
    scope = {"type": "http", "method": "POST", "path": "/photos", "query_string": b""}
    asyncio.run(app(scope | {"headers": [(b"host", b"localhost"), kind]}, receive, send))
    assert sent[0]["status"] == 400
