"""What is said of a params.yaml that cannot be used: the place, what was expected, what found."""

import copy

import pytest
from graph import ROOT, read_yaml
from ruamel.yaml import YAML

from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import SettingsError

WORLD = read_yaml(ROOT / "params.yaml")


def said_of(folder, content):
    """Return what is said of a params.yaml of these bytes."""
    (folder / "papers.yaml").write_bytes((ROOT / "papers.yaml").read_bytes())
    (folder / "params.yaml").write_bytes(content)
    with pytest.raises(SettingsError) as error:
        load_settings(folder / "params.yaml")
    return str(error.value)


FILES = {
    "empty": (b"", "expected keys with values, such as `root: .`, found an empty file"),
    "a list": (b"- a\n", "expected keys with values, such as `root: .`, found list ['a']"),
    "a word": (b"hello\n", "found str 'hello'"),
    "Latin-1": ("a: 1\n# é\n".encode("latin-1"), "params.yaml:2: expected UTF-8, found byte 0xe9"),
    "a key twice": (b"root: .\na: 1\nroot: .\n", 'params.yaml:3: found duplicate key "root"'),
    "a bracket": (b"root: [.\n", "params.yaml:2: expected YAML, in column 1 did not find"),
    "a tab": (b"root:\n\t- x\n", "params.yaml:2: expected YAML, in column 1 found character"),
    "a tab in a word": (b"root: .\nmore: a\tb\n", "\n  - more: unknown key"),
    "NUL": (b"root: \x00\n", "params.yaml: expected YAML, found: unacceptable character #x0000"),
    "an alias of nothing": (b"root: *b\n", "params.yaml:1: expected YAML, in column 7 found undef"),
    "an object of Python": (b"!!python/object/apply:os.getcwd []\n", "params.yaml"),
}


@pytest.mark.parametrize("case", FILES)
def test_what_is_no_file_of_parameters_is_named_with_its_line(tmp_path, case):
    content, said = FILES[case]
    assert said in said_of(tmp_path, content)


