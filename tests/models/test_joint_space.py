import json
from functools import partial

import pytest
import tiny
import torch
from safetensors.torch import load_file, save_file
from tiny import model
from tiny_models import moved, named

from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.models.joint_space import JointSpace

IDS, LENGTHS = torch.tensor([[4, 5, 6, 0], [5, 0, 0, 0], [7, 6, 5, 4]]), torch.tensor([3, 1, 4])


@pytest.mark.parametrize("vocabulary", ["pooled", "per_language"])
def test_a_saved_model_loads_and_scores_the_same(tmp_path, vocabulary):
    made = model(vocabulary=vocabulary)
    made.save(tmp_path / "m", tiny.PREPROCESSING, {})
    loaded = JointSpace.load(tmp_path / "m")
    assert loaded.architecture == made.architecture
    features = torch.randn(5, 10)
    assert torch.equal(loaded.image_vectors(features), made.image_vectors(features))
    for language in ("en", "de"):
        a, b = (m.sentence_vectors(IDS, LENGTHS, language) for m in (made, loaded))
        assert torch.equal(a, b)
    names = {path.name for path in (tmp_path / "m").iterdir()}
    assert names == {
        "weights.safetensors",
        "architecture.json",
        "recipe.json",
        "vocabulary.json",
        "preprocessing.json",
        "SHA256SUMS",
    }
    json.loads((tmp_path / "m" / "vocabulary.json").read_text())


def save_as_before(folder, recipe, made, lacking=()):
    """Save as the versions did that had one file for what a model is and how it learnt."""
    made.save(folder, tiny.PREPROCESSING, {})
    (folder / "SHA256SUMS").unlink()
    (folder / "architecture.json").unlink()
    parts = {"loss", "text_encoder", "image_head", *lacking}
    values = {"feature_dim": made.feature_dim, **recipe.model_dump(exclude=parts)}
    (folder / "recipe.json").write_text(json.dumps(values))
    weights = load_file(folder / "weights.safetensors")
    weights["language_classifier.weight"] = torch.ones(2, 12)  # of a layer that embeds nothing
    save_file(weights, folder / "weights.safetensors")


@pytest.mark.parametrize("objective", tiny.OWN)
@pytest.mark.parametrize("lacking", [[], ["select_by", "decay_epochs"]], ids=["47 keys", "45 keys"])
def test_a_model_of_an_earlier_version_loads(tmp_path, objective, lacking):
    recipe = tiny.recipe(objective)
    made = tiny.space(recipe)
    save_as_before(tmp_path / "m", recipe, made, lacking)
    loaded = JointSpace.load(tmp_path / "m")
    assert loaded.architecture == made.architecture
    assert not loaded.training
    assert not moved(named(made), named(loaded))


def test_keys_of_training_that_nobody_knows_do_not_matter(tmp_path):
    made = model()
    made.save(tmp_path / "m", tiny.PREPROCESSING, {"a_later_key": 1})
    assert not moved(named(made), named(JointSpace.load(tmp_path / "m")))


def test_a_key_that_models_had_before_does_not_matter(tmp_path):
    made = model()
    made.save(tmp_path / "m", tiny.PREPROCESSING, {})
    (tmp_path / "m/SHA256SUMS").unlink()
    path = tmp_path / "m/architecture.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"word_dropout": 0.2}))
    assert JointSpace.load(tmp_path / "m").architecture == made.architecture


def test_what_an_earlier_version_lacks_is_named(tmp_path):
    save_as_before(tmp_path / "m", tiny.recipe(), model(), ["word_dim", "similarity"])
    with pytest.raises(ContractError, match=r"2 problem(?s:.*)similarity is missing"):
        JointSpace.load(tmp_path / "m")


def wider(folder):
    model(hidden_dim=20, embed_dim=20).save(folder / "w", tiny.PREPROCESSING, {})
    (folder / "w/weights.safetensors").rename(folder / "weights.safetensors")


DAMAGES = {
    "broken JSON": lambda f: (f / "architecture.json").write_text("{"),
    "JSON of something else": lambda f: (f / "architecture.json").write_text("[1]"),
    "an empty file": lambda f: (f / "vocabulary.json").write_bytes(b""),
    "a vocabulary without words": lambda f: (f / "vocabulary.json").write_text("{}"),
    "a pickle": lambda f: torch.save({}, f / "weights.safetensors"),
    "a cut off file": lambda f: (f / "weights.safetensors").write_bytes(
        (f / "weights.safetensors").read_bytes()[:-9]
    ),
    "other shapes": wider,
    "a key of nobody": lambda f: (f / "architecture.json").write_text(
        (f / "architecture.json").read_text().replace("word_dim", "wrd_dim")
    ),
}  # fmt: skip


