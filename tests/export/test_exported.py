"""``polyview export``: what other tools load equals the model; what cannot be exported is said."""

import errno
import json
import pickle
import re
import shutil
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
import tiny
import tiny_photos
import torch
import yaml
from click.testing import CliRunner
from graph import ROOT, read_yaml

from pipeline_lib.cli.main import main
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.export.card import PAPERS, write_card
from pipeline_lib.export.licences import DATA_LICENCES, READER_LICENCES
from pipeline_lib.export.sources import sources_of
from pipeline_lib.export.token_ids import id_rule
from pipeline_lib.images.decoding import decode
from pipeline_lib.images.networks import feature_dim
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.models.encoders import IMAGE_HEADS
from pipeline_lib.models.similarity import SIMILARITIES
from pipeline_lib.running.edge import MISTAKE
from pipeline_lib.running.publishing import dvc_md5
from pipeline_lib.settings.images import GivenFeatures
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.text.tokenizers import build_tokenizer

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


def ids_by_the_card(folder, language, sentences):
    """Make ids as README.md of an export says, of its files alone; tokens are between spaces."""
    named, vocabulary = (
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("onnx", "vocabulary")
    )
    rule = named["token_ids"]
    [table] = [each for each in vocabulary["tables"] if language in each["languages"]]
    first, words, pieces = rule["first"], table["words"], table["pieces"]
    ids = {word: first + i for i, word in enumerate(words)}
    of_pieces = {piece: first + len(words) + i for i, piece in enumerate(pieces)}
    rows = []
    for sentence in sentences:
        row = []
        for token in sentence.lower().split()[: vocabulary["max_tokens"]]:
            if token in ids:
                row.append(ids[token])
            elif vocabulary["oov"] == "unk":
                row.append(rule["unknown"])
            elif vocabulary["oov"] == "pieces":
                row += in_pieces(f"<{token}>", of_pieces)
        rows.append([*rule["before"], *(row or [rule["unknown"]]), *rule["after"]])
    longest = max(map(len, rows))
    filled = [row + [rule["padding"]] * (longest - len(row)) for row in rows]
    return np.array(filled, np.int64), np.array([*map(len, rows)], np.int64)


def in_pieces(text, of_pieces):
    ids = []
    while text:
        runs = [text[:length] for length in range(6, 0, -1)]
        piece = next((run for run in runs if "\ue000" + run in of_pieces), None)
        ids += [of_pieces["\ue000" + piece]] if piece else []
        text = text[len(piece) if piece else 1 :]
    return ids


@pytest.mark.parametrize("markers", ["both", "end", "none"])
@pytest.mark.parametrize("oov", ["unk", "drop", "pieces"])
def test_ids_by_the_card_are_those_of_the_vocabulary(colours, tmp_path, markers, oov):
    """The graphs themselves are compared below, with ids made so."""
    make = tiny.polyview if oov == "pieces" else tiny.recipe
    captions = tiny_photos.captions()
    captions["tokens"] = captions["tokens"].map(lambda own: [*own, f"{own[1]}wards", "forwards"])
    space = tiny.space(make(markers=markers, oov=oov, max_tokens=5), captions=captions)
    space.save(tmp_path / "model", tiny.PREPROCESSING, {})
    write_card(tmp_path / "model", "onnx", tmp_path, "mine")
    rule = id_rule(space.vocabulary)
    (tmp_path / "onnx.json").write_text(json.dumps({"token_ids": rule}))
    shutil.copy(tmp_path / "model/vocabulary.json", tmp_path)
    sentences = ["a red photo", "zebra", "towards redwards", "a red and a blue photo", "ein rot"]
    for language in ("en", "de"):
        tokens = [sentence.split() for sentence in sentences]
        expected = space.vocabulary.encode_all(tokens, language)
        found = ids_by_the_card(tmp_path, language, sentences)
        for ours, theirs in zip(expected, found, strict=True):
            np.testing.assert_array_equal(theirs, ours)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "`words[i]` has the id `first + i` (4 + i)" in text
    assert f"`before` ({rule['before']}) and `after` ({rule['after']})" in text
    said = {"unk": "has the id `unknown` (1)", "drop": "left out", "pieces": "the mark U+E000"}
    assert said[oov] in text


