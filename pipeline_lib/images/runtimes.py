"""One image encoder on the hardware at hand, in float64, float32 or bfloat16.

float64 is the reference, whose features are the same on every CPU. On CPUs float32 and bfloat16 run
in OpenVINO, which needs no compiler on the user's machine and measures faster there than torch,
eager or compiled; on CUDA devices they run in torch, bfloat16 in its automatic mixed precision.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from types import ModuleType
from weakref import WeakValueDictionary

import numpy as np
import torch

from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.compute.device import best_device, multiplies_bf16, one_core_each
from pipeline_lib.compute.forks import cores, on_all_cores
from pipeline_lib.images.networks import ExtractorSettings, ImageEncoder, load_network
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.images.weights import WeightsFile

Encode = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Runtime:
    """An encoder ready to run.

    Attributes:
        encode: ``uint8 [rows, side, side, 3]`` to ``float32 [rows, dim]``, always with the number
            of rows that the runtime was built for. Threads may share it.
        device: Where it runs: ``cpu`` or ``cuda``.
        precision: What it computes in. ``f32`` where ``bf16`` was asked of a CPU that lacks it.
    """

    encode: Encode
    device: str
    precision: str


_LOADED: WeakValueDictionary[tuple[object, ...], Runtime] = WeakValueDictionary()
"""Networks that are in use, each by all that makes it what it is: to convert one takes seconds."""


def load_runtime(settings: ExtractorSettings, weights: WeightsFile) -> Runtime:
    """Load an extractor's network, for full batches of its settings; one in use is shared.

    Raises:
        ContractError: The file's parameters are not those of the network.
    """
    transform = TRANSFORMS[settings.transform]
    side = transform.side(settings.resize, settings.crop)
    rows = settings.batch_size * transform.crops
    kind = settings.precision, best_device(settings.precision).type
    network = settings.backbone, weights.sha256, settings.layers, settings.crop
    key = (*network, side, rows, *kind, os.getpid())  # a fork has none of OpenVINO's threads
    runtime = _LOADED.get(key)
    if runtime is None:
        runtime = build_runtime(load_network(settings, weights), settings.precision, rows, side)
        _LOADED[key] = runtime
    return runtime


def build_runtime(encoder: ImageEncoder, precision: str, rows: int, side: int) -> Runtime:
    """Put an encoder on a CUDA device if there is one, else on the CPU.

    Args:
        encoder: The network; it may be moved and its memory layout changed.
        precision: ``bf16``, ``f32`` or ``f64``.
        rows: Crops per forward pass.
        side: Height and width in pixels of what the network sees.
    """
    return RUNTIMES[best_device(precision).type, precision](encoder.eval(), rows, side)


def _cuda_f32(encoder: ImageEncoder, rows: int, side: int) -> Runtime:
    return Runtime(_cuda_encode(encoder, mixed=False), "cuda", "f32")


def _cuda_bf16(encoder: ImageEncoder, rows: int, side: int) -> Runtime:
    if not multiplies_bf16(torch.device("cuda")):  # what it emulates is slower than float32
        return _cuda_f32(encoder, rows, side)
    return Runtime(_cuda_encode(encoder, mixed=True), "cuda", "bf16")


def _cuda_encode(encoder: ImageEncoder, mixed: bool) -> Encode:
    encoder = encoder.to("cuda", memory_format=torch.channels_last)

    @torch.inference_mode()
    def encode(pixels: np.ndarray) -> np.ndarray:
        # By default cuDNN computes float32 convolutions in TF32, and chooses algorithms freely.
        exact = torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
        with exact, torch.autocast("cuda", torch.bfloat16, enabled=mixed):
            return encoder(torch.from_numpy(pixels).to("cuda")).float().cpu().numpy()

    return encode


def _cpu_f32(encoder: ImageEncoder, rows: int, side: int) -> Runtime:
    return Runtime(_openvino_encode(encoder, rows, side, "f32"), "cpu", "f32")


def _cpu_bf16(encoder: ImageEncoder, rows: int, side: int) -> Runtime:
    if not multiplies_bf16(torch.device("cpu")):  # what it emulates is slower than float32
        return _cpu_f32(encoder, rows, side)
    return Runtime(_openvino_encode(encoder, rows, side, "bf16"), "cpu", "bf16")


def _openvino_encode(encoder: ImageEncoder, rows: int, side: int, precision: str) -> Encode:
    openvino = import_openvino()
    core = openvino.Core()
    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": cores(),
    }
    example = torch.zeros(rows, side, side, 3, dtype=torch.uint8)
    model = openvino.convert_model(torch.export.export(encoder, (example,)))
    request = core.compile_model(model, "CPU", options).create_infer_request()
    alone = Lock()

    def encode(pixels: np.ndarray) -> np.ndarray:
        with alone:  # a request computes one batch at a time, on all cores
            return request.infer([pixels])[0].copy()  # OpenVINO reuses the buffer

    return encode


def import_openvino() -> ModuleType:
    """Import OpenVINO without its telemetry, which reports each import over the network."""
    sys.modules.setdefault("openvino_telemetry", None)
    import openvino

    return openvino


def _reference(encoder: ImageEncoder, rows: int, side: int) -> Runtime:
    encoder = encoder.double()

    @torch.inference_mode()
    def encode_some(images: np.ndarray) -> np.ndarray:
        with arithmetic("f64"):
            return encoder(torch.from_numpy(images)).float().numpy()

    def encode(pixels: np.ndarray) -> np.ndarray:
        parts = [pixels[first : first + 4] for first in range(0, rows, 4)]  # stay in the cache
        with one_core_each():
            return np.concatenate([*on_all_cores(encode_some, parts)])

    return Runtime(encode, "cpu", "f64")


RUNTIMES = {
    ("cpu", "f64"): _reference,
    ("cpu", "f32"): _cpu_f32,
    ("cpu", "bf16"): _cpu_bf16,
    ("cuda", "f32"): _cuda_f32,
    ("cuda", "bf16"): _cuda_bf16,
}
