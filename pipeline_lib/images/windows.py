"""Five crops of an image in one pass of the network: windows of its last feature map.

A network that ends in a global average pool sees a crop's features as the mean over a window of
the whole image's map, but for what lies beyond the crop's edges, where the network would have seen
padding and now sees the photo (Sermanet et al. 2014, OverFeat, section 3.3).
"""

import numpy as np
import torch
from torch import nn


class FiveWindows(nn.Module):
    """In the place of a global average pool: the mean over an image's five crops.

    Args:
        image: Height and width of the image in pixels.
        crop: Of a crop.
        stride: Pixels from one cell of the map to the next.
    """

    def __init__(self, image: int, crop: int, stride: int) -> None:
        super().__init__()
        weights = five_crop_weights(image, crop, stride).mean(axis=0)
        self.register_buffer("weights", torch.from_numpy(weights).float(), persistent=False)

    def forward(self, cells: torch.Tensor) -> torch.Tensor:
        """Pool a feature map ``[images, channels, c, c]`` to ``[images, channels, 1, 1]``."""
        return (cells * self.weights).sum(dim=(2, 3), keepdim=True)


def five_crop_weights(image: int, crop: int, stride: int) -> np.ndarray:
    """Return each cell's share in the means over four corner crops and the centre crop.

    A map has a cell for each stride that an image begins. A window that starts between two cells
    is read there by bilinear interpolation, and one that would end beyond the map ends with it.

    Args:
        image: Height and width of the image in pixels.
        crop: Of a crop; at most ``image``.
        stride: Pixels from one cell to the next.

    Returns:
        ``float64 [5, cells, cells]``, all at least 0; the sum of each crop's is 1.
    """
    cells, length = (-(-side // stride) for side in (image, crop))

    def window(offset: int) -> np.ndarray:
        first = min(offset / stride, cells - length)
        distances = np.arange(cells)[:, None] - (first + np.arange(length))
        return np.clip(1 - np.abs(distances), 0, 1).mean(axis=1)

    edges, centre = (window(0), window(image - crop)), window(round((image - crop) / 2))
    corners = [np.outer(top, left) for top in edges for left in edges]
    return np.stack([*corners, np.outer(centre, centre)])