@pytest.mark.parametrize(
    ("language", "tokenizer", "normalize", "text"),
    [
        ("de", "moses", True, 'auf dem schild steht "stop."'),
        ("fr", "moses", "unicode", "«\xa0stop.\xa0» dit l’homme."),
        ("en", "moses", False, "a man's dog & two cats."),
        ("ja", "mecab", False, "犬が海岸で走っている。"),
        ("zh", "jieba", False, "一只狗 在海滩上奔跑。"),
    ],
)
def test_tokens_by_the_card_are_those_of_the_model(
    colours, tmp_path, language, tokenizer, normalize, text
):
    """What the card has as code is run as it stands."""
    write_card(colours / "model", "onnx", tmp_path, "mine")
    codes = re.findall("`([^`]+)`", (tmp_path / "README.md").read_text(encoding="utf-8"))
    packages = {name: import_module(name) for name in ("fugashi", "ipadic", "jieba", "sacremoses")}
    known = {**packages, **vars(packages["sacremoses"]), "language": language}
    begins = {"moses": "MosesTokenizer(", "mecab": "fugashi.", "jieba": "jieba."}[tokenizer]
    punctuation, split = (
        next(code for code in codes if code.startswith(start) and "text" in code)
        for start in ("MosesPunctNormalizer(", begins)
    )
    if normalize is True:
        punctuation = punctuation.replace("(language)", "(language, perl_parity=True)")
    rewritten = eval(punctuation, {**known, "text": text}) if normalize else text
    tokens = [token for token in eval(split, {**known, "text": rewritten}) if not token.isspace()]
    assert tokens == build_tokenizer(language, tokenizer, False, normalize)(text)


FORMULAS = {
    "√": "np.sqrt", "2 a·b": "2 * (a @ b)", "a·b": "a @ b",
    "|max(0, b - a)|²": "np.sum(np.maximum(0, b - a) ** 2)",
}  # fmt: skip


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_the_card_says_what_the_similarity_computes(tmp_path, similarity):
    space = tiny.space(tiny.recipe(similarity=similarity))
    space.save(tmp_path / "model", tiny.PREPROCESSING, {})
    write_card(tmp_path / "model", "onnx", tmp_path, "mine")
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    formula = text.split("the similarity is `")[1].partition("`")[0]
    for sign, code in FORMULAS.items():
        formula = formula.replace(sign, code)
    a, b = np.random.default_rng(0).normal(size=(2, 16))
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    expected = SIMILARITIES[similarity](torch.tensor(a)[None], torch.tensor(b)[None]).item()
    assert eval(formula, {"np": np, "a": a, "b": b}) == pytest.approx(expected, abs=1e-12)


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
        ids, lengths = ids_by_the_card(folder, language, sentences)
        arrays[f"{language}_ids"], arrays[f"{language}_lengths"] = ids, lengths
    np.savez(tmp_path / "given.npz", **arrays)
    given = str(tmp_path / "given.npz")
    subprocess.run([sys.executable, "-I", "-c", CLEAN, str(folder), given], check=True)
    for graph in folder.glob("*.onnx"):
        content = graph.read_bytes()
        assert not [part for part in (b"site-packages", b'File "', b".py") if part in content]
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


def test_onnx_of_features_that_were_given_takes_features(colours, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="the group export is not installed")
    pytest.importorskip("onnxscript", reason="the group export is not installed")
    given = GivenFeatures(dataset="tiny", images="given.h5", backbone="given")
    space, model = tiny.space(tiny.polyview(image_crops=1), dim=6), tmp_path / "model"
    space.save(model, tiny.PREPROCESSING.model_copy(update={"extractor": given}), {})
    folder = exported(model, tmp_path / "onnx", "onnx")
    features = np.random.default_rng(0).random((3, 6), np.float32)
    session = runtime.InferenceSession(folder / "image.onnx")
    [found] = session.run(None, {"features": features})
    np.testing.assert_allclose(found, Embedder.load(model).embed_features(features), atol=1e-5)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "`features` are `float32 [photos, 6]`" in card
    assert 'session.run(None, {"features": features})' in card
    assert "backbone `given`" in card


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
    loaded.save(str(folder))  # as before it is sent to a hub
    again = library.SentenceTransformer(str(tmp_path / "again"), trust_remote_code=True)
    np.testing.assert_array_equal(
        again.encode(["red"], prompt_name="en"), loaded.encode(["red"], prompt_name="en")
    )


