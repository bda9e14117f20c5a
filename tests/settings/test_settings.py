import copy
import shutil

import pytest
from graph import ROOT, read_yaml
from refusals import refused
from ruamel.yaml import YAML

from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import SettingsError, choose

STUDIES = [ROOT, *(path.parent for path in sorted(ROOT.glob("studies/*/params.yaml")))]
WORLD, PAPERS = (read_yaml(ROOT / name) for name in ("params.yaml", "papers.yaml"))


@pytest.fixture
def study(tmp_path):
    """Return a function that writes changed params of world, and papers, and loads them."""

    def load(change):
        content = copy.deepcopy(WORLD | {"papers": PAPERS})
        change(content)
        YAML().dump(content.pop("papers"), tmp_path / "papers.yaml")
        YAML().dump(content, tmp_path / "params.yaml")
        return load_settings(tmp_path / "params.yaml")

    return load


@pytest.mark.parametrize("folder", STUDIES, ids=lambda path: path.name)
def test_every_recipe_of_every_study_resolves(folder):
    settings = load_settings(folder / "params.yaml")
    resolved = [settings.recipe(name) for name in settings.recipes]
    assert len(resolved) == len(settings.recipes) > 0


def test_papers_stand_once_beside_all_studies(tmp_path):
    for key in ("papers", "shared"):
        YAML().dump(WORLD | {key: PAPERS}, tmp_path / "params.yaml")
        with pytest.raises(SettingsError, match=rf"{key}: unknown key.*papers\.yaml"):
            load_settings(tmp_path / "params.yaml")
    YAML().dump(WORLD | {"x": 1}, tmp_path / "params.yaml")
    shutil.copy(ROOT / "papers.yaml", tmp_path)
    with pytest.raises(SettingsError) as error:
        load_settings(tmp_path / "params.yaml")
    legal = str(error.value).partition("Legal names: ")[2].rstrip(".").split(", ")
    assert {"recipes", "pairs"} <= {*legal}
    assert {"papers", "shared"}.isdisjoint(legal)
    (tmp_path / "papers.yaml").unlink()
    YAML().dump(WORLD, tmp_path / "params.yaml")
    said = "line 1: root: expected the folder that holds papers.yaml, found '.'"
    with refused(said, by=SettingsError):
        load_settings(tmp_path / "params.yaml")


def test_all_problems_are_listed_at_once_with_the_closest_name(study):
    def change(content):
        content["recipes"]["kadar_en"]["margn"] = 0.1
        content["recipes"]["mule"]["features"] = "world_lite1"
        content["pairs"]["world_six"]["dataset"] = "wrld"
        del content["papers"]["kadar2019"]["clip_norm"]

    with refused(
        "recipes.kadar_en.margn: unknown key. Did you mean 'margin'?",
        "recipes.kadar_en.clip_norm: missing",
        "recipes.mule.features: nothing is called 'world_lite1'. Did you mean 'world_lite0'?",
        "pairs.world_six.dataset: nothing is called 'wrld'. Did you mean 'world'?",
        by=SettingsError,
    ):
        study(change)


def test_wrong_values_of_recipes_are_told_beside_those_of_other_sections(study):
    def change(content):
        content["selection_seed"] = "first"
        content["recipes"]["kadar_en"]["margn"] = 0.1
        content["recipes"]["mule"]["batch_size"] = "many"

    with refused(
        "selection_seed: expected a whole number",
        "recipes.kadar_en.margn: unknown key. Did you mean 'margin'?",
        "recipes.mule.batch_size: expected a whole number, found 'many'",
        by=SettingsError,
    ):
        study(change)


def test_wrong_values_of_recipes_wait_where_what_they_depart_from_is_none(study):
    def change(content):
        content["departures"] = "none"
        content["recipes"]["kadar_en"]["margn"] = 0.1

    with pytest.raises(SettingsError) as error:
        study(change)
    assert "departures: expected keys with values" in str(error.value)
    assert "margn" not in str(error.value)


def test_a_study_departs_for_all_recipes_for_those_of_a_paper_and_for_one(study):
    def change(content):
        content["departures"] |= {"margin": 0.4, "kadar2019": {"margin": 0.3, "word_dim": 7}}
        content["recipes"]["kadar_en"]["margin"] = 0.1

    settings = study(change)
    margins = {name: settings.recipe(name).margin for name in ("mule", "kadar_pseudo", "kadar_en")}
    assert margins == {"mule": 0.4, "kadar_pseudo": 0.3, "kadar_en": 0.1}
    assert settings.recipe("kadar_en").word_dim == 7
    assert settings.recipe("mule").word_dim == settings.departures["word_dim"]


