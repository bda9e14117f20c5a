"""Pretrained networks, cut after the layer whose output is the image feature."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.weights import WeightsFile, read_state_dict
from pipeline_lib.images.windows import FiveWindows

Channels = tuple[float, float, float]

IMAGENET_MEAN: Channels = (123.675, 116.28, 103.53)
IMAGENET_STD: Channels = (58.395, 57.12, 57.375)
"""Statistics of ImageNet's training photos per channel (RGB, 0 to 255); torchvision's inputs."""

LITE_MEAN: Channels = (127.0, 127.0, 127.0)
LITE_STD: Channels = (128.0, 128.0, 128.0)
"""Input scaling that EfficientNet-Lite was trained with."""


LAST, STAGES = "last", "stages"
"""Layers that features come from: the backbone's own, or the maps after all its stages, too."""


@dataclass(frozen=True)
class FeatureMap:
    """What a network averages over to give its features.

    Attributes:
        pool: Name of the module that averages: ``[images, dim, cells, cells]`` to
            ``[images, dim, 1, 1]``.
        stride: Pixels from one cell to the next.
    """

    pool: str
    stride: int


@dataclass(frozen=True)
class Backbone:
    """A network without its classifier.

    Attributes:
        build: Make the network for images of a size, randomly initialised; it maps normalised
            pixels ``[images, 3, side, side]`` to features ``[images, dim]``, all at least 0.
        head: Prefix of the classifier's parameters, which a state dict may hold and we drop.
        layer: Name of the layer that gives the features.
        dim: Length of a feature vector.
        mean: Per channel (RGB, 0 to 255), subtracted from the pixels.
        std: Per channel, divides them afterwards.
        feature_map: What the features are the mean over; none where more layers follow a map.
        stages: Return the names of the modules whose outputs are the maps after each stage.
    """

    build: Callable[[int], nn.Module]
    head: str
    layer: str
    dim: int
    mean: Channels
    std: Channels
    feature_map: FeatureMap | None
    stages: Callable[[nn.Module], list[str]]


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
            f"{weights.path}: expected the parameters of {name}, found others. {error}"
        ) from error


def _vgg19(side: int) -> nn.Module:
    """Simonyan and Zisserman 2015, configuration E, up to the ReLU after FC7."""
    network = torchvision.models.vgg19(init_weights=False)
    network.classifier = network.classifier[:5]
    return network


def _resnet(name: str) -> Callable[[int], nn.Module]:
    """He et al. 2016, up to the global average pool."""

    def build(side: int) -> nn.Module:
        network = torchvision.models.get_model(name)
        network.fc = nn.Identity()
        return network

    return build


def _efficientnet_lite(name: str) -> Callable[[int], nn.Module]:
    """EfficientNet (Tan and Le 2019) without squeeze-and-excitation, up to the average pool."""

    def build(side: int) -> nn.Module:
        from efficientnet_lite_pytorch import EfficientNet  # torchvision's networks do without

        # The package fixes TensorFlow's "same" padding for one input size when it builds.
        network = EfficientNet.from_name(name, image_size=side)
        network._fc = nn.Identity()
        return network

    return build


def _vgg_stages(network: nn.Module) -> list[str]:
    """The five maximum pools."""
    layers = network.features.named_children()
    return [f"features.{name}" for name, layer in layers if isinstance(layer, nn.MaxPool2d)]


def _resnet_stages(network: nn.Module) -> list[str]:
    """All but the last, whose output is what is averaged."""
    return ["layer1", "layer2", "layer3"]


def _efficientnet_stages(network: nn.Module) -> list[str]:
    """The last block before the number of channels changes, and the last of all."""
    channels = [block._project_conv.out_channels for block in network._blocks]
    ends = [index for index, (a, b) in enumerate(pairwise([*channels, None])) if a != b]
    return [f"_blocks.{index}" for index in ends]


BACKBONES = {
    "vgg19": Backbone(
        _vgg19, "classifier.6.", "fc7", 4096, IMAGENET_MEAN, IMAGENET_STD, None, _vgg_stages
    ),
    **{
        name: Backbone(
            _resnet(name),
            "fc.",
            "avgpool",
            2048,
            IMAGENET_MEAN,
            IMAGENET_STD,
            FeatureMap("avgpool", 32),
            _resnet_stages,
        )
        for name in ("resnet50", "resnet101", "resnet152")
    },
    **{
        f"efficientnet_lite{size}": Backbone(
            _efficientnet_lite(f"efficientnet-lite{size}"),
            "_fc.",
            "avgpool",
            1280,
            LITE_MEAN,
            LITE_STD,
            FeatureMap("_avg_pooling", 32),
            _efficientnet_stages,
        )
        for size in (0, 1, 2)
    },
}
