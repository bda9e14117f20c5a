"""Requests that are no user's: each gets 4xx, and no byte from outside the folder."""

import json

import pytest

pytest.importorskip("uvicorn", reason="the group serve is not installed")

from serving import SECRET, answer, request

from pipeline_lib.search.server import MAX_QUERY, MAX_UPLOAD

QUERY = json.dumps({"terms": [{"text": "a red photo"}]}).encode()
WORDS = b'{"text": "a red photo"}'
OCTETS = "application/octet-stream"

HOSTS = [
    "evil.example", "evil.example:PORT", "127.0.0.1.evil.example", "127.0.0.1@evil.example",
    "localhost.evil.example:PORT", "evil.example#127.0.0.1", "0.0.0.0:PORT", "[::1]:PORT",
    "127.0.0.2:PORT", "127.1:PORT", "2130706433", "0x7f000001", "017700000001", "LOCALHOST.",
    "localhost:PORT:PORT", "localhost:", "127.0.0.1:PORT,evil.example", "127.0.0.1 evil.example",
    "169.254.169.254", "localhost:999999", "127.0.0.1/", "user:pass@127.0.0.1:PORT", "%31%32%37",
    "ｌocalhost".encode().decode("latin-1"), "null", "*", "-", "xn--localhost",
]  # fmt: skip
ORIGINS = [
    "http://evil.example", "https://127.0.0.1:PORT", "http://127.0.0.1:1", "null", "file://",
    "http://localhost.evil.example", "http://127.0.0.1:PORT.evil.example", "", "data:",
    "chrome-extension://abcdef", "http://127.0.0.1", "HTTP://127.0.0.1:PORT",
]  # fmt: skip
SECRETS = ["secret.txt", "photos/secret.txt", "model/weights.safetensors", "etc/passwd"]
UPS = [
    "..", "../..", "%2e%2e", "%2e%2e/%2e%2e", "..%2f..", "..%5c..", "....//..", "%252e%252e",
    "..;", "%c0%ae%c0%ae", "..%00", "\\..\\..", "%2f..", "/", "//", "~", ".",
]  # fmt: skip
PATHS = [
    *(f"/{up}/{name}" for up in UPS for name in SECRETS),
    *(f"/photos/{up}/{SECRETS[0]}" for up in UPS),
    *(f"/photos/0/{up}" for up in UPS[:12]),
    *(
        f"/photos/{number}/small"
        for number in ("-1", "4", "99999999999999999999999999", 5000 * "9", "1e3", "0x1", "red.png",
                       "NaN", "../secret.txt", "%00", "0;1", "'", "+1",
                       "٣".encode().decode("latin-1"))
    ),
    *(f"/photos/0/{size}" for size in ("huge", "small/..", "SMALL", "%73mall/x", "0", "original")),
    "/photos/4/captions", "/photos/-1/captions", f"/photos/{5000 * '9'}/captions", "/index.html",
    "/page.html", "/.git/config", "/favicon.ico", "/docs", "/openapi.json", "/static/page.html",
    "/photos", "/search", "/languages", "http://evil.example/", "file:///etc/passwd", "*",
    "/photos/0", "/photos/0/",
]  # fmt: skip
METHODS = ["PUT", "DELETE", "PATCH", "POST", "OPTIONS", "TRACE", "PROPFIND", "CONNECT", "get"]
BODIES = [
    b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b"{}", b'{"terms": []}', b"\x00" * 10,
    b'{"terms": [{}]}', b'{"terms": {}}', b'{"terms": null}', b'{"terms": [[]]}',
    b'{"terms": [{"text": 1}]}', b'{"terms": [{"text": ""}]}', b'{"terms": [{"text": "  "}]}',
    b'{"terms": [{"text": "a", "sign": 2}]}', b'{"terms": [{"text": "a", "sign": "1"}]}',
    b'{"terms": [{"text": "a", "language": "fr"}]}', b'{"terms": [{"text": "a", "language": 1}]}',
    b'{"terms": [{"text": "a", "language": "../de"}]}', b'{"terms": [{"text": "a", "path": "/"}]}',
    b'{"terms": [{"photo": -1}]}', b'{"terms": [{"photo": 4}]}', b'{"terms": [{"photo": 1e99}]}',
    b'{"terms": [{"photo": "0"}]}', b'{"terms": [{"photo": 0.5}]}', b'{"terms": [{"photo": NaN}]}',
    b'{"terms": [{"photo": 99999999999999999999999}]}', b'{"terms": [{"photo": "../secret.txt"}]}',
    b'{"terms": [{"upload": "none"}]}', b'{"terms": [{"upload": "../../etc/passwd"}]}',
    b'{"terms": [{"upload": 1}]}', b'{"terms": [{"text": "a", "photo": 1}]}',
    b'{"terms": [{"text": "a"}], "count": 0}', b'{"terms": [{"text": "a"}], "count": -1}',
    b'{"terms": [{"text": "a"}], "count": 10000000}', b'{"terms": [{"text": "a"}], "k": 1}',
    b'{"terms": [{"text": "a"}], "count": "1"}', b'{"terms": [' + b'{"text":"a"},' * 9 + b"]}",
    b'{"terms": [' + b",".join([b'{"text":"a"}'] * 9) + b"]}", b"[" * 10_000, b'{"a":' * 3_000,
    json.dumps({"terms": [{"text": "red " * 251}]}).encode(), b'{"terms": [{"text": "\\ud800"}]}',
    b'{"terms": [{"text": "!?"}]}', b'{"terms": [{"text": "\\u0000"}]}', QUERY.ljust(MAX_QUERY + 1),
]  # fmt: skip
UPLOADS = [
    b"x", b"GIF89a", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"<svg onload=alert(1)>", b"%!PS-Adobe",
    b"RIFF\x00\x00\x00\x00WEBPVP8 ", b"BM", b"II*\x00\x08\x00\x00\x00",
    b"P6 99999999 99999999 255\n",
    b"P6\n40000 40000\n255\n", b"GIF89a\xff\xff\xff\xff\x00\x00\x00", b"<!doctype html>",
    b"PK\x03\x04",
    b"BM" + b"\x00" * 16 + b"\xff\xff\xff\x7f" * 4, b"x" * (MAX_UPLOAD + 1),
]  # fmt: skip
RAW = [
    b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n", b"GET /\r\n\r\n",
    b"\x16\x03\x01\x02\x00\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n\r\n", b"HELLO\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost 127.0.0.1\r\n\r\n",
    b"POST /search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -1\r\n\r\n",
    b"POST /search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
]  # fmt: skip

