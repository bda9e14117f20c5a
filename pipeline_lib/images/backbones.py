"""Pretrained networks, cut after the layer whose output is the image feature."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torchvision
from torch import nn

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.weights import WeightsFile, read_state_dict

Channels = tuple[float, float, float]

IMAGENET_MEAN: Channels = (123.675, 116.28, 103.53)
IMAGENET_STD: Channels = (58.395, 57.12, 57.375)
"""Statistics of ImageNet's training photos per channel (RGB, 0 to 255); torchvision's inputs."""

LITE_MEAN: Channels = (127.0, 127.0, 127.0)
LITE_STD: Channels = (128.0, 128.0, 128.0)
"""Input scaling that EfficientNet-Lite was trained with."""


@dataclass(frozen=True)
class Backbone:
    """A network without its classifier.

    Attributes:
        build: Make the network for crops of a size, randomly initialised; it maps normalised
            pixels ``[images, 3, crop, crop]`` to features ``[images, dim]``, all at least 0.
        head: Prefix of the classifier's parameters, which a state dict may hold and we drop.
        layer: Name of the layer that gives the features.
        dim: Length of a feature vector.
        mean: Per channel (RGB, 0 to 255), subtracted from the pixels.
        std: Per channel, divides them afterwards.
    """

    build: Callable[[int], nn.Module]
    head: str
    layer: str
    dim: int
    mean: Channels
    std: Channels


class ImageEncoder(nn.Module):
    """Normalisation and backbone in one network: ``uint8 [images, crop, crop, 3]`` to features."""

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


def load_encoder(name: str, weights: WeightsFile, crop: int) -> ImageEncoder:
    """Build a backbone of :data:`BACKBONES` with its weights, in evaluation mode.

    Raises:
        ContractError: The file's parameters are not those of the network.
    """
    backbone = BACKBONES[name]
    network = backbone.build(crop)
    _load(network, backbone.head, name, weights)
    return ImageEncoder(network, backbone.mean, backbone.std).eval().requires_grad_(False)


def _load(network: nn.Module, head: str, name: str, weights: WeightsFile) -> None:
    state = read_state_dict(weights.path)
    body = {key: value for key, value in state.items() if not key.startswith(head)}
    try:
        network.load_state_dict(body)
    except RuntimeError as error:
        raise ContractError(
            f"{weights.path}: expected the parameters of {name}, found others. {error}"
        ) from error


def _vgg19(crop: int) -> nn.Module:
    """Simonyan and Zisserman 2015, configuration E, up to the ReLU after FC7."""
    network = torchvision.models.vgg19(init_weights=False)
    network.classifier = network.classifier[:5]
    return network


def _resnet(name: str) -> Callable[[int], nn.Module]:
    """He et al. 2016, up to the global average pool."""

    def build(crop: int) -> nn.Module:
        network = torchvision.models.get_model(name)
        network.fc = nn.Identity()
        return network

    return build


def _efficientnet_lite(name: str) -> Callable[[int], nn.Module]:
    """EfficientNet (Tan and Le 2019) without squeeze-and-excitation, up to the average pool."""

    def build(crop: int) -> nn.Module:
        from efficientnet_lite_pytorch import EfficientNet  # torchvision's networks do without

        # The package fixes TensorFlow's "same" padding for one input size when it builds.
        network = EfficientNet.from_name(name, image_size=crop)
        network._fc = nn.Identity()
        return network

    return build


BACKBONES = {
    "vgg19": Backbone(_vgg19, "classifier.6.", "fc7", 4096, IMAGENET_MEAN, IMAGENET_STD),
    **{
        name: Backbone(_resnet(name), "fc.", "avgpool", 2048, IMAGENET_MEAN, IMAGENET_STD)
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
        )
        for size in (0, 1, 2)
    },
}
