"""A small study on disk, as its stages leave it: made-up ranks of three recipes."""

import json

import numpy as np
import pandas as pd
from graph import ROOT, read_yaml
from PIL import Image

from pipeline_lib.contract.queries import write_queries
from pipeline_lib.contract.tables import write_captions, write_images
from pipeline_lib.evaluation.retrieval.hits import image_hits
from pipeline_lib.evaluation.retrieval.recalls import RetrievalRanks, summarise

IMAGES, PER_IMAGE = 24, 3
LANGUAGES = ("en", "de")
CHANCES = {"mlmme_b050": 0.05, "mlmme_b100": 0.5, "kadar_en": 0.02}
"""How probably a query of each recipe finds its candidate first."""
CLAIM = {
    "paper": "calixto2017", "claim": "Translations help.", "printed": "table 1: 3 against 1",
    "measure": "sum_of_recalls", "expected": "more",
    "compared": {n: {"row": "mlmme_b050", "against": "mlmme_b100"} for n in LANGUAGES}
    | {"en": {"row": "mlmme_b050", "against": "kadar_en"}},
}  # fmt: skip
TEXT = "<script>alert('&');</script> | a_b"
"""A caption that harms a page which does not escape it."""


def write_study(folder):
    """Write a study into an empty folder."""
    for name in ("published.csv", "papers.yaml"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    params = read_yaml(ROOT / "params.yaml")
    machine = params["recipes"]["mlmme_machine"]
    beta = {**machine, "dataset": "world", "pairs": "world_six", "seeds": [1, 2, 3]}
    recipes = {"mlmme_b050": beta, "mlmme_b100": {**beta, "beta": 1.0}}
    english = {**params["recipes"]["kadar_en"], "seeds": [1, 2], "word_vectors": "latent"}
    params["recipes"] = {**recipes, "kadar_en": english}
    source = {"source": f"data/pairs/{english['pairs']}.parquet"}
    latent = {**params["word_vectors"]["world_latent"], **source, "dim": 64}
    params["word_vectors"]["latent"] = latent
    read = {key: english[key] for key in ("pairs", "features", "word_vectors")}
    params["growth"] = {"kadar_en": {"photos": [0.25, 0.5], "seeds": [1], **read}}
    beta = {"question": "Images only?", "baseline": "mlmme_b100", "recipes": ["mlmme_b050"]}
    params["comparisons"] = {"beta": beta}
    params["claims"] = {"beta": CLAIM}
    borrowed = {**params["pseudopairs"]["world_pseudo"], "teacher": "mlmme_b100"}
    params["pseudopairs"] = {"borrowed": borrowed}
    params["rerankings"] = params["translated_queries"] = {}
    params["evaluations"]["retrieval"]["bootstrap_samples"] = 200
    params["evaluations"]["significance"]["draws"] = 2000
    (folder / "params.yaml").write_text(json.dumps(params))  # JSON is YAML
    captions = _captions()
    write_captions(captions, folder / "data/captions/world.parquet")
    write_images(_images(folder), folder / "data/images/world.parquet")
    for number, (name, chance) in enumerate(CHANCES.items()):
        row = params["recipes"][name]
        _write_recipe(folder, name, row, captions, chance, np.random.default_rng(number))
    _write_pseudopairs(folder)
    _write_growth(folder)


def _captions():
    rows = [
        {
            "caption_id": f"world/{image:06}/{language}/caption/{position}",
            "image_id": f"world:{image:06}",
            "dataset": "world",
            "split": "test",
            "language": language,
            "annotation": "caption",
            "position": position,
            "text": f"{TEXT} {language} {image} {position}",
            "tokens": ["a"],
            "source_caption_id": None,
        }
        for image in range(IMAGES)
        for language in LANGUAGES
        for position in range(PER_IMAGE)
    ]
    return pd.DataFrame(rows)


def _images(folder):
    home = folder / "data/raw/world/images"
    home.mkdir(parents=True)
    rows = []
    for image in range(IMAGES):
        Image.new("RGB", (400, 200 + image), (10 * image, 80, 40)).save(home / f"{image:06}.jpg")
        identity = {"image_id": f"world:{image:06}", "path": f"{image:06}.jpg"}
        rows.append({**identity, "dataset": "world", "split": "test"})
    return pd.DataFrame(rows)


def _write_recipe(folder, name, row, captions, chance, generator):
    home = folder / "metrics/reports/recipes" / name
    (home / "scores").mkdir(parents=True)
    tables, per_seed = [], {}
    for seed in row["seeds"]:
        for language in row["languages"]:
            pool = captions[captions["language"] == language]
            table = _queries(pool, chance, generator).assign(seed=seed, language=language)
            tables.append(table)
            per_seed.setdefault(str(seed), {})[language] = _scores(table)
    queries = pd.concat(tables)
    write_queries(queries, folder / f"data/queries/{name}.parquet")
    image_hits(queries).to_csv(home / "scores/hits.csv", index=False)
    pools = dict.fromkeys(row["languages"], "caption")
    absent = {"reason": "not in this test"}
    reports = {task: absent for task in ("sentence_retrieval", "word_translation", "probes")}
    reports["retrieval"] = {"split": "test", "pools": pools, "per_seed": per_seed}
    reports["sts"] = {"per_seed": {str(seed): {"sts2014": _sts(chance)} for seed in row["seeds"]}}
    for task, report in reports.items():
        (home / f"scores/{task}.json").write_text(json.dumps(report))
    (home / "model.json").write_text(json.dumps({"parameters": {"all": 2_500_000, "words": 10}}))
    _training(row, aligned=name == "kadar_en").to_csv(home / "training.csv", index=False)


def _queries(pool, chance, generator):
    images = pool["image_id"].unique()
    first = pool.groupby("image_id")["caption_id"].first()
    sides = []
    for direction, ids, owners, candidates in (
        ("image_to_text", images, images, len(pool)),
        ("text_to_image", pool["caption_id"], pool["image_id"], len(images)),
    ):
        found = generator.random(len(ids)) < chance
        ranks = np.where(found, 1, generator.integers(2, candidates, len(ids)))
        right = first[owners] if direction == "image_to_text" else owners
        wrong = np.roll(np.asarray(right), len(right) // 2)
        columns = {"query_id": ids, "image_id": owners, "rank": ranks}
        columns |= {"right_id": np.asarray(right), "wrong_id": wrong}
        sides.append(pd.DataFrame(columns).assign(direction=direction))
    return pd.concat(sides)


def _scores(queries):
    sides = {way: rows for way, rows in queries.groupby("direction")}
    owner = pd.Categorical(sides["text_to_image"]["image_id"]).codes
    ranks = RetrievalRanks(*(rows["rank"].to_numpy() for rows in sides.values()), owner)
    return summarise(ranks, resamples=200, confidence=0.95, seed=1)


def _sts(chance):
    scores = {"pearson": chance, "pearson_interval": [chance / 2, 1.0], "n_pairs": 30}
    return {"all": scores, "without_overlap": scores, "overlap_only": {"n_pairs": 0}}


def _training(row, aligned):
    updates = np.arange(1, 6) * 100
    return pd.concat(
        pd.DataFrame(
            {
                "update": updates,
                "epoch": updates / 100,
                "loss_joint": 1000 / updates,
                "recall_sum": [100, 300, 500, 400, 300],
                "mean_rank": [9, 7, 3, 5, 6],
                "recall_sum_world_en": [100, 300, 500, 400, 300],
                "image_to_text_r1_world_en": [10, 20, 30, 25, 20],
                **({"word_translation_p1_en_de": [80, 70, 60, 50, 40]} if aligned else {}),
                "seed": seed,
            }
        )
        for seed in row["seeds"]
    )


def _write_pseudopairs(folder):
    home = folder / "metrics/reports/pseudopairs"
    home.mkdir()
    report = {
        "similarities": {"pairs": 70, "cosine_quartiles": [0.1, 0.2, 0.3]},
        "reuse": {"most_uses": 3, "captions_by_uses": {"0": 5, "1": 20, "2": 10, "3-4": 1}},
    }
    (home / "borrowed.json").write_text(json.dumps(report))


def _write_growth(folder):
    home = folder / "metrics/reports/growth"
    home.mkdir()
    rows = [
        [seed, photos, languages, language, 100 * languages + photos + seed + (language == "de")]
        for seed in (1, 3)
        for photos, languages in ((10, 2), (20, 2), (39, 1), (40, 2))
        for language in LANGUAGES[:languages]
    ]
    columns = ["seed", "photos", "languages", "language", "recall_sum"]
    pd.DataFrame(rows, columns=columns).to_csv(home / "kadar_en.csv", index=False)
