"""The readers by name: what ``datasets.<name>.reader`` of params.yaml chooses from.

A reader is called as ``reader(raw, dataset, **options)``; its options are the other keys of the
data set's entry.
"""

from collections.abc import Callable
from pathlib import Path

from pipeline_lib.corpora import coco, flickr8k, multi30k
from pipeline_lib.corpora.added import read_added, with_added
from pipeline_lib.corpora.bitext import read_bitext
from pipeline_lib.corpora.coco import read_coco
from pipeline_lib.corpora.corpus import Corpus
from pipeline_lib.corpora.flickr8k import read_flickr8k
from pipeline_lib.corpora.multi30k import read_multi30k
from pipeline_lib.corpora.table import read_captions_table

READERS: dict[str, Callable[..., Corpus]] = {
    "table": read_captions_table,
    "multi30k": read_multi30k,
    "flickr8k": read_flickr8k,
    "coco": read_coco,
    "bitext": read_bitext,
}
"""Reader functions by name."""

PUBLISHED = {
    "multi30k": multi30k.LANGUAGES,
    "flickr8k": flickr8k.LANGUAGES,
    "coco": coco.LANGUAGES,
}
"""Languages of the readers whose photos a user can add captions to."""


def languages_there(reader: str, raw: Path, **options: object) -> list[str]:
    """Return the languages that a published data set can be read in: by its folder, its options."""
    if reader == "flickr8k":
        return flickr8k.languages_there(raw)
    without = "ja" if options.get("japanese") == "none" else None
    return [language for language in PUBLISHED[reader] if language != without]


def read_corpus(reader: str, raw: Path, dataset: str, **options: object) -> Corpus:
    """Call a reader, and add to a published data set what the user has written for its photos.

    Raises:
        ContractError: Lists everything that is wrong with it.
    """
    read = READERS[reader]
    if reader not in PUBLISHED:
        return read(raw, dataset, **options)
    languages, published = options["languages"], PUBLISHED[reader]
    added = read_added(raw, languages, published)
    lacking = {*published} - {*languages_there(reader, raw, **options)}
    written = lacking & {*added["language"]}  # by the user: the data set's own are not there
    own = [each for each in languages if each in published and each not in written]
    corpus = read(raw, dataset, **options | {"languages": own})
    return with_added(corpus, added, raw, dataset) if len(added) else corpus