def test_what_the_graph_reads_of_a_recipe_stands_in_the_recipe(study):
    def change(content):
        content["departures"]["more_features"] = "none"
        del content["recipes"]["kadar_en"]["more_features"]

    said = "recipes.kadar_en.more_features: missing; dvc.yaml reads it there. Move it from depart"
    with refused(said, by=SettingsError):
        study(change)


def test_departures_name_keys_of_recipes_or_papers(study):
    def change(content):
        content["departures"] |= {
            "kadar2018": {},
            "mule": 3,
            "kim2020": 3,
            "gella2017": {"beto": 1},
        }

    with refused(
        "departures.kadar2018: nothing is called 'kadar2018'. Did you mean 'kadar2019'?",
        "departures.mule: nothing is called 'mule'.",
        "departures.kim2020: expected keys of recipes, found 3",
        "departures.gella2017.beto: nothing is called 'beto'. Did you mean 'beta'?",
        by=SettingsError,
    ):
        study(change)


def test_yaml_is_read_as_version_1_2(study):
    """PyYAML reads 2e-4 as a string and the language no as False (audit, finding 9)."""

    def change(content):
        content["tokenizers"]["no"] = content["tokenizers"]["en"]
        content["pools"]["no"] = "caption"

    settings = study(change)
    assert "no" in settings.tokenizers
    assert settings.papers["kadar2019"]["learning_rate"] == 0.0002


def test_each_seed_that_learns_pseudopairs_has_a_teacher(study):
    def change(content):
        content["recipes"]["kadar_pseudo"]["seeds"] = [1, 2]
        content["pseudopairs"]["world_pseudo"]["seeds"] = [1, 3]

    of_recipe = "world_pseudo has a teacher for each of [1, 3], found [1, 2]"
    of_pairs = "world_pseudo.seeds: kadar_disjoint has [1], found [1, 3]"
    with refused(of_recipe, of_pairs, by=SettingsError):
        study(change)


def test_a_re_ranking_names_what_fits_its_translator_and_its_recipe(study):
    def change(content):
        right = content["rerankings"]["world_kadar"]
        content["rerankings"] |= {
            "seeds": right | {"seeds": [2, 3]},
            "reads": right | {"recipe": "kadar_en", "seeds": [1], "pairs": "world_en"},
            "learnt": right | {"pairs": "world_six", "dataset": "world"},
            "shown": right | {"similarities": ["image"]},
            "nobody": right | {"recipe": "kadar", "translator": "world_en", "features": "lite"},
        }

    with refused(
        "rerankings.seeds.seeds: kadar_en_de_translated_c2c has [1, 2], found [2, 3]",
        "rerankings.reads.recipe: kadar_en does not read de",
        "rerankings.learnt.pairs: kadar_en_de_translated_c2c has world_en_de_translated, found "
        "world_six",
        "rerankings.learnt.dataset: world_en_de has world_parallel, found world",
        "rerankings.shown.similarities: image needs features, found features: none",
        "rerankings.nobody.translator: nothing is called 'world_en'",
        "rerankings.nobody.recipe: nothing is called 'kadar'",
        "rerankings.nobody.features: nothing is called 'lite'",
        by=SettingsError,
    ):
        study(change)


def test_translated_queries_have_the_features_of_their_recipe_and_one_entry_a_pair(study):
    def change(content):
        own = content["translated_queries"]
        content["extractors"]["another"] = content["extractors"]["world_lite0"]
        own["twice"] = own["world_en_to_de"] | {"features": "another"}
        own["unknown"] = own["world_en_to_de"] | {"recipe": "nobody", "translation": "nothing"}

    with refused(
        "translated_queries.twice.features: kadar_de_translated has world_lite0, found another",
        "translated_queries.twice: world_en_to_de has the recipe kadar_de_translated and "
        "translations from en to de, too. Keep one of the two",
        "translated_queries.unknown.recipe: nothing is called 'nobody'",
        "translated_queries.unknown.translation: nothing is called 'nothing'",
        by=SettingsError,
    ):
        study(change)


def test_bins_ascend(study):
    def change(content):
        content["evaluations"]["probes"] |= {"caption_length": [20, 10], "rarest_word": [1, 1]}

    with refused(
        "evaluations.probes.caption_length: expected ascending numbers, found [20, 10]",
        "evaluations.probes.rarest_word: expected ascending numbers, found [1, 1]",
        by=SettingsError,
    ):
        study(change)


