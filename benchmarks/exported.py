"""What exported folders say where this project is not: in environments made anew, without it.

python -m benchmarks.exported MODEL PHOTOS: exports a model of a study both ways (needs the group
export, and uv), and loads ONNX beside onnxruntime alone, the folder of sentence-transformers beside
that library and this package, installed as a user would. Prints the largest difference of a number
of a vector, of 500 training captions of each language and 50 photos. ONNX embeds photos in f32;
where the model's study has bf16, it is compared with ours in f32, and with ours as it is.
"""

import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import click
import numpy as np
import torch

from pipeline_lib.contract.tables import read_pairs
from pipeline_lib.export.card import write_card
from pipeline_lib.images.decoding import decode
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.search.captions import study_captions
from pipeline_lib.search.photos import photo_paths
from pipeline_lib.text.tokenizers import build_tokenizer

SENTENCES, PHOTOS = 500, 50

ROOT = Path(__file__).resolve().parent.parent

ONNX = """
import importlib.util, json, numpy, onnxruntime, sys
there = [name for name in ("torch", "pipeline_lib") if importlib.util.find_spec(name)]
assert not there, there
folder, given, found = sys.argv[1:]
arrays, named, vectors = numpy.load(given), json.load(open(folder + "/onnx.json")), {}
def run(file, **inputs):
    return onnxruntime.InferenceSession(f"{folder}/{file}").run(None, inputs)[0]
for language, file in named["text"].items():
    ids, lengths = arrays[f"{language} ids"], arrays[f"{language} lengths"]
    vectors[language] = run(file, token_ids=ids, lengths=lengths)
vectors["photos"] = run(named["image"], crops=arrays["crops"])
numpy.savez(found, **vectors)
"""

SENTENCE_TRANSFORMERS = """
import json, numpy, sys
from sentence_transformers import SentenceTransformer
folder, given, found = sys.argv[1:]
texts = json.load(open(given))
model = SentenceTransformer(folder, trust_remote_code=True, device="cpu")
numpy.savez(found, **{name: model.encode(own, prompt_name=name) for name, own in texts.items()})
"""


@click.command(help=__doc__)
@click.argument("model", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("photos", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(model: Path, photos: Path) -> None:
    """Print the differences of each form."""
    from pipeline_lib.export.graphs import write_graphs  # of the group export
    from pipeline_lib.export.sentence_module import write_folder

    embedder = Embedder.load(model)
    texts = _texts(embedder, model)
    files = [photos / path for path in photo_paths(photos)[:PHOTOS]]
    ours = {language: embedder.embed_sentences(own, language) for language, own in texts.items()}
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for form, write in (("onnx", write_graphs), ("sentences", write_folder)):
            (work / form).mkdir()
            write(model, work / form)
            write_card(model, form if form == "onnx" else "sentence-transformers", work / form, "x")
        np.savez(work / "given.npz", **_inputs(embedder, texts, files))
        (work / "given.json").write_text(json.dumps(texts), encoding="utf-8")
        python = _environment(work / "alone", [_pinned("onnxruntime"), _pinned("numpy")])
        found = _run(python, ONNX, work / "onnx", work / "given.npz", work)
        photos = _without_bf16(embedder).embed_images(files)
        _print("onnx", found, ours | {"photos": photos})
        _print("as the model says", found, {"photos": embedder.embed_images(files)})
        python = _environment(work / "beside", [_pinned("sentence-transformers"), str(ROOT)])
        found = _run(python, SENTENCE_TRANSFORMERS, work / "sentences", work / "given.json", work)
        _print("sentence-transformers", found, ours)


def _without_bf16(embedder: Embedder) -> Embedder:
    """Return what embeds photos in f32, as ONNX does, where the model's study has bf16."""
    extractor = embedder.preprocessing.extractor
    if extractor.precision != "bf16":
        return embedder
    plain = {"extractor": extractor.model_copy(update={"precision": "f32"})}
    preprocessing = embedder.preprocessing.model_copy(update=plain)
    return Embedder(embedder.model, preprocessing, embedder.folder)


def _texts(embedder: Embedder, model: Path) -> dict[str, list[str]]:
    pairs = read_pairs(study_captions(model))
    return {
        language: [*pairs.loc[pairs["language"] == language, "text"].unique()[:SENTENCES]]
        for language in embedder.languages
    }


def _inputs(
    embedder: Embedder, texts: dict[str, list[str]], photos: list[Path]
) -> dict[str, np.ndarray]:
    """Return what the graphs are given: ids, lengths and crops."""
    extractor, arrays = embedder.preprocessing.extractor, {}
    cut = TRANSFORMS[extractor.transform].apply
    crops = [cut(decode(path), extractor.resize, extractor.crop) for path in photos]
    arrays["crops"] = np.stack(crops)
    for language, own in texts.items():
        settings = embedder.preprocessing.tokenizers[language].model_dump()
        tokens = map(build_tokenizer(language, **settings), own)
        encoded = embedder.model.vocabulary.encode_all([*tokens], language)
        arrays[f"{language} ids"], arrays[f"{language} lengths"] = encoded
    return arrays


def _pinned(package: str) -> str:
    return f"{package}=={version(package)}"


def _environment(folder: Path, packages: list[str]) -> Path:
    """Make an environment of these packages alone, and return its Python."""
    python = folder / "bin/python"
    subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, folder], check=True)
    subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, *packages], check=True)
    return python


def _run(python: Path, program: str, folder: Path, given: Path, work: Path) -> dict:
    """Run a program where no folder of ours is on the path, and return its arrays."""
    found = work / f"{folder.name}.npz"
    subprocess.run([python, "-I", "-c", program, folder, given, found], cwd=work, check=True)
    return dict(np.load(found))


def _print(form: str, found: dict[str, np.ndarray], ours: dict[str, np.ndarray]) -> None:
    for name, expected in ours.items():
        apart = np.abs(found[name] - expected).max()
        click.echo(f"{form}, {name}, {len(expected)}: {apart:.1e}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
