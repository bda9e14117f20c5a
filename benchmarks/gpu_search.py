"""Searches that benchmarks.gpu measures: ranks, the best both ways, pseudopairs.

Vectors are drawn, and resemble their partners more or less. As in benchmarks.gpu_speeds, each
measurement imports what it needs itself.
"""

import time

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.gpu_rows import HOST, Row, Sizes
from benchmarks.rates import rates, timed

NEIGHBOURS = 10
LIKE_IMAGES, LIKE_CAPTIONS = 0.15, 1.5
"""How much a caption at most has of its image, and of a caption of the other language."""


def ranks(device: torch.device, sizes: Sizes, seconds: float) -> Row:
    """Rank all captions for each image and all images for each caption, as evaluation does."""
    from pipeline_lib.evaluation.retrieval.ranking import bidirectional_ranks

    images, captions, index = (side.cpu().numpy() for side in _images_and_captions(device, sizes))

    def work() -> int:
        return sum(map(len, bidirectional_ranks(images, captions, index)))

    found = rates(torch.device("cpu"), work, seconds)
    return _retrieval_row("ranks", HOST, "f32", found, sizes)


def search_both_ways(device: torch.device, sizes: Sizes, seconds: float) -> Row:
    """Find the best captions of each image and the best images of each caption."""
    from pipeline_lib.synthesis.neighbours import nearest_both_ways

    images, captions, _ = _images_and_captions(device, sizes)

    def work() -> int:
        return sum(len(side.indices) for side in nearest_both_ways(images, captions, NEIGHBOURS))

    found = rates(device, work, seconds)
    return _retrieval_row(f"best {NEIGHBOURS}", device.type, _searched_in(device), found, sizes)


def pseudopairs(device: torch.device, sizes: Sizes, seconds: float) -> Row:
    """Find the nearest of the lent captions for each borrowing one, block by block.

    A block is a round. Its captions are drawn before and not timed; they lie in the host's memory,
    as those that a teacher embeds. Where time is up before all have searched, the note says so.
    """
    from benchmarks.flops import of_product
    from pipeline_lib.synthesis.neighbours import nearest

    lent = _unit(torch.randn(sizes.lent, sizes.dim, device=device))
    few = lent[: sizes.block]
    nearest(few.cpu(), few, 1)  # loads what it needs
    end, done, found = time.perf_counter() + seconds, 0, []
    while done < sizes.borrowing and (not found or time.perf_counter() < end):
        block = _like(lent, min(sizes.block, sizes.borrowing - done), LIKE_CAPTIONS).cpu()
        elapsed, count = timed(device, lambda block=block: len(nearest(block, lent, 1).indices))
        found.append(count / elapsed)
        done += int(count)
    return Row(
        f"pseudopairs {sizes.borrowing:,} x {sizes.lent:,}", device.type,
        _searched_in(device), "queries/s", found, of_product(1, sizes.lent, sizes.dim),
        items=sizes.borrowing, note="" if done == sizes.borrowing else f"{done:,} were searched",
    )  # fmt: skip


def _retrieval_row(what: str, on: str, precision: str, found: list[float], sizes: Sizes) -> Row:
    from benchmarks.flops import of_product

    captions = sizes.images * sizes.captions_per_image
    queries = sizes.images + captions
    return Row(
        f"{what} of {sizes.images:,} x {captions:,}", on, precision, "queries/s", found,
        of_product(sizes.images, captions, sizes.dim) / queries, queries,
    )  # fmt: skip


def _images_and_captions(device: torch.device, sizes: Sizes) -> tuple[Tensor, Tensor, Tensor]:
    """Draw vectors of images, of captions that resemble them, and each caption's image."""
    images = _unit(torch.randn(sizes.images, sizes.dim, device=device))
    index = torch.arange(sizes.images, device=device).repeat_interleave(sizes.captions_per_image)
    return images, _resembling(images[index], LIKE_IMAGES), index


def _like(vectors: Tensor, count: int, most: float) -> Tensor:
    """Draw unit vectors, each of which resembles some of these more or less."""
    return _resembling(vectors[torch.randint(len(vectors), (count,), device=vectors.device)], most)


def _resembling(vectors: Tensor, most: float) -> Tensor:
    signal = most * vectors.shape[1] ** 0.5 * torch.rand(len(vectors), 1, device=vectors.device)
    return _unit(torch.randn_like(vectors) + signal * vectors)


def _unit(vectors: Tensor) -> Tensor:
    return F.normalize(vectors, dim=1)


def _searched_in(device: torch.device) -> str:
    from pipeline_lib.synthesis.rounding import fast_precision

    return {torch.bfloat16: "bf16", torch.float32: "f32"}[fast_precision(device)]
