"""Reports of every task on a space whose answers are known, and the stage that writes them."""

import json
import os
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import tiny
from click.testing import CliRunner
from clusters import two_nodes, use
from graph import ROOT, read_yaml
from ruamel.yaml import YAML

from pipeline_lib.contract.features import empty_features, write_features
from pipeline_lib.contract.lexicons import write_lexicon
from pipeline_lib.contract.queries import read_queries
from pipeline_lib.contract.reports import read_report, write_report
from pipeline_lib.contract.tables import (
    read_captions,
    read_images,
    write_captions,
    write_images,
    write_pairs,
)
from pipeline_lib.evaluation import reports as module
from pipeline_lib.evaluation import tasks
from pipeline_lib.evaluation.embedding import embed_evaluated
from pipeline_lib.evaluation.evaluated import Evaluated
from pipeline_lib.evaluation.reports import reports
from pipeline_lib.evaluation.retrieval import languages
from pipeline_lib.evaluation.tasks import TASKS
from pipeline_lib.evaluation.vectors import Embeddings
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.running.fingerprints import imported_closure
from pipeline_lib.settings.evaluations import Evaluations
from stages.evaluate import main as evaluate

SETTINGS = {
    "retrieval": {
        "split": "val", "bootstrap_samples": 50, "confidence": 0.9, "seed": 1, "fold_images": 1000,
    },
    "sts": {"source": "sts", "sets": {"set": {"file": "set.tsv", "language": "en"}}},
    "word_translation": {"lexicon": "tiny", "csls_neighbours": 2},
    "probes": {"neighbours": 2, "caption_length": [3], "rarest_word": [1, 3]},
    "significance": {"draws": 100},
}  # fmt: skip
SENTENCES = ["a dog", "a cat", "two dogs", "no dog"]
SCORED = pd.DataFrame(
    {
        "line": [1, 2, 3],
        "score": [5.0, 0.5, 2.5],
        "first": ["a dog", "a cat", "two dogs"],
        "second": ["two dogs", "no dog", "a cat"],
    }
)


def embeddings(seed, captions, german_shift=0):
    """Place captions and words where their image is; German ones a number of images further."""
    generator = np.random.default_rng(seed)
    ids = tiny.features().image_ids
    images = generator.standard_normal((tiny.IMAGES, 5)).astype(np.float32)
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    own = captions["image_id"].map({image: row for row, image in enumerate(ids)})
    own = (own + german_shift * (captions["language"] == "de")) % tiny.IMAGES
    # Words of no training caption lie nearest to everything.
    words = {
        language: (
            np.array([f"{language}{n}" for n in range(tiny.IMAGES)] + ["unseen"], object),
            np.vstack([3 * np.roll(images, -shift, axis=0), images.sum(axis=0, keepdims=True)]),
        )
        for language, shift in (("en", 0), ("de", german_shift))
    }
    angles = {"a dog": 0.0, "two dogs": 0.1, "a cat": 1.0, "no dog": 2.5}
    sentences = np.array([[np.cos(angles[s]), np.sin(angles[s])] for s in SENTENCES])
    return Embeddings(
        ids, images, captions["caption_id"].to_numpy(), images[own],
        {"en": (np.array(SENTENCES, object), sentences)}, words,
    )  # fmt: skip


def run(german_shift=0, objective="mixed", seeds=(1,), **changes):
    pairs = tiny.pairs()
    captions = pairs[pairs["split"] == "val"].drop(columns=["set", "seed"]).reset_index(drop=True)
    recipe = tiny.recipe(objective, **changes)
    known = [language for language in ("en", "de") if language in recipe.languages]
    return Evaluated(
        recipe=recipe,
        settings=Evaluations.model_validate(SETTINGS),
        pools=dict.fromkeys(known, "caption"),
        embeddings={seed: embeddings(seed, captions, german_shift) for seed in seeds},
        captions=captions,
        pairs=pairs.assign(text=pairs["tokens"].map(" ".join)),
        scored={"set": SCORED} if "en" in known else {},
        lexicon=tiny.lexicon(),
    )


def compare_few_images(monkeypatch):
    """Let consistency be measured on fewer images than it is on."""
    for place in (tasks, languages):
        monkeypatch.setattr(place, "NEAREST", 2)


