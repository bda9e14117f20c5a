"""The translator's networks against PyTorch's own layers, packed sequences and plain formulas."""

import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from tiny_translation import SIZES, recipe, toy_pairs, toy_subwords
from torch import nn
from torch.nn import functional as F

from pipeline_lib.models.dropout import Dropout
from pipeline_lib.models.smoothed_loss import SmoothedCrossEntropy
from pipeline_lib.models.translator import NETWORKS, Translator, pad
from pipeline_lib.models.translator_transformer import DecoderLayer, EncoderLayer
from pipeline_lib.text.vocabulary import PAD, START

WORDS = 17
SOURCE = pad([[5, 6, 7, 8, 3], [9, 3], [10, 11, 3]])
TARGET = pad([[START, 4, 5, 6], [START, 12, 13], [START, 14]])


def network(architecture, seed=0):
    torch.manual_seed(seed)
    return NETWORKS[architecture](recipe(architecture), WORDS).eval()


def loss_and_gradients(loss, hidden, weight):
    hidden, weight = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
    value = loss(hidden, weight)
    value.backward()
    return value.detach(), hidden.grad, weight.grad


@pytest.mark.parametrize(("kind", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_smoothed_loss_is_that_of_pytorch(kind, tolerance, smoothing):
    random = torch.Generator().manual_seed(1)
    hidden = torch.randn(600, 16, generator=random)
    weight = torch.randn(50, 16, generator=random)
    targets = torch.randint(50, (600,), generator=random)
    found = loss_and_gradients(
        lambda h, w: SmoothedCrossEntropy.apply(h, w, targets, smoothing, kind) / 600,
        hidden,
        weight,
    )
    expected = loss_and_gradients(
        lambda h, w: F.cross_entropy(h @ w.T, targets, label_smoothing=smoothing), hidden, weight
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours - theirs).norm() <= tolerance * theirs.norm()


def test_dropout_drops_the_share_and_keeps_the_mean():
    layer, x = Dropout(0.3), torch.ones(1000, 1001)
    torch.manual_seed(1)
    dropped = layer(x)
    assert (dropped == 0).float().mean() == pytest.approx(0.3, abs=0.002)
    assert dropped.max() == pytest.approx(1 / 0.7, rel=1e-4)
    assert dropped.mean() == pytest.approx(1, abs=0.003)
    # Values that share 64 random bits are independent, as are rows.
    zero = (dropped == 0).float()
    assert (zero[:, :-1] * zero[:, 1:]).mean() == pytest.approx(0.09, abs=0.002)
    torch.manual_seed(1)
    assert torch.equal(layer(x), dropped)
    assert torch.equal(layer.eval()(x), x)


def copy_attention(ours, theirs):
    layers = ours.queries, ours.keys, ours.values
    theirs.in_proj_weight.data = torch.cat([layer.weight for layer in layers])
    theirs.in_proj_bias.data = torch.cat([layer.bias for layer in layers])
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_feed_forward(ours, norm, theirs):
    for layer, place in ((norm, 0), (theirs.linear1, 1), (theirs.linear2, 3)):
        layer.load_state_dict(ours.feed_forward[place].state_dict())


def pytorch_layer(kind):
    return kind(16, 4, 24, batch_first=True, norm_first=True).eval()


def randomize(layer):
    for value in layer.parameters():
        nn.init.normal_(value, std=0.5)
    return layer.eval()


def test_encoder_layer_is_that_of_pytorch():
    torch.manual_seed(2)
    ours, theirs = (
        randomize(EncoderLayer(recipe("transformer"))),
        pytorch_layer(nn.TransformerEncoderLayer),
    )
    copy_attention(ours.own, theirs.self_attn)
    theirs.norm1.load_state_dict(ours.own_norm.state_dict())
    copy_feed_forward(ours, theirs.norm2, theirs)
    x, real = torch.randn(3, 5, 16), SOURCE != PAD
    expected = theirs(x, src_key_padding_mask=~real)
    torch.testing.assert_close(ours(x, real[:, None, None])[real], expected[real])


def test_decoder_layer_is_that_of_pytorch():
    torch.manual_seed(2)
    ours, theirs = (
        randomize(DecoderLayer(recipe("transformer"))),
        pytorch_layer(nn.TransformerDecoderLayer),
    )
    copy_attention(ours.own, theirs.self_attn)
    copy_attention(ours.cross, theirs.multihead_attn)
    theirs.norm1.load_state_dict(ours.own_norm.state_dict())
    theirs.norm2.load_state_dict(ours.cross_norm.state_dict())
    copy_feed_forward(ours, theirs.norm3, theirs)
    x, memory, real = torch.randn(3, 4, 16), torch.randn(3, 5, 16), SOURCE != PAD
    causal = nn.Transformer.generate_square_subsequent_mask(4).isinf()
    expected = theirs(x, memory, tgt_mask=causal, memory_key_padding_mask=~real)
    found = ours(x, *ours.cross.keys_values(memory), real[:, None, None])
    torch.testing.assert_close(found, expected)


def test_encoder_reads_both_ways_as_a_packed_gru():
    ours = network("gru_attention")
    theirs = nn.GRU(12, 16, batch_first=True, bidirectional=True)
    for name, value in ours.forwards.named_parameters():
        getattr(theirs, name).data = value.data
        getattr(theirs, f"{name}_reverse").data = getattr(ours.backwards, name).data
    real = SOURCE != PAD
    packed = nn.utils.rnn.pack_padded_sequence(
        ours.words(SOURCE), real.sum(1), batch_first=True, enforce_sorted=False
    )
    expected, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    torch.testing.assert_close(ours.encode(SOURCE)["annotations"][real], expected[real])


def test_decoder_follows_the_equations_of_bahdanau_et_al():
    net = network("gru_attention", seed=3)
    memory = net.encode(SOURCE[1:2, :2])
    h, y = memory["annotations"][0], net.words.weight[START]
    s = torch.tanh(net.first_state(h[0, 16:]))
    energy = [net.attention(torch.tanh(net.state_to_attention(s) + net.source_to_attention(x)))
              for x in h]  # fmt: skip
    alpha = torch.stack(energy).exp() / torch.stack(energy).exp().sum()
    context = (alpha * h).sum(0)
    pairs = net.maxout(torch.cat([s, y, context]))
    expected = torch.maximum(pairs[0::2], pairs[1::2])
    start = torch.tensor([[START]])
    layer, state = net.step(memory, net.initial_state(memory), start)
    torch.testing.assert_close(layer[0, 0], expected)
    after = net.decoder(torch.cat([y, context])[None], s[None])
    torch.testing.assert_close(state["state"][0], after)


@pytest.mark.parametrize("architecture", NETWORKS)
def test_steps_of_several_hypotheses_are_the_parallel_pass(architecture):
    net = network(architecture)
    memory = net.encode(SOURCE)
    reversed_words = torch.cat([TARGET[:, :1], TARGET[:, 1:].flip(1)], dim=1)
    both = torch.stack([TARGET, reversed_words], dim=1)
    state = {name: value.repeat_interleave(2, 1) for name, value in
             net.initial_state(memory).items()}  # fmt: skip
    steps = []
    for place in range(4):
        layer, state = net.step(memory, state, both[:, :, place])
        steps.append(layer)
    found = torch.stack(steps, dim=2)
    for number, words in enumerate((TARGET, reversed_words)):
        torch.testing.assert_close(found[:, number], net.hidden(memory, words))


@pytest.mark.parametrize("architecture", NETWORKS)
def test_padding_changes_nothing(architecture):
    net = network(architecture)
    together = net.hidden(net.encode(SOURCE), TARGET)
    for row, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
        source, target = source[source != PAD][None], target[target != PAD][None]
        alone = net.hidden(net.encode(source), target)
        torch.testing.assert_close(together[row, : target.shape[1]], alone[0])


@pytest.mark.parametrize("architecture", NETWORKS)
def test_a_word_does_not_see_later_ones(architecture):
    net = network(architecture)
    memory, changed = net.encode(SOURCE), TARGET.clone()
    changed[:, 3] = 15
    before, after = net.hidden(memory, TARGET), net.hidden(memory, changed)
    torch.testing.assert_close(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3], after[:, 3])


@pytest.mark.parametrize("architecture", NETWORKS)
@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_loss_is_the_mean_over_real_words(architecture, precision):
    translator = Translator(recipe(architecture, precision=precision), toy_subwords()).eval()
    source, target = (pad(translator.encode(side)) for side in zip(*toy_pairs(5), strict=True))
    begun = torch.cat([torch.full((5, 1), START), target[:, :-1]], dim=1)
    net = translator.network
    logits = net.logits(net.hidden(net.encode(source), begun))
    expected = F.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=0.1
    )
    tolerance = {"f32": 1e-5, "bf16": 2e-2}[precision]
    assert translator.loss(source, target).item() == pytest.approx(expected.item(), rel=tolerance)


