"""Features of a few photos at once, in memory, as extraction makes them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.images.backbones import load_encoder
from pipeline_lib.images.decoding import decode
from pipeline_lib.images.extraction import ExtractorSettings, encode_crops
from pipeline_lib.images.runtimes import build_runtime
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.images.weights import find_weights


class PhotoEncoder:
    """A backbone ready to encode photos; building it takes seconds, so build it once."""

    def __init__(self, settings: ExtractorSettings) -> None:
        """Load and compile the backbone."""
        self.settings, self.transform = settings, TRANSFORMS[settings.transform]
        weights = find_weights(settings.backbone, settings.weights)
        encoder = load_encoder(settings.backbone, weights, settings.crop)
        rows = settings.batch_size * self.transform.crops
        self.runtime = build_runtime(encoder, settings.precision, rows, settings.crop)

    def encode(self, paths: Sequence[Path]) -> np.ndarray:
        """Return the features ``float32 [photos, dim]``.

        Raises:
            ContractError: Lists every photo that cannot be read.
        """
        pixels, problems = [], []
        for path in map(Path, paths):
            try:
                pixels.append(self._pixels(path))
            except (OSError, ValueError) as error:
                problems.append(f"{path}: {error}")
        raise_problems("photos", problems)
        size = self.settings.batch_size
        batches = [np.stack(pixels[i : i + size]) for i in range(0, len(pixels), size)]
        return np.concatenate([self._encode_batch(batch) for batch in batches])

    def _pixels(self, path: Path) -> np.ndarray:
        return self.transform.apply(decode(path), self.settings.resize, self.settings.crop)

    def _encode_batch(self, pixels: np.ndarray) -> np.ndarray:
        # The runtime is built for full batches: the last one is filled up with black images.
        filling = np.zeros((self.settings.batch_size - len(pixels), *pixels.shape[1:]), np.uint8)
        whole = np.concatenate([pixels, filling])
        return encode_crops(self.runtime, whole, self.transform)[: len(pixels)]
