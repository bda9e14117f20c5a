import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from PIL import Image
from tiny_photos import encoded

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.encoding import PhotoEncoder
from pipeline_lib.models.embedder import Embedder, weights_of
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.images import GivenFeatures

FEATURE_DIM = 1280


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    recipe = tiny.recipe()
    model = tiny.space(recipe, seed=3, dim=FEATURE_DIM)
    path = tmp_path_factory.mktemp("models") / "seed-3"
    model.save(path, tiny.PREPROCESSING, {})
    return path


@pytest.fixture
def photos(tmp_path):
    random = np.random.default_rng(0)
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for path in paths:
        Image.fromarray(random.integers(0, 255, (40, 60, 3), np.uint8)).save(path)
    return paths


def test_sentences_are_embedded_as_the_pipeline_does(folder):
    """By the model's own vocabulary: MULE's tests read a cache that training left (audit, §3.7)."""
    embedder, model = Embedder.load(folder), JointSpace.load(folder)
    found = embedder.embed_sentences(["EN1 filler in", "en2 in"], language="en")
    ids, lengths = model.vocabulary.encode_all([["en1", "filler", "in"], ["en2", "in"]], "en")
    tensors = (torch.from_numpy(array.astype(np.int64)) for array in (ids, lengths))
    np.testing.assert_array_equal(found, model.embed_tokens(*tensors, "en").numpy())
    assert embedder.languages == ["de", "en"]


def test_photos_are_embedded_as_extraction_does(folder, photos):
    embedder = Embedder.load(folder)
    vectors = embedder.embed_images(photos)  # three photos in batches of two
    features = encoded(photos, tiny.PREPROCESSING.extractor)
    expected = embedder.model.embed_features(torch.from_numpy(features)).numpy()
    np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-6)
    sentences = embedder.embed_sentences(["en1 in"], language="en")
    scores = embedder.scores(vectors, sentences)
    np.testing.assert_allclose(scores, vectors @ sentences.T, rtol=1e-5)


def test_one_network_is_loaded_for_photos_of_a_call(folder, photos, monkeypatch):
    encoders = []

    def encoder(settings):
        encoders.append(PhotoEncoder(settings))
        return encoders[-1]

    monkeypatch.setattr("pipeline_lib.models.embedder.PhotoEncoder", encoder)
    embedder = Embedder.load(folder)
    three = [photos[0], photos[1], photos[0]]
    first, second, again = embedder.embed_images(three)  # a batch is two
    assert [each.settings.batch_size for each in encoders] == [2]
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(embedder.embed_images(photos[1:2])[0], second, atol=1e-5)
    assert [each.settings.batch_size for each in encoders] == [2, 1]


def test_bad_input_is_named(folder, photos, tmp_path):
    embedder = Embedder.load(folder)
    with pytest.raises(ContractError, match="expected one of de, en; found 'fr'"):
        embedder.embed_sentences(["un chien"], language="fr")
    with pytest.raises(ContractError, match="expected words, found '  '"):
        embedder.embed_sentences(["en1", "  "], language="en")
    with pytest.raises(ContractError, match=r"number 1: .* half a character, '\\ud800'"):
        embedder.embed_sentences(["en1 \ud800", "en1"], language="en")
    with pytest.raises(ContractError, match="expected a list of them, found 'en1'"):
        embedder.embed_sentences("en1", language="en")
    with pytest.raises(ContractError, match="expected a list of them"):
        embedder.embed_images(photos[0])
    with pytest.raises(ContractError, match="expected a list of them"):
        embedder.embed_images(io.BytesIO(b"no photo"))
    with pytest.raises(ContractError, match="number 2: expected an image in one of"):
        embedder.embed_images([photos[0], io.BytesIO(b"no photo")])
    (tmp_path / "broken.jpg").write_bytes(b"no photo")
    with pytest.raises(
        ContractError, match=r"2 problem(?s:.*)broken.jpg(?s:.*)missing.jpg: is not there"
    ):
        embedder.embed_images([*photos, tmp_path / "broken.jpg", tmp_path / "missing.jpg"])
    with pytest.raises(ContractError, match="number 2: expected a path or an open file, found Im"):
        embedder.embed_images([photos[0], Image.new("RGB", (8, 8))])
    with pytest.raises(ContractError, match="holds no model: name data/models"):
        Embedder.load(tmp_path)
    (tmp_path / "seed-1").mkdir()
    with pytest.raises(ContractError, match=f"did you mean {tmp_path}/seed-1"):
        Embedder.load(tmp_path)


def test_open_files_and_vectors_of_any_precision_are_taken(folder, photos):
    embedder = Embedder.load(folder)
    images = embedder.embed_images([io.BytesIO(Path(photo).read_bytes()) for photo in photos])
    np.testing.assert_array_equal(images, embedder.embed_images(photos))
    sentences = embedder.embed_sentences(["en1 in"], language="en")
    scores = embedder.scores(images, sentences.astype(np.float64))
    np.testing.assert_array_equal(scores, embedder.scores(images, sentences))


def test_nothing_to_embed_gives_no_vectors(folder):
    embedder = Embedder.load(folder)
    dim = embedder.model.architecture.embed_dim
    assert embedder.embed_sentences([], language="en").shape == (0, dim)
    assert embedder.embed_images([]).shape == (0, dim)


