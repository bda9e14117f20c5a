"""Features of a few photos at once, in memory, as extraction makes them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pipeline_lib.compute.forks import cores
from pipeline_lib.images.decoding import ImageError, decode
from pipeline_lib.images.extraction import encode_crops
from pipeline_lib.images.networks import ExtractorSettings
from pipeline_lib.images.runtimes import load_runtime
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.images.weights import find_weights

Photo = Path | BinaryIO
"""A photo's file, or what was read from one."""


class PhotoEncoder:
    """A backbone ready to encode photos; building it takes seconds, so build it once."""

    def __init__(self, settings: ExtractorSettings) -> None:
        """Load and compile the backbone."""
        self.settings, self.transform = settings, TRANSFORMS[settings.transform]
        weights = find_weights(settings.backbone, settings.weights)
        self.runtime = load_runtime(settings, weights)

    def encode_each(self, photos: Sequence[Photo]) -> Iterator[np.ndarray | ImageError]:
        """Yield the features of each photo ``float32 [dim]`` in order, or why it cannot be read."""
        size = self.settings.batch_size
        with ThreadPoolExecutor(cores()) as pool:
            for first in range(0, len(photos), size):
                crops = [*pool.map(self._crops, photos[first : first + size])]
                readable = [each for each in crops if not isinstance(each, ImageError)]
                features = iter(self._encode_batch(np.stack(readable)) if readable else ())
                yield from (
                    each if isinstance(each, ImageError) else next(features) for each in crops
                )

    def _crops(self, photo: Photo) -> np.ndarray | ImageError:
        try:
            return self.transform.apply(decode(photo), self.settings.resize, self.settings.crop)
        except ImageError as error:
            return error

    def _encode_batch(self, pixels: np.ndarray) -> np.ndarray:
        # The runtime is built for full batches: the last one is filled up with black images.
        filling = np.zeros((self.settings.batch_size - len(pixels), *pixels.shape[1:]), np.uint8)
        whole = np.concatenate([pixels, filling])
        return encode_crops(self.runtime, whole, self.transform)[: len(pixels)]
