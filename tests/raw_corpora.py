"""Corpora of a few photos, in their publishers' layouts."""

import gzip
from pathlib import Path

from pipeline_lib.corpora.corpus import Corpus

MULTI30K_LISTS = {
    "train": ["11.jpg", "12.jpg", "13.jpg"],
    "val": ["21.jpg", "22.jpg"],
    "test_2016_flickr": ["31.jpg"],
    "test_2017_flickr": ["41_4183a49ec2.jpg"],
    "test_2017_mscoco": ["COCO_train2014_000000117071.jpg#367178"],
    "test_2018_flickr": ["51_7bd246.jpg", "52_6208b3.jpg"],
}


TASK2 = {"train": "train", "val": "val", "test_2016_flickr": "test_2016"}


NO_CZECH = ("test_2017_flickr", "test_2017_mscoco")


def write_lines(path: Path, lines: list[str], zipped: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(f"{line}\n" for line in lines).encode()
    if zipped:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)


def write_multi30k(folder: Path) -> Path:
    """Write the repository's layout; the sentence translated is description 3 of each image."""
    one, two = folder / "data" / "task1", folder / "data" / "task2"
    for split, images in MULTI30K_LISTS.items():
        write_lines(one / "image_splits" / f"{split}.txt", images)
        sentences = [f"{image} described in en 3" for image in images]
        write_lines(one / "raw" / f"{split}.en", sentences, zipped=True)
        for language in ("de", "fr") if split in NO_CZECH else ("de", "fr", "cs"):
            translated = [f"{image} translated to {language}" for image in images]
            write_lines(one / "raw" / f"{split}.{language}", translated)
        if split in TASK2:
            write_lines(two / "image_splits" / f"{TASK2[split]}_images.txt", images)
            for number in range(1, 6):
                for language in ("en", "de"):
                    texts = [f"{image} described in {language} {number}" for image in images]
                    path = two / "raw" / f"{TASK2[split]}.{number}.{language}"
                    write_lines(path, texts, zipped=number % 2 == 0)
    later = MULTI30K_LISTS["test_2018_flickr"]
    write_lines(two / "image_splits" / "test_2017_images.txt", later)
    return folder


FLICKR8K_IMAGES = [
    "image_id,file,flickr8k_split,multi30k_split,width,height,squashed_to_square",
    "11,images/11.jpg,train,train,224,224,1",
    "12,images/12.jpg,,train,342,256,0",
    "21,images/21.jpg,test,val,224,224,1",
    "31,images/31.jpg,val,test_2016_flickr,224,224,1",
]


def write_flickr8k(raw: Path) -> Path:
    write_multi30k(raw / "multi30k")
    folder = raw / "flickr8k"
    write_lines(folder / "images.csv", FLICKR8K_IMAGES)
    for name, photos in {
        "en.human": ("11", "21", "31"),
        "zh.human": ("11", "21", "31"),
        "zh.human_translation": ("21",),
        "ja.machine_translation": ("11", "21", "31"),
    }.items():
        rows = [f"{photo}\t{i}\t{name} {photo} {i}" for photo in photos for i in range(5)]
        write_lines(folder / "captions" / f"{name}.tsv", ["image_id\tindex\ttext", *rows])
    english = folder / "captions" / "en.human.tsv"
    retold = english.read_text().replace("en.human 11 4", "11 . jpg  described in EN 3 .")
    english.write_text(retold)
    return raw


def write_flickr8k_clone(raw: Path) -> Path:
    """Write what :func:`write_flickr8k` does as Flickr8k-CN's repository has it; Japanese apart.

    Photo 13 is in no split, 24 (a test photo) not in Multi30k, and one is not in Flickr8k at all.
    """
    write_flickr8k(raw)
    data = raw / "flickr8kcn" / "data"
    (raw / "flickr8k" / "images.csv").unlink()
    for split, photos in {"train": ("11",), "val": ("31",), "test": ("21", "24")}.items():
        write_lines(data / f"flickr8k{split}.txt", [f"{photo}_{photo}ab" for photo in photos])
    for name, file, kind, more in (
        ("en.human", "flickr8kenc.caption.txt", "enc", ("13", "24")),
        ("zh.human", "flickr8kzhc.caption.txt", "zhc", ("24",)),
        ("zh.human_translation", "flickr8kzhmtest.captions.txt", "zhm", ("24",)),
    ):
        table = raw / "flickr8k" / "captions" / f"{name}.tsv"
        rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
        rows += [(photo, number, f"{name} {photo}") for photo in more for number in range(5)]
        lines = [f"{photo}_{photo}ab.jpg#{kind}#{number} {text}" for photo, number, text in rows]
        lines.append("2258277193_586949ec62.jpg.1#enc#0 people waiting for the subway")
        write_lines(data / file, lines)
        table.unlink()
    return raw


def texts(corpus: Corpus, **where: object) -> list[str]:
    rows = corpus.captions
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows.sort_values("position")["text"].tolist()
