"""Parallel text without images, for translators: line n of each language's file says the same.

The layout is that of Moses and of the shared tasks: ``<raw>/<split>.<language>``, UTF-8, plain
or gzipped, one sentence per line. Each line counts as an image of its own, which has no file.
"""

from pathlib import Path

import pandas as pd

from pipeline_lib.corpora.corpus import Corpus, assemble, caption_rows
from pipeline_lib.corpora.files import read_sentences


def read_bitext(raw: Path, dataset: str, *, languages: list[str]) -> Corpus:
    """Read the sentences of some languages in every split that there is for one of them.

    The first language holds the captions, the others their translations.

    Raises:
        ContractError: Lists every file and line that cannot be used, and why.
    """
    problems: list[str] = []
    splits = sorted({split for language in languages for split in _splits(raw, language)})
    if not splits:
        files = ", ".join(f"<split>.{language}" for language in languages)
        problems.append(f"{raw}: expected the files {files}, found none")
    blocks, photos = [], []
    for split in splits:
        texts = {name: read_sentences(raw / f"{split}.{name}", problems) for name in languages}
        _note_lengths(texts, raw, split, problems)
        lines = _lines(dataset, split, len(texts[languages[0]]))
        photos.append(lines)
        blocks.extend(_captions(lines, dataset, languages, texts))
    return assemble(blocks, pd.concat([_lines(dataset, "", 0), *photos]), dataset, raw, problems)


def _splits(raw: Path, language: str) -> set[str]:
    ends = (f".{language}", f".{language}.gz")
    # What begins with a dot is no split, but what an editor or a Mac's archive left.
    return {path.name.removesuffix(end) for end in ends for path in raw.glob(f"[!.]*{end}")}


def _note_lengths(texts: dict[str, list[str]], raw: Path, split: str, problems: list[str]) -> None:
    if len({len(sentences) for sentences in texts.values()}) > 1:
        found = ", ".join(f"{name} {len(sentences):,}" for name, sentences in texts.items())
        problems.append(
            f"{raw}/{split}.*: expected as many lines in each language, found {found}. "
            "Line n of each must say the same"
        )


def _lines(dataset: str, split: str, count: int) -> pd.DataFrame:
    numbers = pd.Series(range(1, count + 1), dtype=object).map("{:06}".format)
    key = (split + "/" + numbers).astype("str")
    return pd.DataFrame(
        {"image_id": dataset + ":" + key, "split": split, "path": key, "key": key}, dtype="str"
    )


def _captions(
    lines: pd.DataFrame, dataset: str, languages: list[str], texts: dict[str, list[str]]
) -> list[pd.DataFrame]:
    # Files of different lengths are noted; what is built from them here is never used.
    rows = lines.head(min(len(sentences) for sentences in texts.values()))
    blocks: list[pd.DataFrame] = []
    for name in languages:
        translates = blocks[0]["caption_id"] if blocks else None
        annotation = "translation" if blocks else "caption"
        text = texts[name][: len(rows)]
        blocks.append(
            caption_rows(
                rows,
                dataset,
                language=name,
                annotation=annotation,
                position=0,
                text=text,
                source=translates,
            )
        )
    return blocks
