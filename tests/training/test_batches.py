import numpy as np
import pytest
import torch

from pipeline_lib.training.batches import ByImage, Stream, batch_sizes, sentence_pairs
from pipeline_lib.training.examples import Sentences

ITEMS = 1003


def epoch(stream, number):
    per_epoch = stream.batches_per_epoch
    return [stream[i] for i in range(number * per_epoch, (number + 1) * per_epoch)]


def test_each_epoch_has_every_item_once():
    stream = Stream(ITEMS, 32, (1,))
    for number in range(3):
        items = torch.cat(epoch(stream, number))
        assert sorted(items.tolist()) == list(range(ITEMS))


@pytest.mark.parametrize("batches", [1, 2, 5])
@pytest.mark.parametrize("batch_size", [2, 32])
def test_one_item_that_is_left_joins_a_full_batch(batch_size, batches):
    """Alone it has no negatives, and no deviation to be normalised by."""
    items = batches * batch_size + 1
    stream = Stream(items, batch_size, (1,))
    for number in range(3):
        found = epoch(stream, number)
        full = [batch_size] * (batches - 1)
        assert sorted(map(len, found)) == [*full, batch_size + 1]
        assert sorted(torch.cat(found).tolist()) == list(range(items))


def test_the_short_batch_of_an_epoch_stands_anywhere():
    stream = Stream(10, 4, (1,))
    places = {[len(batch) for batch in epoch(stream, number)].index(2) for number in range(30)}
    assert places == {0, 1, 2}


def test_epochs_differ_and_seeds_differ_and_a_batch_depends_on_its_number_only():
    a, b = Stream(ITEMS, 32, (1, 0)), Stream(ITEMS, 32, (2, 0))
    assert a[0].tolist() != a[a.batches_per_epoch].tolist()
    assert a[0].tolist() != b[0].tolist()
    late = a[100].tolist()
    assert Stream(ITEMS, 32, (1, 0))[100].tolist() == late


def sentences(image_index):
    count = len(image_index)
    index = torch.tensor(image_index)
    return Sentences(torch.ones(count, 1, dtype=torch.int64), torch.ones(count), index)


def test_captions_are_found_by_their_image():
    random = np.random.default_rng(5)
    index = random.integers(0, 12, 30)
    index[index == 4] = 5  # an image without a caption
    by_image = ByImage(index, 14)
    assert by_image.count.tolist() == [int((index == image).sum()) for image in range(14)]
    asked = np.array([7, 4, 13, 0, 5])
    captions, places = by_image.all_of(asked)
    assert captions.tolist() == [
        row for image in asked for row, own in enumerate(index) if own == image
    ]
    assert asked[places].tolist() == index[captions].tolist()
    described = np.flatnonzero(by_image.count)
    drawn = np.array([by_image.one_of_each(described, random) for _ in range(300)])
    assert (index[drawn] == described).all()
    assert {*drawn.flatten()} == {*range(30)}


def test_sentence_pairs_equal_a_double_loop():
    random = np.random.default_rng(5)
    a, b = random.integers(0, 12, size=40).tolist(), random.integers(4, 16, size=50).tolist()
    expected = [(i, j) for i in range(40) for j in range(50) if a[i] == b[j]]
    assert sorted(map(tuple, sentence_pairs(sentences(a), sentences(b)).tolist())) == expected


def test_five_and_five_captions_make_twenty_five_pairs():
    assert sentence_pairs(sentences([7] * 5), sentences([7] * 5)).shape == (25, 2)


def test_disjoint_images_make_no_pair():
    assert sentence_pairs(sentences([1, 2]), sentences([3, 4])).shape == (0, 2)


@pytest.mark.parametrize("items", [1, 2, 3, 8, 9, 10, 65])
@pytest.mark.parametrize("batch_size", [1, 2, 4, 64])
def test_batch_sizes_are_those_of_an_epoch(items, batch_size):
    stream = Stream(items, batch_size, (1,))
    sizes = [len(stream[number]) for number in range(stream.batches_per_epoch)]
    assert sorted(sizes) == sorted(batch_sizes(items, batch_size))