def test_a_model_of_an_earlier_version_is_written_for_sentence_transformers(colours, tmp_path):
    pytest.importorskip("sentence_transformers", reason="the group export is not installed")
    from pipeline_lib.export.sentence_module import write_folder

    earlier = shutil.copytree(colours / "model", tmp_path / "seed-1")
    (earlier / "SHA256SUMS").unlink()
    values = json.loads((earlier / "architecture.json").read_text())
    recipe = json.loads((earlier / "recipe.json").read_text())
    (earlier / "architecture.json").unlink()
    (earlier / "recipe.json").write_text(json.dumps(recipe | values))
    (tmp_path / "written").mkdir()
    write_folder(earlier, tmp_path / "written")
    found, expected = (Embedder.load(each) for each in (tmp_path / "written", colours / "model"))
    for language, sentences in SENTENCES.items():
        vectors = [each.embed_sentences(sentences, language) for each in (found, expected)]
        np.testing.assert_array_equal(*vectors)


@pytest.mark.parametrize("command", ["export", "embed"])
def test_nothing_is_written_among_the_models_of_a_study(colours, tmp_path, command):
    """DVC would delete it, and train the recipe again."""
    model = shutil.copytree(colours / "model", tmp_path / "data/models/mine/seed-1")
    to = ["--to", "onnx"] if command == "export" else []
    given = [str(model)] if command == "export" else [str(model), str(colours / "photos")]
    (tmp_path / "dvc.yaml").write_text("")
    for place in ("x.parquet", "seed-1/x.parquet"):
        output = model.parent / place
        result = CliRunner().invoke(main, [command, *given, str(output), *to])
        assert result.exit_code == MISTAKE
        assert "expected a place outside models/mine" in result.output
        assert not output.exists()


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


def test_sentence_transformers_hands_it_to_other_processes(colours, tmp_path):
    """``encode`` with several devices pickles the model, as here, for a process of each."""
    library = pytest.importorskip(
        "sentence_transformers", reason="the group export is not installed"
    )
    folder = exported(colours / "model", tmp_path / "st", "sentence-transformers")
    loaded = library.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    expected = loaded.encode(SENTENCES["de"], prompt_name="de")  # by now it holds tokenisers
    again = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(again.encode(SENTENCES["de"], prompt_name="de"), expected)


def test_sentence_transformers_loads_it_from_the_cache_of_a_hub(colours, tmp_path):
    library = pytest.importorskip(
        "sentence_transformers", reason="the group export is not installed"
    )
    cached, commit = tmp_path / "hub/models--me--colours", 40 * "1"
    (cached / "snapshots").mkdir(parents=True)
    (cached / "refs").mkdir()
    (cached / "refs/main").write_text(commit)
    exported(colours / "model", cached / "snapshots" / commit, "sentence-transformers")
    options = {"trust_remote_code": True, "device": "cpu", "local_files_only": True}
    options["cache_folder"] = str(tmp_path / "hub")
    for revision in (None, commit):
        loaded = library.SentenceTransformer("me/colours", revision=revision, **options)
        found = loaded.encode(["a red photo"], prompt_name="en")
        expected = Embedder.load(colours / "model").embed_sentences(["a red photo"], "en")
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_is_no_text_is_named_to_sentence_transformers(colours, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="no group export")
    folder = exported(colours / "model", tmp_path / "st", "sentence-transformers")
    loaded = sentence_transformers.SentenceTransformer(str(folder), trust_remote_code=True)
    with pytest.raises(ContractError, match="expected text, found None"):
        loaded.encode(["a red photo", None], prompt_name="en")


