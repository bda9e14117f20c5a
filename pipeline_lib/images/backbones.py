"""Networks that image features come from: what each is, and how one is built.

Read by checks of settings, which are done before torch could be imported.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

Channels = tuple[float, float, float]

IMAGENET_MEAN: Channels = (123.675, 116.28, 103.53)
IMAGENET_STD: Channels = (58.395, 57.12, 57.375)
"""Statistics of ImageNet's training photos per channel (RGB, 0 to 255); torchvision's inputs."""

LITE_MEAN: Channels = (127.0, 127.0, 127.0)
LITE_STD: Channels = (128.0, 128.0, 128.0)
"""Input scaling that EfficientNet-Lite was trained with."""


PACKAGE = "package"
"""Name of the weights that an installed Python package carries."""

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
        weights: Names of its weights: torchvision's, or ``package`` for those that an installed
            package carries.
        feature_map: What the features are the mean over; none where more layers follow a map.
        stages: Return the names of the modules whose outputs are the maps after each stage.
        smallest: Side in pixels of the smallest image that leaves it a pixel after all its stages.
    """

    build: "Callable[[int], nn.Module]"
    head: str
    layer: str
    dim: int
    mean: Channels
    std: Channels
    weights: tuple[str, ...]
    feature_map: FeatureMap | None
    stages: "Callable[[nn.Module], list[str]]"
    smallest: int = 1


def _vgg19(side: int) -> "nn.Module":
    """Simonyan and Zisserman 2015, configuration E, up to the ReLU after FC7."""
    import torchvision

    network = torchvision.models.vgg19(init_weights=False)
    network.classifier = network.classifier[:5]
    return network


def _resnet(name: str) -> "Callable[[int], nn.Module]":
    """He et al. 2016, up to the global average pool."""

    def build(side: int) -> "nn.Module":
        import torchvision
        from torch import nn

        network = torchvision.models.get_model(name)
        network.fc = nn.Identity()
        return network

    return build


def _efficientnet_lite(name: str) -> "Callable[[int], nn.Module]":
    """EfficientNet (Tan and Le 2019) without squeeze-and-excitation, up to the average pool."""

    def build(side: int) -> "nn.Module":
        from efficientnet_lite_pytorch import EfficientNet  # torchvision's networks do without
        from torch import nn

        # The package fixes TensorFlow's "same" padding for one input size when it builds.
        network = EfficientNet.from_name(name, image_size=side)
        network._fc = nn.Identity()
        return network

    return build


def _vgg_stages(network: "nn.Module") -> list[str]:
    """The five maximum pools."""
    from torch import nn

    layers = network.features.named_children()
    return [f"features.{name}" for name, layer in layers if isinstance(layer, nn.MaxPool2d)]


def _resnet_stages(network: "nn.Module") -> list[str]:
    """All but the last, whose output is what is averaged."""
    return ["layer1", "layer2", "layer3"]


def _efficientnet_stages(network: "nn.Module") -> list[str]:
    """The last block before the number of channels changes, and the last of all."""
    channels = [block._project_conv.out_channels for block in network._blocks]
    ends = [index for index, (a, b) in enumerate(pairwise([*channels, None])) if a != b]
    return [f"_blocks.{index}" for index in ends]


BACKBONES = {
    "vgg19": Backbone(
        _vgg19,
        "classifier.6.",
        "fc7",
        4096,
        IMAGENET_MEAN,
        IMAGENET_STD,
        ("IMAGENET1K_V1",),
        None,
        _vgg_stages,
        smallest=32,
    ),
    **{
        name: Backbone(
            _resnet(name),
            "fc.",
            "avgpool",
            2048,
            IMAGENET_MEAN,
            IMAGENET_STD,
            ("IMAGENET1K_V1", "IMAGENET1K_V2"),
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
            (PACKAGE,),
            FeatureMap("_avg_pooling", 32),
            _efficientnet_stages,
        )
        for size in (0, 1, 2)
    },
}
