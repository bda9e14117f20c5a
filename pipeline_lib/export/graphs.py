"""Both sides of a joint space as ONNX graphs, whatever its registered parts."""

import json
import logging
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.export.token_ids import id_rule
from pipeline_lib.images.networks import ImageEncoder, load_network
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.images.weights import find_weights
from pipeline_lib.models.embedder import weights_of
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.preprocessing import Preprocessing
from pipeline_lib.settings.images import GivenFeatures, ImageFeatures

TOLERANCE = 1e-5
"""Largest difference of a number of a unit vector between a graph and the model."""


class SentenceSide(nn.Module):
    """From encoded sentences of one language to their vectors."""

    def __init__(self, space: JointSpace, language: str) -> None:
        """Take a model in float32."""
        super().__init__()
        self.space, self.language = space, language

    def forward(self, token_ids: Tensor, lengths: Tensor) -> Tensor:
        """Embed ``int64 [sentences, steps]`` and ``int64 [sentences]``: ``[sentences, dim]``."""
        return self.space.sentence_vectors(token_ids, lengths, self.language)


class PhotoSide(nn.Module):
    """From crops of photos to their vectors, through the backbone."""

    def __init__(self, space: JointSpace, backbone: ImageEncoder, apart: bool) -> None:
        """Take a model in float32 and its backbone; features of crops are averaged or apart."""
        super().__init__()
        self.space, self.backbone, self.apart = space, backbone, apart

    def forward(self, crops: Tensor) -> Tensor:
        """Embed ``uint8 [photos, crops, side, side, 3]``: ``float32 [photos, dim]``."""
        features = self.backbone(crops.flatten(0, 1)).unflatten(0, crops.shape[:2])
        joined = features.flatten(1) if self.apart else features.mean(dim=1)
        return self.space.image_vectors(joined)


class FeatureSide(nn.Module):
    """From features of photos to their vectors."""

    def __init__(self, space: JointSpace) -> None:
        """Take a model in float32."""
        super().__init__()
        self.space = space

    def forward(self, features: Tensor) -> Tensor:
        """Embed ``float32 [photos, feature_dim]``: ``float32 [photos, dim]``."""
        return self.space.image_vectors(features)


def write_graphs(model: Path, folder: Path) -> None:
    """Write text-LANGUAGE.onnx, image.onnx, and what stands before them, into a folder.

    Languages whose graphs are equal share a file: onnx.json says which.

    Args:
        model: Folder of a trained model.
        folder: Is there.

    Raises:
        ContractError: If a part of the model cannot be exported, or its graph differs from it.
    """
    space = _in_f32(JointSpace.load(model))
    text = (model / "preprocessing.json").read_text(encoding="utf-8")
    preprocessing = Preprocessing.model_validate(json.loads(text))
    files: dict[str, str] = {}
    for language in space.architecture.languages:
        path = folder / f"text-{language}.onnx"
        inputs = _sentences(space, language)
        part = f"text_encoder {space.architecture.text_encoder} ({language})"
        dynamic = {"token_ids": {0: "sentences", 1: "steps"}, "lengths": {0: "sentences"}}
        _export(SentenceSide(space, language), inputs, dynamic, path, part)
        files[language] = _shared(path, files.values())
    _write_image_graph(space, preprocessing.extractor, model, folder / "image.onnx")
    for name in ("vocabulary.json", "preprocessing.json"):
        shutil.copyfile(model / name, folder / name)
    content = {
        "text": files,
        "image": "image.onnx",
        "similarity": space.architecture.similarity,
        "token_ids": id_rule(space.vocabulary),
    }
    (folder / "onnx.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _write_image_graph(
    space: JointSpace, extractor: ImageFeatures, model: Path, path: Path
) -> None:
    """Write the graph of photos, or that of features, if the model's were given."""
    rng, part = np.random.default_rng(0), f"image_head {space.architecture.image_head}"
    if isinstance(extractor, GivenFeatures):
        features = torch.from_numpy(rng.random((2, space.feature_dim), np.float32))
        rows = {"features": {0: "photos"}}
        _export(FeatureSide(space), {"features": features}, rows, path, part)
        return
    transform = TRANSFORMS[extractor.transform]
    side = transform.side(extractor.resize, extractor.crop)
    weights = find_weights(extractor.backbone, weights_of(extractor, model))
    network = PhotoSide(space, load_network(extractor, weights), transform.apart)
    shape = (2, transform.crops, side, side, 3)
    crops = torch.from_numpy(rng.integers(0, 256, shape, np.uint8))
    photos = {"crops": {0: "photos"}}
    _export(network, {"crops": crops}, photos, path, f"{part} or backbone {extractor.backbone}")


def _in_f32(trained: JointSpace) -> JointSpace:
    architecture = trained.architecture.model_copy(update={"precision": "f32"})
    space = JointSpace(architecture, trained.vocabulary, trained.feature_dim)
    space.load_state_dict(trained.float().state_dict())
    return space.eval()


def _sentences(space: JointSpace, language: str) -> dict[str, Tensor]:
    """Return some encoded sentences of different lengths."""
    size = space.vocabulary.size(language)
    ids = torch.from_numpy(np.random.default_rng(0).integers(4, size, (3, 7)))
    lengths = torch.tensor([7, 3, 5])
    return {"token_ids": ids * (torch.arange(7) < lengths[:, None]), "lengths": lengths}


def _export(
    module: nn.Module,
    inputs: Mapping[str, Tensor],
    dynamic: Mapping[str, Mapping[int, str]],
    path: Path,
    part: str,
) -> None:
    """Write a module as a graph with inputs of any number, and compare both."""
    module.eval().requires_grad_(False)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module,
                kwargs=dict(inputs),
                dynamo=True,
                dynamic_shapes={name: dict(axes) for name, axes in dynamic.items()},
                input_names=[*inputs],
                output_names=["vectors"],
                verbose=False,
            )
            for node in program.model.graph.all_nodes():
                node.metadata_props.clear()  # lines of code, with paths of this machine
            program.save(path, external_data=False)
    except (OSError, MemoryError):  # the machine's fault, not the module's
        raise
    except Exception as error:  # the exporter raises what its passes raise
        reason = str(error).strip().partition("\n")[0]
        raise ContractError(f"{part}: expected a module that ONNX can hold; {reason}") from error
    _compare(module, inputs, path, part)


def _compare(module: nn.Module, inputs: Mapping[str, Tensor], path: Path, part: str) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    with torch.inference_mode():
        for rows in (slice(None), slice(1)):
            some = {name: tensor[rows].contiguous() for name, tensor in inputs.items()}
            (found,) = session.run(None, {name: each.numpy() for name, each in some.items()})
            apart = float(np.abs(found - module(**some).numpy()).max())
            if not apart <= TOLERANCE:
                raise ContractError(
                    f"{part}: expected a graph equal to {TOLERANCE:g}, found {apart:g}"
                )


def _shared(path: Path, earlier: object) -> str:
    """Return the name of an earlier graph with the same bytes, or of this one."""
    content = path.read_bytes()
    for name in sorted(set(earlier)):
        if (path.parent / name).read_bytes() == content:
            path.unlink()
            return name
    return path.name