@pytest.mark.parametrize("digests", [True, False], ids=["", "without digests"])
@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_model_is_named_with_its_file(tmp_path, case, digests):
    folder = tmp_path / "m"
    model().save(folder, tiny.PREPROCESSING, {})
    if not digests:
        (folder / "SHA256SUMS").unlink()
    DAMAGES[case](folder)
    with pytest.raises(ContractError, match=rf"{folder}[^$]*dvc checkout"):
        JointSpace.load(folder)


@pytest.mark.parametrize(
    ("file", "key", "found", "said"),
    [
        ("vocabulary.json", "markers", "zz", "markers: expected both, end, none, found 'zz'"),
        ("vocabulary.json", "oov", "a", "oov: expected unk, drop, pieces, found 'a'"),
        ("vocabulary.json", "max_tokens", "a", "max_tokens: expected a whole number, 1 or more"),
        ("vocabulary.json", "max_tokens", 0, "max_tokens: expected a whole number, 1 or more"),
        ("architecture.json", "feature_dim", None, "feature_dim"),
        ("architecture.json", "languages", ["de", "en", "fr"], "expected words of fr"),
    ],
)
def test_a_model_of_others_that_contradicts_itself_is_refused(tmp_path, file, key, found, said):
    model().save(tmp_path / "m", tiny.PREPROCESSING, {})
    (tmp_path / "m/SHA256SUMS").unlink()
    content = json.loads((tmp_path / "m" / file).read_text()) | {key: found}
    content = {each: value for each, value in content.items() if value is not None}
    (tmp_path / "m" / file).write_text(json.dumps(content))
    with pytest.raises(ContractError, match=said):
        JointSpace.load(tmp_path / "m")


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ContractError, match=r"seed-3 holds no whole model\.[^$]*not found"):
        JointSpace.load(tmp_path / "seed-3")


def test_vectors_are_units_and_scores_their_cosines():
    made = model()
    images, sentences = (
        made.image_vectors(torch.randn(5, 10)),
        made.sentence_vectors(IDS, LENGTHS, "en"),
    )
    torch.testing.assert_close(images.norm(dim=1), torch.ones(5))
    expected = torch.cosine_similarity(images[:, None], sentences[None, :], dim=2)
    torch.testing.assert_close(made.scores(images, sentences), expected)


def test_an_order_embedding_has_no_negative_coordinate():
    """Vendrov et al. 2016 embed in the positive orthant: both sides pass abs."""
    for absolute in (True, False):
        made = model(absolute=absolute)
        vectors = made.image_vectors(torch.randn(5, 10)), made.sentence_vectors(IDS, LENGTHS, "en")
        assert [bool((v >= 0).all()) for v in vectors] == [absolute] * 2
        torch.testing.assert_close(vectors[1].norm(dim=1), torch.ones(3))


@pytest.mark.parametrize("recipe", [tiny.recipe, partial(tiny.polyview, image_crops=1)])
@pytest.mark.parametrize("side", ["image", "sentence"])
def test_dropout_acts_on_its_side_and_in_training_only(recipe, side):
    made = tiny.space(recipe(**{f"{side}_dropout": 0.5}), seed=3)
    features = torch.randn(5, 10)

    def twice():
        images = [made.image_vectors(features) for _ in range(2)]
        sentences = [made.sentence_vectors(IDS, LENGTHS, "en") for _ in range(2)]
        read = {language: (IDS, LENGTHS) for language in ("en", "de")}
        together = [torch.cat([*made.sentence_vectors_of_all(read).values()]) for _ in range(2)]
        assert torch.equal(*sentences) == torch.equal(*together)
        return {"image": torch.equal(*images), "sentence": torch.equal(*sentences)}

    assert twice() == {"image": True, "sentence": True}
    made.train()
    assert twice() == {"image": True, "sentence": True} | {side: False}


