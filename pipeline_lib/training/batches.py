"""Which items make which batch: endless streams of index batches, each a function of its number.

A stream has no state but how many batches were taken, so an interrupted run continues exactly
where it was.
"""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.training.examples import Sentences


def batch_sizes(items: int, batch_size: int) -> np.ndarray:
    """Return the sizes of an epoch's batches ``int64 [batches]``; they occur in any order."""
    return np.diff([0, *_cuts(items, batch_size), items])


def _cuts(items: int, batch_size: int) -> range:
    # One item alone has no negatives, and no variance to normalise by: it joins a full batch.
    return range(batch_size, items - 1, batch_size)


class Stream:
    """Shuffled batches over the items of one task, epoch after epoch.

    In each epoch every item occurs once.
    """

    def __init__(self, items: int, batch_size: int, seed: tuple[int, ...]) -> None:
        """Plan batches of so many items."""
        self.items, self.batch_size, self.seed = items, batch_size, seed
        self.batches_per_epoch = len(batch_sizes(items, batch_size))
        self._epoch = lru_cache(maxsize=1)(self._plan_epoch)

    def __getitem__(self, number: int) -> Tensor:
        """Return batch ``number`` (from 0, without end) as item indices ``int64 [batch]``."""
        epoch, position = divmod(number, self.batches_per_epoch)
        return self._epoch(epoch)[position]

    def _plan_epoch(self, epoch: int) -> list[Tensor]:
        random = np.random.default_rng([*self.seed, epoch])
        order = random.permutation(self.items)
        batches = np.split(order, _cuts(self.items, self.batch_size))
        return [torch.from_numpy(batches[n]) for n in random.permutation(len(batches))]


class ByImage:
    """The captions of one language, found by their image without a look at the others.

    Attributes:
        count: Captions of each image ``[images]``.
    """

    def __init__(self, image_index: np.ndarray, images: int) -> None:
        """Order captions by their image.

        Args:
            image_index: Image of each caption ``int64 [captions]``.
            images: There are so many; some may have no caption.
        """
        self.count = np.bincount(image_index, minlength=images)
        self._order = np.argsort(image_index, kind="stable")
        self._first = np.cumsum(self.count) - self.count

    def nth_of_each(self, images: np.ndarray, number: np.ndarray) -> np.ndarray:
        """Return the caption of each image that has this number among its own ``[images]``."""
        return self._order[self._first[images] + number]

    def one_of_each(self, images: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return a caption of each image, any of its own with equal chance ``[images]``."""
        number = (random.random(len(images)) * self.count[images]).astype(np.int64)
        return self.nth_of_each(images, number)

    def all_of(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all captions of some images, and the place of each one's image, by this place."""
        count = self.count[images]
        within = np.arange(count.sum()) - np.repeat(count.cumsum() - count, count)
        captions = self._order[np.repeat(self._first[images], count) + within]
        return captions, np.repeat(np.arange(len(images)), count)


def sentence_pairs(a: Sentences, b: Sentences) -> np.ndarray:
    """Return all pairs of captions of the same image, one from each side (§2 of Kádár et al. 2019).

    Five English and five German captions of an image make 25 pairs.

    Returns:
        Indices into ``a`` and into ``b``, ``int64 [pairs, 2]``, ordered by both.
    """
    a_image, b_image = a.image_index.cpu().numpy(), b.image_index.cpu().numpy()
    images = 1 + int(max(a_image.max(initial=-1), b_image.max(initial=-1)))
    right, left = ByImage(b_image, images).all_of(a_image)
    return np.stack([left, right], axis=1)