def test_line_breaks_of_yaml_are_no_part_of_a_question(study):
    def change(content):
        comparison = content["comparisons"]["second_language"]
        comparison["question"] = "Does a second language,\nwith batches, help?\n"

    comparison = study(change).comparisons["second_language"]
    assert comparison.question == "Does a second language, with batches, help?"


def test_a_wrong_value_that_recipes_share_is_said_once_where_it_stands(study):
    def change(content):
        content["departures"]["learning_rate"] = "fast"
        content["papers"]["kadar2019"]["violatons"] = "sum"

    with pytest.raises(SettingsError) as error:
        study(change)
    departure, paper = sorted(str(error.value).splitlines()[1:])
    assert departure.endswith(" departures.learning_rate: expected a number, found 'fast'")
    assert departure.startswith("  - line ")
    hint = "papers.yaml: kadar2019.violatons: unknown key. Did you mean 'violations'?"
    assert paper == f"  - {hint}"


def test_what_initial_weights_replace_is_no_input_of_a_recipe(study):
    def change(content):
        recipe = content["recipes"]["kadar_disjoint"]
        recipe |= {"initial": "kadar_en", "word_vectors": "world_fasttext"}

    with refused(
        "recipes.kadar_disjoint.word_vectors: expected random, as words start from kadar_en, found "
        "world_fasttext",
        by=SettingsError,
    ):
        study(change)


