"""The generated corpus against its own truth file, and sentences against a grammar book."""

import csv
import json
import random
import re
import unicodedata
from dataclasses import replace
from itertools import combinations, product

import fugashi
import ipadic
import jieba
import numpy as np
import pytest
from PIL import Image
from refusals import refused

from pipeline_lib.corpora.table import read_captions_table
from pipeline_lib.corpora.world.concepts import ACTORS, PLACES, THINGS
from pipeline_lib.corpora.world.generate import drawn_files, generate
from pipeline_lib.corpora.world.languages import LANGUAGES, say
from pipeline_lib.corpora.world.layout import bounds, main_group
from pipeline_lib.corpora.world.messages import sample_message
from pipeline_lib.corpora.world.palette import PAINTS
from pipeline_lib.corpora.world.scenes import Entity, Scene, sample_scene
from pipeline_lib.corpora.world.similarity import similarity

IMAGES = {"train": 24, "val": 4, "test": 4}
PARALLEL = {"train": 1000, "val": 50, "test": 40}


def _generate(folder, **changes):
    arguments = {"name": "world", "seed": 3, "style": "flat", "images": IMAGES}
    arguments |= {"graded_pairs": 300, "parallel": PARALLEL}
    generate(folder, **(arguments | changes))
    return folder


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return _generate(tmp_path_factory.mktemp("world") / "flat")


@pytest.fixture(scope="module")
def sketch(tmp_path_factory):
    return _generate(tmp_path_factory.mktemp("world") / "sketch", style="sketch")