def test_what_training_saw_is_what_the_model_of_a_seed_saw():
    """Each seed learns the captions that its own teacher lent."""
    made = run(seeds=(1, 2))
    lent = made.pairs[made.pairs["language"] == "de"].tail(2).assign(split="train")
    lent = lent.assign(tokens=[["selten"]] * 2, text="a dog", language="en", seed=[1, 2])
    lent["caption_id"] = ["<-1", "<-2"]
    made = Evaluated(**{**vars(made), "pairs": pd.concat([made.pairs, lent.iloc[:1]])})
    assert [made.training_words[seed]["en"]["selten"] for seed in (1, 2)] == [1, 0]
    sets = TASKS["sts"](made)["per_seed"]
    unseen = [sets[seed]["set"]["without_overlap"]["n_pairs"] for seed in ("1", "2")]
    assert unseen[0] < unseen[1]


def test_a_space_that_is_right_scores_100_in_every_task(monkeypatch):
    compare_few_images(monkeypatch)
    made = run(seeds=(1, 2))
    found = {task: report(made) for task, report in TASKS.items()}
    for seed in ("1", "2"):
        scores = {task: report["per_seed"][seed] for task, report in found.items()}
        assert scores["retrieval"]["de"]["sum_of_recalls"] == 600
        assert scores["sentence_retrieval"]["first"]["en-de"]["r1"] == 100
        assert scores["word_translation"]["de-en"]["csls"]["p1"] == 100
        assert scores["probes"]["en"]["caption_length"]["0-2"]["r1"] == 100
    assert found["retrieval"]["pools"] == {"en": "caption", "de": "caption"}


def test_reports_of_workers_are_those_of_one_process(monkeypatch):
    use(monkeypatch)
    expected = json.dumps(reports(run(seeds=(1, 2)), "tiny"))
    with two_nodes(__name__) as (started, _):
        use(monkeypatch, ADDRESS=started.address)
        monkeypatch.setattr(module, "_reporting", Elsewhere())
        assert json.dumps(reports(run(seeds=(1, 2)), "tiny")) == expected


class Elsewhere:
    """Reports in another process than the one that made this."""

    def __init__(self):
        self.maker = os.getpid()

    def __call__(self, run):
        assert os.getpid() != self.maker
        return lambda task: TASKS[task](run)


def test_german_at_the_wrong_images_fails_where_german_is_asked(monkeypatch):
    compare_few_images(monkeypatch)
    scores = {task: report(run(german_shift=1))["per_seed"]["1"] for task, report in TASKS.items()}
    assert scores["retrieval"]["en"]["sum_of_recalls"] == 600
    assert scores["retrieval"]["de"]["text_to_image"]["r1"] == 0
    assert scores["sentence_retrieval"]["first"]["de-en"]["r1"] == 0
    assert scores["word_translation"]["de-en"]["nearest_neighbour"]["p1"] == 0


def test_ranks_are_by_the_similarity_of_the_recipe():
    def ranked(**changes):
        pool = run(german_shift=1, **changes).ranked[1]["de"]
        return pool, pool.ranks.text_to_image.tolist()

    pool, found = ranked(similarity="squared_order", absolute=True)
    above = np.maximum(0, pool.sentences[:, None] - pool.images)
    scores = -(above**2).sum(axis=2)
    own = scores[np.arange(len(scores)), pool.ranks.caption_image]
    assert found == (1 + (scores > own[:, None]).sum(axis=1)).tolist()
    assert found != ranked()[1]


def test_pools_of_one_caption_can_be_compared_and_name_the_worst_language():
    found = TASKS["one_caption"](run(german_shift=1))["per_seed"]["1"]
    assert {k: found[k]["text_to_image"]["n_queries"] for k in ("en", "de")} == dict.fromkeys(
        ("en", "de"), tiny.IMAGES
    )
    assert found["en"]["sum_of_recalls"] == 600 > found["de"]["sum_of_recalls"]
    assert found["worst"]["sum_of_recalls"] == found["de"]["sum_of_recalls"]


def test_consistency_compares_the_captions_of_one_photo_in_two_languages(monkeypatch):
    assert TASKS["consistency"](run()) == {
        "reason": f"{tiny.IMAGES} images have a caption in each of the recipe's languages, "
        "expected 11 or more"
    }
    compare_few_images(monkeypatch)
    right, shifted = (
        TASKS["consistency"](run(german_shift=shift))["per_seed"]["1"] for shift in (0, 1)
    )
    assert [*right] == [*shifted] == ["en-de"]
    assert right["en-de"]["n_queries"] == tiny.IMAGES
    assert right["en-de"]["overlap"] == 100
    assert "rank_correlation" in shifted["en-de"]


