"""Generate the world corpus: pictures, captions, graded pairs, lexicons, parallel text, truth."""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from pipeline_lib.compute.forks import on_all_cores
from pipeline_lib.contract.lexicons import FOLDS
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.corpora.columns import COLUMNS, SPLITS
from pipeline_lib.corpora.world.canvas import STYLES
from pipeline_lib.corpora.world.drawing import draw_scene
from pipeline_lib.corpora.world.lexicon import folds, lexicon
from pipeline_lib.corpora.world.parallel import LANGUAGES, sample_parallel_lines
from pipeline_lib.corpora.world.pictures import (
    CAPTION_LANGUAGES,
    TRANSLATION_LANGUAGES,
    Picture,
    sample_pictures,
)
from pipeline_lib.corpora.world.scenes import Scene, facts
from pipeline_lib.corpora.world.similarity import GRADES, sample_graded_pairs
from pipeline_lib.corpora.world.wording import Word, prefer

_JPEG_QUALITY = 90


def generate(
    folder: Path,
    *,
    name: str,
    seed: int,
    style: str,
    images: dict[str, int],
    graded_pairs: int,
    parallel: dict[str, int],
) -> None:
    """Generate a corpus into a folder.

    Args:
        folder: Is created; the caller publishes it.
        name: Of the data set. Another name gives another corpus, with the same seed too.
        seed: Equal arguments give equal bytes.
        style: How pictures look and which words and orders are preferred: ``flat`` or ``sketch``.
        images: Number of images per split: train, val, test.
        graded_pairs: Pairs of sentences with a score, a multiple of six; 0 writes no file.
        parallel: Lines of parallel text per split; 0 of all writes no files.

    Raises:
        ContractError: If an argument is not as described.
    """
    raise_problems("world corpus", argument_problems(style, images, graded_pairs, parallel))

    def stream(purpose: str) -> random.Random:
        return random.Random(f"{name}/{seed}/{purpose}")

    seen: set[Scene] = set()
    choose = prefer(style, stream("wording"))
    sizes = {split: images[split] for split in SPLITS}
    pictures = sample_pictures(sizes, stream("pictures"), choose, seen)
    taken = {caption.sentence.text for picture in pictures for caption in picture.captions}
    held_out = {c.sentence.text for p in pictures if p.split != "train" for c in p.captions}
    pairs = sample_graded_pairs(graded_pairs, stream("pairs"), choose, taken, seen)
    text = sample_parallel_lines(parallel, stream("parallel"), choose, held_out, seen)

    (folder / "images").mkdir(parents=True)
    drawings = [
        (each.scene, style, stream(f"drawing/{each.name}"), folder / "images" / each.name)
        for each in pictures
    ]
    for _ in on_all_cores(_draw, drawings):
        pass
    _write_lines(_caption_lines(pictures), folder / "captions.tsv")
    _write_lines(_truth_lines(pictures), folder / "truth.jsonl")
    if pairs:
        _write_lines((f"{score:.3f}\t{a}\t{b}" for score, a, b in pairs), folder / "sts.tsv")
    _write_lexicons(pictures, stream("lexicon"), folder / "lexicon")
    if any(parallel.values()):
        for split, lines in text.items():
            for language in LANGUAGES:
                path = folder / "parallel" / f"{split}.{language}"
                _write_lines((line[language] for line in lines), path)


def _draw(drawing: tuple[Scene, str, random.Random, Path]) -> None:
    scene, style, rng, path = drawing
    draw_scene(scene, style, rng).save(path, quality=_JPEG_QUALITY)


def argument_problems(
    style: str, images: dict[str, int], graded_pairs: int, parallel: dict[str, int]
) -> Iterator[str]:
    """Yield which arguments of :func:`generate` are not as described."""
    if style not in STYLES:
        yield f"expected a style of {sorted(STYLES)}, found {style!r}"
    for what, sizes in (("images", images), ("parallel lines", parallel)):
        if set(sizes) != set(SPLITS):
            yield f"expected numbers of {what} for {list(SPLITS)}, found them for {list(sizes)}"
    for split, count in images.items():
        if count < 1:
            yield f"expected at least 1 image for {split}, found {count}"
    if graded_pairs % GRADES:
        yield f"expected a multiple of {GRADES} graded pairs, found {graded_pairs}"


def drawn_files(graded_pairs: int, parallel: dict[str, int]) -> set[str]:
    """Return the names of the files that :func:`generate` writes, but for pictures."""
    into = {*CAPTION_LANGUAGES, *TRANSLATION_LANGUAGES} - {"en"}
    lexicons = {f"lexicon/{_lexicon_name(to, fold)}" for to in into for fold in FOLDS}
    text = {f"parallel/{split}.{language}" for split in SPLITS for language in LANGUAGES}
    return {
        "captions.tsv", "truth.jsonl", *lexicons, *(["sts.tsv"] if graded_pairs else []),
        *(text if any(parallel.values()) else []),
    }  # fmt: skip


def _lexicon_name(language: str, fold: str) -> str:
    return f"en-{language}.{fold}.txt"


def _caption_lines(pictures: list[Picture]) -> Iterator[str]:
    yield "\t".join(COLUMNS)
    for picture in pictures:
        for c in picture.captions:
            fields = (c.language, c.annotation, str(c.position), c.sentence.text, c.translation_of)
            yield "\t".join((picture.name, picture.split, *fields))


def _truth_lines(pictures: list[Picture]) -> Iterator[str]:
    for picture in pictures:
        captions = {caption.name: sorted(facts(caption.message)) for caption in picture.captions}
        truth = {
            "image": picture.name,
            "split": picture.split,
            "scene": asdict(picture.scene),
            "facts": sorted(facts(picture.scene)),
            "captions": captions,
        }
        yield json.dumps(truth)


def _write_lexicons(pictures: list[Picture], rng: random.Random, folder: Path) -> None:
    """Write a lexicon from English to each language, from the words of the training captions."""
    words: dict[str, set[Word]] = defaultdict(set)
    for picture in pictures:
        if picture.split == "train":
            for caption in picture.captions:
                words[caption.language].update(caption.sentence.words)
    english = words.pop("en")
    for language, target in sorted(words.items()):
        for fold, entries in folds(lexicon(english, target), rng).items():
            path = folder / _lexicon_name(language, fold)
            _write_lines((" ".join(entry) for entry in entries), path)


def _write_lines(lines: Iterable[str], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