def test_vectors_of_a_precise_model_are_single_too(photos):
    model = tiny.space(tiny.recipe(precision="f64"), seed=3, dim=FEATURE_DIM)
    embedder = Embedder(model, tiny.PREPROCESSING)
    sentences = embedder.embed_sentences(["en1 in"], language="en")
    images = embedder.embed_images(photos[:1])
    assert (sentences.dtype, images.dtype) == (np.float32, np.float32)
    assert embedder.scores(embedder.embed_images([]), sentences).shape == (0, 1)


@pytest.mark.parametrize("name", ["weights/own.pth", "weights/mine-17feb595.pt"])
@pytest.mark.parametrize("started_in", ["study", "elsewhere"])
def test_weights_of_ones_own_are_found_from_the_study_of_the_model(
    tmp_path, monkeypatch, started_in, name
):
    """A study's own commands run in it; a search may run anywhere."""
    model, weights = tmp_path / "study/data/models/tiny/seed-1", tmp_path / "study" / name
    for folder in (model, weights.parent, tmp_path / "elsewhere"):
        folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / started_in)
    extractor = tiny.PREPROCESSING.extractor.model_copy(update={"weights": name})
    with pytest.raises(ContractError) as raised:
        weights_of(extractor, model)
    assert f"expected {name} in {tmp_path / started_in}" in str(raised.value)
    assert str(tmp_path / "study") in str(raised.value)
    weights.touch()
    assert Path(weights_of(extractor, model)) == weights


def test_embedded_are_photos_with_the_weights_of_the_study(tmp_path, monkeypatch, photos):
    model = tiny.space(tiny.recipe(), dim=FEATURE_DIM)
    extractor = tiny.PREPROCESSING.extractor.model_copy(update={"weights": "weights/own.pth"})
    preprocessing = tiny.PREPROCESSING.model_copy(update={"extractor": extractor})
    folder = tmp_path / "data/models/tiny/seed-1"
    model.save(folder, preprocessing, {})
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/own.pth").touch()
    monkeypatch.setattr("pipeline_lib.models.embedder.PhotoEncoder", _refuse)
    with pytest.raises(LookupError, match=str(tmp_path / "weights/own.pth")):
        Embedder.load(folder).embed_images(photos[:1])


def _refuse(settings):
    raise LookupError(settings.weights)


def test_features_are_embedded_as_they_are(folder):
    embedder = Embedder.load(folder)
    features = np.random.default_rng(0).random((5, FEATURE_DIM))
    expected = embedder.model.embed_features(torch.from_numpy(features).float()).numpy()
    np.testing.assert_array_equal(embedder.embed_features(features), expected)
    assert embedder.embed_features(features[:0]).shape == (0, expected.shape[1])
    with pytest.raises(ContractError, match=r"numbers \[images, 1280\], found float64 \[5, 9\]"):
        embedder.embed_features(features[:, :9])
    for unheld in np.inf, 1e300:  # the second by float32
        features[3, 0] = unheld
        with pytest.raises(ContractError, match="row 4: NaN or infinity"):
            embedder.embed_features(features)


def test_a_table_or_a_dictionary_is_no_list_of_sentences(folder):
    embedder = Embedder.load(folder)
    table = pd.DataFrame({"text": ["en1", "en2"], "language": ["en", "en"]})
    for given in (table[["text"]], {"a": "en1"}, np.array("en1"), np.array([["en1"]])):
        with pytest.raises(ContractError, match=r"a list of them, found (Data|dict|nda)"):
            embedder.embed_sentences(given, "en")
    with pytest.raises(ContractError, match="expected one, of all the sentences; found Series"):
        embedder.embed_sentences(table["text"], table["language"])
    with pytest.raises(ContractError, match="number 1: expected text, found float"):
        embedder.words(float("nan"), "en")


def test_sentences_are_named_by_their_place_whatever_holds_them(folder):
    embedder = Embedder.load(folder)
    column = pd.Series(["ein Hund", " ", "ein Ball"], index=[2, 0, 1])
    for made in (column, iter([*column])):
        with pytest.raises(ContractError, match=r"number 2: expected words, found ' '"):
            embedder.embed_sentences(made, "de")
    said = r"number 1: expected text, found float\n.*number 3: expected text, found NoneType"
    with pytest.raises(ContractError, match=said):
        embedder.embed_sentences([float("nan"), "ein Hund", None], "de")


def test_a_model_of_given_features_refuses_photos_and_says_what_it_takes(folder, photos, tmp_path):
    given = GivenFeatures(dataset="tiny", images="given.h5", backbone="given")
    model = JointSpace.load(folder)
    model.save(tmp_path / "m", tiny.PREPROCESSING.model_copy(update={"extractor": given}), {})
    embedder = Embedder.load(tmp_path / "m")
    assert embedder.preprocessing.extractor == given
    with pytest.raises(ContractError, match=r"features that were given .* polyview embed MODEL"):
        embedder.embed_images(photos)
    features = np.random.default_rng(0).random((2, FEATURE_DIM))
    expected = Embedder.load(folder).embed_features(features)
    np.testing.assert_array_equal(embedder.embed_features(features), expected)


def test_photos_may_come_from_a_generator(folder, photos):
    embedder = Embedder.load(folder)
    found = embedder.embed_images(Path(photo) for photo in photos)
    np.testing.assert_array_equal(found, embedder.embed_images(photos))
    assert embedder.embed_images(iter([])).shape == (0, found.shape[1])