def test_all_sentences_that_sentence_transformers_cannot_embed_are_named(colours, tmp_path):
    library = pytest.importorskip(
        "sentence_transformers", reason="the group export is not installed"
    )
    folder = exported(colours / "model", tmp_path / "st", "sentence-transformers")
    loaded = library.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    odd = ["", "a red photo", "12 34", "dos perros corren por la playa", ""]
    with pytest.raises(ContractError) as raised:
        loaded.encode(odd)
    said = str(raised.value)
    assert said.startswith("sentences: 3 problem(s)")
    assert "expected words, found ''" in said
    assert "found '12 34', which looks like" in said
    assert "looks like es. If it is one of them, name it: prompt_name" in said
    assert "--language" not in said
    embedder = loaded[0].embedder
    embedder._tokenize["en"] = lambda text: [] if text == "12 34" else text.split()
    with pytest.raises(ContractError, match="sentences: 2 problem") as raised:
        loaded.encode(odd, prompt_name="en")
    assert "expected words, found '12 34'" in str(raised.value)


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
    for file in ("params.yaml", "papers.yaml"):
        shutil.copy(ROOT / file, tmp_path)
    write_card(seed, "onnx", tmp_path, "mine")
    assert "None were found" in (tmp_path / "README.md").read_text()
    seed.unlink()
    embedder = Embedder.load(colours / "model")
    embedder.model.save(
        seed,
        embedder.preprocessing,
        {"paper": "kadar2019", "dataset": "world", "pairs": "world_six"},
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
    doubts = {"1": ["nothing was learnt"], "2": ["the space is collapsed"]}
    (scores.parent / "model.json").write_text(json.dumps({"doubts": doubts}))
    write_card(seed, "onnx", tmp_path, "mine")
    text = (tmp_path / "README.md").read_text()
    assert front_matter(tmp_path / "README.md") == {
        "library_name": "onnx",
        "language": ["de", "en"],
        "tags": ["image-text-retrieval", "multilingual", "polyview"],
    }
    assert "| en | text to photo | 7 | 5 | 9.1 (7.0 to 11.4) | 28.6 (25.1 to 32.5)" in text
    for part in (
        "Learnt from the pair set `world_six`: `world`. The recipe is tested on `world`.",
        "- Data `world`: drawn and worded by Polyview: Apache-2.0.",
        "Apache-2.0",
        "EfficientNet-Lite",
        "Kádár",
        "## Limits",
        "**Doubtful**: nothing was learnt.",
    ):
        assert part in text
    assert "collapsed" not in text


def test_the_card_has_no_metrics_of_another_model_of_that_name(colours, tmp_path):
    """Metrics are in git, and models are not: of another commit the two do not belong together."""
    embedder, models = Embedder.load(colours / "model"), tmp_path / "data/models/kadar_en"
    embedder.model.save(models / "seed-1", embedder.preprocessing, {})
    recalls = {"n_queries": 7, "n_candidates": 5}
    recalls |= {key: value for cut in ("r1", "r5", "r10") for key, value in {
        cut: 28.6, f"{cut}_interval": [25.1, 32.5],
    }.items()}  # fmt: skip
    ranked = {"en": dict.fromkeys(("image_to_text", "text_to_image"), recalls)}
    scores = tmp_path / "metrics/reports/recipes/kadar_en/scores"
    scores.mkdir(parents=True)
    (scores / "retrieval.json").write_text(json.dumps({"split": "test", "per_seed": {"1": ranked}}))
    found = []
    for recorded in (dvc_md5(models), "0" * 32 + ".dir"):
        deps = [{"path": "data/models/kadar_en", "hash": "md5", "md5": recorded}]
        lock = {"schema": "2.0", "stages": {"evaluate@kadar_en": {"cmd": "…", "deps": deps}}}
        (tmp_path / "dvc.lock").write_text(yaml.safe_dump(lock))
        write_card(models / "seed-1", "onnx", tmp_path, "mine")
        found.append((tmp_path / "README.md").read_text())
    assert "28.6 (25.1 to 32.5)" in found[0]
    assert "28.6" not in found[1]
    assert "None were found: its study evaluated another model of this name." in found[1]


def test_the_card_claims_no_licence_of_data_of_ones_own(colours, tmp_path):
    embedder = Embedder.load(colours / "model")
    embedder.model.save(tmp_path / "model", embedder.preprocessing, {"dataset": "world_news"})
    write_card(tmp_path / "model", "onnx", tmp_path, "mine")
    assert "- Data: not known to Polyview" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("reader", READER_LICENCES)
def test_the_card_knows_published_data_under_any_name(colours, tmp_path, reader):
    """As ``polyview new mine --from flickr8k`` names it."""
    params = read_yaml(ROOT / "params.yaml")
    shutil.copy(ROOT / "papers.yaml", tmp_path)
    published = read_yaml(ROOT / f"studies/{reader}/params.yaml")["datasets"]
    own = next(each for each in published.values() if each["reader"] == reader)
    text = yaml.safe_dump(params).replace("world_six", "mine_six")
    params = yaml.safe_load(text)
    params["datasets"]["mine"] = own
    params["pairs"]["mine_six"]["dataset"] = "mine"
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    embedder, seed = Embedder.load(colours / "model"), tmp_path / "data/models/kadar_en/seed-1"
    learnt = {"dataset": "mine", "pairs": "mine_six"}
    embedder.model.save(seed, embedder.preprocessing, learnt)
    assert sources_of(tmp_path, "kadar_en", "mine_six") == ["mine"]
    write_card(seed, "onnx", tmp_path, "mine")
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert f"- Data `mine`: {READER_LICENCES[reader]}." in card


def test_the_card_claims_no_licence_of_weights_of_ones_own(colours, tmp_path):
    embedder = Embedder.load(colours / "model")
    extractor = embedder.preprocessing.extractor.model_copy(
        update={"backbone": "resnet50", "weights": "weights/mine-0123abcd.pth"}
    )
    preprocessing = embedder.preprocessing.model_copy(update={"extractor": extractor})
    embedder.model.save(tmp_path / "model", preprocessing, {})
    write_card(tmp_path / "model", "onnx", tmp_path, "mine")
    assert "- Backbone: not known to Polyview" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize(
    ("study", "recipe", "expected"),
    [
        (".", "kadar_pseudo", {"world", "world_sketch"}),  # pseudopairs borrow from both
        (".", "mlmme_machine", {"world", "world_parallel"}),  # the translator's captions
        ("studies/flickr8k", "polyview", {"flickr8k", "multi30k_four"}),  # photos of text alone
        ("studies/coco", "kadar_coco", {"coco"}),  # tested on multi30k, which it never reads
        # By what it continues:
        ("studies/coco", "kadar_de_coco_pseudo_tuned", {"coco", "multi30k"}),
        (".", "ame", {"world"}),  # whose lexicon world writes, too
    ],
)
def test_what_a_model_learnt_from_is_all_that_lies_behind_it(study, recipe, expected):
    pairs = load_settings(ROOT / study / "params.yaml").recipe(recipe).pairs
    assert {*sources_of(ROOT / study, recipe, pairs)} == expected
    assert expected <= DATA_LICENCES.keys()
    assert sources_of(ROOT / study, recipe, "another") == []


@pytest.mark.parametrize("study", [".", "studies/flickr8k", "studies/multi30k", "studies/coco"])
def test_the_data_and_the_paper_of_every_committed_recipe_are_known(study):
    folder = ROOT / study
    settings = load_settings(folder / "params.yaml")
    for name in settings.recipes:
        recipe = settings.recipe(name)
        assert recipe.paper in {*PAPERS, "polyview"}
        sources = sources_of(folder, name, recipe.pairs)
        assert {each for each in sources if "/" not in each} <= DATA_LICENCES.keys()


@pytest.mark.parametrize(
    ("study", "recipe", "file"),
    [
        ("multi30k", "embn_de", "data/raw/word_vectors/fasttext/cc.de.300.vec"),
        ("flickr8k", "ame_asym", "data/raw/lexicons/muse"),
        ("coco", "kadar_de_coco_translation", "data/raw/opus-mt-en-de"),
    ],
)
def test_word_vectors_lexicons_and_translators_of_others_are_named(study, recipe, file):
    pairs = load_settings(ROOT / f"studies/{study}/params.yaml").recipe(recipe).pairs
    assert file in sources_of(ROOT / "studies" / study, recipe, pairs)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), MemoryError()])
