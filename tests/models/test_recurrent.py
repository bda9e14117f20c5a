import pytest
import torch
from torch import nn

from pipeline_lib.compute.device import best_device, precision_on
from pipeline_lib.models.prefixes import PrefixTree
from pipeline_lib.models.recurrent import LAYERS, SentenceLayer

VOCABULARY, WORD_DIM, DIM = 30, 5, 7
KINDS = sorted(LAYERS)
CPU = torch.device("cpu")


def layer(kind, precision="f32"):
    torch.manual_seed(0)
    return SentenceLayer(kind, WORD_DIM, DIM, precision), nn.Embedding(VOCABULARY, WORD_DIM)


def batch(lengths, seed=0, words=VOCABULARY):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor(lengths)
    ids = torch.randint(1, words, (len(lengths), int(lengths.max())), generator=generator)
    return ids, lengths


def pytorch_states(encoder, words, ids, lengths):
    packed = nn.utils.rnn.pack_padded_sequence(
        words(ids), lengths, batch_first=True, enforce_sorted=False
    )
    state = encoder.layer(packed)[1]
    return state[0] if isinstance(state, torch.Tensor) else state[0][0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words_in_use", [3, VOCABULARY])  # with 3, most beginnings are shared
@pytest.mark.parametrize("lengths", [[3, 1, 4, 2], [5], [2, 2, 2], [1, 1], [6, 1, 1, 1, 6]])
def test_states_and_gradients_are_those_of_pytorchs_layer(kind, words_in_use, lengths):
    encoder, words = layer(kind)
    ids, lengths = batch(lengths, words=words_in_use)
    target = torch.randn(len(lengths), DIM, generator=torch.Generator().manual_seed(1))

    def gradients(states):
        encoder.zero_grad()
        words.zero_grad()
        (states * target).sum().backward()
        return [p.grad.clone() for p in [*encoder.parameters(), *words.parameters()]]

    ours = encoder(words, ids, lengths)
    theirs = pytorch_states(encoder, words, ids, lengths)
    torch.testing.assert_close(ours, theirs)
    for mine, reference in zip(gradients(ours), gradients(theirs), strict=True):
        torch.testing.assert_close(mine, reference)


@pytest.mark.parametrize("kind", KINDS)
def test_bf16_stays_close_to_f32(kind):
    exact, words = layer(kind)
    rounded, _ = layer(kind, "bf16")
    ids, lengths = batch([9, 4, 7, 1, 3])
    a, b = exact(words, ids, lengths), rounded(words, ids, lengths)
    assert b.dtype == torch.float32
    assert torch.cosine_similarity(a, b, dim=1).min() > 0.999


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.skipif(precision_on("bf16", CPU) != "bf16", reason="this CPU has no bf16")
def test_gradients_of_a_frequent_word_are_summed_in_more_than_bf16(kind):
    """Added one by one in bf16, those of 4,000 beginnings of sentences were half of their sum."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(1, VOCABULARY, (1500, 6), generator=generator)
    ids[:, 2:5] = 1
    lengths = torch.full((1500,), 6)
    gradients = {}
    for precision in ("f32", "bf16"):
        encoder, words = layer(kind, precision)
        encoder(words, ids, lengths).sum().backward()
        gradients[precision] = [words.weight.grad[1], encoder.layer.weight_ih_l0.grad]
    for rounded, exact in zip(gradients["bf16"], gradients["f32"], strict=True):
        assert (rounded - exact).norm() < 0.02 * exact.norm()


@pytest.mark.parametrize("kind", KINDS)
def test_padding_and_order_of_the_batch_do_not_matter(kind):
    encoder, words = layer(kind)
    ids, lengths = batch([3, 1, 4, 2])
    states = encoder(words, ids, lengths)
    padded = torch.nn.functional.pad(ids, (0, 3), value=9)
    torch.testing.assert_close(encoder(words, padded, lengths), states)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(encoder(words, ids[order], lengths[order]), states[order])


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_stay_with_their_sentences(kind):
    """The reference's c2c loader sorted the rows but not their lengths (audit, finding 2)."""
    encoder, words = layer(kind)
    ids, lengths = batch([2, 5, 1, 3])
    states = encoder(words, ids, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = encoder(words, ids[row : row + 1, :length], torch.tensor([length]))
        torch.testing.assert_close(states[row], alone[0])


def test_every_prefix_stands_in_the_tree_once():
    ids = torch.tensor([[1, 2, 3], [1, 2, 4], [1, 5, 0], [1, 2, 3]])
    tree = PrefixTree.of(ids, torch.tensor([3, 3, 2, 3]))
    assert [len(parents) for parents in tree.parents] == [1, 2, 2]  # 1 | 12 15 | 123 124
    assert tree.tokens.tolist() == [1, 2, 5, 3, 4]
    assert tree.whole.tolist() == [3, 4, 2, 3]
    assert tree.parents[2].tolist() == [0, 0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("precision", "tolerance"), [("f32", 1e-6), ("bf16", 2e-2)])
def test_the_packed_way_gives_the_same_states_and_gradients(kind, precision, tolerance):
    """CUDA takes this way; here it runs on the CPU."""
    encoder, words = layer(kind, precision)
    ids, lengths = batch([9, 4, 7, 1, 3])
    expected = encoder(words, ids, lengths)
    wanted = torch.autograd.grad(expected.square().sum(), [*encoder.parameters(), words.weight])
    found = encoder.packed(words(ids), lengths)
    given = torch.autograd.grad(found.square().sum(), [*encoder.parameters(), words.weight])
    assert found.dtype == torch.float32
    for a, b in zip([found, *given], [expected, *wanted], strict=True):
        assert (a - b).norm() <= tolerance * b.norm()


def test_the_packed_way_leaves_the_weights_as_they_are():
    encoder, words = layer("gru", "bf16")
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    encoder.packed(words(batch([2, 3])[0]), torch.tensor([2, 3])).sum().backward()
    assert all(value.equal(before[name]) for name, value in encoder.state_dict().items())
    assert {value.grad.dtype for value in encoder.parameters()} == {torch.float32}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("precision", "bounds"), [("f32", (1e-4, 1e-5)), ("bf16", (2e-2, 2e-2))])
def test_cuda_gives_the_same_states(kind, precision, bounds):
    encoder, words = layer(kind, precision)
    if precision == "bf16":  # in float16 these are infinite, and the states NaN or all alike
        torch.nn.init.uniform_(words.weight, -1e5, 1e5, generator=torch.Generator().manual_seed(0))
    ids, lengths = batch([3, 1, 4, 2])
    here, device = encoder(words, ids, lengths), best_device()
    there = encoder.to(device)(words.to(device), ids.to(device), lengths)
    torch.testing.assert_close(there.cpu(), here, rtol=bounds[0], atol=bounds[1])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", KINDS)
def test_cuda_gives_the_same_gradients(kind):
    encoder, words = layer(kind, "f32")
    ids, lengths = batch([3, 1, 4, 2, 4])

    def gradients(device):
        encoder.to(device), words.to(device)
        states = encoder(words, ids.to(device), lengths)
        weights = [*encoder.parameters(), words.weight]
        return [g.cpu() for g in torch.autograd.grad(states.square().sum(), weights)]

    for found, expected in zip(gradients(best_device()), gradients("cpu"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
