"""``polyview check``: a study of a user's own with one mistake, named before any work."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import given
import numpy as np
import own_study
import pandas as pd
import pytest
import tiny
from click.testing import CliRunner
from graph import ROOT, read_yaml
from own_study import change, give, photo, rewrite
from tiny_translation import recipe as translator

from pipeline_lib.checks import memory
from pipeline_lib.checks.data import known_data
from pipeline_lib.checks.memory import (
    COPIES,
    machine_bytes,
    recipe_bytes,
    translator_bytes,
    weights,
)
from pipeline_lib.checks.study import check_study
from pipeline_lib.checks.suspicious import _halves_that_overlap
from pipeline_lib.cli.main import main
from pipeline_lib.contract.tables import read_captions
from pipeline_lib.corpora.readers import READERS
from pipeline_lib.corpora.world.generate import generate
from pipeline_lib.models.translator import NETWORKS
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.training.preparation import parameter_counts
from stages.captions import main as captions
from stages.resolve import main as resolve


@pytest.fixture
def mine(tmp_path, monkeypatch, as_a_user):
    """Return the folder of a study of 40 photos with captions in two languages, made by ``new``."""
    monkeypatch.chdir(own_study.make(tmp_path))
    return Path.cwd()


def bitext(**lines):
    """Add parallel lines in English and German, which are of no photo: so many in each split."""
    folder = Path("data/raw/text")
    folder.mkdir(parents=True)
    for split, count in lines.items():
        for language in ("en", "de"):
            text = "".join(f"{language} {split} {number}\n" for number in range(count))
            (folder / f"{split}.{language}").write_text(text)
    change("datasets", "text", to={
        "reader": "bitext", "raw": str(folder), "languages": ["en", "de"],
    })  # fmt: skip


def text_alone(**changes):
    """Add parallel lines in English and German, which are of no photo, and learn them, too."""
    bitext(train=4, val=2)
    kinds = {"en": ["caption"], "de": ["translation"]}
    own = read_yaml(Path("params.yaml"))["pairs"]["mine"] | {"dataset": "text", "captions": kinds}
    change("pairs", "text", to=own | changes)
    change("pairs", "mine", "plus", to="text")


def borrow(language, plus="none"):
    """Have photos with captions in a language borrow German ones."""
    side = {"pairs": "mine", "facts": "data/facts/none.jsonl"}
    change("pseudopairs", "borrowed", to={
        "teacher": "mine", "seeds": [1], "retrieval": {"rule": "nearest"}, "filter": "none",
        "images_of": side | {"language": language}, "captions_of": side | {"language": "de"},
        "plus": plus, "compare_with": "none",
    })  # fmt: skip


def grow(photos):
    """Have the recipe trained on shares of its photos, too."""
    change("growth", "mine", to={
        "pairs": "mine", "features": "mine_lite0", "word_vectors": "mine_latent",
        "photos": photos, "seeds": [1],
    })  # fmt: skip


def grow_borrowed():
    """Have a recipe that learns pseudopairs trained on a share of its photos, too."""
    borrow("en", plus="mine")
    add("word_vectors", "borrowed_latent", "mine_latent", source="data/pairs/borrowed.parquet")
    add("recipes", "grown", "mine", pairs="borrowed", word_vectors="borrowed_latent")
    change("growth", "grown", to={
        "pairs": "borrowed", "features": "mine_lite0", "word_vectors": "borrowed_latent",
        "photos": [0.8], "seeds": [1],
    })  # fmt: skip


def translate(source, target):
    """Add the translations that a file holds, or would hold."""
    change("translations", f"mine_{target}", to={
        "engine": "file", "dataset": "mine", "source_language": source, "annotation": "caption",
        "target_language": target, "model": "t.tsv",
    })  # fmt: skip


def word_files(**files):
    """Have words start from files of vectors, by language."""
    for language, content in files.items():
        (Path("data/raw/mine") / f"{language}.vec").write_text(content)
    change("word_vectors", "given", to={
        "method": "files", "source": "data/raw/mine", "pairs": "mine",
        "files": {language: f"{language}.vec" for language in files},
    })  # fmt: skip
    change("recipes", "mine", "word_vectors", to="given")
    change("recipes", "mine", "word_dim", to=300)


def ten_numbers_a_word():
    change("word_vectors", "mine_latent", "dim", to=10)
    change("recipes", "mine", "word_dim", to=10)


def english_of_five():
    """Leave English captions of 5 training photos alone."""
    table = pd.read_csv("data/raw/mine/captions.tsv", sep="\t", dtype=str)
    left_out = (table["language"] == "en") & table["image"].isin(own_study.NAMES[:25])
    table[~left_out].to_csv("data/raw/mine/captions.tsv", sep="\t", index=False)


def check():
    return CliRunner().invoke(main, ["check"])


def test_a_study_without_a_mistake_passes(mine):
    change("recipes", "mine", "batch_size", to=16)
    result = check()
    assert (result.exit_code, result.output) == (
        0, "nothing was found that would stop this study\n"
    )  # fmt: skip
    assert CliRunner().invoke(resolve, []).exit_code == 0


PROBLEMS = {
    "a kind that training lacks": (
        lambda: change("pairs", "mine", "captions", "de", to=["caption", "machine"]),
        "pairs.mine.captions.de: mine has none of the kind machine in the split train",
    ),
    "dev for val": (
        lambda: rewrite(("\tval\t", "\tdev\t")),
        "datasets.mine: expected 2 photos or more in the split val, found 0 (dev: 5, test: 5, "
        "train: 30). Did you mean 'val' for 'dev'?",
    ),
    "one training photo": (
        lambda: rewrite(*((f"{n}\ttrain", f"{n}\ttest") for n in own_study.NAMES[1:30])),
        "expected 2 photos or more in the split train, found 1",
    ),
    "one test photo": (
        lambda: rewrite(*((f"{n}\ttest", f"{n}\ttrain") for n in own_study.NAMES[36:])),
        "pools.de: expected captions of 2 photos or more in the split test of mine, found one "
        "photo: alone it ranks first whatever was learnt. Add captions",
    ),
    "one validation photo of a language": (
        lambda: rewrite(*(
            (f"{n}\tval\tde\tcaption\t0\t", f"{n}\tval\ten\tcaption\t1\t")
            for n in own_study.NAMES[31:35]
        )),
        "pairs.mine: expected de captions of 2 photos or more in the split val of mine, found one "
        "photo: alone it ranks first whatever was learnt. Add captions, or leave de out by",
    ),
    "sizes beyond memory": (
        lambda: [
            change("recipes", "mine", key, to=1_000_000)
            for key in ("image_hidden_dim", "embed_dim")
        ],
        "recipes.mine: needs 20,",
    ),
    "a translator beyond memory": (
        lambda: change("translators", "mine", to=read_yaml(ROOT / "params.yaml")["translators"][
            "world_en_de"
        ] | {"dataset": "mine", "exclude_images": "none", "dim": 1_000_000}),
        "translators.mine: needs ",
    ),
    "a share of photos that leaves fewer than word vectors have numbers": (
        lambda: grow([0.01]),
        "growth.mine.photos: expected ",
    ),
    "a share of half the photos that leaves fewer": (
        lambda: [
            change("pairs", "mine", "images", to="first_half"),
            ten_numbers_a_word(),
            grow([0.5]),
        ],
        "growth.mine.photos: expected 10 photos or more, as many as mine_latent has numbers, found "
        "8, 0.5 of 15",
    ),
    "first languages that fewer photos have than word vectors have numbers": (
        lambda: [
            english_of_five(),
            change("recipes", "mine", "languages", to=["en", "de"]),
            ten_numbers_a_word(),
            grow([0.8]),
        ],
        "growth.mine: expected captions of 10 training photos or more in the first languages of "
        "the recipe, up to en, as many as its word vectors have numbers, found 5. Name a language "
        "that more photos have first",
    ),
    "growth of a recipe whose word vectors know more languages": (
        lambda: [change("recipes", "mine", "languages", to=["en"]), grow([0.8])],
        "growth.mine.pairs: expected a pair set of the recipe's languages en alone, since word "
        "vectors are made of all its text, found de in mine, too. Make one without",
    ),
    "a share of photos without a caption in a language": (
        lambda: [english_of_five(), grow([0.07])],
        "growth.mine.photos: expected captions of each language in every share, found none in en "
        "of the 2 photos of share 0.07. Make it larger",
    ),
    "word vectors of more numbers than photos": (
        lambda: [
            change("word_vectors", "mine_latent", "dim", to=31),
            change("recipes", "mine", "word_dim", to=31),
        ],
        "word_vectors.mine_latent.dim: expected 30 or less, as many as training photos of mine "
        "have captions, found 31. Lower it, and word_dim of the recipes that start from it",
    ),
    "scored sentences among all that stages write": (
        lambda: change("evaluations", "sts", "source", to="./data"),
        "evaluations.sts.source: expected a folder without what stages write, such as one in "
        "data/raw, found ./data. Move the files into a folder of their own",
    ),
    "photos around the whole study": (
        lambda: change("extractors", "mine_lite0", "images", to=".."),
        "extractors.mine_lite0.images: expected a folder without what stages write, such as one in "
        "data/raw, found ... Move the files into a folder of their own",
    ),
    "validation sentences of photos without features": (
        lambda: text_alone(validation="same"),
        "recipes.mine.pairs: expected features of all validation photos, text has 2 (first: text:",
    ),
    "text alone": (
        lambda: [text_alone(validation="same"), change("recipes", "mine", "pairs", to="text")],
        "recipes.mine.features: expected features of some of the 4 training photos of text, found "
        "none by mine_lite0",
    ),
    "no recipe": (
        lambda: change("recipes", to={}),
        "recipes: expected 1 or more, found none",
    ),
    "scored sentences of another form": (
        lambda: [
            Path("data/raw/mine/sts.tsv").write_text("x\ty\n"),
            change("evaluations", "sts", "sets", to={"a": {"file": "sts.tsv", "language": "en"}}),
        ],
        "evaluations.sts.sets.a: scored pairs: 1 problem(s)\n  - data/raw/mine/sts.tsv:1: expected "
        "score, tab, sentence, tab, sentence; found 2 column(s)",
    ),
    "no folder of scored sentences": (
        lambda: change("evaluations", "sts", "source", to="data/nowhere"),
        "evaluations.sts.source: data/nowhere is not there",
    ),
    "printed figures of another form": (
        lambda: Path("published.csv").write_text("source,value\nx,1\n"),
        "published.csv: 1 problem(s)\n  - expected the columns source, table,",
    ),
    "no printed figures": (
        lambda: Path("published.csv").unlink(),
        "published.csv: expected the figures that papers print, found no file",
    ),
    "bf16 without a recurrent layer": (
        lambda: change("recipes", "mine", "precision", to="bf16"),
        "recipes.mine.precision: expected f32 or f64, found bf16, in which recurrent layers",
    ),
    "a link that leads nowhere beside the photos": (
        lambda: Path("data/raw/mine/images/.#notes").symlink_to("me@host.123:456"),
        "extractors.mine_lite0.images: expected files that can be read, found 1 that cannot "
        "(first: data/raw/mine/images/.#notes, a link that leads nowhere). DVC reads all files",
    ),
    "a link to itself beside the captions": (
        lambda: Path("data/raw/mine/loop").symlink_to("loop"),
        "datasets.mine.raw: expected files that can be read, found 1 that cannot (first: data/raw",
    ),
    "a file of DVC's among the photos": (
        lambda: Path("data/raw/mine/images/.dvcignore").touch(),
        "extractors.mine_lite0.images: expected none of DVC's own files, found data/raw/mine/image",
    ),
    "word vectors of a language that their pair set has not": (
        lambda: word_files(fr="1 300\n"),
        "word_vectors.given.files.fr: expected a language of the training captions of mine, whose "
        "words are looked up (de, en), found fr",
    ),
    "fastText of captions in fewer languages": (
        lambda: [
            add("pairs", "english", "mine", captions={"en": ["caption"]}),
            change("word_vectors", "trained", to={
                "method": "fasttext", "source": "data/pairs/english.parquet", "pairs": "mine",
                "dim": 4, "epochs": 1, "window": 2, "min_count": 1, "min_n": 2, "max_n": 3,
                "buckets": 10, "negatives": 2, "subsampling": 1e-4, "learning_rate": 0.1, "seed": 1,
            }),
        ],
        "word_vectors.trained.source: expected training captions in de, whose words mine has, "
        "found none in english. Name a pair set that has them",
    ),
    "vectors from files whose words nothing asks for": (
        lambda: [word_files(en="1 300\n"), change("word_vectors", "given", "pairs", to="none")],
        "word_vectors.given.pairs: nothing is called 'none'.",
    ),
    "pseudopairs that lend to themselves": (
        lambda: borrow("de"),
        "pseudopairs.borrowed.captions_of: expected other captions than images_of has, found the "
        "same, de of mine: each lends to itself",
    ),
    "word vectors without a header": (
        lambda: word_files(en="red 1 2 3\n"),
        "word_vectors.given.files.en: en.vec: line 1: expected the numbers of words and of",
    ),
    "word vectors of another size than a recipe's words": (
        lambda: word_files(en="1 300\n", de="1 3\n"),
        "recipes.mine.word_dim: expected 3, as given has in de, found 300",
    ),
    "a crop of which nothing is left": (
        lambda: [
            change("extractors", "mine_lite0", "backbone", to="vgg19"),
            change("extractors", "mine_lite0", "crop", to=31),
        ],
        "extractors.mine_lite0.crop: expected at least 32, which vgg19 halves until one pixel is "
        "left, found 31",
    ),
    "a photo folder with too long a name": (
        lambda: change("extractors", "mine_lite0", "images", to="x" * 300),
        "extractors.mine_lite0.images: expected a folder of photos, xxx",
    ),
    "photos beyond memory": (
        lambda: change("extractors", "mine_lite0", "crop", to=100_000),
        "extractors.mine_lite0: needs 5,790 GB at least, by batch_size, crop and resize; this",
    ),
    "a crop larger than the photo": (
        lambda: [
            change("extractors", "mine_lite0", "transform", to="ten_crop"),
            change("extractors", "mine_lite0", "crop", to=300),
        ],
        "extractors.mine_lite0.resize: expected at least crop (300), found 288",
    ),
    "dense crops of a network without a map": (
        lambda: [
            change("extractors", "mine_lite0", "transform", to="dense_ten_crop"),
            change("extractors", "mine_lite0", "backbone", to="vgg19"),
        ],
        "extractors.mine_lite0.transform: expected a backbone that averages over its last feature "
        "map (resnet50, ",
    ),
    "no photos": (
        lambda: change("extractors", "mine_lite0", "images", to="data/raw/mine/imags"),
        "extractors.mine_lite0.images: expected a folder of photos, data/raw/mine/imags is not",
    ),
    "no data": (
        lambda: change("datasets", "mine", "raw", to="data/raw/mien"),
        "datasets.mine.raw: data/raw/mien is not there",
    ),
    "features of other photos": (
        lambda: [
            change("datasets", "more", to={"reader": "table", "raw": "data/raw/mine"}),
            change("extractors", "mine_lite0", "dataset", to="more"),
        ],
        "recipes.mine.features: 40 photos of mine (first: mine:00) have no features by mine_lite0",
    ),
    "a broken table": (
        lambda: rewrite(("\ten\t", "\tEN\t")),
        "captions.tsv:2: expected a language code of two or three small letters, found 'EN' (40 "
        "times). Write en",
    ),
    "no file of scored sentences": (
        lambda: change("evaluations", "sts", "sets", to={"a": {"file": "a", "language": "en"}}),
        "evaluations.sts.sets.a: data/raw/mine/a is not there",
    ),
    "a lexicon that is not there": (
        lambda: change("lexicons", "a", to={
            "source": "x", "pairs": "mine", "languages": ["en", "de"],
            "train": ["t"], "test": ["u"],
        }),
        "lexicons.a.test: x/u is not there",
    ),
    "features of one crop": (
        lambda: change("extractors", "mine_lite0", "transform", to="squash"),
        "recipes.mine.image_crops: expected 1, as many as mine_lite0 keeps of an image",
    ),
    "a backbone that there is not": (
        lambda: change("extractors", "mine_lite0", "backbone", to="resnet51"),
        "extractors.mine_lite0.backbone: nothing is called 'resnet51'. Did you mean 'resnet50'?",
    ),
    "weights that are not there": (
        lambda: change("extractors", "mine_lite0", "weights", to="weights/mine-0123abcd.pth"),
        "extractors.mine_lite0.weights: weights/mine-0123abcd.pth is not there",
    ),
    "weights of a name that torchvision has not": (
        lambda: [
            change("extractors", "mine_lite0", "backbone", to="resnet50"),
            change("extractors", "mine_lite0", "weights", to="IMAGENET1K_V3"),
        ],
        "extractors.mine_lite0.weights: nothing is called 'IMAGENET1K_V3'. Did you mean "
        "'IMAGENET1K_V2'?",
    ),
    "weights of another network": (
        lambda: change("extractors", "mine_lite0", "weights", to="IMAGENET1K_V1"),
        "extractors.mine_lite0.weights: nothing is called 'IMAGENET1K_V1'. Legal names: package.",
    ),
    "weights not named after what they are": (
        lambda: change("extractors", "mine_lite0", "weights", to="weights/mine.pth"),
        "extractors.mine_lite0.weights: expected a file named after the first 8 digits of its "
        "SHA-256, such as resnet50-0676ba61.pth, found weights/mine.pth",
    ),
    "validation of a kind that there is not": (
        lambda: change("pairs", "mine", "validation", to={"de": ["machine"]}),
        "pairs.mine.validation.de: mine has none of the kind machine in the split val",
    ),
    "pseudopairs in a language that the pair set has not": (
        lambda: borrow("fr"),
        "pseudopairs.borrowed.images_of.language: nothing is called 'fr'",
    ),
    "words of another size than their vectors": (
        lambda: change("recipes", "mine", "word_dim", to=77),
        "recipes.mine.word_dim: expected ",
    ),
    "word vectors of a pair set that there is not": (
        lambda: change("word_vectors", "mine_latent", "source", to="data/pairs/nine.parquet"),
        "word_vectors.mine_latent.source: nothing is called 'data/pairs/nine.parquet'. Did you ",
    ),
    "a language that cannot become tokens": (
        lambda: rewrite(*((f"{n}\ttest\tde", f"{n}\ttest\tpl") for n in own_study.NAMES[37:])),
        "datasets.mine: has captions in pl, found no tokenizer for it. Add tokenizers.pl",
    ),
    "a translator of captions that translate nothing": (
        lambda: change("translators", "mine", to=read_yaml(ROOT / "params.yaml")["translators"][
            "world_en_de"
        ] | {"dataset": "mine", "exclude_images": "none"}),
        "expected translations between 'en' and 'de' with a source_caption_id in the split train, "
        "found none",
    ),
    "photos that are all excluded": (
        lambda: change("pairs", "mine", "exclude_images", to="mine"),
        "pairs.mine.exclude_images: mine leaves none of the captions de/caption of mine",
    ),
    "a typo": (
        lambda: change("recipes", "mine", "batch_sze", to=1),
        "recipes.mine.batch_sze: unknown key. Did you mean 'batch_size'?",
    ),
}  # fmt: skip
"""Beside those that docs/reliability.md shows, which tests/test_reliability.py tries."""


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_problem_is_named_before_the_work(mine, case):
    make, said = PROBLEMS[case]
    make()
    assert_named(said)


def assert_named(said):
    result = check()
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert "Traceback" not in result.output


@pytest.fixture
def world(tmp_path, monkeypatch, as_a_user):
    """Return the folder of a copy of the study world, whose data a stage draws."""
    for name in ("dvc.yaml", "params.yaml", "papers.yaml", "published.csv"):
        shutil.copy(ROOT / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of_another_network(name):
    change("extractors", name, "backbone", to="resnet50")
    change("extractors", name, "weights", to="IMAGENET1K_V1")


def add(section, name, like, **changes):
    """Add an entry like another one of its section."""
    entry = read_yaml(Path("params.yaml"))[section][like]
    change(section, name, to=entry | changes)


def second_extractor(**changes):
    add("extractors", "other", "world_lite0", **changes)


PROBLEMS_OF_WORLD = {
    "a part of all recipes that there is not": (
        lambda: change("departures", "optimizer", to="adamx"),
        "departures.optimizer: no optimizer is called 'adamx'. Did you mean 'adam'?",
    ),
    "an engine that does not read what our translator is": (
        lambda: change("translations", "world_machine", "engine", to="file"),
        "translations.world_machine.engine: expected translator, which reads data/translators/",
    ),
    "facts of machine translations": (
        lambda: add(
            "pseudopairs",
            "machine",
            "world_pseudo",
            captions_of={
                "pairs": "world_en_de_machine",
                "language": "de",
                "facts": "data/raw/world/truth.jsonl",
            },
        ),
        "pseudopairs.machine.captions_of.facts: expected data/facts/none.jsonl, as "
        "world_en_de_machine has machine translations in de, of which nobody knows the truth,",
    ),
    "features of two networks in one recipe": (
        lambda: of_another_network("world_sketch_lite0"),
        "recipes.kadar_disjoint.more_features: expected features of one kind with world_lite0, "
        "found world_sketch_lite0 with backbone resnet50, not efficientnet_lite0; weights "
        "IMAGENET1K_V1, not package. Give both extractors the same settings",
    ),
    "features cut otherwise than those of the recipe that is continued": (
        lambda: [
            second_extractor(transform="center", resize=128),
            add("recipes", "tuned", "kadar_en", features="other", initial="kadar_en"),
        ],
        "recipes.tuned.features: expected features of one kind with world_lite0 of kadar_en, which "
        "it continues, found other with transform center, not squash. Give",
    ),
    "a re-ranking by features of another network": (
        lambda: [
            second_extractor(layers="stages"),
            change("rerankings", "world_kadar", "features", to="other"),
        ],
        "rerankings.world_kadar.features: expected features of one kind with world_lite0 of "
        "kadar_en_de_translated_c2c, found other with layers stages, not last",
    ),
    "no captions to translate": (
        lambda: change("translations", "world_machine", "annotation", to="translation"),
        "translations.world_machine.annotation: world has none of the kind translation in en. It "
        "has caption",
    ),
    "a second translation into a language": (
        lambda: add("translations", "twice", "world_machine", dataset="world_machine"),
        "translations.twice.target_language: expected no machine translations into de yet, "
        "world_machine has some. Translate a data set that has none",
    ),
    "pseudopairs alone, which validate nothing": (
        lambda: change("pseudopairs", "world_pseudo", "plus", to="none"),
        "recipes.kadar_pseudo.languages: de is in no validation captions of the pair set "
        "world_pseudo, which has none",
    ),
    "more neighbours than captions": (
        lambda: change("pseudopairs", "world_pseudo", "retrieval", "neighbours", to=100_000),
        "pseudopairs.world_pseudo.retrieval.neighbours: expected at most 1,000, as many training "
        "captions as sketch_en has in en, found 100,000",
    ),
    "more neighbours than captions of half the photos": (
        lambda: [
            change("pairs", "sketch_en", "images", to="first_half"),
            change("pseudopairs", "world_pseudo", "retrieval", "neighbours", to=501),
        ],
        "pseudopairs.world_pseudo.retrieval.neighbours: expected at most 500, as many training "
        "captions as sketch_en has in en, found 501",
    ),
    "facts that are not there": (
        lambda: change("pseudopairs", "world_pseudo", "images_of", "facts", to="data/nnone.jsonl"),
        "pseudopairs.world_pseudo.images_of.facts: data/nnone.jsonl is not there",
    ),
    "a lexicon in a language of no captions": (
        lambda: change("lexicons", "world_en_de", "pairs", to="sketch_en"),
        "lexicons.world_en_de.languages: de is in no captions of the pair set sketch_en, which has "
        "en",
    ),
    "figures of photos that recipes learn": (
        lambda: change("evaluations", "retrieval", "split", to="train"),
        "evaluations.retrieval.split: expected photos that no recipe learns, found train",
    ),
    "a pair set that excludes all that it has": (
        lambda: change("pairs", "world_six", "exclude_images", to="world"),
        "pairs.world_six.exclude_images: world leaves none of the captions en/caption of world in "
        "the split train. Name another data set, or none",
    ),
    "a language that the drawn parallel text has not": (
        lambda: change("datasets", "world_parallel", "languages", to=["en", "de", "ja"]),
        "datasets.world_parallel.languages: data/raw/world/parallel has en, de, fr, cs, zh, found "
        "ja",
    ),
    "a translator into a language that its text is not read in": (
        lambda: add("translators", "others", "world_en_de", target_language="fr"),
        "translators.others.target_language: world_parallel has no captions in fr in the split "
        "train. It has de, en",
    ),
    "photos of a drawing that no extractor has": (
        lambda: change("recipes", "kadar_disjoint", "more_features", to="none"),
        "recipes.kadar_disjoint.features: the photos of world_sketch have no features by "
        "world_lite0, of world. Name an extractor of world_sketch in more_features",
    ),
    "a translator of what is no translation": (
        lambda: add("translators", "others", "world_en_de", dataset="world", target_language="ja"),
        "translators.others: expected translations between en and ja, world has none. Name a data "
        "set that has them",
    ),
    "a translator that nothing is left for": (
        lambda: change("translators", "world_en_de", "exclude_images", to="world_parallel"),
        "translators.world_en_de: expected parallel text of world_parallel in the split val, found "
        "none that exclude_images (world_parallel) and exclude_pairs (none) leave",
    ),
    "no lists to test a re-ranking on": (
        lambda: change("worlds", "world", "parallel", "test", to=0),
        "rerankings.world_kadar.dataset: expected parallel text in the splits val and test of "
        "world_parallel, found it in train, val. Name a translator of a data set that has both",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS_OF_WORLD)
def test_a_problem_of_a_world_is_named_before_it_is_drawn(world, case):
    make, said = PROBLEMS_OF_WORLD[case]
    make()
    assert_named(said)


def test_a_world_is_drawn_wherever_its_folder_is_named(world):
    change("datasets", "world", "raw", to="./data/raw/world/")
    result = check()
    assert result.exit_code == 0, result.output


def test_a_recipe_grows_in_a_world_that_is_not_drawn_yet(world):
    change("growth", "polyview", to={
        "pairs": "world_six", "features": "world_lite0", "word_vectors": "world_latent",
        "photos": [0.5], "seeds": [1],
    })  # fmt: skip
    result = check()
    assert result.exit_code == 0, result.output


def test_a_recipe_grows_where_a_data_set_is_not_there_or_not_read_by_a_stage(mine):
    text_alone(validation="same")
    grow([0.8])
    for dataset in ("mine", "text"):
        assert check_study(load_settings(), dataset).problems == []
    change("datasets", "text", "raw", to="data/nowhere")
    found = check_study(load_settings())
    assert (found.problems, found.missing) == ([], ["datasets.text.raw: data/nowhere is not there"])


@pytest.mark.parametrize("other", ["there", "not there", "broken"])
@pytest.mark.parametrize("learnt", ["photos", "text, too"])
def test_photos_that_another_data_set_excludes_are_not_counted_as_none(mine, other, learnt):
    """What is left of them is known where the other one is read; a stage reads one of both."""
    if learnt == "text, too":
        text_alone(validation={})
    grow([0.8])
    folder = Path("data/raw/other")
    folder.mkdir()
    shutil.copy("data/raw/mine/captions.tsv", folder)
    change("datasets", "other", to={"reader": "table", "raw": str(folder)})
    change("pairs", "mine", "exclude_images", to="other")
    (folder / "captions.tsv").write_text("broken\n") if other == "broken" else None
    shutil.rmtree(folder) if other == "not there" else None
    for dataset in (None, *load_settings().datasets):
        found = check_study(load_settings(), dataset)
        assert all(line.startswith("datasets.other: ") for line in found.problems), found


def test_a_language_in_text_alone_is_in_every_share_of_the_photos(mine):
    text_alone(validation={}, captions={"en": ["caption"], "de": ["translation"]})
    path = Path("data/raw/mine/captions.tsv")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "\ttrain\ten\t" not in line))
    change("pairs", "mine", "captions", to={"de": ["caption"]})
    change("pairs", "mine", "validation", to={"en": ["caption"], "de": ["caption"]})
    ten_numbers_a_word()
    grow([0.8, 0.2])  # 24 and 6 photos, beside 4 lines
    assert check_study(load_settings()).problems == []
    grow([0.1])
    (found,) = check_study(load_settings()).problems
    assert found == (
        "growth.mine.photos: expected 10 photos or more, as many as mine_latent has numbers, found "
        "3, 0.1 of 30 beside 4 lines of text. Make the share larger"
    )


def test_growth_of_pseudopairs_has_no_captions_to_look_for(mine):
    grow_borrowed()
    assert check_study(load_settings()).problems == []


def test_features_of_a_worlds_photos_may_be_given(world):
    path = given.give("w.h5", np.ones((2, 6)), ["a.png", "b.png"])
    change("extractors", "given", to={"dataset": "world", "images": path, "backbone": "given"})
    assert check_study(load_settings()).problems == []


@pytest.mark.parametrize("similarities", [["image"], ["image", "sentence"], ["sentence"]])
def test_sentences_without_photos_are_not_ranked_by_them(world, similarities):
    bitext(train=2, val=2, test=2)
    change("rerankings", "world_kadar", "dataset", to="text")
    change("rerankings", "world_kadar", "similarities", to=similarities)
    pictured = "image" in similarities
    change("rerankings", "world_kadar", "features", to="world_lite0" if pictured else "none")
    change("translators", "world_en_de", "dataset", to="text")
    problems = check_study(load_settings()).problems
    found = [line for line in problems if "rerankings.world_kadar" in line]
    said = (
        "rerankings.world_kadar.features: expected features of photos of text, whose sentences are "
        "translated, found none by world_lite0 in val and test. Name an extractor of these "
        "photos, or leave image out of similarities"
    )
    assert found == ([said] if pictured else [])


def test_text_beside_a_world_does_not_hide_its_photos(world):
    bitext(train=2, val=2, test=2)
    kinds = {"en": ["caption"], "de": ["translation"]}
    add("pairs", "text", "world_six", dataset="text", captions=kinds, validation={})
    change("pairs", "world_six", "plus", to="text")
    found = [line for line in check_study(load_settings()).problems if "polyview.features" in line]
    assert found == []


def test_what_a_translation_reads_is_used(mine):
    french(own_study.NAMES[:3])
    Path("t.tsv").write_text("source\ttranslation\nun chien\tein Hund\n")
    translate("fr", "de")
    found = check_study(load_settings())
    assert (found.problems, found.missing, found.warnings) == ([], [], [])


@pytest.mark.parametrize("there", ["", "test"])
def test_queries_to_translate_are_looked_for_in_the_split_that_is_tested_on(mine, there):
    french(own_study.NAMES[:3])
    if there:
        rewrite((f"{own_study.NAMES[0]}\ttrain\tfr", f"{own_study.NAMES[-1]}\ttest\tfr"))
    Path("t.tsv").write_text("source\ttranslation\nun chien\tein Hund\n")
    translate("fr", "de")
    asked = {"recipe": "mine", "features": "mine_lite0", "translation": "mine_de"}
    change("translated_queries", "fr_to_de", to=asked)
    said = (
        "translated_queries.fr_to_de.translation: expected captions to translate in the split "
        "test, mine has those of the kind caption in fr in train alone. Add some, or leave this "
        "entry out"
    )
    assert check_study(load_settings()).problems == ([] if there else [said])


def test_runs_on_fewer_photos_that_learn_pseudopairs_are_warned_of(mine):
    grow_borrowed()
    said = (
        "growth.grown: mine chose the captions of borrowed among those of all photos, also of such "
        "as a run is to do without. What photos bring, curves of a recipe without pseudopairs say"
    )
    assert said in check_study(load_settings()).warnings


def test_validation_photos_of_a_data_set_that_is_not_read_are_not_too_few(mine):
    rewrite(*((f"{n}\tval", f"{n}\ttrain") for n in own_study.NAMES[32:35]))  # 2 are left
    folder = Path("data/raw/big")
    folder.mkdir()
    lines = Path("data/raw/mine/captions.tsv").read_text().replace("\ttrain\t", "\tval\t")
    (folder / "captions.tsv").write_text(lines)
    change("datasets", "big", to={"reader": "table", "raw": str(folder)})
    add("pairs", "big", "mine", dataset="big")
    change("pairs", "mine", "plus", to="big")
    few = [line for line in check_study(load_settings(), "mine").warnings if "too few" in line]
    assert few == []


def test_photos_of_a_data_set_and_its_translation_are_too_few_once(mine):
    rewrite(*((f"{n}\tval", f"{n}\ttrain") for n in own_study.NAMES[30:35]))
    french([])
    Path("t.tsv").write_text("source\ttranslation\nx\ty\n")
    translate("en", "fr")
    add("pairs", "fr", "mine", dataset="mine_fr", captions={"fr": ["machine"]}, validation="same")
    found = [line for line in check_study(load_settings()).problems if "2 photos or more" in line]
    assert [line.partition(":")[0] for line in found] == ["datasets.mine"]


def test_a_squashed_photo_is_the_same_whatever_resize_is(world):
    change("extractors", "world_sketch_lite0", "resize", to=288)
    result = check()
    assert result.exit_code == 0, result.output


UNDRAWN = {
    "sentences": (
        ("evaluations", "sts", "sets", "world", "file"), "sts.tvs",
        "evaluations.sts.sets.world: expected a file that the world world writes into "
        "data/raw/world, found sts.tvs. Did you mean 'sts.tsv'?",
    ),
    "no graded pairs": (
        ("worlds", "world", "graded_pairs"), 0,
        "evaluations.sts.sets.world: expected a file that the world world writes into "
        "data/raw/world, found sts.tsv.",
    ),
    "a lexicon": (
        ("lexicons", "world_en_de", "train"), ["lexicon/en-xx.train.txt"],
        "lexicons.world_en_de.train: expected a file that the world",
    ),
    "facts": (
        ("pseudopairs", "world_pseudo", "images_of", "facts"), "data/raw/world/truth.json",
        "pseudopairs.world_pseudo.images_of.facts: expected a file that the world",
    ),
    "photos": (
        ("extractors", "world_lite0", "images"), "data/raw/world/image",
        "extractors.world_lite0.images: expected data/raw/world/images, the photos of world, of "
        "which its features are, found data/raw/world/image",
    ),
    "photos of another world, of the same names": (
        ("extractors", "world_sketch_lite0", "images"), "data/raw/world/images",
        "extractors.world_sketch_lite0.images: expected data/raw/world_sketch/images, the photos "
        "of world_sketch, of which its features are, found data/raw/world/images",
    ),
    "facts of another world, of the same photos": (
        ("pseudopairs", "world_pseudo", "images_of", "facts"), "data/raw/world/truth.jsonl",
        "pseudopairs.world_pseudo.images_of.facts: expected data/raw/world_sketch/truth.jsonl, "
        "the facts of world_sketch, whose captions sketch_en has, found "
        "data/raw/world/truth.jsonl",
    ),
    "pairs of six grades": (
        ("worlds", "world", "graded_pairs"), 7,
        "worlds.world: expected a multiple of 6 graded pairs, found 7",
    ),
    "no photos": (
        ("worlds", "world", "images"), {},
        "worlds.world: expected numbers of images for ['train', 'val', 'test'], found them for []",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDRAWN)
def test_what_a_world_does_not_draw_is_said_before_it_is_drawn(world, name):
    keys, value, said = UNDRAWN[name]
    change(*keys, to=value)
    result = check()
    assert result.exit_code != 0
    assert said in " ".join(result.output.split())


def french(names):
    """Add captions in a language that the study has a tokenizer for, and nothing else."""
    with open("data/raw/mine/captions.tsv", "a") as file:
        file.writelines(f"{n}\ttrain\tfr\tcaption\t0\tun chien\t\n" for n in names)
    change("tokenizers", "fr", to={"tokenizer": "moses", "lowercase": True, "normalize": True})


def more_photos():
    """Add a data set with features that the recipe does not name, and learn its captions, too."""
    here = read_yaml(Path("params.yaml"))
    change("datasets", "more", to={"reader": "table", "raw": "data/raw/mine"})
    change("extractors", "more_lite0", to=here["extractors"]["mine_lite0"] | {"dataset": "more"})
    change("pairs", "more", to=here["pairs"]["mine"] | {"dataset": "more", "validation": {}})
    change("pairs", "mine", "plus", to="more")


WARNINGS = {
    "a batch of all": (
        lambda: change("recipes", "mine", "batch_size", to=128),
        "recipes.mine.batch_size: 128 is more than the 30 training photos of mine: each batch",
    ),
    "photos in two splits": (
        lambda: [shutil.copy(photo(0), photo(number)) for number in (30, 39)],
        "extractors.mine_lite0.images: 2 photos of other splits have the bytes of training photos "
        "(first: 30.jpg of val is 00.jpg)",
    ),
    "photos that choose weights and are tested": (
        lambda: shutil.copy(photo(30), photo(39)),
        "extractors.mine_lite0.images: 1 photos of other splits have the bytes of validation "
        "photos (first: 39.jpg of test is 30.jpg): a model is tested on what chose its weights",
    ),
    "figures of photos that choose weights": (
        lambda: change("evaluations", "retrieval", "split", to="val"),
        "evaluations.retrieval.split: val are the photos that choose the weights of each recipe",
    ),
    "a language that nothing reads": (
        lambda: french(own_study.NAMES[:3]),
        "datasets.mine: nothing uses the 3 captions in fr. Name it in captions of pairs, in pools",
    ),
    "an input for all recipes, each of which names its own": (
        lambda: change("departures", "lexicon", to="none"),
        "departures.lexicon: each row names its own, as dvc.yaml reads it there. Remove it",
    ),
    "terms between languages of one": (
        lambda: change(
            "recipes",
            "kadar",
            to={
                "paper": "kadar2019",
                "languages": ["en"],
                "seeds": [1],
                "dataset": "mine",
                "pairs": "mine",
                "features": "mine_lite0",
                "more_features": "none",
                "initial": "none",
                "word_vectors": "random",
                "lexicon": "none",
                "caption_caption_probability": 0.5,
            },
        ),
        "recipes.kadar.caption_caption_probability: it works between languages, of which kadar has",
    ),
    "words of a language without vectors": (
        lambda: [
            english_of_five(),
            word_files(en="1 300\n"),
            change("recipes", "mine", "languages", to=["en", "de"]),
        ],
        "recipes.mine.word_vectors: given has no vectors of words in de, which mine starts at rand",
    ),
    "words at random for good": (
        lambda: [
            change("recipes", "mine", "word_vectors", to="random"),
            change("recipes", "mine", "tune_words", to=False),
        ],
        "recipes.mine.word_vectors: random has no vectors of words in de, en, which mine starts at "
        "random and keeps so (tune_words: false)",
    ),
    "a comparison without a common language": (
        lambda: [
            add("recipes", "german", "mine", languages=["de"]),
            add("recipes", "english", "mine", languages=["en"]),
            change(
                "comparisons",
                to={
                    "c": {"question": "?", "baseline": "german", "recipes": ["english"]},
                },
            ),
        ],
        "comparisons.c.recipes: english and the baseline german have no language in common: noth",
    ),
    "a pool that nothing ranks": (
        lambda: change("pools", "fr", to="caption"),
        "pools.fr: no recipe reads fr. Name it in languages of the recipe",
    ),
    "scored sentences that nothing embeds": (
        lambda: [
            Path("data/raw/mine/sts.tsv").write_text("1\tun chien\tun chat\n"),
            change("evaluations", "sts", "sets", to={"a": {"file": "sts.tsv", "language": "fr"}}),
            change("tokenizers", "fr", to=read_yaml(ROOT / "params.yaml")["tokenizers"]["fr"]),
        ],
        "evaluations.sts.sets.a: no recipe reads fr",
    ),
    "captions that another model has learnt": (
        lambda: [
            change("pairs", "more", to=read_yaml(Path("params.yaml"))["pairs"]["mine"]),
            change("pairs", "mine", "images", to="first_half"),
            change("recipes", "other", to=read_yaml(Path("params.yaml"))["recipes"]["mine"]),
            change("recipes", "other", "pairs", to="more"),
            change("recipes", "mine", "initial", to="other"),
            change("recipes", "mine", "word_vectors", to="random"),
            Path("data/raw/mine/sts.tsv").write_text("1\ta dog\ta cat\n"),
            change("evaluations", "sts", "sets", to={"a": {"file": "sts.tsv", "language": "en"}}),
        ],
        "recipes.mine: other, on which it builds, has learnt more, whose captions count as unseen",
    ),
    "seeds of one start": (
        lambda: [
            change("recipes", "start", to=read_yaml(Path("params.yaml"))["recipes"]["mine"]),
            change("recipes", "start", "seeds", to=[2]),
            change("recipes", "mine", "seeds", to=[1, 2, 3]),
            change("recipes", "mine", "initial", to="start"),
            change("recipes", "mine", "word_vectors", to="random"),
        ],
        "recipes.mine.seeds: start, which it continues, has no model of 1, 3: they start from that "
        "of seed 2, and are no runs of their own, for which tests take them. Train start with",
    ),
    "captions that word vectors have learnt": (
        lambda: [
            change("pairs", "more", to=read_yaml(Path("params.yaml"))["pairs"]["mine"]),
            change("pairs", "mine", "images", to="first_half"),
            change("word_vectors", "mine_latent", "source", to="data/pairs/more.parquet"),
            Path("data/raw/mine/sts.tsv").write_text("1\ta dog\ta cat\n"),
            change("evaluations", "sts", "sets", to={"a": {"file": "sts.tsv", "language": "en"}}),
        ],
        "recipes.mine: its word vectors have learnt more, whose captions count as unseen",
    ),
    "crops as one vector": (
        lambda: change(
            "recipes",
            "mine",
            to={
                key: value
                for key, value in read_yaml(Path("params.yaml"))["recipes"]["mine"].items()
                if not key.startswith("image_")
            }
            | {
                "image_head": "mlp",
                "image_hidden_dims": [],
                "image_dropout": 0.0,
                "normalize_features": False,
            },
        ),
        "recipes.mine.image_head: mlp reads the 2 vectors that mine_lite0 keeps of an image as",
    ),
    "photos that are read as text": (
        more_photos,
        "recipes.mine.more_features: 40 photos of more are read as text alone, though more_lite0 "
        "has their features. Name it there, if the recipe is to see them",
    ),
    "a split that nothing uses": (
        lambda: rewrite(*((f"{n}\ttest", f"{n}\ttset") for n in own_study.NAMES[37:])),
        "datasets.mine: nothing uses the 3 photos of the split 'tset'. Did you mean 'test'?",
    ),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_what_may_be_meant_is_said_and_passes(mine, case):
    make, said = WARNINGS[case]
    make()
    result = check()
    assert result.exit_code == 0, result.output
    assert said in result.output


def test_word_vectors_of_the_same_captions_under_another_name_are_no_others(mine):
    change("pairs", "same", to=read_yaml(Path("params.yaml"))["pairs"]["mine"])
    change("pairs", "same", "per_image", to=5)
    change("pairs", "mine", "per_image", to=10)
    change("word_vectors", "mine_latent", "source", to="data/pairs/same.parquet")
    Path("data/raw/mine/sts.tsv").write_text("1\ta dog\ta cat\n")
    change("evaluations", "sts", "sets", to={"a": {"file": "sts.tsv", "language": "en"}})
    assert not any("unseen" in each for each in check_study(load_settings()).warnings)


def test_departures_that_concern_no_recipe_are_named(mine):
    departures = {"decays": 2, "batch_size": 8, "kim2020": {"batch_size": 8}}
    change("departures", to=departures | {"polyview": {"margin": 0.1, "seeds": [1]}})
    idle = [each for each in check_study(load_settings()).warnings if "departures" in each]
    assert idle == [
        f"departures.{key}: it concerns no recipe of this study. Remove it"
        for key in ("decays", "kim2020", "polyview.margin")
    ]


def test_validation_photos_that_tell_nothing_are_said_before_the_training(mine):
    assert not any("too few" in each for each in check_study(load_settings()).warnings)
    rewrite(*((f"{name}\tval", f"{name}\ttrain") for name in own_study.NAMES[30:33]))
    said = "recipes.mine: 2 validation photos are too few to tell what is learnt from chance, whose"
    assert any(said in each for each in check_study(load_settings()).warnings)


def test_photos_of_a_data_set_and_of_its_translation_are_the_same_photos(world):
    add("pairs", "both", "world_en_de_machine", plus="world_six")
    change("recipes", "polyview", "pairs", to="both")
    change("recipes", "polyview", "batch_size", to=600)
    said = "recipes.polyview.batch_size: 600 is more than the 540 training photos of both"
    assert said in check().output


def test_all_problems_come_at_once_and_stop_the_first_stage(mine):
    change("pools", "de", to="translation")
    change("evaluations", "retrieval", "split", to="tset")
    change("pools", "en", to="machine")
    change("evaluations", "retrieval", "split", to="val")
    result = CliRunner().invoke(resolve, [])
    assert result.exit_code == 2
    assert "params.yaml: 2 problem(s)" in result.output
    assert not Path("data/resolved").exists()


def test_tables_that_change_after_the_first_stage_are_checked_by_the_next(mine):
    assert CliRunner().invoke(resolve, []).exit_code == 0
    assert CliRunner().invoke(captions, ["mine"]).exit_code == 0
    rewrite(*((f"{n}\tval", f"{n}\tdev") for n in own_study.NAMES[31:35]))
    result = CliRunner().invoke(captions, ["mine"])
    assert result.exit_code == 2
    assert "expected 2 photos or more in the split val, found 1" in result.output
    assert "Did you mean 'val' for 'dev'" in result.output


def test_photos_behind_links_to_folders_are_warned_of_since_dvc_does_not_see_them_change(mine):
    folder = Path(photo(0)).parent
    assert "DVC does not see" not in "".join(check_study(load_settings()).warnings)
    moved = mine.parent / "elsewhere"
    folder.rename(moved)
    folder.symlink_to(moved)  # the whole folder: DVC follows it
    assert "DVC does not see" not in "".join(check_study(load_settings()).warnings)
    folder.unlink()
    folder.mkdir()
    (folder / "part").symlink_to(moved)
    said = (
        "extractors.mine_lite0.images: DVC does not see what lies behind links to folders (first: "
        f"{folder}/part): after a change there, run dvc repro --force features@mine_lite0, or make "
        "the whole folder one link"
    )
    assert said in check_study(load_settings()).warnings


def test_a_batch_holds_the_photos_that_have_captions_alone(mine):
    """As in a table where few photos have a caption in a rare language."""
    english_of_five()
    change("pairs", "mine", "captions", to={"en": ["caption"]})
    change("recipes", "mine", "batch_size", to=6)
    said = "recipes.mine.batch_size: 6 is more than the 5 training photos of mine: each batch"
    assert any(each.startswith(said) for each in check_study(load_settings()).warnings)


def test_a_file_of_translations_that_is_not_there_is_said(mine):
    french(own_study.NAMES[:3])
    translate("fr", "de")
    assert check_study(load_settings()).missing == [
        "translations.mine_de.model: t.tsv is not there"
    ]


def test_photos_that_are_not_there_are_listed_and_no_reason_not_to_use_dvcs_cache(mine):
    change("extractors", "mine_lite0", "images", to="data/raw/nowhere")
    assert check().exit_code == 2
    result = CliRunner().invoke(resolve, [])
    assert result.exit_code == 0
    assert "warning: params.yaml: line" in result.output


@pytest.mark.parametrize("name", ["world", "world_sketch", "world_parallel", "world_machine"])
def test_what_a_world_will_hold_is_what_it_holds(monkeypatch, name):
    path = ROOT / f"data/captions/{name}.parquet"
    if not path.is_file():
        pytest.skip("world has not been made here: dvc repro makes it")
    monkeypatch.chdir(ROOT)
    known = known_data(load_settings(), [], [])
    counts = read_captions(path).groupby(["split", "language", "annotation"]).size().to_dict()
    assert {k: known[name].captions.get(k) for k in counts} == counts


def test_what_a_small_world_will_hold_is_what_is_drawn(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    settings = load_settings()
    sizes = {"images": {"train": 3, "val": 2, "test": 1}, "graded_pairs": 0}
    sizes |= {"parallel": {"train": 6, "val": 5, "test": 4}}
    small = settings.worlds["world"].model_copy(update=sizes)
    generate(tmp_path / "world", name="world", **small.model_dump())
    known = known_data(settings.model_copy(update={"worlds": {"world": small}}), [], [])
    for name, folder in (("world", "world"), ("world_parallel", "world/parallel")):
        dataset = settings.datasets[name]
        options = dataset.model_dump(exclude={"reader", "raw"})
        corpus = READERS[dataset.reader](tmp_path / folder, name, **options)
        counts = corpus.captions.groupby(["split", "language", "annotation"]).size().to_dict()
        assert known[name].captions == counts


def test_translations_may_add_to_translations(monkeypatch):
    monkeypatch.chdir(ROOT)
    settings = load_settings()
    further = settings.translations["world_machine"].model_copy(
        update={"dataset": "world_machine", "target_language": "cs"}
    )
    translations = settings.translations | {"world_again": further}
    recipe = settings.recipes["mlmme_machine"] | {"dataset": "world_again"}
    changed = settings.model_copy(
        update={
            "translations": dict(reversed(translations.items())),
            "recipes": settings.recipes | {"mlmme_machine": recipe},
        }
    )
    assert "world_again" in known_data(changed, [], [])
    assert check_study(changed).problems == []


def test_as_many_photos_as_word_vectors_have_numbers_are_enough(mine):
    grow([0.5])
    for dim, said in ((16, True), (15, False)):  # of 30 photos
        change("word_vectors", "mine_latent", "dim", to=dim)
        change("recipes", "mine", "word_dim", to=dim)
        assert (f"expected {dim} photos or more" in check().output) == said


def test_a_pair_set_that_validates_nothing_needs_no_photos_for_it(mine):
    rewrite(*((f"{n}\tval", f"{n}\ttest") for n in own_study.NAMES[30:35]))
    assert "expected 2 photos or more in the split val, found 0" in check().output
    change("pairs", "mine", "validation", to={})
    assert "in the split val" not in check().output


@pytest.mark.parametrize("folder", [ROOT, *sorted((ROOT / "studies").glob("*/params.yaml"))])
def test_our_own_studies_have_no_problem(folder, monkeypatch):
    monkeypatch.chdir(folder.parent if folder.is_file() else folder)
    assert check_study(load_settings()).problems == []


def test_our_own_studies_have_no_problem_beside_the_data(real_data, tmp_path, monkeypatch):
    (tmp_path / "checkout").symlink_to(ROOT)
    for name in ("params.yaml", "published.csv"):
        (tmp_path / name).symlink_to(ROOT / "studies/flickr8k" / name)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/raw").symlink_to(real_data)
    monkeypatch.chdir(tmp_path)
    settings = load_settings()
    for dataset in (None, *settings.datasets):  # all of them, and what a stage reads
        assert check_study(settings, dataset).problems == []


@pytest.mark.parametrize("objective", ["alternating", "joint", "two_branch"])
@pytest.mark.parametrize("universal", ["none", 300])
def test_the_estimate_is_below_what_torch_counts_and_near_it(objective, universal):
    sizes = {"hidden_dim": 256, "embed_dim": 256, "word_dim": 100, "universal_dim": universal}
    if objective == "two_branch":
        sizes |= {"pretraining_epochs": 0, "image_hidden_dims": [300]}
    recipe = tiny.recipe(objective, **sizes)
    counts = parameter_counts(tiny.learner(recipe))
    real = counts["all"] - counts["words"]
    assert 0.9 * real < weights(recipe) <= real
    assert recipe_bytes(recipe, captions=3) == 4 * (COPIES * weights(recipe) + 9)


def test_the_memory_of_this_machine_is_known():
    assert 2**28 < machine_bytes() < 2**50


@pytest.mark.parametrize(
    ("sizes", "near"),
    [
        ({"architecture": "transformer", "dim": 256, "feed_forward": 512, "layers": 3}, 0.9),
        ({"architecture": "gru_attention", "word_dim": 200, "hidden_dim": 256}, 0.4),
    ],
    ids=["transformer", "gru"],
)
def test_the_estimate_of_a_translator_is_below_what_torch_counts(sizes, near):
    chosen = translator(**sizes)
    real = sum(each.numel() for each in NETWORKS[chosen.architecture](chosen, 4).parameters())
    assert near * real < translator_bytes(chosen) / (4 * COPIES) <= real


def test_a_container_has_the_memory_that_it_is_left(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "Path", lambda _: limit)
    whole = machine_bytes()
    found = {}
    for text in ("268435456", "max", str(2**60)):
        limit.write_text(f"{text}\n")
        found[text] = machine_bytes()
    assert found == {"268435456": 2**28, "max": whole, str(2**60): whole}


def read_given(**changes):
    change("recipes", "mine", "features", to="mine_given")
    for key, value in ({"image_crops": 1, "batch_size": 16} | changes).items():
        change("recipes", "mine", key, to=value)


def test_a_study_of_features_that_are_given_passes_without_photos(mine):
    give()
    read_given()
    change("extractors", "mine_lite0", to=None)
    text = Path("params.yaml").read_text(encoding="utf-8")
    Path("params.yaml").write_text(text.replace("  mine_lite0:\n", ""), encoding="utf-8")
    Path("data/raw/mine/images").unlink()
    result = check()
    assert (result.exit_code, "nothing was found that would" in result.output) == (0, True)
    assert CliRunner().invoke(resolve, []).exit_code == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: give(names=own_study.NAMES[5:]),
         "extractors.mine_given.images: data/raw/mine_given.h5: image: expected the path of each "
         "photo, 5 of 40 have no row (first: '00.jpg')"),
        (lambda: [give(), Path("data/raw/mine_given.h5").unlink()],
         "extractors.mine_given.images: data/raw/mine_given.h5 is not there"),
        (lambda: [give(), Path("data/raw/mine_given.h5").write_bytes(b"png")],
         "extractors.mine_given.images: data/raw/mine_given.h5: expected HDF5"),
        (lambda: [give(), read_given(image_crops=2)],
         "recipes.mine.image_crops: expected 1, as many as mine_given keeps of an image as "
         "features that are given, found 2"),
        (lambda: [give(), read_given(more_features="mine_lite0")],
         "recipes.mine.more_features: expected features of one kind with mine_given, found "
         "mine_lite0 with backbone efficientnet_lite0, not given"),
        (lambda: [give(), give("other", dim=7), read_given(more_features="other")],
         "expected features of one kind with mine_given, found other with dim 7, not 6"),
    ],
)  # fmt: skip
def test_features_that_are_given_must_be_of_the_photos_and_of_one_kind(mine, wrong, said):
    wrong()
    assert said in check().output


def test_halves_of_two_data_sets_that_share_photos_are_named():
    """Each data set is halved by its own photos: with others in it, the cut is elsewhere."""
    chosen = {
        "english": SimpleNamespace(dataset="all", images="first_half"),
        "japanese": SimpleNamespace(dataset="some", images="second_half"),
        "german": SimpleNamespace(dataset="some", images="first_half"),
    }
    photos = {"english": {"coco:1", "coco:2"}, "japanese": {"coco:2", "coco:3"}, "german": set()}
    known = SimpleNamespace(
        recipes={"both": SimpleNamespace(pairs="english")},
        settings=SimpleNamespace(pairs=chosen, pair_sets=lambda _: [*chosen]),
        rows={name: {"train": own} for name, own in photos.items()},
    )
    [said] = _halves_that_overlap(known)
    assert "recipes.both: english and japanese are the halves of photos of all and some" in said
    assert "share 1 (first: coco:2)" in said
    photos["japanese"].remove("coco:2")
    assert not [*_halves_that_overlap(known)]