def test_large_pools_are_also_ranked_in_folds():
    made = run()
    images = tiny.IMAGES
    for fold_images, folds in ((images, None), (images // 2, 2)):
        retrieval = {**SETTINGS["retrieval"], "fold_images": fold_images}
        settings = Evaluations.model_validate({**SETTINGS, "retrieval": retrieval})
        report = TASKS["retrieval"](Evaluated(**{**vars(made), "settings": settings}))
        scores = report["per_seed"]["1"]["en"]
        assert ("folds" in scores) == bool(folds)
        if folds:
            candidates = scores["folds"]["text_to_image"]["n_candidates"]
            assert candidates == scores["text_to_image"]["n_candidates"] // folds


def test_a_mixed_pool_is_ranked_one_caption_at_a_time():
    made = run(german_shift=1)
    found = TASKS["retrieval"](made)["mixed"]["1"]
    pools = made.ranked[1]
    captions = [
        (language, name, vector)
        for language, pool in pools.items()
        for name, vector in zip(pool.captions["image_id"], pool.sentences, strict=True)
    ]
    hits, first = [], []
    for name, vector in zip(pools["en"].image_ids, pools["en"].images, strict=True):
        scores = [float(vector @ caption) for _, _, caption in captions]
        best = max(s for s, (_, owner, _) in zip(scores, captions, strict=True) if owner == name)
        wrong = [s for s, (_, owner, _) in zip(scores, captions, strict=True) if owner != name]
        hits.append(sum(s >= best for s in wrong) < 1)
        # Languages that score alike share the image.
        first.append({captions[n][0] for n in np.flatnonzero(np.isclose(scores, max(scores)))})
    assert found["r1"] == pytest.approx(100 * np.mean(hits), abs=1e-3)
    for language in ("en", "de"):
        share = 100 * np.mean([(language in names) / len(names) for names in first])
        assert found["first_language"][language] == pytest.approx(share, abs=1e-3)
    assert found["n_candidates"] == len(captions)
    assert "mixed" not in TASKS["retrieval"](run(objective="alternating", languages=["de"]))


def test_photos_that_a_language_lacks_are_in_no_mixed_pool():
    made = run()
    photo = made.captions["image_id"].iloc[0]
    lacking = (made.captions["image_id"] == photo) & (made.captions["language"] == "de")
    captions = made.captions[~lacking].reset_index(drop=True)
    kept = {1: embeddings(1, captions, 0)}
    report = TASKS["retrieval"](
        Evaluated(**{**vars(made), "captions": captions, "embeddings": kept})
    )
    shared = captions[captions["image_id"] != photo]
    assert report["mixed"]["1"]["n_queries"] == tiny.IMAGES - 1
    assert report["mixed"]["1"]["n_candidates"] == len(shared)


def test_hubs_among_words_are_by_cosine():
    """The longest word is the nearest of all by its dot product."""
    made = run()
    ids, vectors = made.embeddings[1].words["en"]
    long = vectors * np.where(np.arange(len(ids)) == 0, 100, 1)[:, None]
    made.embeddings[1].words["en"] = ids, long
    scaled = TASKS["probes"](made)["per_seed"]["1"]["en"]["hubness"]["words"]
    assert scaled == TASKS["probes"](run())["per_seed"]["1"]["en"]["hubness"]["words"]


def test_languages_without_a_shared_photo_are_not_mixed():
    made = run()
    photos = made.captions["image_id"].unique()
    english = made.captions["image_id"].isin(photos[::2])
    apart = made.captions[english == (made.captions["language"] == "en")].reset_index(drop=True)
    kept = {1: embeddings(1, apart, 0)}
    report = TASKS["retrieval"](Evaluated(**{**vars(made), "captions": apart, "embeddings": kept}))
    assert "mixed" not in report
    assert report["per_seed"]["1"]["de"]["sum_of_recalls"] == 600


def test_exact_translations_need_sources_and_protocols_stand_apart():
    made = run()
    found = TASKS["sentence_retrieval"](made)["per_seed"]["1"]
    assert found["exact"] == {}  # no caption of the tiny corpus is a translation
    german = made.captions["language"] == "de"
    made.captions.loc[german, "source_caption_id"] = made.captions["caption_id"].str.replace(
        "/de/", "/en/"
    )
    made.captions.loc[german, "annotation"] = "translation"
    found = TASKS["sentence_retrieval"](made)["per_seed"]["1"]
    assert found["first"] == {}  # the pools hold captions, not translations
    # One sentence of each image is compared.
    assert found["exact"]["en-de"]["n_queries"] == tiny.IMAGES
    assert found["exact"]["en-de"]["r1"] == 100
    made.captions.loc[german, "annotation"] = "machine"  # nobody's sentence
    assert "reason" in TASKS["sentence_retrieval"](made)


@pytest.mark.parametrize("similarity", ["order", "squared_order"])
def test_sentences_are_compared_the_way_round_that_was_learnt(similarity):
    """German is the side that lies above, whoever asks: the other way round few find their own."""
    made = run(objective="joint", similarity=similarity, beta=0.5)
    own, images = made.embeddings[1], len(made.embeddings[1].images)
    below = np.random.default_rng(3).random((images, 40)).astype(np.float32)
    row = made.captions["image_id"].map({image: n for n, image in enumerate(own.image_ids)})
    german = (made.captions["language"] == "de").to_numpy()
    above = below.copy()
    above[:, 20:] += np.linspace(0, 2, images, dtype=np.float32)[:, None]
    vectors = np.where(german[:, None], above[row], below[row])
    made = replace(made, embeddings={1: replace(own, captions=vectors)})
    found = TASKS["sentence_retrieval"](made)["per_seed"]["1"]["first"]
    assert [found[pair]["r1"] for pair in ("de-en", "en-de")] == [100, 100]
    turned = replace(made, captions=made.captions.assign(language=np.where(german, "en", "de")))
    other = TASKS["sentence_retrieval"](turned)["per_seed"]["1"]["first"]
    assert min(other[pair]["r1"] for pair in ("de-en", "en-de")) < 50
    mixed = run(similarity=similarity)  # which compares no sentences: the query is the side above
    assert mixed.sentence_scores("en", "de") is mixed.sentence_scores("de", "en") is not None
    assert made.sentence_scores("de", "en") == made.scores


def test_similarity_is_of_the_sentences_of_a_pair_and_overlap_of_training_captions():
    made = run()
    cosine = np.cos([0.1, 1.5, 0.9])
    expected = np.corrcoef(SCORED["score"], cosine)[0, 1]
    scores = TASKS["sts"](made)["per_seed"]["1"]["set"]
    assert scores["all"]["pearson"] == pytest.approx(expected)
    assert (scores["all"]["n_pairs"], scores["overlap_only"]["n_pairs"]) == (3, 0)
    for split, language, seen in (("train", "en", 1), ("train", "de", 0), ("val", "en", 0)):
        rows = (made.pairs["split"] == split) & (made.pairs["language"] == language)
        texts = made.pairs["text"].where(~rows, "No dog!")
        other = Evaluated(**{**vars(made), "pairs": made.pairs.assign(text=texts)})
        found = TASKS["sts"](other)["per_seed"]["1"]["set"]
        assert found["overlap_only"]["n_pairs"] == seen
        assert found["without_overlap"]["n_pairs"] == 3 - seen


@pytest.mark.parametrize(
    ("objective", "changes", "learnt"),
    [
        ("mixed", {"lexicon_protocol": "paper"}, 50.0),
        ("mixed", {"lexicon_protocol": "clean"}, 0.0),
        ("mixed", {"alignment_every_updates": "never", "lexicon_protocol": "paper"}, 50.0),
        ("mixed", {"alignment_every_updates": "never", "orthogonal_map": False}, 0.0),
        ("mixed", {"lexicon": "another"}, None),
        ("alternating", {}, 0.0),
    ],
)
def test_learnt_are_tested_words_that_the_recipe_was_aligned_by(objective, changes, learnt):
    made = run(objective=objective, vocabulary="per_language", **changes)
    lexicon = made.lexicon
    half = lexicon["source_word"].isin(["de0", "de1", "de2"])
    in_training = lexicon["fold"] == "train"
    kept = ~in_training | ((lexicon["protocol"] == "paper") & half)
    report = TASKS["word_translation"](Evaluated(**{**vars(made), "lexicon": lexicon[kept]}))
    assert report["learnt"] == learnt
    assert report["lexicon"] == "tiny"


def test_learnt_is_a_share_of_the_words_that_have_vectors():
    """Half of the test words stand in no caption; the other half were learnt."""
    made = run(vocabulary="per_language", lexicon_protocol="paper")
    lexicon = made.lexicon
    unknown = lexicon["source_word"].isin(["de3", "de4", "de5", "en3", "en4", "en5"])
    names = lexicon["source_word"].where(~unknown, "x" + lexicon["source_word"])
    kept = (lexicon["fold"] == "test") | ((lexicon["protocol"] == "paper") & ~unknown)
    report = TASKS["word_translation"](
        Evaluated(**{**vars(made), "lexicon": lexicon.assign(source_word=names)[kept]})
    )
    tested = report["per_seed"]["1"]["de-en"]["csls"]["n_queries"]
    assert (tested, report["learnt"]) == (3, 100.0)


def test_a_pair_of_languages_without_a_known_word_is_left_out():
    made = run()
    english = made.lexicon["source_language"] == "en"
    unknown = made.lexicon["source_word"].where(~english, "nobody")
    lexicon = made.lexicon.assign(source_word=unknown)
    report = TASKS["word_translation"](Evaluated(**{**vars(made), "lexicon": lexicon}))
    assert list(report["per_seed"]["1"]) == ["de-en"]
    lexicon = lexicon.assign(source_word="nobody")
    report = TASKS["word_translation"](Evaluated(**{**vars(made), "lexicon": lexicon}))
    assert report == {"reason": "no tested pair of 'tiny' stands in training captions"}


def test_words_that_no_training_caption_has_are_no_candidates_and_no_hubs():
    made = run()
    words, _ = made.words(1, "de")
    assert words.tolist() == [f"de{number}" for number in range(tiny.IMAGES)]
    assert TASKS["word_translation"](made)["per_seed"]["1"]["de-en"]["csls"]["n_candidates"] == 6
    hubs = TASKS["probes"](made)["per_seed"]["1"]["en"]["hubness"]
    assert {name: hub["n_candidates"] for name, hub in hubs.items()} == {
        "images": 6,
        "captions": 12,
        "words": 6,
    }


def test_probes_count_tokens_and_training_occurrences_of_the_rarest():
    made = run()
    english = made.captions[made.captions["language"] == "en"]
    lengths = english["tokens"].map(len)
    training = made.pairs.query("split == 'train' and language == 'en'")["tokens"]
    counts = Counter(word for tokens in training for word in tokens)
    rarest = english["tokens"].map(lambda tokens: min(counts[word] for word in tokens))
    probes = TASKS["probes"](made)["per_seed"]["1"]["en"]
    by_length = {label: scores["n_queries"] for label, scores in probes["caption_length"].items()}
    assert by_length == {"0-2": (lengths < 3).sum(), "3-": (lengths >= 3).sum()}
    by_rarity = {label: scores["n_queries"] for label, scores in probes["rarest_word"].items()}
    assert by_rarity == {"1-2": ((rarest >= 1) & (rarest < 3)).sum()}


def test_what_a_recipe_cannot_do_has_a_reason():
    german = run(objective="alternating", languages=["de"])
    assert "no two" in TASKS["sentence_retrieval"](german)["reason"]
    assert "no scored set" in TASKS["sts"](german)["reason"]
    assert "'tiny' is not of the recipe's languages" in TASKS["word_translation"](german)["reason"]
    assert "per_seed" in TASKS["probes"](german)


def test_reports_are_rounded_json(tmp_path):
    write_report({"a": [1 / 3, {"b": 2}], "c": None}, tmp_path / "a.json")
    assert read_report(tmp_path / "a.json") == {"a": [0.3333, {"b": 2}], "c": None}
    for report in TASKS.values():
        content = report(run())
        write_report(content, tmp_path / "a.json")
        assert read_report(tmp_path / "a.json").keys() == content.keys()


def of_another_split(captions):
    """Return captions with the same words, of photos that have no features."""
    ids = {name: captions[name] + "-train" for name in ("caption_id", "image_id")}
    return captions.assign(**ids, split="train")


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Make the folder of a study with one tiny recipe whose model, untrained, is there."""
    content = read_yaml(ROOT / "params.yaml")
    made = run()
    row = made.recipe.model_dump() | {"paper": "kadar2019", "dataset": "world", "lexicon": "none"}
    row |= {"pairs": "world_six", "features": "world_lite0", "alignment_every_updates": "never"}
    row |= {"orthogonal_map": False}
    content["recipes"] = {"tried": row}
    content["departures"] = {}
    content["pseudopairs"] = content["rerankings"] = content["translated_queries"] = {}
    content["comparisons"] = content["claims"] = {}
    words = {"lexicon": "none", "csls_neighbours": 2}
    content["evaluations"] = SETTINGS | {"word_translation": words}
    monkeypatch.chdir(tmp_path)
    with open("params.yaml", "w", encoding="utf-8") as file:
        YAML().dump(content, file)
    (tmp_path / "papers.yaml").write_text("kadar2019: {}\n")
    (tmp_path / "sts").mkdir()
    lines = SCORED[["score", "first", "second"]].astype(str).agg("\t".join, axis=1)
    (tmp_path / "sts" / "set.tsv").write_text("\n".join(lines) + "\n")
    captions = pd.concat([made.captions, of_another_split(made.captions)])
    write_captions(captions, tmp_path / "data/captions/world.parquet")
    write_pairs(made.pairs, tmp_path / "data/pairs/world_six.parquet")
    write_lexicon(made.lexicon.iloc[:0], tmp_path / "data/lexicons/none.parquet")
    images = captions[["image_id", "split", "dataset"]].drop_duplicates("image_id")
    images = images.assign(path=images["image_id"] + ".jpg")
    write_images(images, tmp_path / "data/images/world.parquet")
    write_features(tiny.features(), tmp_path / "data/features/world_lite0.h5")
    write_features(empty_features(), tmp_path / "data/features/none.h5")
    model = tiny.space(made.recipe, captions=made.pairs)
    model.save(tmp_path / "data/models/tried/seed-1", tiny.PREPROCESSING, {})
    return tmp_path


def test_the_stage_writes_every_report_and_the_queries_with_equal_bytes(study):
    def outputs():
        CliRunner().invoke(evaluate, ["tried"], catch_exceptions=False)
        files = [
            *study.glob("metrics/reports/recipes/tried/scores/*"),
            *study.glob("data/queries/*"),
        ]
        return {path.name: path.read_bytes() for path in files}

    first = outputs()
    reports = {f"{task}.json" for task in TASKS}
    assert set(first) == reports | {"tried.parquet", "hits.csv"}
    assert outputs() == first
    assert json.loads(first["word_translation.json"]) == {
        "reason": "lexicon 'none' is not of the recipe's languages"
    }
    queries = read_queries(study / "data/queries/tried.parquet")
    # In each language 6 images and 12 captions query.
    assert len(queries) == 36


def test_the_stage_ranks_by_the_vectors_of_its_model(study):
    CliRunner().invoke(evaluate, ["tried"], catch_exceptions=False)
    captions = read_captions(study / "data/captions/world.parquet")
    captions = captions.query("language == 'de' and split == 'val'")
    images = read_images(study / "data/images/world.parquet").query("split == 'val'")
    model = JointSpace.load(study / "data/models/tried/seed-1")
    vectors = embed_evaluated(model, captions, images, tiny.features(), {})
    scores = vectors.captions_of(captions["caption_id"]) @ vectors.images.T
    own = [vectors.image_ids.tolist().index(image) for image in captions["image_id"]]
    right = scores[np.arange(len(captions)), own][:, None]
    expected = dict(zip(captions["caption_id"], 1 + (scores > right).sum(axis=1), strict=True))
    queries = read_queries(study / "data/queries/tried.parquet")
    queries = queries[queries["query_id"].isin(captions["caption_id"])]
    assert dict(zip(queries["query_id"], queries["rank"], strict=True)) == expected
    assert len({*expected.values()}) > 1


def test_scores_of_vectors_need_no_torch():
    reports = ROOT / "pipeline_lib/evaluation/tasks.py"
    for path in imported_closure([reports], ROOT):
        found = re.findall(r"^\s*(?:import|from) torch\b", path.read_text(encoding="utf-8"), re.M)
        assert not found, path
