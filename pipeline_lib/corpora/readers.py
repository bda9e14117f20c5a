"""The readers by name: what ``datasets.<name>.reader`` of params.yaml chooses from.

A reader is called as ``reader(raw, dataset, **options)``; its options are the other keys of the
data set's entry.
"""

from collections.abc import Callable

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
