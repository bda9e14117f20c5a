"""The page of ``polyview serve``: search in one folder of photos, for this machine alone.

Photos are asked for by their number in the index and sent as newly encoded JPEG. Whoever can talk
to the port could be a page of another site in the user's browser: the guard lets only this machine
and this page through.
"""

import asyncio
import base64
import hashlib
import io
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.decoding import ImageError, thumbnail
from pipeline_lib.search.captions import Captions
from pipeline_lib.search.languages import LanguageError
from pipeline_lib.search.names import printable
from pipeline_lib.search.searcher import Hit, Searcher, Term
from pipeline_lib.settings.strict import Strict

SIZES = {"small": 320, "large": 1600}
"""Longest side in pixels of photos that are sent."""

MAX_QUERY, MAX_UPLOAD = 40 * 2**10, 32 * 2**20
"""Largest body in bytes of a query, MAX_TERMS texts of four bytes a character, and of a photo."""

MAX_TERMS = 8
"""Parts of a query."""

_UPLOADS = 64
"""Photos dropped on the page that can still be asked for."""

_CAPTIONS = 3
"""Captions of each language that explain a photo."""

T = TypeVar("T")
Sign = Literal[1, -1]
Text = Annotated[str, Field(max_length=1000)]


class Words(Strict):
    """Words of a query; without a language it is detected."""

    text: Text
    language: str | None = None
    sign: Sign = 1


class Indexed(Strict):
    """A photo of the index as part of a query.

    Attributes:
        photo: Its number.
        index: Which index numbers it so, as an answer said it; without, the one that there is.
        path: By which it is found in another index, as an answer said it.
        sign: Whether it is searched for.
    """

    photo: int
    index: str | None = None
    path: str | None = None
    sign: Sign = 1


class Dropped(Strict):
    """A photo that was dropped on the page as part of a query."""

    upload: str
    sign: Sign = 1


class Query(Strict):
    """What is searched for, and how many photos are wanted."""

    terms: Annotated[list[Words | Indexed | Dropped], Field(min_length=1, max_length=MAX_TERMS)]
    count: Annotated[int, Field(ge=1, le=500)] = 60


def build_app(searcher: Searcher, captions: Captions | None) -> Starlette:
    """Return the application of one index; captions explain its photos, if there are any."""
    pages = _Pages(searcher, captions)
    routes = [
        Route("/", pages.page),
        Route("/about", pages.about),
        Route("/search", pages.search, methods=["POST"]),
        Route("/languages", pages.languages, methods=["POST"]),
        Route("/photos", pages.upload, methods=["POST"]),
        Route("/photos/{number}/captions", pages.why),
        Route("/photos/{number}/{size}", pages.photo),
    ]
    problems = {
        _OtherIndex: _problem(409),
        ClientDisconnect: _problem(400),  # who reads no answer: a page that asked something else
        ContractError: _problem(400),
        LanguageError: _problem(400, _with_remedy),
        ImageError: _problem(415),
        ValidationError: _problem(422, _without_values),
    }
    app = Starlette(routes=routes, exception_handlers=problems)
    app.add_middleware(Guard, policy=pages.policy)
    return app


class _OtherIndex(ContractError):
    """A number of a photo is of another index: the page is older than the server."""

    def __init__(self) -> None:
        super().__init__("the photos have changed since this page was loaded: search again")


