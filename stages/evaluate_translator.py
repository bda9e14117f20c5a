"""Score a translator on the validation and test sentences of its data set; list its n best."""

from functools import partial
from pathlib import Path

import click

from pipeline_lib.contract.reports import read_report, write_report
from pipeline_lib.contract.tables import read_captions, read_images, read_pairs
from pipeline_lib.corpora.parallel import parallel_text
from pipeline_lib.evaluation.reranking.nbest import SPLITS, write_nbest
from pipeline_lib.models.translator import Translator, searching
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.publishing import publish
from pipeline_lib.scheduling.each import open_workers
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose
from pipeline_lib.synthesis.leaks import protected_images, without_images
from pipeline_lib.synthesis.validation import measure, nbest_lists
from pipeline_lib.text.tokenizers import build_tokenizer


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write metrics/reports/translators/NAME.json; data/nbest/NAME: SPLIT.nbest and SPLIT.tsv."""
    settings = load_settings()
    recipe = choose(settings.translators, name, "translator")
    target = recipe.target_language
    captions = read_captions(Path(f"data/captions/{recipe.dataset}.parquet"))
    pairs = parallel_text(captions, recipe.source_language, target)
    home = Path(f"data/translators/{name}")
    translator = Translator.load(home).to_best_device()
    tokenize = build_tokenizer(target, **settings.tokenizers[target].model_dump())
    images = read_images(Path(f"data/images/{recipe.exclude_images}.parquet"))
    excluded = read_pairs(Path(f"data/pairs/{recipe.exclude_pairs}.parquet"))
    unseen = without_images(pairs, protected_images(images, excluded))
    load = partial(searching, home)
    with open_workers(load, len(pairs), unit="batches", label=name) as each:
        with publish(Path(f"data/nbest/{name}")) as folder:
            folder.mkdir()
            for split in SPLITS:
                rows = pairs[pairs["split"] == split]
                if rows.empty:  # a data set may keep no test split
                    continue
                lists = nbest_lists(translator, rows["source"].tolist(), tokenize, each)
                write_nbest(lists, folder / f"{split}.nbest")
                ids = rows[["source_id", "target_id", "image_id"]]
                ids.to_csv(folder / f"{split}.tsv", sep="\t", index=False)
        quality = measure(translator, unseen, each, **settings.evaluations.retrieval.bootstrap)
    training = read_report(home / "training.json")
    write_report({**training, "quality": quality}, Path(f"metrics/reports/translators/{name}.json"))


if __name__ == "__main__":
    main()
