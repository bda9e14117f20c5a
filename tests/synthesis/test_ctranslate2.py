"""CTranslate2 as an engine, and as an oracle: it runs our Transformer's weights by its own code."""

import json
import shutil

import numpy as np
import pytest
import torch
from tiny_translation import recipe, toy_pairs, toy_subwords

from pipeline_lib.models.translator import Translator, pad
from pipeline_lib.models.translator_transformer import _positions
from pipeline_lib.settings.synthesis import CTranslate2Translation
from pipeline_lib.synthesis.engines import build_engine

ctranslate2 = pytest.importorskip("ctranslate2", reason="needs the dependency group ctranslate2")
SENTENCES = [source for source, _ in toy_pairs(20, seed=3)]


def fill_linear(spec, *layers):
    spec.weight = torch.cat([layer.weight for layer in layers]).detach().numpy()
    spec.bias = torch.cat([layer.bias for layer in layers]).detach().numpy()


def fill_norm(spec, norm):
    spec.gamma, spec.beta = norm.weight.detach().numpy(), norm.bias.detach().numpy()


def fill_attention(spec, attention, norm, own):
    fill_norm(spec.layer_norm, norm)
    queries, others = [attention.queries], [attention.keys, attention.values]
    projections = [queries + others] if own else [queries, others]
    for linear, layers in zip(spec.linear, [*projections, [attention.output]], strict=True):
        fill_linear(linear, *layers)


def fill_layer(spec, layer):
    fill_attention(spec.self_attention, layer.own, layer.own_norm, own=True)
    if hasattr(layer, "cross"):
        fill_attention(spec.attention, layer.cross, layer.cross_norm, own=False)
    norm, first, _, second = layer.feed_forward
    fill_norm(spec.ffn.layer_norm, norm)
    fill_linear(spec.ffn.linear_0, first)
    fill_linear(spec.ffn.linear_1, second)


def convert(translator, folder):
    """Write a translator as the folder that the engine reads."""
    network, sizes = translator.network, translator.recipe
    layers = sizes.layers, sizes.layers
    spec = ctranslate2.specs.TransformerSpec.from_config(layers, sizes.heads, pre_norm=True)
    words = network.words.weight.detach().numpy()
    for side, own, norm in (
        (spec.encoder, network.encoder, network.encoder_norm),
        (spec.decoder, network.decoder, network.decoder_norm),
    ):
        embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        embeddings.weight = words
        side.position_encodings.encodings = _positions(0, torch.empty(300, sizes.dim)).numpy()
        fill_norm(side.layer_norm, norm)
        for each, layer in zip(side.layer, own, strict=True):
            fill_layer(each, layer)
    spec.decoder.projection.weight = words
    pieces = translator.subwords._processor
    names = [pieces.id_to_piece(number) for number in range(len(translator.subwords))]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.add_source_eos = True
    spec.config.add_source_bos = False
    for part in ("source.spm", "target.spm"):
        (folder / part).write_bytes(translator.subwords.model)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """Return a folder and the translator in it, trained until its words are those of the toy."""
    translator = Translator(recipe("transformer", dim=32, feed_forward=64), toy_subwords())
    optimizer = torch.optim.Adam(translator.parameters(), lr=3e-3)
    source, target = (pad(translator.encode(side)) for side in zip(*toy_pairs(64), strict=True))
    for _ in range(150):
        optimizer.zero_grad()
        translator.loss(source, target).backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("ctranslate2")
    convert(translator.eval(), folder)
    return folder, translator


def test_log_likelihoods_are_those_of_another_implementation(converted):
    folder, translator = converted
    model, cut = ctranslate2.Translator(str(folder)), translator.subwords._processor.encode
    lists = translator.translate(SENTENCES, beam=4, n_best=4, alpha=1.0)
    pairs = [(s, found) for s, each in zip(SENTENCES, lists, strict=True) for found in each]
    scored = model.score_batch(
        [cut(source, out_type=str) for source, _ in pairs],
        [cut(found.text, out_type=str) for _, found in pairs],
    )
    theirs = np.array([sum(each.log_probs) for each in scored])
    ours = np.array([found.log_likelihood for _, found in pairs])
    # A few hypotheses cut a word otherwise than sentencepiece cuts their text.
    assert np.isclose(theirs, ours, atol=1e-3).mean() > 0.9


@pytest.mark.parametrize("adds_end", [True, False])
def test_the_engine_translates_and_describes_its_model(converted, tmp_path, adds_end):
    """Whether CTranslate2 adds the end of a source, as its converter says, or leaves it to us."""
    made, translator = converted
    folder = tmp_path / "model"
    shutil.copytree(made, folder)
    config = folder / "config.json"
    options = json.loads(config.read_text("utf-8"))
    assert options["add_source_eos"] is True
    config.write_text(json.dumps(options | {"add_source_eos": adds_end}), "utf-8")
    settings = {
        "engine": "ctranslate2", "dataset": "toy", "source_language": "en", "annotation": "caption",
        "target_language": "de", "model": str(folder), "beam": 1, "length_penalty": 0.0,
    }  # fmt: skip
    engine = build_engine(CTranslate2Translation.model_validate(settings))
    greedy = translator.translate(SENTENCES, beam=1, n_best=1, alpha=0.0)
    found = engine.translate(SENTENCES)
    assert [own.text for [own] in found] == [own.text for [own] in greedy]
    assert [own.score for [own] in found] == pytest.approx([o.score for [o] in greedy], abs=0.01)
    assert engine.description["sha256"].keys() == {path.name for path in folder.iterdir()}, (
        "of what is resumed by it, and its options decide how it translates"
    )
    assert "config.json" in engine.description["sha256"]
    assert str(folder.parent) not in json.dumps(engine.description)
