"""Decoding, transforms, backbones, weights and runtimes of image features."""

import errno
import io
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from weakref import ref

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
import torchvision
from efficientnet_lite_pytorch import EfficientNet
from pickles import Code
from PIL import ExifTags, Image, ImageOps
from pngs import png
from refusals import refused
from safetensors.torch import save_file
from tiny_photos import named
from torchvision.transforms import v2

from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images import decoding, runtimes
from pipeline_lib.images import weights as weights_module
from pipeline_lib.images.backbones import BACKBONES
from pipeline_lib.images.batches import load_batch
from pipeline_lib.images.decoding import MAX_PIXELS, ImageError, decode, thumbnail
from pipeline_lib.images.networks import ImageEncoder, load_encoder
from pipeline_lib.images.runtimes import (
    RUNTIMES,
    Runtime,
    build_runtime,
    import_openvino,
    load_runtime,
)
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.images.weights import find_weights, read_state_dict
from pipeline_lib.running.publishing import file_sha256

ROOT = Path(__file__).resolve().parents[2]
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def smooth_image(height: int, width: int, seed: int) -> np.ndarray:
    """Return photo-like pixels ``uint8 [height, width, 3]``: large soft shapes, a little noise."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.float32)
    return np.clip(smooth + rng.normal(0, 6, smooth.shape), 0, 255).astype(np.uint8)


def encoder_of(name: str, crop: int) -> ImageEncoder:
    """Return an encoder with seeded random weights, scaled to keep activations in range."""
    torch.manual_seed(0)
    backbone = BACKBONES[name]
    return ImageEncoder(backbone.build(crop), backbone.mean, backbone.std).eval()


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


# Decoding


def test_a_png_may_have_as_large_a_colour_profile_as_a_jpeg(tmp_path):
    """As of a scanner, by tables."""
    profile = b"\0" * 36 + b"acsp" + bytes(3 * 2**20)
    Image.new("RGB", (8, 6), "red").save(tmp_path / "red.png", icc_profile=profile)
    assert (decode(tmp_path / "red.png") == (255, 0, 0)).all()


def test_format_is_recognised_by_content(tmp_path):
    Image.new("RGB", (3, 2), GREEN).save(tmp_path / "a.jpg", "PNG")
    assert (decode(tmp_path / "a.jpg") == GREEN).all()


def test_cmyk_jpeg(tmp_path):
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "a.jpg", quality=100)
    assert np.abs(decode(tmp_path / "a.jpg").astype(int) - RED).max() <= 3


def test_palette_with_transparency_lies_over_white(tmp_path):
    image = Image.new("P", (2, 2))
    image.putpalette([*BLUE, *RED])
    image.putdata([0, 1] * 2)
    image.save(tmp_path / "a.png", transparency=0)
    assert decode(tmp_path / "a.png").tolist() == [[list(WHITE), list(RED)]] * 2


@pytest.mark.parametrize(
    ("mode", "pixel", "expected"),
    [
        ("RGBA", (*BLUE, 0), WHITE),
        ("RGBA", (0, 0, 255, 128), (127, 127, 255)),
        ("LA", (0, 255), (0, 0, 0)),
        ("L", 77, (77, 77, 77)),
        ("1", 1, WHITE),
        ("P", 0, (0, 0, 0)),
    ],
)
def test_modes_of_png(tmp_path, mode, pixel, expected):
    Image.new(mode, (5, 4), pixel).save(tmp_path / "a.png")
    decoded = decode(tmp_path / "a.png")
    assert decoded.shape == (4, 5, 3)
    assert np.abs(decoded.astype(int) - expected).max() <= 1


def test_greyscale_that_holds_levels_times_opacity_lies_over_white(tmp_path):
    Image.new("LA", (5, 4), (50, 100)).save(tmp_path / "a.tif")
    unassociated, associated = (struct.pack("<HHIH", 338, 3, 1, kind) for kind in (2, 1))
    content = (tmp_path / "a.tif").read_bytes()
    assert content.count(unassociated) == 1
    (tmp_path / "b.tif").write_bytes(content.replace(unassociated, associated))
    over_white = 50 + 255 - 100
    assert np.abs(decode(tmp_path / "b.tif").astype(int) - over_white).max() <= 1


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_16_bit_greyscale_keeps_its_upper_bits(tmp_path, suffix):
    levels = np.array([[0, 255, 256, 32768, 65535]] * 2, np.uint16)
    Image.fromarray(levels).save(tmp_path / f"a.{suffix}")
    assert decode(tmp_path / f"a.{suffix}")[0, :, 0].tolist() == [0, 0, 1, 128, 255]


@pytest.mark.parametrize("form", ["raw", "plain"])
@pytest.mark.parametrize("largest", [65535, 1023])
def test_pgm_of_more_than_8_bits_keeps_its_upper_bits(tmp_path, form, largest):
    levels = np.array([[0, 0.9, 1, 128, 255.99]] * 2) / 256 * (largest + 1)
    rows = levels.astype(">u2")
    text = " ".join(map(str, rows.flat)).encode()
    kind, body = (b"P5", rows.tobytes()) if form == "raw" else (b"P2", text)
    (tmp_path / "a.pgm").write_bytes(b"%s 5 2 %d\n%s\n" % (kind, largest, body))
    assert decode(tmp_path / "a.pgm")[0, :, 0].tolist() == [0, 0, 1, 128, 255]


def test_16_bit_colour(tmp_path):
    row = b"\0" + np.array([[1, 32768, 65535]] * 2, ">u2").tobytes()
    (tmp_path / "a.png").write_bytes(png(2, 2, 16, 2, row * 2))
    assert decode(tmp_path / "a.png").tolist() == [[[0, 128, 255]] * 2] * 2


def test_32_bit_is_refused(tmp_path):
    Image.fromarray(np.ones((2, 2), np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(ImageError, match="found 32"):
        decode(tmp_path / "a.tif")


# EXIF 2.32, tag 274: where the first row and the first column of the stored pixels belong
@pytest.mark.parametrize(
    ("orientation", "upright"),
    [
        (1, lambda stored: stored),
        (2, np.fliplr),
        (3, lambda stored: np.rot90(stored, 2)),
        (4, np.flipud),
        (5, lambda stored: stored.transpose(1, 0, 2)),
        (6, lambda stored: np.rot90(stored, -1)),
        (7, lambda stored: np.rot90(stored, 2).transpose(1, 0, 2)),
        (8, np.rot90),
    ],
)
@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_exif_orientation(tmp_path, orientation, upright, suffix):
    path = tmp_path / f"a.{suffix}"
    image, exif = Image.fromarray(smooth_image(24, 40, 0)), Image.Exif()
    image.save(path)
    stored = decode(path)
    exif[274] = orientation
    image.save(path, exif=exif)
    assert np.array_equal(decode(path), upright(stored))
    assert np.array_equal(decode(path), ImageOps.exif_transpose(Image.open(path)))


@pytest.mark.parametrize("orientation", [1, 6])
def test_a_photo_is_turned_whatever_its_other_tags_hold(tmp_path, orientation):
    width = struct.pack("<HHI4s", 0x100, 9, 1, b"\xff" * 4)  # -1 where only more than 0 is legal
    turned = struct.pack("<HHI4s", 0x112, 3, 1, bytes([orientation, 0, 0, 0]))
    tags = b"Exif\0\0II*\0\x08\0\0\0\2\0" + width + turned + bytes(4)
    Image.new("RGB", (40, 24)).save(tmp_path / "a.jpg", exif=tags)
    assert decode(tmp_path / "a.jpg").shape == ((24, 40, 3) if orientation == 1 else (40, 24, 3))


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_damaged_exif_turns_nothing(tmp_path, suffix):
    image = Image.fromarray(smooth_image(24, 40, 0))
    image.save(tmp_path / f"a.{suffix}", exif=b"Exif\0\0garbage of a camera")
    assert decode(tmp_path / f"a.{suffix}").shape == (24, 40, 3)


@pytest.mark.parametrize("failure", [MemoryError(), OSError(errno.EIO, "Input/output error")])
def test_where_the_machine_fails_no_photo_is_blamed(tmp_path, monkeypatch, failure):
    Image.new("RGB", (40, 24)).save(tmp_path / "a.png")

    def fail(*_):
        raise failure

    monkeypatch.setattr(decoding, "_to_rgb", fail)
    with pytest.raises(type(failure)) as raised:
        load_batch([tmp_path / "a.png"], (1, 24, 40, 3), decode)
    if isinstance(failure, OSError):
        assert raised.value.filename == str(tmp_path / "a.png")


def test_a_damaged_photo_that_leads_beyond_every_file_is_blamed_itself(tmp_path):
    """The offset of the first directory of BigTIFF has 64 bits."""
    path = tmp_path / "a.tif"
    path.write_bytes(b"II" + struct.pack("<HHHQ", 43, 8, 0, 2**63 - 8) + bytes(64))
    batch = load_batch([path], (1, 24, 40, 3), decode)
    assert batch.problems[0].startswith(f"{path}: cannot be decoded (OSError: [Errno 22]")


WHITE_FIRST, BLACK_FIRST = 0, 1


def write_grey_tiff(path, levels, bits, photometric):
    """Write greyscale of 12 or 16 bits, uncompressed, which Pillow does not write."""
    height, width = levels.shape
    if bits == 12:  # two levels in three bytes
        pairs = levels.reshape(-1, 2).astype(int)
        first, second = pairs.T
        parts = [first >> 4, (first & 15) << 4 | second >> 8, second & 255]
        pixels = np.stack(parts, axis=1).astype(np.uint8).tobytes()
    else:
        pixels = levels.astype("<u2").tobytes()
    tags = {
        256: width, 257: height, 258: bits, 259: 1, 262: photometric, 273: 8, 277: 1,
        278: height, 279: len(pixels),
    }  # fmt: skip
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    directory = struct.pack("<H", len(tags)) + entries + bytes(4)
    path.write_bytes(b"II*\0" + struct.pack("<I", 8 + len(pixels)) + pixels + directory)


@pytest.mark.parametrize(
    ("bits", "photometric"), [(12, BLACK_FIRST), (16, BLACK_FIRST), (16, WHITE_FIRST)]
)
def test_greyscale_tiff_keeps_its_upper_8_bits(tmp_path, bits, photometric):
    expected = np.arange(256, dtype=int).reshape(16, 16)
    levels = expected << (bits - 8)
    write_grey_tiff(tmp_path / "a.tif", levels, bits, photometric)
    found = decode(tmp_path / "a.tif")
    shown = 255 - expected if photometric == WHITE_FIRST else expected
    np.testing.assert_array_equal(found, np.repeat(shown[:, :, None], 3, axis=2))


def test_a_transparent_level_of_16_bit_greyscale_lies_over_white(tmp_path):
    levels = np.uint16([[0, 300, 65535], [300, 301, 40000]])
    Image.fromarray(levels).save(tmp_path / "a.png", transparency=300)
    expected = [[0, 255, 255], [255, 1, 156]]
    np.testing.assert_array_equal(decode(tmp_path / "a.png")[:, :, 0], expected)


def crops_by_the_card(path, rule, resize, crop):
    """Return the crops that a reader of the card makes, with nothing but Pillow."""
    image = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
    if "whatever its shape" in rule:
        whole = image.resize((crop, crop), Image.Resampling.BILINEAR)
        return [whole, *([ImageOps.mirror(whole)] if "mirror image follows" in rule else [])]
    shorter = min(image.size)
    width, height = (side * resize // shorter for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    if "left or upper end" in rule:
        last = image.crop((width - resize, height - resize, width, height))
        return [image.crop((0, 0, resize, resize)), ImageOps.mirror(last)]
    middle = [round((side - crop) / 2) for side in (width, height)]
    corners = [(left, top) for top in (0, height - crop) for left in (0, width - crop)]
    places = [*corners, middle] if "bottom right" in rule else [middle]
    both = [image, *([ImageOps.mirror(image)] if "mirror image" in rule else [])]
    return [own.crop((x, y, x + crop, y + crop)) for own in both for x, y in places]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_crops_are_those_of_a_reader_of_the_card(tmp_path, transform):
    chosen, path = TRANSFORMS[transform], tmp_path / "a.jpg"
    noise = np.random.default_rng(0).integers(0, 256, (37, 52, 3), np.uint8)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    Image.fromarray(noise).save(path, exif=exif)
    expected = crops_by_the_card(path, chosen.rule, 29, 21)
    found = chosen.apply(decode(path), 29, 21)
    assert chosen.crops == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, np.asarray(theirs))


def test_no_code_of_a_file_of_weights_is_run(tmp_path):
    made = tmp_path / "made"
    torch.save({"weight": Code(made)}, tmp_path / "a.pth")
    with pytest.raises(ContractError, match="expected a state dict"):
        read_state_dict(tmp_path / "a.pth")
    assert not made.exists()


def test_weights_that_cannot_be_read_are_not_called_damaged(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_state_dict(tmp_path / "lost.pth")


def test_a_gpu_without_bfloat16_computes_features_in_float32(monkeypatch):
    monkeypatch.setattr(runtimes, "multiplies_bf16", lambda _device: False)
    monkeypatch.setattr(runtimes, "_cuda_encode", lambda *_, mixed: mixed)
    assert RUNTIMES["cuda", "bf16"](None, 4, 8) == Runtime(False, "cuda", "f32")


@pytest.mark.parametrize("size", [(1, 1), (1, 500)])
def test_one_pixel_is_no_photo(tmp_path, size):
    Image.new("RGB", size, RED).save(tmp_path / "a.png")
    with pytest.raises(ImageError, match=f"found {size[0]} x {size[1]} pixels: a stand-in"):
        decode(tmp_path / "a.png")


def test_four_pixels(tmp_path):
    Image.new("RGB", (2, 2), RED).save(tmp_path / "a.png")
    for transform in TRANSFORMS.values():
        crops = transform.apply(decode(tmp_path / "a.png"), 20, 16)
        side = transform.side(20, 16)
        assert crops.shape == (transform.crops, side, side, 3)
        assert (crops == RED).all()


def jpeg_bytes(tmp_path: Path) -> bytes:
    Image.fromarray(smooth_image(50, 60, 1)).save(tmp_path / "whole.jpg")
    return (tmp_path / "whole.jpg").read_bytes()


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(lambda jpeg: b"", id="empty"),
        pytest.param(lambda jpeg: b"<html>404</html>", id="html"),
        pytest.param(lambda jpeg: jpeg[:20], id="header only"),
        pytest.param(lambda jpeg: jpeg[: len(jpeg) // 2], id="half"),
        pytest.param(lambda jpeg: jpeg[:-2], id="without end marker"),
        pytest.param(lambda jpeg: png(100, 100, 8, 2, b"\0" * 50), id="PNG with too little data"),
        pytest.param(lambda jpeg: png(20_000, 20_000, 8, 2, b"\0"), id="PNG bomb"),
        pytest.param(lambda jpeg: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", id="EPS"),
    ],
)
def test_damaged_files_are_refused(tmp_path, damaged):
    (tmp_path / "a.jpg").write_bytes(damaged(jpeg_bytes(tmp_path)))
    with pytest.raises(ImageError) as caught:
        decode(tmp_path / "a.jpg")
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_size_limit_is_checked_before_decoding(tmp_path):
    width = MAX_PIXELS // 1000 + 1
    (tmp_path / "a.png").write_bytes(png(width, 1000, 8, 0, b""))
    with pytest.raises(ImageError, match=f"found {width} x 1000"):
        decode(tmp_path / "a.png")


def test_pillow_adds_no_warning_of_its_own(tmp_path):
    (tmp_path / "a.png").write_bytes(png(MAX_PIXELS // 1000 + 1, 1000, 8, 0, b""))
    script = "import sys; from pipeline_lib.images.decoding import decode; decode(sys.argv[1])"
    command = [sys.executable, "-c", script, str(tmp_path / "a.png")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr
    assert "scale the image down" in said
    assert "DecompressionBombWarning" not in said


def test_an_image_that_pillow_does_not_open_is_to_be_scaled_down_too(tmp_path):
    (tmp_path / "a.png").write_bytes(png(20_000, 20_000, 8, 2, b""))
    with pytest.raises(ImageError, match=r"at most 89478485 pixels, .*: scale the image"):
        decode(tmp_path / "a.png")


# Transforms


@pytest.mark.parametrize(("height", "width"), [(375, 500), (500, 333), (256, 256), (90, 70)])
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("center", [v2.Resize(96), v2.CenterCrop(64)]),
        ("ten_crop", [v2.Resize(96), v2.TenCrop(64)]),
        ("squash", [v2.Resize((64, 64))]),
        ("squash_mirror", [v2.Resize((64, 64)), lambda image: (image, ImageOps.mirror(image))]),
    ],
)
def test_transforms_equal_torchvision_on_pillow_images(height, width, name, reference):
    image = smooth_image(height, width, 2)
    expected = v2.Compose(reference)(Image.fromarray(image))
    expected = np.stack([*expected] if isinstance(expected, tuple) else [expected])
    crops = TRANSFORMS[name].apply(image, 96, 64)
    assert crops.dtype == np.uint8
    side = TRANSFORMS[name].side(96, 64)
    assert crops.shape == expected.shape == (TRANSFORMS[name].crops, side, side, 3)
    assert np.abs(crops.astype(int) - expected).max() <= 1


@pytest.mark.parametrize(("height", "width"), [(2, 3000), (3000, 2)])
def test_a_sliver_is_refused_for_its_shape(height, width):
    said = f"found {width} x {height}", "the longer side at most 1078 times the shorter"
    with refused(*said, by=ImageError):
        TRANSFORMS["center"].apply(np.zeros((height, width, 3), np.uint8), 288, 288)
    TRANSFORMS["squash"].apply(np.zeros((height, width, 3), np.uint8), 288, 288)


# Backbones


def test_vgg19_features_are_fc7_after_relu():
    encoder = encoder_of("vgg19", 224)
    pixels = torch.from_numpy(smooth_image(224, 224, 3)[None])
    whole = torchvision.models.vgg19(init_weights=False).eval()
    whole.load_state_dict(encoder.backbone.state_dict(), strict=False)
    inputs = v2.functional.normalize(
        pixels.permute(0, 3, 1, 2) / 255, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    )
    seen = []
    whole.classifier[4].register_forward_hook(lambda module, args, output: seen.append(output))
    with torch.inference_mode():
        features = encoder(pixels)
        whole(inputs)
    assert features.shape == (1, 4096)
    assert (features >= 0).all()
    torch.testing.assert_close(features, seen[0])


@pytest.mark.parametrize("name", ["resnet50", "efficientnet_lite1"])
def test_head_on_features_gives_the_whole_networks_scores(name):
    encoder = encoder_of(name, 64)
    if name == "resnet50":
        whole = torchvision.models.resnet50()
        head, scale = whole.fc, ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    else:
        whole = EfficientNet.from_name("efficientnet-lite1", image_size=64)
        head, scale = whole._fc, ([127 / 255] * 3, [128 / 255] * 3)
    whole.eval().load_state_dict(encoder.backbone.state_dict(), strict=False)
    pixels = torch.from_numpy(np.stack([smooth_image(64, 64, seed) for seed in (4, 5)]))
    with torch.inference_mode():
        features = encoder(pixels)
        scores = whole(v2.functional.normalize(pixels.permute(0, 3, 1, 2) / 255, *scale))
        assert features.shape == (2, BACKBONES[name].dim)
        torch.testing.assert_close(head(features), scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_two_passes_are_identical_even_from_training_mode(precision):
    weights = find_weights("efficientnet_lite0", "package")
    encoder = load_encoder("efficientnet_lite0", weights, 64)
    assert not any(module.training for module in encoder.modules())
    pixels = np.stack([smooth_image(64, 64, seed) for seed in range(4)])
    first = build_runtime(encoder, precision, 4, 64).encode(pixels)
    again = build_runtime(encoder.train(), precision, 4, 64)
    assert np.array_equal(first, again.encode(pixels))
    assert np.array_equal(first, again.encode(pixels))


def test_a_network_in_use_is_shared_by_all_that_ask_for_it_and_by_threads(monkeypatch):
    monkeypatch.setattr(runtimes, "build_runtime", build_runtime)  # not what tests keep loaded
    settings = tiny.extractor(crop=36)  # as no other test has it
    weights = find_weights(settings.backbone, settings.weights)
    first = load_runtime(settings, weights)
    assert load_runtime(tiny.extractor(crop=36), weights) is first
    side, rows = settings.crop, settings.batch_size
    pixels = [np.stack([smooth_image(side, side, seed)] * rows) for seed in range(8)]
    alone = [first.encode(each) for each in pixels]
    with ThreadPoolExecutor(4) as threads:
        np.testing.assert_array_equal([*threads.map(first.encode, pixels)], alone)
    gone = ref(first)
    del first
    assert gone() is None  # nothing else holds it


# Weights


@pytest.mark.parametrize("size", [0, 1, 2])
def test_packaged_weights_fit_their_networks(size):
    name = f"efficientnet_lite{size}"
    weights = find_weights(name, "package")
    assert weights.name == "package"
    assert weights.sha256[:8] == weights.path.stem[-8:]
    encoder = load_encoder(name, weights, 64)
    with torch.inference_mode():
        assert encoder(torch.zeros(1, 64, 64, 3, dtype=torch.uint8)).any()


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_local_state_dict(tmp_path, suffix):
    saved = torchvision.models.resnet50(num_classes=7).state_dict()
    path = tmp_path / f"mine.{suffix}"
    torch.save(saved, path) if suffix == "pth" else save_file(saved, path)
    path = named(path)
    weights = find_weights("resnet50", str(path))
    assert weights.name == path.name  # no folder of this machine in a result
    loaded = load_encoder("resnet50", weights, 64).backbone.state_dict()
    assert loaded.keys() == {key for key in saved if not key.startswith("fc.")}
    assert all(torch.equal(loaded[key], saved[key]) for key in loaded)


def test_weights_of_another_network_are_refused():
    with pytest.raises(ContractError, match="expected the parameters of efficientnet_lite1"):
        load_encoder("efficientnet_lite1", find_weights("efficientnet_lite0", "package"), 64)


def test_of_weights_of_another_network_few_are_named(tmp_path):
    state = BACKBONES["resnet50"].build(64).state_dict()
    torch.save({f"module.{key}": value for key, value in state.items()}, tmp_path / "a.pth")
    with pytest.raises(ContractError) as error:
        load_encoder("resnet50", find_weights("resnet50", str(named(tmp_path / "a.pth"))), 64)
    said = str(error.value)
    assert "no conv1.weight and 264 more; besides module.conv1.weight and 317 more" in said
    assert "Save the state_dict() of resnet50 itself" in said
    assert len(said) < 400


def test_whoever_gives_code_for_weights_is_not_told_to_run_it(tmp_path):
    torch.save(BACKBONES["resnet50"].build(64), tmp_path / "a.pth")
    with pytest.raises(ContractError, match="holds code or objects besides tensors") as error:
        load_encoder("resnet50", find_weights("resnet50", str(named(tmp_path / "a.pth"))), 64)
    assert "weights_only" not in str(error.value)


@pytest.mark.parametrize("name", ["resnet50", "vgg19"])
@torch.inference_mode()
def test_every_network_runs_in_f64(name):
    torch.manual_seed(0)
    network = BACKBONES[name].build(64).eval().double()
    pixels = torch.rand(2, 3, 64, 64, dtype=torch.float64)
    with arithmetic("f64"):
        found = network(pixels)
    expected = network(pixels)
    assert (found - expected).norm() < 1e-5 * expected.norm()


def test_a_thumbnail_of_a_large_jpeg_is_that_of_all_its_pixels(tmp_path):
    Image.fromarray(smooth_image(2000, 3000, 0)).save(tmp_path / "a.jpg", quality=95)
    assert decode(tmp_path / "a.jpg", least=200).shape == (250, 375, 3)
    assert decode(tmp_path / "a.jpg", least=1500).shape == (2000, 3000, 3)
    whole = Image.fromarray(decode(tmp_path / "a.jpg"))
    whole.thumbnail((100, 100))
    found = Image.open(io.BytesIO(thumbnail(tmp_path / "a.jpg", 100, quality=95)))
    assert found.size == whole.size
    assert np.abs(np.int16(found) - np.int16(whole)).mean() < 2


def test_file_that_is_no_state_dict_is_refused(tmp_path):
    path = tmp_path / "a.pth"
    path.write_bytes(b"<html>404</html>")
    with pytest.raises(ContractError, match="expected a state dict"):
        load_encoder("resnet50", find_weights("resnet50", str(named(path))), 64)


def test_other_weights_under_the_same_name_are_refused(tmp_path):
    """Else a model would embed new photos by another network than its own, without a word."""
    path = named(save_small(tmp_path / "mine.pth", 1))
    other = save_small(tmp_path / "other.pth", 2)
    digest = file_sha256(other)[:8]
    with refused(
        "expected weights named after", f"found {digest}", f"name the file other-{digest}.pth"
    ):
        find_weights("resnet50", str(other))
    other.rename(path)
    with refused(f"name the file mine-{digest}.pth"):
        find_weights("resnet50", str(path))


def save_small(path, value):
    torch.save({"weight": torch.full((2,), value)}, path)
    return path


@pytest.mark.parametrize(
    "saved", [torch.zeros(3), [torch.zeros(3)], {0: torch.zeros(3)}, {"epoch": 3}]
)
def test_file_of_anything_but_tensors_by_name_is_refused(tmp_path, saved):
    path = tmp_path / "a.pth"
    torch.save(saved, path)
    with pytest.raises(ContractError, match="expected a state dict"):
        load_encoder("resnet50", find_weights("resnet50", str(named(path))), 64)


def test_unknown_weights_are_answered_with_the_legal_names():
    with pytest.raises(ContractError, match="IMAGENET1K_V1, IMAGENET1K_V2 or the path"):
        find_weights("resnet50", "imagenet")
    with pytest.raises(ContractError, match="expected package or the path"):
        find_weights("efficientnet_lite0", "IMAGENET1K_V1")


@pytest.mark.parametrize("name", BACKBONES)
def test_named_weights_are_those_of_torchvision_or_of_a_package(name):
    """As settings are checked by them before torchvision could be imported."""
    published = []
    if name in torchvision.models.list_models(torchvision.models):
        published = [each.name for each in torchvision.models.get_model_weights(name)]
    assert [*BACKBONES[name].weights] == (published or ["package"])


def test_failed_download_says_which_file_goes_where(tmp_path, monkeypatch):
    def fail(url, path, hash_prefix):
        raise OSError("network is unreachable")

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr(weights_module.torch.hub, "download_url_to_file", fail)
    place = tmp_path / "checkpoints" / "resnet50-0676ba61.pth"
    with refused("network is unreachable", str(place)):
        find_weights("resnet50", "IMAGENET1K_V1")


def test_damaged_download_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "resnet50-0676ba61.pth").write_bytes(b"half a file")
    with pytest.raises(ContractError, match="starts with 0676ba61"):
        find_weights("resnet50", "IMAGENET1K_V1")


# Runtimes


@pytest.mark.parametrize(("precision", "least_cosine"), [("f32", 0.999999), ("bf16", 0.999)])
def test_a_runtime_agrees_with_torch(precision, least_cosine):
    pixels = np.stack([smooth_image(96, 96, seed) for seed in range(4)])
    with torch.inference_mode():
        expected = encoder_of("resnet50", 96)(torch.from_numpy(pixels)).numpy()
    vectors = build_runtime(encoder_of("resnet50", 96), precision, 4, 96).encode(pixels)
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, 2048)
    assert cosines(expected, vectors).min() > least_cosine


def test_a_cpu_without_bfloat16_computes_in_float32(monkeypatch):
    monkeypatch.setattr(runtimes, "multiplies_bf16", lambda _device: False)
    pixels = np.stack([smooth_image(64, 64, 1)])
    asked, plain = (
        RUNTIMES["cpu", precision](encoder_of("resnet50", 64), 1, 64)
        for precision in ("bf16", "f32")
    )
    assert asked.precision == "f32"
    assert np.array_equal(asked.encode(pixels), plain.encode(pixels))


def test_openvino_cannot_report_its_use_over_the_network():
    import_openvino()
    from openvino.tools.ovc import convert_impl

    assert convert_impl.tm.__name__.endswith("telemetry_stub")


# Real photos


@pytest.fixture(scope="module")
def photos(real_data) -> np.ndarray:
    """Return whole real photos ``uint8 [40, 224, 224, 3]``: 20 of dogs, 20 without an animal."""
    folder = real_data / "flickr8k"
    captions = pd.read_csv(folder / "captions" / "en.human.tsv", sep="\t", quoting=3, dtype=str)
    texts = captions.groupby("image_id")["text"].agg(" ".join).str.lower()
    mentions = captions["text"].str.lower().str.contains(r"\bdogs?\b")
    dogs = mentions.groupby(captions["image_id"]).mean()
    none = ~texts.str.contains("dog|cat|horse|bird|animal|puppy|cow|sheep|duck")
    names = [*dogs[dogs == 1].index[:20], *texts[none].index[:20]]
    paths = [folder / "images" / f"{name}.jpg" for name in names]
    return np.concatenate([TRANSFORMS["squash"].apply(decode(path), 224, 224) for path in paths])


@pytest.mark.real_data
@pytest.mark.parametrize("size", [0, 1, 2])
def test_packaged_weights_see_dogs_where_people_do(photos, size):
    """ImageNet's classes 151 to 268 are its breeds of dogs."""
    weights = find_weights(f"efficientnet_lite{size}", "package")
    encoder = load_encoder(f"efficientnet_lite{size}", weights, 224)
    state = torch.load(weights.path, weights_only=True)
    with torch.inference_mode():
        features = encoder(torch.from_numpy(photos))
        top = (features @ state["_fc.weight"].T + state["_fc.bias"]).argmax(dim=1)
    is_dog = ((top >= 151) & (top <= 268)).reshape(2, 20).float().mean(dim=1)
    assert is_dog[0] >= 0.7
    assert is_dog[1] < 0.1