@pytest.fixture(scope="module")
def rows(world):
    with open(world / "captions.tsv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture(scope="module")
def truth(world):
    lines = (world / "truth.jsonl").read_text(encoding="utf-8").splitlines()
    return {item["image"]: item for item in map(json.loads, lines)}


def _content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _lines(path):
    return path.read_text(encoding="utf-8").splitlines()


# Files


def test_equal_arguments_give_equal_bytes_and_another_seed_or_name_does_not(world, tmp_path):
    once = _content(world)
    assert once == _content(_generate(tmp_path / "again"))
    for changes in ({"seed": 4}, {"name": "other"}):
        other = _content(_generate(tmp_path / str(changes), **changes))
        assert other.keys() == once.keys()
        assert not [name for name in once if other[name] == once[name]]


def test_the_files_that_are_drawn_are_those_that_are_announced(world):
    files = {name for name in _content(world) if not name.startswith("images/")}
    assert drawn_files(300, PARALLEL) == files


def test_counts_of_images_captions_and_translations(world, rows, truth):
    assert len(truth) == len(list((world / "images").glob("*.jpg"))) == 32
    for image, split in ((t["image"], t["split"]) for t in truth.values()):
        assert (world / "images" / image).is_file()
        own = [row for row in rows if row["image"] == image]
        assert {row["split"] for row in own} == {split}
        captions = {(r["language"], r["position"]) for r in own if r["annotation"] == "caption"}
        assert captions == {(lang, str(k)) for lang in ("en", "de", "ja") for k in range(5)}
        translations = [row for row in own if row["annotation"] == "translation"]
        assert sorted(row["language"] for row in translations) == ["cs", "de", "fr", "zh"]
        (source,) = {row["translation_of"] for row in translations}
        assert re.fullmatch("en/caption/[0-4]", source)
        assert len(own) == 19


def test_the_reader_of_tables_accepts_the_corpus(world, rows):
    corpus = read_captions_table(world, "world")
    assert len(corpus.captions) == len(rows) == 32 * 19
    assert len(corpus.images) == 32


def test_no_two_images_show_the_same_scene(truth):
    scenes = [json.dumps(item["scene"], sort_keys=True) for item in truth.values()]
    assert len(set(scenes)) == len(scenes)


def test_text_is_nfc_and_free_of_quotes(rows):
    for row in rows:
        assert None not in row.values()
        assert unicodedata.is_normalized("NFC", row["text"])
        assert not re.search(r"[\"“”\t\\]|\s\s", row["text"])


@pytest.mark.parametrize("corpus", ["world", "sketch"])
def test_pictures_are_rgb_photographs_in_size_and_show_their_colours(request, corpus):
    for path in sorted((request.getfixturevalue(corpus) / "images").iterdir())[:10]:
        with Image.open(path) as image:
            assert image.mode == "RGB"
            assert 333 <= min(image.size) <= max(image.size) <= 512
            assert len(image.getcolors(image.width * image.height)) > 500


def test_each_first_entity_has_pixels_of_its_colour(world, truth):
    for name, item in truth.items():
        with Image.open(world / "images" / name) as image:
            pixels = np.asarray(image, dtype=int)
        colour = PAINTS[item["scene"]["entities"][0]["colour"]]
        assert (abs(pixels - colour).max(axis=2) <= 24).sum() > 60, name


# Truth


def _facts_of(scene):
    """Derive the facts from the file's scene graph, not with the program's function."""
    found = {("scene", "place", scene["place"])}
    for entity in scene["entities"]:
        found |= {("scene", "contains", entity["noun"])}
        found |= {(entity["noun"], key, str(v)) for key, v in entity.items() if v and key != "noun"}
    first, second = (entity["noun"] for entity in scene["entities"][:2])
    return found | {(first, scene["relation"], second)}


def test_every_stated_fact_is_true(truth):
    for item in truth.values():
        true = _facts_of(item["scene"])
        assert {tuple(fact) for fact in item["facts"]} == true
        assert len(item["captions"]) == 19
        for stated in item["captions"].values():
            assert {tuple(fact) for fact in stated} < true


def test_captions_of_an_image_state_different_parts_and_a_translation_states_its_source(
    rows, truth
):
    for item in truth.values():
        for language in ("en", "de", "ja"):
            stated = [item["captions"][f"{language}/caption/{k}"] for k in range(5)]
            assert all(first != second for first, second in combinations(stated, 2))
    for row in rows:
        if row["annotation"] == "translation":
            captions = truth[row["image"]]["captions"]
            assert captions[f"{row['language']}/translation/0"] == captions[row["translation_of"]]


_SAID_COLOURS = {**{colour: colour for colour in PAINTS}, "violet": "purple"}
_SAID_PLACES = {
    **{place: place for place in PLACES},
    **{"woods": "forest", "road": "street", "grass": "meadow"},
}
_SAID_NUMBERS = {"a": "1", "an": "1", "two": "2", "three": "3", "four": "4"}


def _said(text):
    words = re.findall(r"[a-z]+", text.lower())
    tables = {"colour": _SAID_COLOURS, "place": _SAID_PLACES}
    return {name: {said[w] for w in words if w in said} for name, said in tables.items()}


def test_english_words_say_exactly_the_stated_facts(rows, truth):
    for row in rows:
        if row["language"] != "en":
            continue
        stated = truth[row["image"]]["captions"][f"en/caption/{row['position']}"]
        words = re.findall(r"[a-z]+", row["text"].lower())
        for attribute, said in _said(row["text"]).items():
            assert said == {value for _, name, value in stated if name == attribute}, row["text"]
        counts = [value for _, name, value in stated if name == "count"]
        clothed = sum(name == "garment" for _, name, _ in stated)
        numbers = [_SAID_NUMBERS[word] for word in words if word in _SAID_NUMBERS]
        assert set(counts) <= set(numbers)
        assert len(counts) <= len(numbers) <= len(counts) + clothed
        assert 4 <= len(words) <= 19 or "picture" in words


# Grammar


def first(options):
    return options[0]


def last(options):
    return options[-1]


def _one(noun, count=1, **attributes):
    return Entity(noun, count, **attributes)


DOG = _one("dog", colour="brown", size="big", action="run")
GIRLS = _one("girl", 2, colour="red", garment="dress", action="sit")
BUS = _one("bus", 2, colour="white")
HOUSE = _one("house", colour="green", size="small")
ELEPHANTS = _one("elephant", 3, colour="grey", size="small", action="eat")
SENTENCES = [
    (
        Scene("beach", (DOG,), None),
        first,
        {
            "en": "A big brown dog is running on the beach.",
            "de": "Ein großer brauner Hund rennt am Strand.",
            "fr": "Un grand chien brun court sur la plage.",
            "cs": "Velký hnědý pes běží na pláži.",
            "ja": "砂浜で一匹の大きな茶色い犬が走っている。",
            "zh": "一只很大的棕色狗在海滩上奔跑。",
        },
    ),
    (
        Scene("lake", (DOG,), None),
        last,
        {
            "en": "At the lake, a large brown dog is running.",
            "de": "Am See läuft ein großer brauner Hund.",
            "fr": "Près du lac, un grand chien brun court.",
            "cs": "U jezera běží velký hnědý pes.",
            "ja": "湖のほとりで走っている一匹の大きい茶色の犬。",
            "zh": "在湖边，一只很大的棕色狗正在跑步。",
        },
    ),
    (
        Scene("street", (GIRLS, BUS), "in_front_of"),
        first,
        {
            "en": "Two girls in red dresses are sitting in front of two white buses on the street.",
            "de": "Zwei Mädchen in roten Kleidern sitzen vor zwei weißen Bussen auf der Straße.",
            "fr": "Deux filles en robe rouge sont assises devant deux bus blancs dans la rue.",
            "cs": "Dvě dívky v červených šatech sedí před dvěma bílými autobusy na ulici.",
            "ja": "道路で、二台の白いバスの前に赤いドレスを着た二人の女の子が座っている。",
            "zh": "在街道上，两个穿着红色裙子的女孩在两辆白色的公交车前面坐着。",
        },
    ),
    (
        Scene(None, (replace(DOG, size=None, colour=None), HOUSE), "next_to"),
        first,
        {
            "en": "A dog is running next to a small green house.",
            "de": "Ein Hund rennt neben einem kleinen grünen Haus.",
            "fr": "Un chien court à côté d'une petite maison verte.",
            "cs": "Pes běží vedle malého zeleného domu.",
            "ja": "一軒の小さな緑の家の隣で一匹の犬が走っている。",
            "zh": "一只狗在一座很小的绿色房子旁边奔跑。",
        },
    ),
    (
        Scene(None, (replace(DOG, action=None), ELEPHANTS), None),
        last,
        {
            "en": "The picture shows a large brown dog and three little grey elephants.",
            "de": "Das Bild zeigt einen großen braunen Hund und drei kleine graue Elefanten.",
            "fr": "Il y a un grand chien brun et trois petits éléphants gris.",
            "cs": "Velký hnědý pes a tři malí šedí sloni.",
            "ja": "一匹の大きい茶色の犬と三頭の小さい灰色の象。",
            "zh": "图片里有一只很大的棕色狗和三头很小的灰色大象。",
        },
    ),
    (
        Scene("meadow", (ELEPHANTS, replace(DOG, colour=None)), None),
        last,
        {
            "en": "On the grass, three little grey elephants are eating "
            "while a large dog is running.",
            "de": "Im Gras fressen drei kleine graue Elefanten, während ein großer Hund läuft.",
            "fr": "Dans la prairie, trois petits éléphants gris mangent "
            "tandis qu'un grand chien court.",
            "cs": "V trávě žerou tři malí šedí sloni, zatímco velký pes běží.",
            "ja": "草地で、三頭の小さい灰色の象が何かを食べていて、一匹の大きい犬が走っている。",
            "zh": "在草地上，三头很小的灰色大象正在吃东西，而一只很大的狗正在跑步。",
        },
    ),
    (
        Scene(
            None,
            (_one("boy", colour="purple", garment="shirt"), _one("umbrella", colour="red")),
            "hold",
        ),
        first,
        {
            "en": "A boy in a purple shirt is holding a red umbrella.",
            "de": "Ein Junge in einem violetten Hemd hält einen roten Regenschirm.",
            "fr": "Un garçon en chemise violette tient un parapluie rouge.",
            "cs": "Chlapec ve fialové košili drží červený deštník.",
            "ja": "紫のシャツを着た一人の男の子が一本の赤い傘を持っている。",
            "zh": "一个穿着紫色衬衫的男孩拿着一把红色的雨伞。",
        },
    ),
    (
        Scene("forest", (_one("man"), _one("guitar", colour="black")), "behind"),
        last,
        {
            "en": "In the woods there is a gentleman behind a black guitar.",
            "de": "Im Wald gibt es einen Mann hinter einer schwarzen Gitarre.",
            "fr": "Dans la forêt, il y a un homme derrière une guitare noire.",
            "cs": "V lese je muž za černou kytarou.",
            "ja": "林で、一本の黒いギターの後ろにいる一人の男。",
            "zh": "在树林里，一把黑色的吉他后面有一位男士。",
        },
    ),
]


@pytest.mark.parametrize(
    ("message", "choose", "language", "sentence"),
    [
        (message, choose, language, sentence)
        for message, choose, sentences in SENTENCES
        for language, sentence in sentences.items()
    ],
)
def test_golden_sentences(message, choose, language, sentence):
    assert say(message, language, choose).text == sentence


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_can_say_every_concept(language):
    messages = set()
    for noun, kind in (ACTORS | THINGS).items():
        for colour, count in product(kind.colours, (1, 2, 3, 4)):
            entity = _one(noun, count, colour=colour)
            if noun in THINGS:
                messages.add(Scene("snow", (_one("man"), entity), "next_to"))
            else:
                clothed = replace(entity, garment=kind.garments[0] if kind.garments else None)
                acting = [replace(clothed, action=action) for action in kind.actions]
                messages |= {Scene("snow", (actor,), None) for actor in acting}
    for choose in (first, last):
        assert len({say(message, language, choose).text for message in messages}) == len(messages)


def _ways(message, language):
    """Say a message with every sequence of choices."""
    unexplored, said = [()], []
    while unexplored:
        taken, sizes = unexplored.pop(), []

        def choose(options, taken=taken, sizes=sizes):
            sizes.append(len(options))
            return options[taken[len(sizes) - 1]] if len(sizes) <= len(taken) else options[0]

        said.append(say(message, language, choose))
        for k in range(len(taken), len(sizes)):
            unexplored += [(*taken, *[0] * (k - len(taken)), other) for other in range(1, sizes[k])]
    return said


WAYS = [
    (
        Scene("snow", (_one("man"),), None),
        "en",
        """A man in the snow. There is a man in the snow. In the snow there is a man.
        A gentleman in the snow. There is a gentleman in the snow.
        In the snow there is a gentleman.""",
    ),
    (
        Scene("snow", (_one("man", 2, action="wave"),), None),
        "de",
        "Zwei Männer winken im Schnee. Im Schnee winken zwei Männer.",
    ),
    (Scene(None, (_one("elephant"),), None), "en", "An elephant. There is an elephant."),
    (Scene(None, (_one("cat", size="small"),), None), "cs", "Malá kočka."),
    (
        Scene("snow", (_one("cat", 2),), None),
        "cs",
        "Dvě kočky ve sněhu. Dvě kočky jsou ve sněhu. Ve sněhu jsou dvě kočky.",
    ),
    (
        Scene("snow", (_one("cat"), _one("tree")), "under"),
        "cs",
        "Kočka pod stromem ve sněhu. Kočka je pod stromem ve sněhu. Ve sněhu je kočka pod stromem.",
    ),
    (
        Scene(None, (_one("cat", action="eat"), _one("horse", action="eat")), None),
        "fr",
        "Un chat mange et un cheval mange. Un chat mange tandis qu'un cheval mange.",
    ),
    (
        Scene(None, (_one("dog"), _one("tree")), "next_to"),
        "fr",
        "Un chien à côté d'un arbre. Il y a un chien à côté d'un arbre.",
    ),
    (Scene(None, (_one("cat", size="small"),), None), "zh", "图片里有一只很小的猫。"),
    (
        Scene("snow", (_one("cat"), _one("tree")), "under"),
        "zh",
        "在雪地里，一只猫在一棵树下面。 在雪地里，一棵树下面有一只猫。",
    ),
    (
        Scene("snow", (_one("cat"), _one("tree")), "under"),
        "ja",
        """雪の中で、一本の木の下に一匹の猫がいる。 一匹の猫が雪の中で、一本の木の下にいる。
        雪の中で、一本の木の下にいる一匹の猫。""",
    ),
]


@pytest.mark.parametrize(("message", "language", "sentences"), WAYS)
def test_a_message_is_said_in_exactly_these_ways(message, language, sentences):
    found = " ".join(sorted({sentence.text for sentence in _ways(message, language)}))
    expected = sorted(re.findall(r"\S.*?[.。]", re.sub(r"\s+", " ", sentences)))
    assert found == " ".join(expected)


def _concepts(message):
    said = {message.place, "hold" if message.relation == "hold" else None}
    for entity in message.entities:
        said |= {entity.noun, entity.colour, entity.size, entity.garment, entity.action}
    return said - {None}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_way_says_all_that_a_message_states_and_nothing_else(language):
    rng = random.Random(0)
    for _ in range(60):
        message = sample_message(sample_scene(rng), rng)
        # Numbers and relations are not always one word, so that not every way marks them.
        unmarked = {"1", "2", "3", "4", message.relation} - {"hold"}
        for sentence in _ways(message, language):
            concepts = {word.concept for word in sentence.words}
            assert concepts - unmarked == _concepts(message), sentence.text


def test_styles_prefer_different_words(world, sketch):
    flat, sketchy = (
        re.findall(r"\w+", (folder / "captions.tsv").read_text(encoding="utf-8").lower())
        for folder in (world, sketch)
    )
    for word, synonym in (("big", "large"), ("small", "little"), ("rennt", "läuft")):
        assert flat.count(word) > flat.count(synonym)
        assert sketchy.count(word) < sketchy.count(synonym)


# Pictures


def test_relations_are_laid_out_as_they_say():
    def place(noun, relation):
        actor = _one("dog", colour="brown", action="sit")
        group = main_group(Scene("street", (actor, _one(noun, colour="red")), relation))
        by_noun = {placement.entity.noun: placement for placement in group}
        assert bounds(group)[2] > 0
        return by_noun["dog"], by_noun[noun], [placement.entity.noun for placement in group]

    dog, car, _ = place("car", "next_to")
    assert dog.x + dog.width / 2 < car.x - car.width / 2
    assert dog.y == car.y
    dog, car, order = place("car", "in_front_of")
    assert order == ["car", "dog"]
    assert dog.y < car.y
    dog, car, order = place("car", "behind")
    assert order == ["dog", "car"]
    assert dog.y > car.y
    dog, table, _ = place("table", "under")
    assert dog.y + dog.height < table.y + table.height
    assert table.width > dog.width
    dog, table, _ = place("table", "on")
    assert dog.y == table.y + table.height


# Similarity


def test_similarity_grades_shared_meaning():
    street, beach = Scene("street", (DOG,), None), Scene("beach", (DOG,), None)
    none = Scene("forest", (HOUSE,), None)
    assert similarity(street, street) == 5
    assert similarity(street, none) == 0
    # Shared: dog, one, big, brown, runs; not shared: the two places.
    assert similarity(street, beach) == similarity(beach, street) == pytest.approx(5 * 5 / 7)
    poorer = replace(beach, entities=(replace(DOG, size=None),))
    assert similarity(street, poorer) < similarity(street, beach)


def test_graded_pairs_spread_over_the_grades_and_share_no_sentence_with_captions(world, rows):
    pairs = [line.split("\t") for line in _lines(world / "sts.tsv")]
    scores = np.array([float(score) for score, _, _ in pairs])
    assert len(pairs) == 300
    assert np.bincount(np.round(scores).astype(int)).tolist() == [50] * 6
    captions = {row["text"] for row in rows}
    for score, one, other in pairs:
        assert one != other
        assert not {one, other} & captions
        said = [_said(one), _said(other)]
        if float(score) == 5:
            assert said[0] == said[1]
        if float(score) == 0:
            assert not said[0]["place"] & said[1]["place"]


# Lexicon and parallel text


def _tokens(rows, language):
    texts = [r["text"].lower() for r in rows if r["language"] == language and r["split"] == "train"]
    if language == "ja":
        tagger = fugashi.GenericTagger(ipadic.MECAB_ARGS)
        return {word.surface for text in texts for word in tagger(text)}
    if language == "zh":
        return {word for text in texts for word in jieba.cut(text)}
    return {word for text in texts for word in re.findall(r"\w+", text)}


@pytest.mark.parametrize("language", ["de", "fr", "cs", "ja", "zh"])
def test_lexicon_folds_share_no_source_and_words_are_tokens_of_the_corpus(world, rows, language):
    folds = {
        fold: [line.split(" ") for line in _lines(world / "lexicon" / f"en-{language}.{fold}.txt")]
        for fold in ("train", "test")
    }
    sources = {fold: {source for source, _ in entries} for fold, entries in folds.items()}
    assert sources["train"].isdisjoint(sources["test"])
    assert len(sources["test"]) / len(sources["train"] | sources["test"]) == pytest.approx(
        0.3, abs=0.02
    )
    entries = folds["train"] + folds["test"]
    assert len(entries) == len({tuple(entry) for entry in entries})
    assert {source for source, _ in entries} <= _tokens(rows, "en")
    targets = {target for _, target in entries}
    missing = targets - _tokens(rows, language)
    assert len(missing) <= 0.05 * len(targets), missing


def _dictionary(lines):
    translations = {}
    for source, target in (line.split() for line in lines):
        translations.setdefault(source, set()).add(target)
    return translations


@pytest.mark.real_data
def test_lexicon_agrees_with_a_public_one(tmp_path, real_data):
    """The public one lacks many of these words' forms, and has traditional Chinese too."""
    folder = _generate(tmp_path / "world", images={"train": 300, "val": 1, "test": 1})
    for language, least in {"de": 0.85, "fr": 0.75, "cs": 0.65, "ja": 0.45, "zh": 0.35}.items():
        folds = (folder / "lexicon" / f"en-{language}.{fold}.txt" for fold in ("train", "test"))
        ours = _dictionary(line for path in folds for line in _lines(path))
        public = _dictionary(_lines(real_data / "lexicons" / "muse" / f"en-{language}.txt"))
        known = [word for word in ours if word in public]
        agreed = [word for word in known if ours[word] & public[word]]
        assert len(known) > 80
        assert len(agreed) / len(known) >= least, sorted(set(known) - set(agreed))


def test_parallel_text_is_aligned_and_does_not_leak(world, rows):
    languages = ("en", "de", "fr", "cs", "zh")
    text = {
        split: list(
            zip(
                *(_lines(world / "parallel" / f"{split}.{lang}") for lang in languages), strict=True
            )
        )
        for split in PARALLEL
    }
    assert {split: len(lines) for split, lines in text.items()} == PARALLEL
    held_out = {sentence for split in ("val", "test") for line in text[split] for sentence in line}
    held_out |= {row["text"] for row in rows if row["split"] != "train"}
    assert held_out.isdisjoint(sentence for line in text["train"] for sentence in line)
    assert len(set(text["train"])) > 0.9 * len(text["train"])


def test_pairs_and_parallel_text_are_left_out_on_request_and_all_else_stays(world, tmp_path):
    none = dict.fromkeys(PARALLEL, 0)
    less = _content(_generate(tmp_path / "less", graded_pairs=0, parallel=none))
    left_out = {name for name in _content(world) if name.startswith(("sts.tsv", "parallel/"))}
    assert drawn_files(0, none) == {name for name in less if not name.startswith("images/")}
    assert len(left_out) == 16
    assert less == {name: c for name, c in _content(world).items() if name not in left_out}


# Bad input


def test_every_bad_argument_is_named_at_once(tmp_path):
    counts = {"images": {"train": 3, "val": 0}, "graded_pairs": 100, "parallel": {"train": 9}}
    with refused(
        "5 problem(s)", "'oil'", "of images for", "for ['train', 'val']", "for val, found 0",
        "multiple of 6 graded pairs, found 100", "for ['train']",
    ):  # fmt: skip
        _generate(tmp_path / "bad", style="oil", **counts)
    assert not (tmp_path / "bad").exists()