KADAR = ["recipes", "kadar_en"]
VALUES = {
    "an unknown paper": (
        [*KADAR, "paper"], "kadr2019",
        "recipes.kadar_en.paper: nothing is called 'kadr2019'. Did you mean 'kadar2019'?",
    ),
    "no paper": ([*KADAR, "paper"], None, "recipes.kadar_en.paper: nothing is called 'None'."),
    "a reader's name": (
        ["datasets", "world"], {"reader": "tabel", "raw": "x"},
        "datasets.world: expected 'reader' to be one of 'table', 'multi30k'",
    ),
    "no reader": (
        ["datasets", "world"], {"raeder": "table", "raw": "x"},
        "datasets.world: expected the key 'reader', found {'raeder'",
    ),
    "a key of a data set": (
        ["datasets", "world", "rwa"], "x",
        "datasets.world.rwa: unknown key. Did you mean 'raw'?",
    ),
    "a key of a part of an entry": (
        ["pseudopairs", "world_pseudo", "images_of", "languge"], "x",
        "pseudopairs.world_pseudo.images_of.languge: unknown key. Did you mean 'language'?",
    ),
    "a choice": (
        ["extractors", "world_lite0", "transform"], "sqash",
        "or 'squash_mirror', found 'sqash'. Did you mean 'squash'?",
    ),
    "a name in a list of names": (
        ["translators", "world_en_de", "exclude_pairs"], "world_sx",
        "exclude_pairs: nothing is called 'world_sx'",
    ),
    "a translation that adds to itself": (
        ["translations", "world_machine", "dataset"], "world_machine",
        "translations.world_machine.dataset: leads back to itself",
    ),
    "a section": (
        ["selection_sed"], 1, "selection_sed: unknown key. Did you mean 'selection_seed'?",
    ),
    "a key of an entry": (["extractors", "world_lite0", "croop"], 1, "Did you mean 'crop'?"),
    "a count of none": (
        ["extractors", "world_lite0", "batch_size"], 0,
        "extractors.world_lite0.batch_size: expected a number of at least 1, found 0",
    ),
    "a seed twice": (
        ["recipes", "mule", "seeds"], [1, 1],
        "recipes.mule.seeds: expected each entry once, found [1, 1]",
    ),
    "a seed of a teacher twice": (
        ["pseudopairs", "world_pseudo", "seeds"], [1, 1],
        "pseudopairs.world_pseudo.seeds: expected each entry once, found [1, 1]",
    ),
    "a similarity twice": (
        ["rerankings", "world_kadar", "similarities"], ["image", "image"],
        "rerankings.world_kadar.similarities: expected each entry once",
    ),
    "a kind of caption twice": (
        ["pairs", "world_six", "captions", "en"], ["caption", "caption"],
        "pairs.world_six.captions.en: expected each entry once",
    ),
    "no language": ([*KADAR, "languages"], [], "languages: expected 1 or more entries, found []"),
    "a language twice": (
        [*KADAR, "languages"], ["en", "en"], "languages: expected each entry once, found ['en'",
    ),
    "a key of another loss": (
        [*KADAR, "temperature"], 0.1,
        "recipes.kadar_en.temperature: unknown key. It is a key of loss: infonce; here loss is "
        "hinge.",
    ),
    "a baseline that is none": (
        ["comparisons", "second_language", "baseline"], "kadar_e",
        "comparisons.second_language.baseline: nothing is called 'kadar_e'. Did you mean",
    ),
    "scored sentences of no language": (
        ["evaluations", "sts", "sets", "world", "language"], "xx",
        "evaluations.sts.sets.world.language: nothing is called 'xx'.",
    ),
    "a map to fit": (
        [*KADAR, "orthogonal_map"], True, "orthogonal_map: no part of the objective altern",
    ),
    "a seed below zero": ([*KADAR, "seeds"], [-1], "seeds.0: expected a number of at least 0"),
    "a seed that is none": ([*KADAR, "seeds"], [1e20], "seeds.0: expected a whole number, found"),
    "a huge seed": (["selection_seed"], 10**20, "selection_seed: expected a number below 42949672"),
    "an infinite margin": ([*KADAR, "margin"], float("inf"), "margin: expected a finite number"),
    "an infinite rate": ([*KADAR, "learning_rate"], 1e400, "learning_rate: expected a finite"),
    "NaN": (
        ["evaluations", "retrieval", "confidence"], float("nan"),
        "evaluations.retrieval.confidence: expected a finite number, found nan",
    ),
    "a number or a word": (
        [*KADAR, "violations"], "most", "violations: expected 'sum' or 'max' or a whole number",
    ),
    "a language": ([*KADAR, "languages"], ["EN"], "expected a language code such as de"),
    "a batch of one": ([*KADAR, "batch_size"], 1, "batch_size: expected 2 or more"),
    "a name that is taken": (
        ["datasets", "none"], {"reader": "table", "raw": "x"},
        "datasets.none: the name stands for the empty input",
    ),
    "a recipe called random": (["recipes", "random"], {}, "recipes.random: the name stands for"),
    "pairs in a circle": (
        ["pairs", "sketch_en", "plus"], "world_de_sketch_en",
        "pairs.sketch_en.plus: leads back to itself: pairs.sketch_en.plus -> "
        "pairs.world_de_sketch_en.plus -> pairs.sketch_en",
    ),
    "a recipe that continues itself": (
        [*KADAR, "initial"], "kadar_en", "recipes.kadar_en.initial: leads back to itself",
    ),
    "pseudopairs that are compared with themselves": (
        ["pseudopairs", "world_pseudo", "compare_with"], "world_pseudo",
        "pseudopairs.world_pseudo.compare_with: leads back to itself",
    ),
    "a pair set of nothing": (
        ["pairs", "world_six", "captions"], {},
        "pairs.world_six.captions: expected 1 or more entries, found {}",
    ),
    "a source without its suffix": (
        ["word_vectors", "world_latent", "source"], "data/pairs/world_six",
        "nothing is called 'data/pairs/world_six'. Did you mean 'data/pairs/world_six.parquet'?",
    ),
    "word vectors of captions that nobody chose": (
        ["word_vectors", "world_latent", "source"], "data/captions/world.parquet",
        "word_vectors.world_latent.source: nothing is called 'data/captions/world.parquet'",
    ),
    "a lexicon that nothing reads": (
        [*KADAR, "lexicon"], "world_en_de",
        "recipes.kadar_en.lexicon: expected none, as the objective alternating reads none, found "
        "world_en_de",
    ),
    "a section that is a list": (["datasets"], [1], "datasets: expected keys with values"),
    "a recipe of nothing": (KADAR, None, "recipes.kadar_en: expected keys with values"),
    "a lexicon where there is none": (
        ["lexicons"], {}, "lexicon: nothing is called 'world_en_de'. No name is defined there yet",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", VALUES)
def test_a_wrong_value_is_named_with_its_key_and_line(tmp_path, case):
    (*keys, last), value, said = VALUES[case]
    content = node = copy.deepcopy(WORLD)
    for key in keys:
        node = node[key]
    node[last] = value
    with open(tmp_path / "x", "w") as file:
        YAML().dump(content, file)
    message = said_of(tmp_path, (tmp_path / "x").read_bytes())
    assert said in message
    line = next(row for row in message.splitlines() if said in row).split(":")[0]
    number = int(line.removeprefix("  - line "))
    shown = (tmp_path / "params.yaml").read_text().splitlines()[number - 1]
    entries = [f"- {each}" for each in value] if isinstance(value, list) else []
    own = shown.strip() in entries  # an entry of a list has a line of its own
    assert own or any(f"{key}:" in shown for key in [*keys, last]) or "lexicon" in shown


def test_a_wrong_entry_of_a_list_is_named_with_its_own_line(tmp_path):
    content = copy.deepcopy(WORLD)
    content["recipes"]["kadar_en"]["languages"] = ["en", "de", "EN"]
    with open(tmp_path / "x", "w") as file:
        YAML().dump(content, file)
    said = said_of(tmp_path, (tmp_path / "x").read_bytes())
    row = next(row for row in said.splitlines() if "recipes.kadar_en.languages.2" in row)
    number = int(row.split(":")[0].removeprefix("  - line "))
    assert (tmp_path / "params.yaml").read_text().splitlines()[number - 1].strip() == "- EN"
