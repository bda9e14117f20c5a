"""params.yaml: generated worlds, data sets, and pair sets selected from them."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.settings.strict import Count, Language, Name, Seed, Several, Strict, Whole

Annotation = Literal["caption", "translation", "machine"]


class World(Strict):
    """A generated corpus.

    Attributes:
        seed: Equal worlds have equal bytes.
        style: How pictures look, and which words and orders are preferred.
        images: Number of images of each split.
        graded_pairs: Pairs of sentences with a score, a multiple of six; 0 writes none.
        parallel: Lines of parallel text of each split.
    """

    seed: Seed
    style: Literal["flat", "sketch"]
    images: dict[Literal["train", "val", "test"], Count]
    graded_pairs: Whole
    parallel: dict[Literal["train", "val", "test"], Whole]


class TableDataset(Strict):
    """Captions in one TSV beside a folder of images: the form to bring your own in.

    Attributes:
        raw: Folder of ``captions.tsv`` and, unless features are given, of ``images/``.
    """

    reader: Literal["table"]
    raw: str


class Multi30kDataset(Strict):
    """The Multi30k repository's own layout.

    Attributes:
        raw: Clone of the repository.
        languages: Languages to read.
        splits: Those whose images are there.
        validation_images: Images of ``val`` that remain one: ``all``, or so many of the first,
            the others being the split ``test`` (then ``splits`` leaves ``test`` out).
    """

    reader: Literal["multi30k"]
    raw: str
    languages: Several[Language]
    splits: Several[
        Literal["train", "val", "test", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr"]
    ]
    validation_images: Count | Literal["all"]


class Flickr8kDataset(Strict):
    """Flickr8k's photos with captions of six languages.

    Attributes:
        raw: Folder that holds ``flickr8k/`` (or ``flickr8kcn/``) and ``multi30k/``.
        languages: Languages to read.
        split_column: Whose split of the photos: a column of ``images.csv``.
    """

    reader: Literal["flickr8k"]
    raw: str
    languages: Several[Language]
    split_column: Literal["flickr8k_split", "multi30k_split"]


class SharedImages(Strict):
    """How many images captioned in en, ja and zh to hold out; all other images are for training.

    Attributes:
        val: Images to validate on.
        test: Images to test on.
        seed: Of the draw.
    """

    val: Count
    test: Count
    seed: Seed


class CocoDataset(Strict):
    """COCO captions (Karpathy's JSON) with STAIR or YJ (ja) and COCO-CN (zh).

    Attributes:
        raw: Folder of the files.
        languages: Languages to read.
        japanese: Whose Japanese captions.
        splits: Karpathy's of all images, or held-out images drawn among those that have captions in
            all three languages, as Kim et al. 2020 did.
    """

    reader: Literal["coco"]
    raw: str
    languages: Several[Language]
    japanese: Literal["stair", "yj", "none"]
    splits: Literal["karpathy"] | SharedImages


class BitextDataset(Strict):
    """Line-aligned parallel text without images, to train translators on.

    Attributes:
        raw: Folder of the files ``<split>.<language>``.
        languages: Those to read; the others translate the first.
    """

    reader: Literal["bitext"]
    raw: str
    languages: Annotated[Several[Language], Field(min_length=2)]


Dataset = Annotated[
    TableDataset | Multi30kDataset | Flickr8kDataset | CocoDataset | BitextDataset,
    Field(discriminator="reader"),
]


class PairSet(Strict):
    """Captions to train and validate on: a selection of one data set, plus another pair set.

    Attributes:
        dataset: Captions table to select from.
        captions: Kinds of annotation to take, per language.
        per_image: At most so many training captions per image and language, or ``all``.
        images: All training images, or one of two disjoint halves (the same for every language).
        exclude_images: Data set whose images are left out, or ``none``. What is left of another
            data set's training captions is text alone.
        validation: Kinds of validation captions to take, per language: the ``same``, or others
            where those would count twice (in ``plus``, too) or are a machine's.
        plus: Pair set to add, or ``none``.
    """

    dataset: Name
    captions: Annotated[dict[Language, Several[Annotation]], Field(min_length=1)]
    per_image: Count | Literal["all"]
    images: Literal["all", "first_half", "second_half"]
    exclude_images: Name
    validation: Literal["same"] | dict[Language, Several[Annotation]]
    plus: Name

    @property
    def validation_kinds(self) -> dict[Language, Several[Annotation]]:
        """Kinds of validation captions to take, per language."""
        return self.captions if self.validation == "same" else self.validation