CIRCLES = {
    "a translator that must not see what it translates": (
        ["translators", "world_en_de", "exclude_pairs"], "world_en_de_machine",
        "pairs.world_en_de_machine.dataset: leads back to itself: pairs.world_en_de_machine.dataset"
        " -> translations.world_machine.model -> translators.world_en_de.exclude_pairs -> pairs.",
    ),
    "a teacher that is its own learner": (
        ["pseudopairs", "world_pseudo", "teacher"], "kadar_pseudo",
        "pseudopairs.world_pseudo.teacher: leads back to itself: pseudopairs.world_pseudo.teacher "
        "-> recipes.kadar_pseudo.pairs -> pseudopairs.world_pseudo",
    ),
    "a teacher that continues its learner": (
        ["recipes", "kadar_disjoint", "initial"], "kadar_pseudo",
        "pseudopairs.world_pseudo.teacher: leads back to itself: pseudopairs.world_pseudo.teacher "
        "-> recipes.kadar_disjoint.initial -> recipes.kadar_pseudo.pairs -> pseudopairs.",
    ),
    "words of pairs that their learner lends": (
        ["word_vectors", "world_latent", "source"], "data/pairs/world_pseudo.parquet",
        "recipes.polyview.word_vectors -> word_vectors.world_latent.source -> pseudopairs.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CIRCLES)
def test_a_circle_through_several_sections_is_named_key_by_key(study, case):
    (section, name, key), value, said = CIRCLES[case]

    def change(content):
        content[section][name][key] = value
        if section == "word_vectors":
            content["pseudopairs"]["world_pseudo"]["teacher"] = "polyview"

    with refused(said, by=SettingsError):
        study(change)


def test_every_circle_is_named(study):
    def change(content):
        content["pseudopairs"]["world_pseudo"]["compare_with"] = "world_pseudo"
        content["pseudopairs"]["world_pseudo"]["teacher"] = "kadar_pseudo"
        content["recipes"]["kadar_en"]["initial"] = "kadar_en"

    with refused(
        "pseudopairs.world_pseudo.compare_with: leads back to itself",
        "pseudopairs.world_pseudo.teacher: leads back to itself",
        "recipes.kadar_en.initial: leads back to itself",
        by=SettingsError,
    ):
        study(change)


def test_what_a_merge_key_brings_is_named_with_the_line_of_its_entry(tmp_path):
    text = (ROOT / "params.yaml").read_text(encoding="utf-8").replace("root: .", f"root: {ROOT}")
    first, second = (text.index(f"  {name}:") for name in ("world_lite0", "world_sketch_lite0"))
    base = text[first:second].replace(":", ": &base", 1).replace("batch_size: 64", "batch_size: 0")
    end = text.index("selection_seed:")
    own = "  world_sketch_lite0:\n    <<: *base\n    dataset: world_sketch\n\n"
    (tmp_path / "params.yaml").write_text(text[:first] + base + own + text[end:], encoding="utf-8")
    with pytest.raises(SettingsError) as error:
        load_settings(tmp_path / "params.yaml")
    said = "expected a number of at least 1, found 0"
    line = text[:first].count("\n") + 1
    assert str(error.value).splitlines()[1:] == [
        f"  - line {line + 9}: extractors.world_lite0.batch_size: {said}",
        f"  - line {line + 10}: extractors.world_sketch_lite0.batch_size: {said}",
    ]


def test_a_translation_adds_to_another(study):
    def chained(content):
        first = content["translations"]["world_machine"]
        content["translations"]["more"] = first | {"dataset": "world_machine"}

    assert study(chained).translations["more"].dataset == "world_machine"


def test_translations_of_each_other_are_named_before_anything_follows_them(study):
    def change(content):
        own = content["translations"]
        first = own["world_machine"]
        own |= {"a": first | {"dataset": "b"}, "b": first | {"dataset": "a"}}
        content["recipes"]["mlmme_machine"]["dataset"] = "a"

    with refused(
        "translations.a.dataset: leads back to itself: translations.a.dataset -> "
        "translations.b.dataset -> translations.a",
        by=SettingsError,
    ):
        study(change)


def test_a_translation_has_the_languages_of_its_translator_and_a_tokenizer(study):
    def change(content):
        own = content["translations"]
        first = own["world_machine"]
        own["read"] = first | {"source_language": "cs", "annotation": "translation"}
        own["written"] = first | {"target_language": "pl"}
        own["same"] = first | {"engine": "file", "model": "a.tsv", "target_language": "en"}

    with refused(
        "translations.read.source_language: world_en_de, its translator, has en, found cs",
        "translations.written.target_language: world_en_de, its translator, has de, found pl",
        "translations.written.target_language: nothing is called 'pl'",
        "translations.same.target_language: expected another than the source's, found en",
        by=SettingsError,
    ):
        study(change)


def test_a_translator_learns_two_languages(study):
    said = "translators.world_en_de.target_language: expected another than the source's, found en"
    with refused(said, by=SettingsError):
        study(lambda content: content["translators"]["world_en_de"].update(target_language="en"))


def test_what_would_find_nothing_is_refused(study):
    def change(content):
        latent = content["word_vectors"].popitem()[1]
        content["word_vectors"]["given"] = {
            "method": "files", "source": "data", "pairs": "none", "files": {},
        }  # fmt: skip
        content["word_vectors"]["latent"] = latent
        content["lexicons"]["given"] = {
            "source": "data", "pairs": "none", "languages": ["en", "de"], "train": ["a"],
            "test": ["b"],
        }  # fmt: skip

    with refused(
        "word_vectors.given.files: expected 1 or more entries, found {}", by=SettingsError
    ):
        study(change)
    with refused("lexicons.given.pairs: nothing is called 'none'", by=SettingsError):
        study(lambda content: [change(content), content["word_vectors"].pop("given")])


def test_a_row_without_a_paper_and_a_key_that_is_no_name_are_told(study):
    with refused("recipes.mule.paper: missing. Legal names: ", by=SettingsError):
        study(lambda content: content["recipes"]["mule"].pop("paper"))
    with refused("pools.None: expected as the key text, found None", by=SettingsError):
        study(lambda content: content["pools"].update({None: "caption"}))
    with refused("None: expected keys that are text, found None", by=SettingsError):
        study(lambda content: content.update({None: 1}))


def test_a_teacher_reads_both_languages(study):
    def change(content):
        content["recipes"]["kadar_disjoint"]["languages"] = ["en"]
        content["claims"], content["comparisons"] = {}, {}

    said = "pseudopairs.world_pseudo.teacher: kadar_disjoint does not read de"
    with refused(said, by=SettingsError):
        study(change)


def test_pseudopairs_are_compared_with_those_of_the_same_captions_and_seeds(study):
    def change(content):
        first = content["pseudopairs"]["world_pseudo"]
        others = first["images_of"] | {"pairs": "world_en"}
        content["pseudopairs"] |= {
            "seeds": first | {"seeds": [2], "compare_with": "world_pseudo"},
            "others": first | {"images_of": others, "compare_with": "seeds"},
        }

    with refused(
        "pseudopairs.seeds.compare_with: expected a set of seed 2, the first here, world_pseudo "
        "has [1]",
        "pseudopairs.others.compare_with: expected a set of seed 1, the first here, seeds has [2]",
        "pseudopairs.others.compare_with: expected a set with images_of en of world_en, seeds has "
        "en of sketch_en",
        by=SettingsError,
    ):
        study(change)


def test_the_shortest_n_gram_is_no_longer_than_the_longest(study):
    said = "word_vectors.world_fasttext.min_n: expected at most max_n (5), found 9"
    with refused(said, by=SettingsError):
        study(lambda content: content["word_vectors"]["world_fasttext"].update(min_n=9))


def test_a_continued_recipe_has_the_layers_of_the_one_before_it(study):
    """Weights of other sizes do not load, which showed when the other had been trained."""

    def change(content):
        rows = content["recipes"]
        rows["kadar_disjoint"] |= {"hidden_dim": 50, "embed_dim": 50}
        rows["kadar_en_de_translated_c2c"]["initial"] = "kadar_disjoint"
        rows["more_languages"] = rows["kadar_en"] | {"initial": "kadar_en", "languages": ["de"]}
        rows["of_each"] = rows["mule"] | {"initial": "mule", "languages": ["en", "de"]}
        rows["turned"] = rows["ame"] | {"initial": "ame", "languages": ["de", "en"]}
        rows["another"] = rows["polyview"] | {"initial": "kadar_en"}

    whole = "recipes.kadar_en_de_translated_c2c"
    with refused(
        f"{whole}.hidden_dim: kadar_disjoint, which it continues, has 50; found 96",
        f"{whole}.embed_dim: kadar_disjoint, which it continues, has 50; found 96",
        "recipes.more_languages.languages: kadar_en, which it continues, has ['en']; found ['de']",
        "recipes.of_each.languages: mule, which it continues, has ['en', 'de', 'ja', 'zh']; "
        "found ['en', 'de']",
        "recipes.turned.languages: ame, which it continues, has ['en', 'de']; found ['de', 'en']",
        "recipes.another.text_encoder: kadar_en, which it continues, has 'recurrent'; found 'bag'",
        by=SettingsError,
    ):
        study(change)


def test_a_continued_recipe_may_read_fewer_languages_by_the_layers_that_all_share(study):
    changes = {"initial": "kadar_en_de_translated_c2c", "languages": ["de"]}
    row = study(lambda content: content["recipes"]["kadar_de_translated"].update(changes))
    assert row.recipe("kadar_de_translated").languages == ["de"]


def test_a_continued_recipe_reads_words_as_the_one_before_it(study):
    """It takes that one's vocabulary; settings of its own would be ignored."""
    changes = {"initial": "kadar_disjoint", "max_tokens": 7, "markers": "end"}
    with refused(
        "max_tokens: kadar_disjoint, which it continues, has 100; found 7",
        "markers: kadar_disjoint, which it continues, has 'both'; found 'end'",
        by=SettingsError,
    ):
        study(lambda content: content["recipes"]["kadar_en"].update(changes))


def test_a_missing_file_says_where_to_run(tmp_path):
    with pytest.raises(SettingsError, match="folder of a study"):
        load_settings(tmp_path / "params.yaml")


def test_choose_names_the_closest():
    with pytest.raises(SettingsError, match="Did you mean 'world'"):
        choose({"world": 1, "flickr8k": 2}, "worl", "data set")


def test_anchored_words_do_not_learn_by_adamw(study):
    """The anchor moves every word that has ever moved; AdamW moves those of an update alone."""
    adamw = {"optimizer": "adamw", "weight_decay": 0.01}
    with pytest.raises(SettingsError, match=r"mule\.anchor_weight: expected 0 with optimizer: ad"):
        study(lambda content: content["recipes"]["mule"].update(adamw))
    study(lambda content: content["recipes"]["mule"].update(adamw | {"anchor_weight": 0}))


def test_an_objective_names_the_parts_that_it_needs(study):
    changes = {"loss": "infonce", "temperature": 0.1, "tune_temperature": True}
    with pytest.raises(SettingsError, match=r"mule\.loss: the objective two_branch needs hinge"):
        study(lambda content: content["recipes"]["mule"].update(changes))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("decay_factor", 5.0, "expected a number below 1.0, found 5.0"),
        ("decay_epochs", [10, 3, 3], "expected ascending numbers, found [10, 3, 3]"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(tmp_path, key, value, said):
    content = copy.deepcopy(WORLD)
    content["recipes"]["kadar_en"] |= {"schedule": "steps", key: value}
    YAML().dump(content, tmp_path / "params.yaml")
    shutil.copy(ROOT / "papers.yaml", tmp_path)
    with refused(f"recipes.kadar_en.{key}: {said}", by=SettingsError):
        load_settings(tmp_path / "params.yaml")