@pytest.mark.real_data
@pytest.mark.parametrize(("precision", "least"), [("f32", 0.999999), ("bf16", 0.99)])
def test_a_runtime_agrees_with_torch_on_real_photos(photos, precision, least):
    weights, rows = find_weights("efficientnet_lite0", "package"), len(photos)
    encoder = load_encoder("efficientnet_lite0", weights, 224)
    with torch.inference_mode():
        expected = encoder(torch.from_numpy(photos)).numpy()
    found = cosines(expected, build_runtime(encoder, precision, rows, 224).encode(photos))
    assert found.mean() > 0.999
    assert found.min() > least


def write_png(path, bits, colours, pixels, transparent):
    """Write rows of stored values, of which Pillow itself writes no transparent one."""
    pixels = np.array(pixels)
    digits = ["".join(f"{value:0{bits}b}" for value in row.ravel()) for row in pixels]
    rows = b"".join(b"\0" + int(row, 2).to_bytes(len(row) // 8) for row in digits)
    path.write_bytes(png(pixels.shape[1], len(pixels), bits, colours, rows, transparent))


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_a_transparent_level_of_greyscale_of_any_bits_lies_over_white(tmp_path, bits):
    levels = np.arange(64).reshape(8, 8) % 2**bits
    for transparent in range(min(2**bits, 5)):
        write_png(tmp_path / "a.png", bits, 0, levels, (transparent,))
        shown = np.where(levels == transparent, 255, levels * 255 // (2**bits - 1))
        np.testing.assert_array_equal(decode(tmp_path / "a.png")[:, :, 0], shown)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_greyscale_of_any_bits_needs_no_transparent_level(tmp_path, bits):
    levels = np.arange(64).reshape(8, 8) % 2**bits
    write_png(tmp_path / "a.png", bits, 0, levels, ())
    shown = np.asarray(Image.open(tmp_path / "a.png").convert("RGB"))
    assert shown.max() == 255 * levels.max() // (2**bits - 1)
    np.testing.assert_array_equal(decode(tmp_path / "a.png"), shown)


def test_a_transparent_colour_of_16_bits_lies_over_white(tmp_path):
    colours = np.array([[[1000, 2000, 3000], [40000, 2000, 3000]]] * 4)
    write_png(tmp_path / "a.png", 16, 2, np.tile(colours, (1, 2, 1)), (1000, 2000, 3000))
    found = decode(tmp_path / "a.png")
    assert found[0, :2].tolist() == [[255, 255, 255], [156, 7, 11]]
