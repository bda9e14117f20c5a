"""Pretrained networks, cut after the layer whose output is the image feature."""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import nn
from torch.nn import functional as F

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.backbones import BACKBONES, LAST, STAGES, Backbone, Channels
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.images.weights import WeightsFile, read_state_dict
from pipeline_lib.images.windows import FiveWindows

Parameters = Mapping[str, torch.Tensor]
"""Tensors by name."""


class ExtractorSettings(Protocol):
    """What makes features of photos: an extractor's settings.

    Attributes:
        backbone: A key of :data:`BACKBONES`.
        weights: A name of torchvision's, ``package``, or the path of a state dict.
        transform: A key of :data:`TRANSFORMS`.
        resize: Shorter side in pixels after resizing; those that squash do not use it.
        crop: Height and width of a crop in pixels.
        precision: ``bf16``, ``f32`` or ``f64``.
        batch_size: Images per forward pass.
        layers: ``last`` or ``stages``: see :func:`load_encoder`.
    """

    backbone: str
    weights: str
    transform: str
    resize: int
    crop: int
    precision: str
    batch_size: int
    layers: str


class ImageEncoder(nn.Module):
    """Normalisation and backbone in one network: ``uint8 [images, side, side, 3]`` to features."""

    def __init__(self, backbone: nn.Module, mean: Channels, std: Channels):
        super().__init__()
        self.backbone = backbone
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return features ``[images, dim]``."""
        return self.backbone(
            (pixels.permute(0, 3, 1, 2).to(self.mean.dtype) - self.mean) / self.std
        )


class StageStatistics(nn.Module):
    """A backbone's features, and before them what the maps after its stages are like.

    The mean and the deviation of each channel over a map: colours and textures, which captions
    name and a network that was trained to tell classes apart forgets on its way up (Zeiler and
    Fergus 2014; the statistics are those of Huang and Belongie 2017, AdaIN). Of the last map, whose
    mean is the feature, the deviation.

    Args:
        backbone: The network.
        stages: Names of the modules that give the maps ``[images, channels, height, width]``.
        pool: Name of the module that averages the last map; none where more layers follow it.
    """

    def __init__(self, backbone: nn.Module, stages: list[str], pool: str | None) -> None:
        super().__init__()
        self.backbone, self._seen = backbone, []
        for name in stages:
            backbone.get_submodule(name).register_forward_hook(
                lambda _, inputs, cells: self._seen.extend(_mean_and_deviation(cells))
            )
        if pool is not None:
            backbone.get_submodule(pool).register_forward_pre_hook(
                lambda _, inputs: self._seen.append(_mean_and_deviation(inputs[0])[1])
            )

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Map pixels ``[images, 3, side, side]`` to the statistics and, last, the features."""
        try:
            features = self.backbone(pixels)
            return torch.cat([*self._seen, features], dim=1)
        finally:
            self._seen.clear()


def _mean_and_deviation(cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    mean = F.adaptive_avg_pool2d(cells, 1)
    deviation = F.adaptive_avg_pool2d((cells - mean) ** 2, 1).sqrt()
    return mean.flatten(1), deviation.flatten(1)


def load_network(settings: ExtractorSettings, weights: WeightsFile) -> ImageEncoder:
    """Build an extractor's network, for what its transform makes of a photo.

    Raises:
        ContractError: The file's parameters are not those of the network.
    """
    side = TRANSFORMS[settings.transform].side(settings.resize, settings.crop)
    return load_encoder(settings.backbone, weights, side, settings.crop, settings.layers)


def load_encoder(
    name: str,
    weights: WeightsFile,
    side: int,
    crop: int | None = None,
    layers: str = LAST,
) -> ImageEncoder:
    """Build a backbone of :data:`BACKBONES` with its weights, in evaluation mode.

    Args:
        name: A key of :data:`BACKBONES`.
        weights: Its weights.
        side: Height and width in pixels of what the network sees.
        crop: Of the five crops whose mean is the feature, if they are smaller than that: windows
            of the last feature map, which the backbone must have.
        layers: ``last``, or ``stages`` for :class:`StageStatistics`.

    Raises:
        ContractError: The file's parameters are not those of the network.
    """
    backbone = BACKBONES[name]
    network = backbone.build(side)
    _load(network, backbone.head, name, weights)
    if crop is not None and crop < side:
        windows = FiveWindows(side, crop, backbone.feature_map.stride)
        network.set_submodule(backbone.feature_map.pool, windows, strict=True)
    if layers == STAGES:
        network = _with_stages(network, backbone)
    return ImageEncoder(network, backbone.mean, backbone.std).eval().requires_grad_(False)


def feature_dim(name: str, layers: str) -> int:
    """Return the length of a backbone's feature vector."""
    backbone = BACKBONES[name]
    if layers == LAST:
        return backbone.dim
    side = 64
    with torch.device("meta"):  # shapes alone
        network = _with_stages(backbone.build(side).eval(), backbone)
        return network(torch.zeros(1, 3, side, side)).shape[1]


def _with_stages(network: nn.Module, backbone: Backbone) -> StageStatistics:
    pool = backbone.feature_map.pool if backbone.feature_map else None
    return StageStatistics(network, backbone.stages(network), pool)


def _load(network: nn.Module, head: str, name: str, weights: WeightsFile) -> None:
    state = read_state_dict(weights.path)
    body = {key: value for key, value in state.items() if not key.startswith(head)}
    try:
        network.load_state_dict(body)
    except RuntimeError as error:
        raise ContractError(
            f"{weights.path}: expected the parameters of {name}, found others: "
            f"{_differences(network.state_dict(), body)}. Save the state_dict() of {name} itself"
        ) from error


def _differences(own: Parameters, found: Parameters) -> str:
    """Return which parameters a file lacks, has besides, or has in another shape."""
    # A network may be without them: older files are.
    lacking = [key for key in own if key not in found and not key.endswith("num_batches_tracked")]
    other = [key for key in own if key in found and own[key].shape != found[key].shape]
    shapes = [f"{key} {[*found[key].shape]} (expected {[*own[key].shape]})" for key in other]
    kinds = {"no": lacking, "besides": [key for key in found if key not in own], "": shapes}
    return "; ".join(
        f"{words} {keys[0]}".lstrip() + (f" and {len(keys) - 1:,} more" if keys[1:] else "")
        for words, keys in kinds.items()
        if keys
    )
