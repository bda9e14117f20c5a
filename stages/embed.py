"""Embed what a recipe is evaluated on, with each of its models: images, captions, STS, words."""

from pathlib import Path

import click

from pipeline_lib.contract.embeddings import write_embeddings
from pipeline_lib.contract.features import read_features
from pipeline_lib.contract.tables import read_captions, read_images
from pipeline_lib.device import best_device
from pipeline_lib.evaluation.embedding import embed_evaluated, scored_sentences
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.study import load_settings
from pipeline_lib.training.corpus import join_features


@click.command(help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write data/embeddings/NAME.h5."""
    settings = load_settings()
    recipe, evaluations = settings.recipe(name), settings.evaluations
    sentences = scored_sentences(evaluations.sts, settings.tokenizers, recipe.languages)
    captions = read_captions(Path(f"data/captions/{recipe.dataset}.parquet"))
    images = read_images(Path(f"data/images/{recipe.dataset}.parquet"))
    features = join_features(
        read_features(Path(f"data/features/{recipe.features}.h5")),
        read_features(Path(f"data/features/{recipe.more_features}.h5")),
    )
    device, split = best_device(), evaluations.retrieval.split
    write_embeddings(
        {
            seed: embed_evaluated(
                JointSpace.load(Path(f"data/models/{name}/seed-{seed}")).to(device),
                captions[captions["split"] == split],
                images[images["split"] == split],
                features,
                sentences,
            )
            for seed in recipe.seeds
        },
        Path(f"data/embeddings/{name}.h5"),
    )


if __name__ == "__main__":
    main()
