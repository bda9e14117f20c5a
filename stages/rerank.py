"""Rank the n-best lists of a translator anew by a recipe's similarities, and measure the result."""

import csv
from pathlib import Path

import click
import pandas as pd

from pipeline_lib.contract.features import read_features
from pipeline_lib.contract.reports import write_report
from pipeline_lib.contract.tables import read_captions, read_pairs
from pipeline_lib.evaluation.machine_translation.meteor import check_meteor
from pipeline_lib.evaluation.reranking.lists import check_lists, read_lists
from pipeline_lib.evaluation.reranking.nbest import SPLITS
from pipeline_lib.evaluation.reranking.report import Lists, rerank
from pipeline_lib.evaluation.reranking.similarities import list_similarities, with_own_features
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.publishing import publish
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write metrics/reports/rerankings/NAME.json, and what came first in data/rerankings/NAME."""
    settings = load_settings()
    chosen = choose(settings.rerankings, name, "reranking")
    translator = settings.translators[chosen.translator]
    languages = translator.source_language, translator.target_language
    if chosen.meteor:
        check_meteor(languages[1])
    features = read_features(Path(f"data/features/{chosen.features}.h5"))
    folder = Path(f"data/nbest/{chosen.translator}")
    tokens = read_captions(Path(f"data/captions/{chosen.dataset}.parquet"))
    tokens = tokens.set_index("caption_id")["tokens"]
    images = set(features.image_ids) if "image" in chosen.similarities else None
    found = {split: read_lists(folder, split, tokens, images) for split in SPLITS}
    check_lists(name, found, read_pairs(Path(f"data/pairs/{chosen.pairs}.parquet")))

    turned = settings.recipe(chosen.recipe).compares_turned(*languages)
    alike = {split: {} for split in found}
    for seed in chosen.seeds:
        model = JointSpace.load(Path(f"data/models/{chosen.recipe}/seed-{seed}")).to_best_device()
        for split, (lists, rows) in found.items():
            alike[split][seed] = list_similarities(
                lists, rows, model, languages, features, chosen.similarities, turned
            )
    val, test = (
        Lists(with_own_features(lists), alike[split], rows["reference"].tolist())
        for split, (lists, rows) in found.items()
    )
    report, best = rerank(val, test, languages[1], chosen, settings.evaluations)
    of_seeds = {seed: f"seed-{seed}" for seed in chosen.seeds}
    with publish(Path(f"data/rerankings/{name}")) as folder:
        folder.mkdir()
        for split, (_, rows) in found.items():
            ids = rows[["source_id", "target_id", "image_id", "reference"]]
            table = ids.join(pd.DataFrame(best[split]).rename(columns=of_seeds))
            path = folder / f"{split}.tsv"
            table.to_csv(path, sep="\t", index=False, quoting=csv.QUOTE_NONE)
    write_report(report, Path(f"metrics/reports/rerankings/{name}.json"))


if __name__ == "__main__":
    main()
