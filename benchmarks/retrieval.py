"""Rank 5,000 images against 25,000 captions: tiles and counting against a loop of argsorts.

The reference follows the evaluation loops that the field's code bases share (VSE++ and its
descendants): one product and one full argsort per query. Each side runs in its own process on
saved inputs. Coordinates are multiples of 2^-12, so that every dot product of two unit vectors is
exact in float32 in any order of summation: the ranks of both sides must be equal, rounding is no
excuse. Only where another score exactly ties may they differ, and there the reference's rank,
which depends on the sort, must lie between best and worst case and ours be the worst.

Usage: python -m benchmarks.retrieval
"""

import tempfile
from pathlib import Path

import click
import numpy as np

from benchmarks.measuring import measure, save_vectors, set_threads, unit_vectors_on_grid
from pipeline_lib.evaluation.retrieval.ranking import bidirectional_ranks

Ranks = tuple[np.ndarray, np.ndarray]
"""Image-to-text ``[images]`` and text-to-image ``[captions]``."""


def argsort_ranks(images: np.ndarray, captions: np.ndarray, per_image: int) -> Ranks:
    """Sort all candidates of each query and look for the right ones."""
    image_ranks, caption_ranks = np.empty(len(images), int), np.empty(len(captions), int)
    for i, image in enumerate(images):
        order = np.argsort(captions @ image)[::-1]
        right = range(per_image * i, per_image * (i + 1))
        image_ranks[i] = 1 + min(np.where(order == j)[0][0] for j in right)
    for j, caption in enumerate(captions):
        order = np.argsort(images @ caption)[::-1]
        caption_ranks[j] = 1 + np.where(order == j // per_image)[0][0]
    return image_ranks, caption_ranks


def counted_ranks(images: np.ndarray, captions: np.ndarray, per_image: int) -> Ranks:
    """Rank with the library."""
    return bidirectional_ranks(images, captions, np.arange(len(captions)) // per_image)


def unit_vectors(images: int, per_image: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw images, and captions that resemble their image more or less, on a grid of 2^-12."""
    generator = np.random.default_rng(seed)
    image = generator.standard_normal((images, dim), np.float32)
    noise = generator.standard_normal((images * per_image, dim), np.float32)
    signal = generator.uniform(0, 0.15, (images * per_image, 1)).astype(np.float32)
    noise += signal * np.repeat(image, per_image, axis=0)
    return unit_vectors_on_grid(image), unit_vectors_on_grid(noise)


def same_ranks(a: np.ndarray, b: np.ndarray, ours: Ranks, reference: Ranks, per_image: int) -> bool:
    """Whether all ranks agree, exact ties aside (see the module's text)."""
    image_group, caption_group = np.arange(len(a)), np.arange(len(b)) // per_image
    sides = ((a, b, image_group, caption_group), (b, a, caption_group, image_group))
    for (queries, candidates, group, other), mine, theirs in zip(
        sides, ours, reference, strict=True
    ):
        for q in np.flatnonzero(mine != theirs):
            scores, right = candidates @ queries[q], other == group[q]
            wrong, best = scores[~right], scores[right].max()
            least, most = 1 + (wrong > best).sum(), 1 + (wrong >= best).sum()
            if mine[q] != most or not least <= theirs[q] <= most:
                return False
    return True


@click.command()
@click.option("--images", default=5000, show_default=True)
@click.option("--captions-per-image", "per_image", default=5, show_default=True)
@click.option("--dim", default=1024, show_default=True)
@click.option("--threads", default=2, show_default=True)
@click.option("--runs", default=3, show_default=True, help="Runs of ours; the median counts.")
@click.option("--seed", default=0, show_default=True)
def main(images: int, per_image: int, dim: int, threads: int, runs: int, seed: int) -> None:
    """Measure both sides and print a table."""
    set_threads(threads)
    a, b = unit_vectors(images, per_image, dim, seed)
    with tempfile.TemporaryDirectory() as folder:
        save_vectors(Path(folder), a, b)
        slow = measure(argsort_ranks, Path(folder), per_image, 1)
        fast = measure(counted_ranks, Path(folder), per_image, runs)
    same = same_ranks(a, b, fast.found, slow.found, per_image)
    click.echo(f"{images:,} images x {len(b):,} captions, {dim}-d, {threads} threads\n")
    click.echo(f"{'':14}{'seconds':>9}{'MB above inputs':>17}{'R@1 i->t':>10}{'R@1 t->i':>10}")
    for label, side in (("argsort loop", slow), ("counted tiles", fast)):
        recalls = "".join(f"{100 * (ranks == 1).mean():10.2f}" for ranks in side.found)
        click.echo(f"{label:14}{side.seconds:9.2f}{side.memory:17.0f}{recalls}")
    differing = sum(int((x != y).sum()) for x, y in zip(fast.found, slow.found, strict=True))
    click.echo(f"\n{differing} of {images + len(b):,} ranks differ; exact ties only: {same}")
    click.echo(
        f"retrieval ratio={slow.seconds / fast.seconds:.1f} "
        f"memory_above_inputs={fast.memory:.0f}MB same_ranks={str(same).lower()}"
    )


if __name__ == "__main__":
    main()