def test_a_failure_of_the_machine_is_no_fault_of_the_module(colours, tmp_path, monkeypatch, error):
    pytest.importorskip("onnxruntime", reason="the group export is not installed")

    def fails(*given, **named):
        raise error

    monkeypatch.setattr(torch.onnx, "export", fails)
    words = ["export", str(colours / "model"), str(tmp_path / "x"), "--to", "onnx"]
    result = CliRunner().invoke(main, words)
    assert "expected a module that ONNX can hold" not in result.output
    assert result.exit_code != 0
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("form", ["onnx", "sentence-transformers"])
def test_without_its_group_it_says_how_to_install_it(colours, tmp_path, monkeypatch, form):
    for name in ("onnxruntime", "sentence_transformers", "pipeline_lib.export.sentence_module"):
        monkeypatch.setitem(sys.modules, name, None)
    words = ["export", str(colours / "model"), str(tmp_path / "x"), "--to", form]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "run uv sync --group export" in result.output
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("form", ["onnx", "sentence-transformers"])
def test_of_a_model_that_is_replaced_meanwhile_nothing_is_exported(
    colours, tmp_path, monkeypatch, form
):
    """A training may publish while the graphs are made."""
    pytest.importorskip("onnxscript", reason="the group export is not installed")
    model = shutil.copytree(colours / "model", tmp_path / "model")
    copy = shutil.copyfile

    def copied(source, target):
        embedder = Embedder.load(colours / "model")
        with torch.no_grad():
            next(embedder.model.parameters()).add_(1)
        shutil.rmtree(model)
        embedder.model.save(model, embedder.preprocessing, {})
        return copy(source, target)

    monkeypatch.setattr(shutil, "copyfile", copied)
    words = ["export", str(model), str(tmp_path / "x"), "--to", form]
    result = CliRunner().invoke(main, words)
    assert f"{model}: was replaced while it was exported. Export it again" in result.output
    assert (result.exit_code, (tmp_path / "x").exists()) == (2, False)


