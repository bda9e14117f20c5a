"""What dense ten-crop costs in quality: features and recalls against those of exact ten-crop.

Some photos of Flickr8k with their five English captions become a study of its own, in a temporary
folder, with one extractor for each transform (EfficientNet-Lite0, 256 and 224 pixels) and two
recipes on the features of each: our own, and VSE with a quarter of its paper's widths. The stages
are the pipeline's own, and so are the tests: intervals of the difference in the sum of recalls are
over seeds and photos (reporting.differences).

Usage: python -m benchmarks.dense_ten_crop --data FOLDER, which holds what ``polyview new --from
flickr8k`` reads beside: ``images.csv``, ``images`` and ``captions/en.human.tsv``.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pandas as pd
from ruamel.yaml import YAML

from pipeline_lib.contract.features import read_features

ROOT = Path(__file__).resolve().parent.parent
POLYVIEW = "from pipeline_lib.cli.main import main; main()"
STUDY = "photos"
TRANSFORMS = {"exact": "ten_crop", "dense": "dense_ten_crop"}
SEEDS = [1, 2, 3]
RECIPES = {
    "polyview": {"image_crops": 1, "max_epochs": 40},
    "vse": {
        "paper": "kiros2014", "word_vectors": "random", "hidden_dim": 256, "embed_dim": 256,
        "image_dropout": 0.2, "sentence_dropout": 0.2, "learning_rate": 1e-3,
        "validate_every_updates": 40, "max_epochs": 8,
    },
}  # fmt: skip
"""Each departs so from its paper, to learn from little in minutes."""


@click.command(help=__doc__)
@click.option(
    "--data", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--train", default=2000, show_default=True, help="Photos to train on.")
@click.option("--test", default=500, show_default=True, help="Photos to test on.")
@click.option("--work", type=click.Path(path_type=Path), help="Keep the study here; go on with it.")
def main(data: Path, train: int, test: int, work: Path | None) -> None:
    """Make the study, run its stages, and print cosines and differences."""
    with tempfile.TemporaryDirectory() as name:
        root = (work or Path(name)).resolve()
        study = root / "studies" / STUDY
        if not study.exists():
            make_study(root, data.resolve(), train, test)
        for stage in stages():
            run(study, "-m", *stage)
        report(study, pd.read_csv(data / "images.csv"))


def make_study(root: Path, data: Path, train: int, test: int) -> None:
    """Write the study of some photos that have an official split, as a user would."""
    photos = pd.read_csv(data / "images.csv").dropna(subset="flickr8k_split")
    wanted = {"train": train, "val": test // 2, "test": test}
    drawn = pd.concat(
        photos[photos["flickr8k_split"] == split].sample(count, random_state=1)
        for split, count in wanted.items()
    )
    captions = pd.read_csv(data / "captions" / "en.human.tsv", sep="\t", quoting=3)
    table = captions.merge(drawn, on="image_id")
    table["image"], table["language"] = table["file"].map(lambda file: Path(file).name), "en"
    table = table.rename(columns={"flickr8k_split": "split", "index": "position"})
    root.mkdir(parents=True, exist_ok=True)
    columns = ["image", "split", "language", "text"]
    table[columns].to_csv(root / "captions.tsv", sep="\t", index=False, quoting=3)
    for name in ("dvc.yaml", "params.yaml", "papers.yaml", "published.csv"):
        shutil.copy(ROOT / name, root)
    shutil.copytree(ROOT / ".dvc/plots", root / ".dvc/plots", dirs_exist_ok=True)
    (root / "studies").mkdir(exist_ok=True)
    images = ("--captions", "captions.tsv", "--images", str(data / "images"))
    run(root, "-c", POLYVIEW, "new", STUDY, *images)
    change_params(root / "studies" / STUDY / "params.yaml")


def change_params(path: Path) -> None:
    """Give a new study's parameters two extractors, and two recipes and a comparison for each."""
    yaml = YAML(typ="safe")
    params = yaml.load(path)
    (extractor,), (recipe,) = params["extractors"].values(), params["recipes"].values()
    sizes = {"resize": 256, "crop": 224, "batch_size": 8, "layers": "last"}
    params["extractors"] = {
        name: {**extractor, "transform": transform, **sizes}
        for name, transform in TRANSFORMS.items()
    }
    params["recipes"], params["comparisons"] = {}, {}
    for name, changes in RECIPES.items():
        own = recipe if name == "polyview" else _common(recipe)
        for features in TRANSFORMS:
            row = {**own, **changes, "features": features, "seeds": SEEDS}
            params["recipes"][f"{name}_{features}"] = row
        params["comparisons"][name] = {
            "question": "Is dense ten-crop as good as ten crops?",
            "baseline": f"{name}_exact",
            "recipes": [f"{name}_dense"],
        }
    yaml.dump(params, path)


def _common(recipe: dict[str, object]) -> dict[str, object]:
    """Return of a recipe what those of all papers have."""
    keys = ("languages", "dataset", "pairs", "more_features", "initial", "lexicon")
    return {key: recipe[key] for key in keys}


def stages() -> Iterator[list[str]]:
    """Yield the stages of the study, in an order in which each finds its inputs."""
    yield from (["stages.resolve"], ["stages.nothing"])
    yield ["stages.captions", STUDY]
    yield from (["stages.features", name] for name in TRANSFORMS)
    yield ["stages.pairs", STUDY]
    yield ["stages.word_vectors", f"{STUDY}_latent"]
    for stage in ("train", "evaluate"):
        yield from ([f"stages.{stage}", f"{r}_{f}"] for r in RECIPES for f in TRANSFORMS)
    yield ["stages.report"]


def run(folder: Path, *arguments: str) -> None:
    """Run Python in a folder, with the code of this checkout."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=True)


def report(study: Path, photos: pd.DataFrame) -> None:
    """Print the cosines of both kinds of features, and the differences of both recipes."""
    exact, dense = (read_features(study / f"data/features/{name}.h5") for name in TRANSFORMS)
    a, b = (each.vectors / np.linalg.norm(each.vectors, axis=1)[:, None] for each in (exact, dense))
    cosines = pd.Series((a * b).sum(axis=1), [i.split(":")[1] for i in exact.image_ids])
    sizes = photos.set_index(photos["image_id"].astype(str)).loc[cosines.index]
    square = sizes["width"] == sizes["height"]
    for kind, own in (("square", cosines[square]), ("long", cosines[~square])):
        click.echo(
            f"{len(own)} {kind} photos: cosine to ten-crop features mean {own.mean():.4f}, least "
            f"{own.min():.4f}"
        )
    compared = pd.read_csv(study / "metrics/results/comparisons.csv")
    for row in compared.dropna(subset="difference").itertuples():
        click.echo(
            f"{row.recipe}: sum of recalls {row.sum_of_recalls:.1f}, difference from exact "
            f"{row.difference:+.1f} ({row.low:+.1f} to {row.high:+.1f}), p {row.p:.2f}"
        )


if __name__ == "__main__":
    main()
