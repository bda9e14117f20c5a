"""Features of all stages of a network, against torchvision's own way to them."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from PIL import Image
from tiny import extractor
from torchvision.models.feature_extraction import create_feature_extractor

from pipeline_lib.images.backbones import BACKBONES, STAGES
from pipeline_lib.images.encoding import PhotoEncoder
from pipeline_lib.images.networks import StageStatistics, feature_dim
from pipeline_lib.images.transforms import crop_problems

MAPS = {
    "resnet50": ["layer1", "layer2", "layer3", "layer4"],
    "vgg19": ["features.4", "features.9", "features.18", "features.27", "features.36"],
}
"""Named after the papers' figures: four groups of blocks; five pools."""


def settings(**changes):
    own = {"transform": "squash_mirror", "crop": 64, "precision": "f64", "layers": STAGES}
    return extractor(**own | changes)


def network_of(name: str) -> tuple[torch.nn.Module, StageStatistics]:
    """Return a network with seeded random weights, and what gives its statistics, of a copy."""
    torch.manual_seed(0)
    network, backbone = BACKBONES[name].build(64).eval(), BACKBONES[name]
    pool = backbone.feature_map.pool if backbone.feature_map else None
    return network, StageStatistics(deepcopy(network), backbone.stages(network), pool)


def statistics(maps: list[torch.Tensor]) -> list[torch.Tensor]:
    return [
        part
        for each in maps
        for part in (each.mean(dim=(2, 3)), each.std(dim=(2, 3), correction=0))
    ]


@torch.inference_mode()
def test_they_are_those_of_the_maps_that_torchvision_extracts_of_a_resnet():
    network, stages = network_of("resnet50")
    pixels = torch.rand(2, 3, 64, 64)
    maps = create_feature_extractor(network, MAPS["resnet50"])(pixels)
    *others, last_mean, last_deviation = statistics([*maps.values()])
    expected = torch.cat([*others, last_deviation, last_mean], dim=1)
    torch.testing.assert_close(stages(pixels), expected)


@torch.inference_mode()
def test_they_are_those_of_the_maps_that_torchvision_extracts_of_vgg19():
    network, stages = network_of("vgg19")
    pixels = torch.rand(1, 3, 64, 64)
    maps = create_feature_extractor(network, MAPS["vgg19"])(pixels)
    expected = torch.cat([*statistics([*maps.values()]), network(pixels)], dim=1)
    torch.testing.assert_close(stages(pixels), expected)


@torch.inference_mode()
@pytest.mark.parametrize("size", [0, 2])
def test_they_are_those_of_the_last_block_of_each_width_of_an_efficientnet(size):
    network, stages = network_of(f"efficientnet_lite{size}")
    pixels = torch.rand(2, 3, 64, 64)
    cells, maps = network._swish(network._bn0(network._conv_stem(pixels))), {}
    for block in network._blocks:
        cells = block(cells)
        maps[cells.shape[1]] = cells  # the last of a width stays
    assert len(maps) == 7  # of the paper's table 1, without the stem and the head
    top = network._swish(network._bn1(network._conv_head(cells)))
    last = [top.std(dim=(2, 3), correction=0), top.mean(dim=(2, 3))]
    expected = torch.cat([*statistics([*maps.values()]), *last], dim=1)
    torch.testing.assert_close(stages(pixels), expected)


@pytest.mark.parametrize("name", ["resnet50", "efficientnet_lite0", "efficientnet_lite2"])
def test_their_number_is_known_before_there_are_weights(name):
    _, stages = network_of(name)
    with torch.inference_mode():
        assert stages(torch.rand(1, 3, 64, 64)).shape == (1, feature_dim(name, STAGES))


@pytest.mark.parametrize(("precision", "tolerance"), [("f32", 1e-3), ("bf16", 0.05)])
def test_every_precision_gives_them(tmp_path, precision, tolerance):
    noise = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    exact, other = (
        np.stack([*PhotoEncoder(settings(precision=each)).encode_each([tmp_path / "a.png"])])
        for each in ("f64", precision)
    )
    assert exact.shape == (1, 2 * feature_dim("efficientnet_lite0", STAGES))
    assert np.linalg.norm(other - exact) <= tolerance * np.linalg.norm(exact)


def test_windows_of_the_last_map_have_no_stages():
    [problem] = crop_problems(settings(transform="dense_ten_crop", resize=80))
    assert problem.startswith("layers: expected last, found stages")
    assert "Take another transform" in problem
    assert not [*crop_problems(settings())]
