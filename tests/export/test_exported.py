"""``polyview export``: what other tools load equals the model; what cannot be exported is said."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tiny
import yaml
from click.testing import CliRunner

from pipeline_lib.cli.main import main
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.export.card import write_card
from pipeline_lib.images.decoding import decode
from pipeline_lib.images.networks import feature_dim
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.models.encoders import IMAGE_HEADS

pytestmark = pytest.mark.usefixtures("as_a_user")
SENTENCES = {
    "en": ["a red photo", "blue", "a zebra in white and a green photo", "photo"],
    "de": ["ein rot Foto", "blau", "ein Zebra, ein Foto", "weiß"],
}

CLEAN = """
import sys
for name in ("torch", "pipeline_lib", "sentence_transformers"):
    sys.modules[name] = None
import json, numpy, onnxruntime
folder, given = sys.argv[1:]
arrays, found = numpy.load(given), {}
named = json.load(open(folder + "/onnx.json"))
for language, file in named["text"].items():
    names = {"token_ids": arrays[language + "_ids"], "lengths": arrays[language + "_lengths"]}
    found[language] = onnxruntime.InferenceSession(f"{folder}/{file}").run(None, names)[0]
session = onnxruntime.InferenceSession(folder + "/" + named["image"])
found["image"] = session.run(None, {"crops": arrays["crops"]})[0]
numpy.savez(given + ".out.npz", **found)
"""
"""Loads graphs where neither torch nor this project can be imported."""


def exported(model, output, form):
    result = CliRunner().invoke(main, ["export", str(model), str(output), "--to", form])
    assert result.exit_code == 0, result.output
    return output


def compare_onnx(model, photos, tmp_path):
    pytest.importorskip("onnxruntime", reason="the group export is not installed")
    pytest.importorskip("onnxscript", reason="the group export is not installed")
    folder = exported(model, tmp_path / "onnx", "onnx")
    embedder = Embedder.load(model)
    extractor = embedder.preprocessing.extractor
    cut = TRANSFORMS[extractor.transform].apply
    crops = [cut(decode(path), extractor.resize, extractor.crop) for path in photos]
    arrays = {"crops": np.stack(crops)}
    for language, sentences in SENTENCES.items():
        tokens = [sentence.lower().split() for sentence in sentences]
        ids, lengths = embedder.model.vocabulary.encode_all(tokens, language)
        arrays[f"{language}_ids"], arrays[f"{language}_lengths"] = (
            array.astype(np.int64) for array in (ids, lengths)
        )
    np.savez(tmp_path / "given.npz", **arrays)
    given = str(tmp_path / "given.npz")
    subprocess.run([sys.executable, "-I", "-c", CLEAN, str(folder), given], check=True)
    found = np.load(f"{given}.out.npz")
    for language, sentences in SENTENCES.items():
        expected = embedder.embed_sentences(sentences, language)
        np.testing.assert_allclose(found[language], expected, atol=1e-5)
    np.testing.assert_allclose(found["image"], embedder.embed_images(photos), atol=1e-5)
    return json.loads((folder / "onnx.json").read_text())


def test_onnx_equals_the_model_where_only_onnxruntime_is(colours, tmp_path):
    named = compare_onnx(colours / "model", sorted((colours / "photos").glob("*.png")), tmp_path)
    assert named["text"] == {"en": "text-en.onnx", "de": "text-de.onnx"}


@pytest.mark.parametrize(
    "changes",
    [
        {"vocabulary": "pooled", "precision": "f64"},
        {"objective": "two_branch", "embed_dim": 16, "absolute": True},
    ],
)
def test_onnx_of_lstm_batch_norm_shared_tables_and_f64(colours, tmp_path, changes):
    space = tiny.space(tiny.recipe(**changes), dim=1280)
    space.save(tmp_path / "model", tiny.PREPROCESSING, {})
    photos = sorted((colours / "photos").glob("*.png"))
    named = compare_onnx(tmp_path / "model", photos, tmp_path)
    pooled = changes.get("vocabulary") == "pooled"
    assert len(set(named["text"].values())) == (1 if pooled else 2)


def test_onnx_of_our_own_recipe_bag_residual_pieces_crops_and_stages(colours, tmp_path):
    extractor = tiny.PREPROCESSING.extractor.model_copy(
        update={"transform": "squash_mirror", "layers": "stages"}
    )
    dim = feature_dim(extractor.backbone, extractor.layers)
    space = tiny.space(tiny.polyview(image_crops=2), dim=2 * dim)
    space.save(
        tmp_path / "model", tiny.PREPROCESSING.model_copy(update={"extractor": extractor}), {}
    )
    compare_onnx(tmp_path / "model", sorted((colours / "photos").glob("*.png")), tmp_path)


def test_a_part_that_cannot_be_exported_is_named(colours, tmp_path, monkeypatch):
    pytest.importorskip("onnxscript", reason="the group export is not installed")
    graphs = pytest.importorskip("pipeline_lib.export.graphs")
    forward = IMAGE_HEADS["mlp"].forward

    def depends_on_values(self, features):
        return forward(self, features[features.sum(dim=1).tolist()[0] > 0 :])

    monkeypatch.setattr(IMAGE_HEADS["mlp"], "forward", depends_on_values)
    with pytest.raises(ContractError, match=r"image_head mlp or backbone .*: expected a module"):
        graphs.write_graphs(colours / "model", tmp_path)


def test_sentence_transformers_loads_it(colours, tmp_path):
    library = pytest.importorskip(
        "sentence_transformers", reason="the group export is not installed"
    )
    folder = exported(colours / "model", tmp_path / "st", "sentence-transformers")
    embedder = Embedder.load(colours / "model")
    loaded = library.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    for language, sentences in SENTENCES.items():
        expected = embedder.embed_sentences(sentences, language)
        found = loaded.encode(sentences, prompt_name=language)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    mixed = loaded.encode(["a red photo", "ein blau Foto"])  # their languages are detected
    expected = [embedder.embed_sentences(["a red photo"], "en")[0]]
    expected += [embedder.embed_sentences(["ein blau Foto"], "de")[0]]
    np.testing.assert_allclose(mixed, expected, atol=1e-5)
    assert loaded.get_embedding_dimension() == 16
    loaded.save(str(tmp_path / "again"))
    again = library.SentenceTransformer(str(tmp_path / "again"), trust_remote_code=True)
    np.testing.assert_array_equal(
        again.encode(["red"], prompt_name="en"), loaded.encode(["red"], prompt_name="en")
    )


def test_only_languages_of_the_model_are_prompts(colours, tmp_path):
    library = pytest.importorskip(
        "sentence_transformers", reason="the group export is not installed"
    )
    folder = exported(colours / "model", tmp_path / "st", "sentence-transformers")
    loaded = library.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    text = "<br> a red photo"
    expected = Embedder.load(colours / "model").embed_sentences([text], "en")
    for options in ({}, {"prompt_name": "en"}):
        np.testing.assert_allclose(loaded.encode([text], **options), expected, atol=1e-5)


def test_the_card_names_every_language_in_a_form_that_yaml_keeps(tmp_path):
    """YAML 1.1, which model hubs read, takes a bare no for false."""
    languages = ["no", "en"]
    space = tiny.space(tiny.recipe(languages=languages), captions=norwegian())
    preprocessing = tiny.PREPROCESSING.model_copy(
        update={"tokenizers": dict.fromkeys(languages, tiny.PREPROCESSING.tokenizers["en"])}
    )
    space.save(tmp_path / "model", preprocessing, {})
    write_card(tmp_path / "model", "onnx", tmp_path, "mine")
    assert front_matter(tmp_path / "README.md")["language"] == ["en", "no"]


def norwegian():
    pairs = tiny.pairs()
    return pairs.assign(language=pairs["language"].replace("de", "no"))


def front_matter(card):
    return yaml.safe_load(card.read_text(encoding="utf-8").split("---\n")[1])


def test_the_card_has_languages_data_metrics_licences_and_citation(colours, tmp_path):
    seed = tmp_path / "data/models/kadar_en/seed-1"
    seed.parent.mkdir(parents=True)
    seed.symlink_to(colours / "model")
    write_card(seed, "onnx", tmp_path, "mine")
    assert "None were found" in (tmp_path / "README.md").read_text()
    seed.unlink()
    embedder = Embedder.load(colours / "model")
    embedder.model.save(
        seed, embedder.preprocessing, {"paper": "kadar2019", "dataset": "world", "pairs": "six"}
    )
    recalls = {"n_queries": 7, "n_candidates": 5}
    recalls |= {"r1": 9.125, "r1_interval": [7.0, 11.4], "r5": 28.6, "r5_interval": [25.1, 32.5]}
    recalls |= {"r10": 43.8, "r10_interval": [39.8, 48.0]}
    report = {
        "split": "test",
        "per_seed": {"1": {"en": dict.fromkeys(("image_to_text", "text_to_image"), recalls)}},
    }
    scores = tmp_path / "metrics/reports/recipes/kadar_en/scores"
    scores.mkdir(parents=True)
    (scores / "retrieval.json").write_text(json.dumps(report))
    write_card(seed, "onnx", tmp_path, "mine")
    text = (tmp_path / "README.md").read_text()
    assert front_matter(tmp_path / "README.md") == {
        "library_name": "onnx",
        "language": ["de", "en"],
        "tags": ["image-text-retrieval", "multilingual", "polyview"],
    }
    assert "| en | text to photo | 7 | 5 | 9.1 (7.0 to 11.4) | 28.6 (25.1 to 32.5)" in text
    for part in (
        "`world` (pair set `six`)",
        "Apache-2.0",
        "EfficientNet-Lite",
        "Kádár",
        "## Limits",
    ):
        assert part in text


def test_the_card_claims_no_licence_of_data_of_ones_own(colours, tmp_path):
    embedder = Embedder.load(colours / "model")
    embedder.model.save(tmp_path / "model", embedder.preprocessing, {"dataset": "world_news"})
    write_card(tmp_path / "model", "onnx", tmp_path, "mine")
    assert "- Data: not known to Polyview" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("form", ["onnx", "sentence-transformers"])
def test_without_its_group_it_says_how_to_install_it(colours, tmp_path, monkeypatch, form):
    for name in ("onnxruntime", "sentence_transformers", "pipeline_lib.export.sentence_module"):
        monkeypatch.setitem(sys.modules, name, None)
    words = ["export", str(colours / "model"), str(tmp_path / "x"), "--to", form]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "run uv sync --group export" in result.output
    assert not (tmp_path / "x").exists()


def test_what_is_there_is_left_alone(colours, tmp_path):
    result = CliRunner().invoke(
        main, ["export", str(colours / "model"), str(tmp_path), "--to", "onnx"]
    )
    assert (result.exit_code, "is there already" in result.output) == (2, True)
