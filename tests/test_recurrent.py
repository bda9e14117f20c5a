import pytest
import torch
from torch import nn

from pipeline_lib.models.recurrent import Packing, SentenceGRU

VOCABULARY, WORD_DIM, DIM = 30, 5, 7


def layer(precision="f32"):
    torch.manual_seed(0)
    return SentenceGRU(WORD_DIM, DIM, precision), nn.Embedding(VOCABULARY, WORD_DIM)


def batch(lengths, seed=0):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor(lengths)
    ids = torch.randint(1, VOCABULARY, (len(lengths), int(lengths.max())), generator=generator)
    return ids, lengths


def pytorch_states(gru, words, ids, lengths):
    packed = nn.utils.rnn.pack_padded_sequence(
        words(ids), lengths, batch_first=True, enforce_sorted=False
    )
    return gru.gru(packed)[1][0]


@pytest.mark.parametrize("lengths", [[3, 1, 4, 2], [5], [2, 2, 2], [1, 1], [6, 1, 1, 1, 6]])
def test_states_and_gradients_are_those_of_pytorchs_gru(lengths):
    gru, words = layer()
    ids, lengths = batch(lengths)
    target = torch.randn(len(lengths), DIM, generator=torch.Generator().manual_seed(1))

    def gradients(states):
        gru.zero_grad()
        words.zero_grad()
        (states * target).sum().backward()
        return [p.grad.clone() for p in [*gru.parameters(), *words.parameters()]]

    ours = gru(words, ids, lengths)
    theirs = pytorch_states(gru, words, ids, lengths)
    torch.testing.assert_close(ours, theirs)
    for mine, reference in zip(gradients(ours), gradients(theirs), strict=True):
        torch.testing.assert_close(mine, reference)


def test_bf16_stays_close_to_f32():
    exact, words = layer()
    rounded, _ = layer("bf16")
    ids, lengths = batch([9, 4, 7, 1, 3])
    a, b = exact(words, ids, lengths), rounded(words, ids, lengths)
    assert b.dtype == torch.float32
    assert torch.cosine_similarity(a, b, dim=1).min() > 0.999


def test_padding_and_order_of_the_batch_do_not_matter():
    gru, words = layer()
    ids, lengths = batch([3, 1, 4, 2])
    states = gru(words, ids, lengths)
    wider = torch.cat([ids, torch.full((4, 3), 9)], dim=1)
    torch.testing.assert_close(gru(words, wider, lengths), states, rtol=0, atol=0)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(gru(words, ids[order], lengths[order]), states[order])


def test_lengths_stay_with_their_sentences():
    """The reference's c2c loader sorted the rows but not their lengths (audit, finding 2)."""
    gru, words = layer()
    ids, lengths = batch([2, 5, 1, 3])
    states = gru(words, ids, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = gru(words, ids[row : row + 1, :length], torch.tensor([length]))
        torch.testing.assert_close(states[row], alone[0])


def test_packing_lays_out_each_word_once():
    ids, lengths = batch([2, 3, 1])
    packing = Packing.of(lengths)
    assert packing.sizes == [3, 2, 1]
    words = sorted(
        w for row, n in zip(ids.tolist(), lengths.tolist(), strict=True) for w in row[:n]
    )
    assert sorted(packing.flatten(ids).tolist()) == words
    assert packing.order[packing.inverse].tolist() == [0, 1, 2]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_equals_cpu():
    gru, words = layer()
    ids, lengths = batch([3, 1, 4, 2])
    expected = gru(words, ids, lengths)
    found = gru.cuda()(words.cuda(), ids.cuda(), lengths)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