HOSTILE = {
    **{f"host {host}": request(host=host) for host in HOSTS},
    **{f"host of a photo {host}": request(path="/photos/0/small", host=host) for host in HOSTS[:8]},
    **{f"origin {o}": request("POST", "/search", QUERY, origin=o) for o in ORIGINS},
    **{
        f"fetched {site} {path}": request(path=path, sec_fetch_site=site)
        for site in ("cross-site", "same-site", "evil")
        for path in ("/", "/photos/0/small", "/about")
    },
    **{f"path {path}": request(path=path) for path in PATHS},
    **{f"method {method}": request(method) for method in METHODS},
    **{f"query {n} {b[:40]}": request("POST", "/search", b) for n, b in enumerate(BODIES)},
    **{f"languages {b[:40]}": request("POST", "/languages", b) for b in BODIES[:10]},
    "languages, too long": request("POST", "/languages", WORDS.ljust(MAX_QUERY + 1)),
    **{
        f"form {kind}": request("POST", "/search", QUERY, kind=kind)
        for kind in ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded", "x")
    },
    **{f"photo {body[:20]}": request("POST", "/photos", body, kind=OCTETS) for body in UPLOADS},
    **{f"raw {raw[:60]}": raw for raw in RAW},
}


def test_there_are_200_of_them():
    assert len(HOSTILE) >= 200


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_gets_4xx_and_nothing_else(port, name):
    status, headers, body = answer(port, HOSTILE[name].replace(b"PORT", str(port).encode()))
    assert 400 <= status < 500, (status, body[:200])
    assert SECRET not in body
    assert b"root:" not in body
    assert not headers.get("content-type", "").startswith("image/")


def test_a_decompression_bomb_is_refused_before_it_is_decoded(port, bomb):
    assert len(bomb) < MAX_UPLOAD
    status, _, body = answer(
        port, request("POST", "/photos", bomb, kind=OCTETS, host=f"127.0.0.1:{port}")
    )
    assert status == 415
    assert b"expected at most 89478485 pixels" in body


def test_a_body_that_grows_past_its_limit_is_refused_while_it_grows(port):
    head = (
        f"POST /photos HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: {OCTETS}\r\n"
        "transfer-encoding: chunked\r\n\r\n"
    ).encode()
    chunk = b"100000\r\n" + b"x" * 2**20 + b"\r\n"
    assert answer(port, head + chunk * 40)[0] == 413


@pytest.mark.parametrize("host", ["127.0.0.1:PORT", "localhost:PORT", "localhost"])
def test_the_user_is_let_through(port, host):
    """Else all of the above would pass with a server that refuses everybody."""
    host = host.replace("PORT", str(port))
    own = {"host": host, "origin": f"http://{host}", "sec_fetch_site": "same-origin"}
    status, headers, body = answer(port, request(host=host))
    assert (status, b"<title>Polyview" in body) == (200, True)
    status, headers, body = answer(port, request("POST", "/search", QUERY, **own))
    assert (status, json.loads(body)["photos"][0]["path"]) == (200, "red.png")
    assert float(headers["server-timing"].partition("dur=")[2]) < 10_000
    status, headers, body = answer(port, request(path="/photos/0/large", **own))
    assert (status, headers["content-type"], body[:3]) == (200, "image/jpeg", b"\xff\xd8\xff")


@pytest.mark.parametrize("path", ["/", "/photos/0/small", "/nothing"])
@pytest.mark.parametrize("host", ["127.0.0.1:PORT", "evil.example"])
def test_each_answer_tells_the_browser_what_it_may_do(port, path, host):
    host = host.replace("PORT", str(port))
    _, headers, _ = answer(port, request(path=path, host=host))
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    parts = headers["content-security-policy"].split("; ")
    allowed = {name: sources for name, *sources in map(str.split, parts)}
    for own in ("script-src", "style-src"):
        (source,) = allowed.pop(own)
        assert source.startswith("'sha256-")
    nothing = ("default-src", "base-uri", "form-action", "frame-ancestors")
    assert allowed == {name: ["'none'"] for name in nothing} | {
        "connect-src": ["'self'"],
        "img-src": ["'self'", "data:"],
    }
