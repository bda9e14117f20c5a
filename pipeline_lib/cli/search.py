"""``polyview search``: the photos of a folder that show what a sentence says."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline_lib.cli.example import example
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.decoding import ImageError
from pipeline_lib.search.names import listed, on_one_line, printable

if TYPE_CHECKING:
    from pipeline_lib.search.index import PhotoIndex
    from pipeline_lib.search.searcher import Hit, QueryEmbedder, Term

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
PRESENT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def check_is_no_pipe(path: Path) -> None:
    """Raise ContractError where something can be read once, and will be read more often."""
    if not (path.is_file() or path.is_dir()):
        raise ContractError(f"{path}: expected a file or a folder, found a pipe. Save it first")


@click.command(
    short_help="Find photos by words in any language.",
    no_args_is_help=True,
    epilog=example(
        'polyview search data/models/mule/seed-1 photos/ "ein Hund am Strand" - "Schnee"'
    ),
)
@click.argument("model", type=FOLDER)
@click.argument("photos", type=FOLDER)
@click.argument("query", nargs=-1)
@click.option(
    "--language", metavar="CODE", help="Language of the query; if not given, it is detected."
)
@click.option(
    "--image", "images", type=PRESENT_FILE, multiple=True,
    help="Find photos like this one (may be repeated).",
)  # fmt: skip
@click.option(
    "-k", "count", type=click.IntRange(min=1), default=10, show_default=True,
    help="How many photos to print.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--index", type=FILE, help="File of the index. Default: one in your cache folder.")
def search(
    model: Path,
    photos: Path,
    query: tuple[str, ...],
    language: str | None,
    images: tuple[Path, ...],
    count: int,
    as_json: bool,
    index: Path | None,
) -> None:
    """Print the photos below the folder PHOTOS that fit QUERY best, and their scores.

    MODEL is the folder of a trained model. The first call indexes the photos, later ones only new
    and changed photos. Write + or - between words to add something that the photos should show, or
    should not show.
    """
    parts = [*signed(query)]
    if not parts and not images:
        raise ContractError('QUERY: expected words or --image, found none: try "a dog"')
    if language and not parts:
        raise ContractError("--language: expected with words, found with photos alone")
    from pipeline_lib.models.embedder import Embedder  # seconds, which --help does without
    from pipeline_lib.search.index import default_index, update_index
    from pipeline_lib.search.searcher import QueryEmbedder, Searcher

    embedder = Embedder.load(model)
    embed = QueryEmbedder(embedder)  # first: to index a folder may take hours
    terms = [_words(embed, text, language, sign) for sign, text in parts]
    terms += [_photo(embed, path) for path in images]
    file = index or default_index(model, photos)
    searcher = Searcher(embedder, update_index(embedder, photos, file))
    hits = searcher.best(terms, count)
    if as_json:
        _print_json(searcher.index, terms, hits)
    else:
        _print(searcher.index, photos, terms, hits, embedder.languages)


def signed(query: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the terms of a query, and 1 or -1; words without + or - between them are one term.

    Raises:
        ContractError: If nothing follows a + or -.
    """
    sign, words = 1, []
    for position, word in enumerate(query):
        if word not in ("+", "-"):
            words.append(word)
            continue
        if words:
            yield sign, " ".join(words)
        elif position:
            raise ContractError(f"QUERY: expected words before {word!r}, found none")
        sign, words = (1 if word == "+" else -1), []
    if words:
        yield sign, " ".join(words)
    elif query:
        raise ContractError(f"QUERY: expected words after {query[-1]!r}, found none")


def _words(embed: "QueryEmbedder", text: str, language: str | None, sign: int) -> "Term":
    from pipeline_lib.search.languages import LanguageError

    try:
        return embed.words(text, language, sign)
    except LanguageError as error:
        raise ContractError(f"QUERY: {error}. If it is one of them, name it: --language") from error


def _photo(embed: "QueryEmbedder", path: Path) -> "Term":
    try:
        return embed.photo(path, str(path))
    except ImageError as error:
        raise ContractError(f"--image {path}: {error}") from error


def _print(
    index: "PhotoIndex",
    photos: Path,
    terms: Sequence["Term"],
    hits: Sequence["Hit"],
    languages: Sequence[str],
) -> None:
    """Print what was read, and the photos found, below the folder as the user named it."""
    print_unreadable(index)
    for term in terms:
        click.echo(f"{'+' if term.sign > 0 else '-'} {_described(term, languages)}", err=True)
    for hit in hits:
        path = photos / index.paths[hit.number]
        click.echo(f"{hit.score:7.4f}  {on_one_line(path)}")


def print_unreadable(index: "PhotoIndex") -> None:
    """Print which photos could not be read, the first ones of them, and why."""
    for line in listed(index.unreadable):
        click.echo(f"unreadable: {line}", err=True)


def _described(term: "Term", languages: Sequence[str]) -> str:
    if not term.language:
        return f"photo {printable(term.text)}"
    unknown = f"; unknown words: {', '.join(term.unknown)}" if term.unknown else ""
    guess = f", a guess: the model has {', '.join(languages)}" if term.guessed else ""
    unread = f"; too long: its last {term.unread} words are not read" if term.unread else ""
    return f"{term.text!r} read as {term.language}{guess}{unknown}{unread}"


def _print_json(index: "PhotoIndex", terms: Sequence["Term"], hits: Sequence["Hit"]) -> None:
    content = {
        "terms": [
            {
                "text": term.text,
                "sign": term.sign,
                "language": term.language or None,
                "guessed": term.guessed,
                "unknown_words": term.unknown,
                "unread_words": term.unread,
            }
            for term in terms
        ],
        "photos": [
            {"path": str(index.folder / index.paths[hit.number]), "score": hit.score}
            for hit in hits
        ],
        "unreadable": index.unreadable,
    }
    click.echo(json.dumps(content, indent=1))
