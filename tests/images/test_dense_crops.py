"""Ten crops in two passes of the network: windows of its last feature map."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tiny_photos import encoded, named
from torch import nn

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images import backbones
from pipeline_lib.images.backbones import BACKBONES, Backbone, FeatureMap
from pipeline_lib.images.extraction import extract
from pipeline_lib.images.networks import load_encoder
from pipeline_lib.images.weights import find_weights
from pipeline_lib.images.windows import five_crop_weights

DIM, STRIDE, CROP = 6, 8, 24


@dataclass(frozen=True)
class Settings:
    """Dense ten-crop of a toy network whose cells see just their own patch of the photo."""

    weights: str
    backbone: str = "patches"
    transform: str = "dense_ten_crop"
    resize: int = 40
    crop: int = CROP
    precision: str = "f32"
    batch_size: int = 2
    layers: str = "last"


def patches(side: int) -> nn.Module:
    """Return a network without padding or overlap: its map of a crop is a window of the map."""
    layers = {
        "patch": nn.Conv2d(3, 12, STRIDE, STRIDE),
        "bend": nn.ReLU(),
        "mix": nn.Conv2d(12, DIM, 1),
        "bend_again": nn.ReLU(),
        "pool": nn.AdaptiveAvgPool2d(1),
        "flatten": nn.Flatten(),
    }
    network = nn.Sequential()
    for name, layer in layers.items():
        network.add_module(name, layer)
    return network


@pytest.fixture
def settings(tmp_path, monkeypatch) -> Settings:
    """Register the toy network, save its random weights, and return settings that use them."""
    scale = (0.0, 0.0, 0.0), (255.0, 255.0, 255.0)
    toy = Backbone(
        patches, "head.", "pool", DIM, *scale, (), FeatureMap("pool", STRIDE), lambda network: []
    )
    monkeypatch.setitem(backbones.BACKBONES, "patches", toy)
    torch.manual_seed(0)
    save_file(patches(CROP).state_dict(), tmp_path / "toy.safetensors")
    return Settings(str(named(tmp_path / "toy.safetensors")))


def noise(folder: Path, height: int, width: int) -> Path:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "noise.png")
    return folder / "noise.png"


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


# The weights of a map's cells


@pytest.mark.parametrize(
    ("image", "crop", "stride"), [(256, 224, 32), (232, 224, 32), (288, 224, 32), (40, 24, 8)]
)
def test_weights_are_the_mean_of_windows_read_by_torchs_interpolation(image, crop, stride):
    cells, length = -(-image // stride), crop // stride
    feature_map = torch.rand(1, 1, cells, cells, dtype=torch.float64)
    end, middle = (image - crop) / stride, (image - crop) / 2 / stride
    means = []
    for top, left in ((0, 0), (0, end), (end, 0), (end, end), (middle, middle)):
        rows, columns = (first + torch.arange(length).double() for first in (top, left))
        grid = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), dim=-1)
        grid = 2 * grid / (cells - 1) - 1
        means.append(nn.functional.grid_sample(feature_map, grid[None], align_corners=True).mean())
    weights = torch.from_numpy(five_crop_weights(image, crop, stride))
    torch.testing.assert_close((feature_map[0, 0] * weights).sum(dim=(1, 2)), torch.stack(means))


@pytest.mark.parametrize(("image", "crop"), [(274, 240), (256, 225), (40, 32), (33, 33), (300, 9)])
def test_windows_stay_inside_maps_that_no_stride_divides(image, crop):
    weights = five_crop_weights(image, crop, 32)
    assert weights.shape == (5, *(-(-image // 32),) * 2)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=(1, 2)), 1)
    np.testing.assert_allclose(weights[1], weights[2].T)


# Against ten crops


@pytest.mark.parametrize(("precision", "tolerance"), [("f64", 1e-6), ("f32", 1e-5), ("bf16", 2e-2)])
def test_without_padding_or_overlap_it_is_ten_crop(tmp_path, settings, precision, tolerance):
    photo = noise(tmp_path, 40, 40)
    settings = replace(settings, precision=precision)
    dense = encoded([photo], settings)
    exact = encoded([photo], replace(settings, transform="ten_crop", precision="f64"))
    assert exact.any()
    np.testing.assert_allclose(dense, exact, rtol=tolerance, atol=tolerance)


def test_a_window_between_cells_is_the_mean_of_its_neighbours(tmp_path, settings):
    """On a ramp of grey, which positive weights leave a ramp, that is what the network sees."""
    state = {name: weight.abs() for name, weight in patches(CROP).state_dict().items()}
    save_file(state, tmp_path / "ramp.safetensors")
    ramp = np.add.outer(3 * np.arange(32), 2 * np.arange(32)).astype(np.uint8)
    Image.fromarray(np.stack([ramp, 255 - ramp, ramp], axis=-1)).save(tmp_path / "a.png")
    settings = replace(settings, weights=str(named(tmp_path / "ramp.safetensors")), resize=32)
    dense = encoded([tmp_path / "a.png"], settings)
    exact = encoded([tmp_path / "a.png"], replace(settings, transform="ten_crop"))
    np.testing.assert_allclose(dense, exact, rtol=2e-3)


@pytest.mark.parametrize(("height", "width"), [(40, 64), (64, 40)])
def test_both_ends_of_a_long_photo_are_seen(tmp_path, settings, height, width):
    photo = noise(tmp_path, height, width)
    pixels = np.asarray(Image.open(photo))
    crops = [
        end[top : top + CROP, left : left + CROP]
        for end in (pixels[:40, :40], pixels[-40:, -40:][:, ::-1])
        for top, left in ((0, 0), (0, 16), (16, 0), (16, 16), (8, 8))
    ]
    paths = [tmp_path / f"{number}.png" for number in range(10)]
    for crop, path in zip(crops, paths, strict=True):
        Image.fromarray(crop).save(path)
    singles = encoded(paths, replace(settings, transform="squash"))
    dense = encoded([photo], settings)
    np.testing.assert_allclose(dense[0], singles.mean(axis=0), rtol=1e-4, atol=1e-5)


# The backbones


@pytest.mark.parametrize("name", [name for name in BACKBONES if BACKBONES[name].feature_map])
def test_features_are_the_mean_over_the_map_that_a_backbone_names(name):
    backbone, seen = BACKBONES[name], []
    for side in (64, 80):
        network = backbone.build(side).eval()
        pool = network.get_submodule(backbone.feature_map.pool)
        pool.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
        with torch.inference_mode():
            features = network(torch.rand(1, 3, side, side))
        cells = -(-side // backbone.feature_map.stride)
        assert seen[-1].shape == (1, backbone.dim, cells, cells)
        torch.testing.assert_close(features, seen[-1].mean(dim=(2, 3)))


def test_a_crop_as_large_as_the_photo_is_the_whole_network():
    weights = find_weights("efficientnet_lite0", "package")
    pixels = torch.randint(256, (2, 64, 64, 3), dtype=torch.uint8)
    with torch.inference_mode():
        whole = load_encoder("efficientnet_lite0", weights, 64)(pixels)
        assert torch.equal(load_encoder("efficientnet_lite0", weights, 64, 64)(pixels), whole)


def test_a_backbone_without_a_map_is_refused_before_any_work(tmp_path, settings):
    noise(tmp_path, 40, 40)
    row = {"image_id": "a:1", "dataset": "a", "split": "train", "path": "noise.png"}
    vgg19 = replace(settings, backbone="vgg19", crop=32, weights="not looked for")
    with pytest.raises(ContractError) as caught:
        extract(pd.DataFrame([row]), tmp_path, vgg19, tmp_path / "out.h5", tmp_path / "resume")
    assert "1 problem(s)" in str(caught.value)
    assert "transform: expected a backbone that averages over its last" in str(caught.value)
    assert "found vgg19" in str(caught.value)
    assert not (tmp_path / "resume").exists()


# Real photos


@pytest.fixture(scope="module")
def photos(real_data) -> dict[str, list[Path]]:
    """Return eight square photos, and eight as their photographers left them."""
    folder = real_data / "flickr8k"
    table = pd.read_csv(folder / "images.csv")
    kinds = {"square": table["width"] == table["height"], "long": table["width"] == 342}
    return {kind: [folder / file for file in table[own]["file"][:8]] for kind, own in kinds.items()}


@pytest.mark.real_data
@pytest.mark.parametrize(("kind", "least"), [("square", 0.97), ("long", 0.955)])
def test_it_comes_close_to_ten_crop_on_real_photos(photos, kind, least):
    lite = Settings("package", "efficientnet_lite0", resize=256, crop=224, batch_size=4)
    dense, exact, center = (
        encoded(photos[kind], replace(lite, transform=transform))
        for transform in ("dense_ten_crop", "ten_crop", "center")
    )
    found = cosines(dense, exact)
    assert found.mean() > least
    assert (found > cosines(center, exact)).all()


@pytest.mark.real_data
@pytest.mark.parametrize(("precision", "least"), [("f64", 0.999999), ("bf16", 0.998)])
def test_every_precision_gives_the_same_features(photos, precision, least):
    lite = Settings("package", "efficientnet_lite0", resize=256, crop=224, batch_size=4)
    single = encoded(photos["long"], lite)
    other = encoded(photos["long"], replace(lite, precision=precision))
    assert cosines(single, other).min() > least