@pytest.mark.parametrize("side", ["image", "sentence"])
def test_our_own_encoders_drop_out_before_both_of_their_maps(side):
    """Photos before the network and in it; sentences from their mean and their maximum."""

    def zeros(**changes):
        made = tiny.space(tiny.polyview(image_crops=1, **changes), seed=3).train()
        images, sentences = made.image_encoder, made.sentence_encoder
        maps = [images.linear, images.correction], [sentences.of_mean, sentences.of_maximum]
        found = []
        for layer in maps[side == "sentence"]:
            layer.register_forward_hook(lambda _, inputs, __: found.append(inputs[0] == 0))
        for _ in range(20):
            made.image_vectors(torch.rand(5, 10))
            made.sentence_vectors(IDS, LENGTHS, "en")
        return [torch.cat(found[place::2]).double().mean().item() for place in (0, 1)]

    torch.manual_seed(0)
    for none, half in zip(zeros(), zeros(**{f"{side}_dropout": 0.5}), strict=True):
        assert half - none > 0.3 * (1 - none)


@pytest.mark.parametrize("side", ["image", "sentence"])
def test_the_papers_encoders_drop_out_before_their_last_map(side):
    made = tiny.space(tiny.recipe(projection="shared", **{f"{side}_dropout": 0.5}), seed=3).train()
    found = []
    last = {"image": made.image_encoder.linear, "sentence": made.sentence_encoder.projections.all}
    last[side].register_forward_hook(lambda _, inputs, __: found.append(inputs[0] == 0))
    torch.manual_seed(0)
    for _ in range(20):
        made.image_vectors(torch.rand(5, 10))
        made.sentence_vectors(IDS, LENGTHS, "en")
        made.sentence_vectors_of_all({"en": (IDS, LENGTHS), "de": (IDS, LENGTHS)})
    assert torch.cat(found).double().mean().item() == pytest.approx(0.5, abs=0.1)


def test_calixto_starts_from_small_normal_matrices_and_orthogonal_recurrent_ones():
    """§4 of Calixto et al. 2017: N(0, .01) and orthogonal; biases are 0."""
    sizes = {"word_dim": 96, "hidden_dim": 64, "embed_dim": 128}
    made = model(initialization="normal", projection="shared", **sizes)
    reader = made.sentence_encoder.recurrent["all"].layer
    for gate in reader.weight_hh_l0.split(64):
        torch.testing.assert_close(gate @ gate.T, torch.eye(64), atol=1e-5, rtol=0)
    matrices = {
        "words": made.sentence_encoder.word_table("en").weight,
        "input": reader.weight_ih_l0,
        "projection": made.sentence_encoder.projections["all"].weight,
        "image": made.image_encoder.linear.weight,
    }
    for name, matrix in matrices.items():
        error = 0.01 / (2 * matrix.numel()) ** 0.5
        assert matrix.std().item() == pytest.approx(0.01, abs=5 * error), name
        assert abs(matrix.mean().item()) < 5 * 0.01 / matrix.numel() ** 0.5, name
    biases = [p for name, p in made.named_parameters() if "bias" in name]
    assert len(biases) == 4
    assert not any(bias.any() for bias in biases)


def test_xavier_starts_from_uniform_numbers_within_the_bounds_of_each_layer():
    """Glorot & Bengio 2010, §4.2.1: ±(6 / (in + out))^.5; PyTorch's GRU: ±hidden^-.5."""
    sizes = {"word_dim": 96, "hidden_dim": 64, "embed_dim": 128, "image_hidden_dims": [80]}
    made = model(initialization="xavier", projection="shared", **sizes)
    texts, images = made.sentence_encoder, made.image_encoder
    linear = [images.hidden[0][0], images.linear, texts.projections["all"]]
    bounded = [(texts.word_table("en").weight, 0.1)]
    bounded += [(weight, 64**-0.5) for weight in texts.recurrent["all"].layer.parameters()]
    shapes = [(10, 80), (80, 128), (64, 128)]
    bounded += [
        (layer.weight, (6 / sum(shape)) ** 0.5) for layer, shape in zip(linear, shapes, strict=True)
    ]
    for values, bound in bounded:
        deviation, root = bound / 3**0.5, values.numel() ** 0.5
        assert values.abs().max().item() <= bound + 1e-7
        assert values.std().item() == pytest.approx(deviation, rel=5 * 0.45 / root)
        assert abs(values.mean().item()) < 5 * deviation / root
    assert not any(layer.bias.any() for layer in linear)