class Guard:
    """Middleware that refuses what does not come from this machine's own page.

    A foreign name in Host is a site that was rebound to this address; a foreign Origin, or a fetch
    that the browser calls cross-site, is another page's.
    """

    def __init__(self, app: ASGIApp, policy: str) -> None:
        """Stand before an application; ``policy`` is its Content-Security-Policy."""
        self.app = app
        self.headers = [
            (b"content-security-policy", policy.encode()),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403, or pass the request on."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self.headers]
            await send(message)

        app = self.app if _is_own(Request(scope)) else _refuse
        await app(scope, receive, guarded)


def _is_own(request: Request) -> bool:
    host = request.headers.get("host", "")
    if not re.fullmatch(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", host):
        return False
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "none")
    return origin in (None, f"http://{host}") and site in ("none", "same-origin")


_refuse = JSONResponse({"error": "not from this page: open http://127.0.0.1 itself"}, 403)


def _problem(
    status: int, message: Callable[[Exception], str] = str
) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(_request: Request, error: Exception) -> Response:
        return JSONResponse({"error": message(error)}, status)

    return answer


def _with_remedy(error: LanguageError) -> str:
    return f"query: {error}. If it is one of them, choose it beside the box"


def _without_values(error: ValidationError) -> str:
    """Return what is wrong where, and neither what was sent nor pydantic's links."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    places = (".".join(map(str, ("query", *each["loc"]))) for each in found)
    return "; ".join(f"{where}: {each['msg']}" for where, each in zip(places, found, strict=True))


def _number(request: Request) -> int:
    """Return the number of a photo that a path names; int() itself raises beyond 4,300 digits."""
    number = request.path_params["number"]
    if not re.fullmatch("[0-9]{1,18}", number):
        raise HTTPException(404)
    return int(number)


class _Pages:
    def __init__(self, searcher: Searcher, captions: Captions | None) -> None:
        self.searcher, self.captions = searcher, captions
        # Tokenisers and runtimes serve one thread: queries wait for queries, photos for photos.
        self.for_words, self.for_photos = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        # A photo of the most pixels takes a gigabyte while it is made smaller: two at once.
        self.for_sending = ThreadPoolExecutor(2)
        self.uploads: OrderedDict[str, Term] = OrderedDict()
        names = "\0".join(map(printable, searcher.index.paths))
        self.index = hashlib.sha256(names.encode()).hexdigest()[:16]
        self.html = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
        self.policy = _policy(self.html)
        self.jpeg = lru_cache(maxsize=1024)(self._jpeg)

    async def page(self, _request: Request) -> Response:
        return HTMLResponse(self.html)

    async def about(self, _request: Request) -> Response:
        index = self.searcher.index
        return JSONResponse(
            {
                "folder": printable(index.folder.name),
                "photos": len(index.paths),
                "unreadable": len(index.unreadable),
                "languages": self.searcher.embedder.languages,
                "captions": self.captions is not None,
                "max_terms": MAX_TERMS,
                "max_upload": MAX_UPLOAD,
            }
        )

    async def search(self, request: Request) -> Response:
        query = Query.model_validate_json(await _body(request, MAX_QUERY))
        return await self._timed(lambda: self._found(query))

    async def languages(self, request: Request) -> Response:
        words = Words.model_validate_json(await _body(request, MAX_QUERY))
        return await self._timed(lambda: self._in_all_languages(words))

    async def upload(self, request: Request) -> Response:
        content = await _body(request, MAX_UPLOAD)
        name = hashlib.sha256(content).hexdigest()[:16]
        term = await asyncio.get_running_loop().run_in_executor(
            self.for_photos, lambda: self.searcher.photo(io.BytesIO(content), "your photo")
        )
        self.uploads[name] = term
        self.uploads.move_to_end(name)  # also where it was dropped before
        while len(self.uploads) > _UPLOADS:
            self.uploads.popitem(last=False)
        return JSONResponse({"upload": name})

    async def photo(self, request: Request) -> Response:
        self._check_index(request.query_params.get("index"))
        number, size = _number(request), request.path_params["size"]
        if size not in SIZES:
            raise HTTPException(404)
        try:
            path = self.searcher.index.file(number)
            changed = path.stat().st_mtime_ns
        except (ContractError, FileNotFoundError) as error:
            raise HTTPException(404, "the photo is no longer in the folder") from error
        # Large ones are looked at one by one, and a thousand of them fill half a gigabyte.
        make = self.jpeg if size == "small" else self._jpeg
        loop = asyncio.get_running_loop()
        jpeg = await loop.run_in_executor(self.for_sending, make, path, changed, SIZES[size])
        return Response(jpeg, media_type="image/jpeg", headers={"cache-control": "no-cache"})

    async def why(self, request: Request) -> Response:
        self._check_index(request.query_params.get("index"))
        try:
            vector = self.searcher.indexed(_number(request)).vector
        except ContractError as error:
            raise HTTPException(404) from error
        if self.captions is None:
            return JSONResponse({})
        embedder = self.searcher.embedder
        near = await run_in_threadpool(self.captions.near_photo, embedder, vector, _CAPTIONS)
        return JSONResponse(near)

    def _check_index(self, named: str | None) -> None:
        if named not in (None, self.index):
            raise _OtherIndex

    async def _timed(self, compute: Callable[[], object]) -> Response:
        start = time.perf_counter()
        found = await asyncio.get_running_loop().run_in_executor(self.for_words, compute)
        took = (time.perf_counter() - start) * 1000
        return JSONResponse(found, headers={"server-timing": f"search;dur={took:.2f}"})

    def _found(self, query: Query) -> dict[str, object]:
        terms = [self._term(each) for each in query.terms]
        hits = self.searcher.best(terms, query.count)
        return {"terms": [*map(_term_json, terms)], **self._hits_json(hits)}

    def _term(self, asked: Words | Indexed | Dropped) -> Term:
        if isinstance(asked, Words):
            return self.searcher.words(asked.text, asked.language, asked.sign)
        if isinstance(asked, Indexed):
            return self.searcher.indexed(self._number_here(asked), asked.sign)
        if asked.upload not in self.uploads:
            raise ContractError("photo: it is no longer here. Drop it on the page again")
        term = self.uploads[asked.upload]
        return Term(term.text, term.vector, asked.sign)

    def _number_here(self, asked: Indexed) -> int:
        """Return the number that a photo has in the index that there is."""
        if asked.index in (None, self.index):
            return asked.photo
        if asked.path is None:
            raise _OtherIndex
        here = [*map(printable, self.searcher.index.paths)]
        if here.count(asked.path) != 1:  # names that are not UTF-8 may look alike
            raise ContractError(
                f"{asked.path}: it is no longer among the photos. Remove it from the query"
            )
        return here.index(asked.path)

    def _in_all_languages(self, words: Words) -> dict[str, object]:
        """Return what the nearest caption of each other language finds; else the words as given."""
        own = self.searcher.words(words.text, words.language)
        found = {}
        for language in self.searcher.embedder.languages:
            term = own
            if language != own.language:
                near = self.captions and self.captions.vectors.get(language) is not None
                text = self.captions.near_words(own.vector, language) if near else own.text
                try:
                    term = self.searcher.words(text, language)
                except ContractError:  # a language may have no word among these letters
                    continue
            hits = self.searcher.best([term], 6)
            found[language] = {"term": _term_json(term), **self._hits_json(hits)}
        return {"language": own.language, "found": found}

    def _hits_json(self, hits: Sequence[Hit]) -> dict[str, object]:
        paths = self.searcher.index.paths
        photos = [
            {
                "photo": hit.number,
                "score": round(hit.score, 4),
                "path": printable(paths[hit.number]),
            }
            for hit in hits
        ]
        return {"index": self.index, "photos": photos}

    def _jpeg(self, path: Path, _mtime_ns: int, side: int) -> bytes:
        return thumbnail(path, side, quality=85)


def _term_json(term: Term) -> dict[str, object]:
    return {
        "text": printable(term.text),
        "sign": term.sign,
        "language": term.language or None,
        "guessed": term.guessed,
        "unknown": term.unknown,
        "unread": term.unread,
    }


async def _body(request: Request, most: int) -> bytes:
    """Return a request's body; refuse it as soon as it is larger than ``most`` bytes."""
    if request.headers.get("content-type", "").partition(";")[0] not in (
        "application/json", "application/octet-stream",
    ):  # fmt: skip
        raise HTTPException(415)  # what forms of other sites send without asking
    content = bytearray()
    try:
        async for part in request.stream():
            content += part
            if len(content) > most:
                raise HTTPException(413)
    except asyncio.CancelledError:  # the server ends, and the rest has not come for seconds
        raise ClientDisconnect from None
    return bytes(content)


def _policy(html: str) -> str:
    """Return what the page may do: its own style and script, its own server, nothing else."""
    hashes = {}
    for tag in ("style", "script"):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        hashes[tag] = f"{tag}-src 'sha256-{digest}'"
    return (
        f"default-src 'none'; {hashes['style']}; {hashes['script']}; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
