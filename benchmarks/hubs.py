"""What a correction for hubs brings: photos and captions that are near to everything count less.

``python -m benchmarks.hubs [RECIPE ...]`` runs in a folder of a study whose models are made, and
prints the sums of recalls of the evaluated split, by language: as the models rank, and with CSLS
(Conneau et al. 2018, §2.3), whose neighbours are in a bank of training queries, as in QB-Norm
(Bogolin et al. 2022): a score is twice the similarity, less the mean similarity of the photo to its
ten nearest training captions of the language, and that of the caption to its ten nearest training
photos. No photo or caption that is scored is in the banks, nothing is tuned, and a query needs no
other one. Recipes whose similarity is not symmetric are left out, and languages of which no
training photo has a caption. These are figures of another way to search, not of another model: they
stand in no table of results.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pandas as pd

from benchmarks.ablations import difference, material_of, spread
from pipeline_lib.compute.exact import dot_products
from pipeline_lib.contract.features import Features
from pipeline_lib.contract.tables import TRAIN, pairs_of_seed, read_captions, read_images
from pipeline_lib.evaluation.embedding import embed_evaluated
from pipeline_lib.evaluation.retrieval.pools import RankedPool, rank_pools
from pipeline_lib.evaluation.retrieval.ranking import bidirectional_ranks
from pipeline_lib.evaluation.retrieval.recalls import recalls
from pipeline_lib.evaluation.words.ranks import neighbourhood_density
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.recipes import Recipe

NEIGHBOURS = 10
"""As Conneau et al. 2018 have it."""

SYMMETRIC = ("cosine", "euclidean")
"""Similarities that rank unit vectors as their products do."""


@dataclass(frozen=True)
class Data:
    """What the models of one recipe are scored on, and their banks.

    Attributes:
        captions: Of the evaluated split.
        images: Of the evaluated split.
        learnt: Captions of training photos that have features, of all seeds.
        features: Of all these photos.
    """

    captions: pd.DataFrame
    images: pd.DataFrame
    learnt: pd.DataFrame
    features: Features


@click.command(help=__doc__)
@click.argument("recipes", nargs=-1)
def main(recipes: tuple[str, ...]) -> None:
    """Print a line for each recipe and language as soon as it is known."""
    settings = load_settings()
    names = recipes or [name for name in settings.recipes if Path(f"data/models/{name}").is_dir()]
    print("| recipe | language | sum | corrected | difference |\n|---|---|---:|---:|---:|")
    for name in names:
        recipe = settings.recipe(name)
        if recipe.similarity not in SYMMETRIC:
            click.echo(f"{name} is left out: its similarity is {recipe.similarity}", err=True)
            continue
        data = data_of(recipe, settings.evaluations.retrieval.split)
        pools = {language: settings.pools[language] for language in recipe.languages}
        of_seeds = [sums(name, seed, data, pools) for seed in recipe.seeds]
        for language in of_seeds[0]:
            plain, corrected = map(list, zip(*(found[language] for found in of_seeds), strict=True))
            print(
                f"| {name} | {language} | {spread(plain)} | {spread(corrected)} | "
                f"{difference(corrected, plain)} |",
                flush=True,
            )


def data_of(recipe: Recipe, split: str) -> Data:
    """Read what a recipe is scored on from the study in which this runs."""
    captions = read_captions(Path(f"data/captions/{recipe.dataset}.parquet"))
    images = read_images(Path(f"data/images/{recipe.dataset}.parquet"))
    material = material_of(recipe)
    pairs, known = material.pairs, material.features.image_ids
    seen = (pairs["split"] == TRAIN) & pairs["image_id"].isin(known)
    return Data(
        captions[captions["split"] == split],
        images[images["split"] == split],
        pairs[seen],
        material.features,
    )


def sums(
    name: str, seed: int, data: Data, pools: Mapping[str, str]
) -> dict[str, tuple[float, float]]:
    """Return a seed's sums of recalls by language: as the model ranks, and corrected.

    Languages without a bank are left out.
    """
    model = JointSpace.load(Path(f"data/models/{name}/seed-{seed}")).to_best_device()
    learnt = pairs_of_seed(data.learnt, seed).drop_duplicates("caption_id")
    photos = learnt.drop_duplicates("image_id")
    tested = embed_evaluated(model, data.captions, data.images, data.features, {})
    bank = embed_evaluated(model, learnt, photos, data.features, {})
    found = {}
    for language, pool in rank_pools(tested, data.captions, pools, dot_products).items():
        of_language = learnt.loc[learnt["language"] == language, "caption_id"]
        if of_language.empty:
            continue
        corrected = corrected_ranks(pool, bank.captions_of(of_language), bank.images)
        plain = (pool.ranks.image_to_text, pool.ranks.text_to_image)
        found[language] = (_sum(plain), _sum(corrected))
    return found


def corrected_ranks(
    pool: RankedPool, captions: np.ndarray, images: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rank a pool in both directions by CSLS.

    Args:
        pool: Of the evaluated split.
        captions: Vectors of training captions of its language ``[captions, dim]``.
        images: Vectors of training photos ``[images, dim]``.
    """

    def csls(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return 2 * dot_products(a[:, :-1], b[:, :-1]) - a[:, -1:] - b[:, -1]

    return bidirectional_ranks(
        np.column_stack([pool.images, neighbourhood_density(pool.images, captions, NEIGHBOURS)]),
        np.column_stack(
            [pool.sentences, neighbourhood_density(pool.sentences, images, NEIGHBOURS)]
        ),
        pool.ranks.caption_image,
        csls,
    )


def _sum(ranks: tuple[np.ndarray, np.ndarray]) -> float:
    return sum(value for side in ranks for value in recalls(side))


if __name__ == "__main__":
    main()