@pytest.mark.parametrize(
    ("key", "layers"), [("recurrent_sharing", "recurrent"), ("projection", "projections")]
)
@pytest.mark.parametrize("sharing", ["shared", "per_language"])
def test_languages_share_a_layer_or_have_their_own(key, layers, sharing):
    """PARALLEL-EmbN has a branch per language, MULE one for all (Kim et al. 2020)."""
    made = model(**{"projection": "shared", key: sharing})
    before = {code: made.sentence_vectors(IDS, LENGTHS, code) for code in ("en", "de")}
    chosen = getattr(made.sentence_encoder, layers)
    with torch.no_grad():
        for weight in chosen["all" if sharing == "shared" else "de"].parameters():
            weight += 0.1
    same = {c: torch.equal(v, made.sentence_vectors(IDS, LENGTHS, c)) for c, v in before.items()}
    assert same == {"en": sharing == "per_language", "de": False}


def test_pooled_languages_share_words_and_separate_ones_do_not():
    for vocabulary, same in (("pooled", True), ("per_language", False)):
        made = model(vocabulary=vocabulary)
        en, de = (made.sentence_vectors(IDS, LENGTHS, language) for language in ("en", "de"))
        assert torch.equal(en, de) == same


@pytest.mark.parametrize("vocabulary", ["pooled", "per_language"])
@pytest.mark.parametrize("sharing", ["shared", "per_language"])
@pytest.mark.parametrize("universal_dim", ["none", 12])
def test_languages_that_are_read_together_have_the_vectors_of_each(
    vocabulary, sharing, universal_dim
):
    layers = {"recurrent_sharing": sharing, "universal_dim": universal_dim}
    made = model(vocabulary=vocabulary, precision="f64", projection="shared", **layers)
    sentences = {"de": (IDS[:2, :3], LENGTHS[:2]), "en": (IDS, LENGTHS)}
    with arithmetic("f64"):
        together = made.sentence_vectors_of_all(sentences)
        apart = {name: made.sentence_vectors(*each, name) for name, each in sentences.items()}
    assert {name: torch.equal(together[name], apart[name]) for name in apart} == {
        "de": True,
        "en": True,
    }


def test_embedding_in_batches_keeps_order():
    made = model()
    whole = made.embed_tokens(IDS, LENGTHS, "en")
    torch.testing.assert_close(made.embed_tokens(IDS, LENGTHS, "en", batch_size=1), whole)
    torch.testing.assert_close(made.sentence_vectors(IDS, LENGTHS, "en"), whole)
    features = torch.randn(7, 10)
    torch.testing.assert_close(
        made.embed_features(features, batch_size=3), made.image_vectors(features)
    )


def count_rows(monkeypatch, made, name):
    """Return a list that grows by the rows of each call of a method."""
    method, rows = getattr(made, name), []

    def counted(*arguments):
        rows.append(len(arguments[0]))
        return method(*arguments)

    monkeypatch.setattr(made, name, counted)
    return rows


def test_of_many_photos_some_thousands_are_embedded_at_once(monkeypatch):
    made, features = model(), torch.randn(9000, 10)
    expected = made.image_vectors(features)
    rows = count_rows(monkeypatch, made, "image_vectors")
    torch.testing.assert_close(made.embed_features(features), expected)
    assert sum(rows) == 9000
    assert max(rows) <= 4096


def test_of_many_sentences_some_hundreds_are_embedded_at_once(monkeypatch):
    made, lengths = model(), torch.randint(1, 5, (1200,))
    ids = torch.randint(4, 8, (1200, 4))
    expected = made.sentence_vectors(ids, lengths, "en")
    rows = count_rows(monkeypatch, made, "sentence_vectors")
    torch.testing.assert_close(made.embed_tokens(ids, lengths, "en"), expected)
    assert sum(rows) == 1200
    assert max(rows) <= 512


def test_unit_features_are_a_choice_of_the_recipe():
    features = torch.randn(5, 10)
    for normalize, same in ((True, True), (False, False)):
        encoder = model(normalize_features=normalize).image_encoder
        with torch.no_grad():
            encoder.linear.bias.fill_(0.5)
        vectors = [encoder(scale * features) for scale in (1, 7)]
        assert torch.allclose(*vectors, atol=1e-6) == same