@pytest.mark.parametrize("architecture", NETWORKS)
def test_saved_translators_translate_alike(architecture, tmp_path):
    first, second = (Translator(recipe(architecture), toy_subwords()) for _ in range(2))
    first.save(tmp_path / "first")
    second.save(tmp_path / "second")
    for name in ("weights.safetensors", "recipe.json", "subwords.model"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    sentences = [source for source, _ in toy_pairs(4)]
    options = {"beam": 3, "n_best": 2, "alpha": 1.0}
    loaded = Translator.load(tmp_path / "first")
    assert loaded.translate(sentences, **options) == first.translate(sentences, **options)


def test_sizes_that_do_not_fit_are_refused():
    transformer = recipe("transformer")
    with pytest.raises(ValidationError, match="a number that divides dim"):
        type(transformer).model_validate(transformer.model_dump() | {"heads": 3})


def test_recipes_are_told_apart_by_their_architecture():
    from pipeline_lib.settings.synthesis import AnyTranslator

    for architecture in SIZES:
        content = recipe(architecture).model_dump()
        assert TypeAdapter(AnyTranslator).validate_python(content) == recipe(architecture)


@pytest.mark.parametrize("architecture", NETWORKS)
def test_what_is_exact_differs_from_float32_by_rounding_alone(architecture):
    exact, plain = (
        Translator(recipe(architecture, precision=kind), toy_subwords()) for kind in ("f64", "f32")
    )
    exact.load_state_dict(plain.state_dict())
    sentences = [source for source, _ in toy_pairs(4)]
    options = {"beam": 3, "n_best": 2, "alpha": 1.0}
    found, expected = (each.translate(sentences, **options) for each in (exact, plain))
    assert [[one.text for one in own] for own in found] == [
        [one.text for one in own] for own in expected
    ]
    sides = zip(*toy_pairs(5), strict=True)
    source, target = (pad(plain.encode(side)) for side in sides)
    losses = [each.eval().loss(source, target).item() for each in (exact, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