@pytest.mark.parametrize(
    "lock",
    ["", "<<<<<<< HEAD\nschema: '2.0'\n=======\n", "schema: '2.0'\n",
     "stages:\n  evaluate@colours:\n    deps:\n    - path: data/models/colours\n"],
)  # fmt: skip
def test_a_damaged_lock_is_named_before_the_export(colours, tmp_path, lock):
    pytest.importorskip("onnxscript", reason="the group export is not installed")
    model = tmp_path / "data/models/colours/seed-1"
    shutil.copytree(colours / "model", model)
    scores = tmp_path / "metrics/reports/recipes/colours/scores"
    scores.mkdir(parents=True)
    (scores / "retrieval.json").write_text('{"split": "test", "per_seed": {"1": {"en": {}}}}')
    (tmp_path / "dvc.lock").write_text(lock)
    words = ["export", str(model), str(tmp_path / "x"), "--to", "onnx"]
    result = CliRunner().invoke(main, words)
    assert f"{tmp_path}/dvc.lock: expected DVC's record" in result.output
    assert (result.exit_code, (tmp_path / "x").exists()) == (2, False)


def test_a_link_to_a_disk_that_is_not_there_now_is_left_alone(colours, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/not/mounted")
    result = CliRunner().invoke(main, ["export", str(colours / "model"), str(link), "--to", "onnx"])
    assert (result.exit_code, "is there already" in result.output) == (2, True)
    assert link.is_symlink()


def test_what_is_there_is_left_alone(colours, tmp_path):
    result = CliRunner().invoke(
        main, ["export", str(colours / "model"), str(tmp_path), "--to", "onnx"]
    )
    assert (result.exit_code, "is there already" in result.output) == (2, True)
