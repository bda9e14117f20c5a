"""Items on workers of Ray: the results, and the bytes of what stages make of them, are the same."""

import sys
from functools import partial

import pytest
import tiny
import torch
from clusters import two_nodes, use
from tiny_translation import recipe, toy_pairs, toy_subwords

from pipeline_lib.compute import forks
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.evaluation.reranking.nbest import write_nbest
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.models.translator import Translator, searching
from pipeline_lib.running.publishing import tree_sha256
from pipeline_lib.scheduling.each import open_workers, workers_bring_more
from pipeline_lib.synthesis import neighbours, spread_neighbours
from pipeline_lib.synthesis.validation import nbest_lists
from pipeline_lib.training import seeds
from pipeline_lib.training.material import Material
from pipeline_lib.training.seeds import train_seeds

WORDS = {"unit": "words", "label": "upper"}


def loaded():
    return str.upper


def test_workers_are_asked_where_they_bring_more_than_this_process_has(monkeypatch):
    use(monkeypatch)
    with open_workers(loaded, 10, **WORDS) as each:
        assert each is None
    use(monkeypatch, ADDRESS="rey://nowhere")
    with open_workers(loaded, 1, **WORDS) as each:
        assert each is None
    use(monkeypatch, ADDRESS="local", WORKERS=2)
    with open_workers(loaded, 10, **WORDS) as each:
        assert each is None
    use(monkeypatch, ADDRESS="local", GPUS=0.5)
    assert workers_bring_more()


@pytest.fixture(scope="module")
def address():
    """Yield the address of a cluster of two nodes."""
    with two_nodes(__name__) as (started, _):
        yield started.address


@pytest.fixture
def spread(address, monkeypatch):
    """Return a function that asks for the cluster from now on; one core does what is done here."""
    use(monkeypatch)
    forks.use_cores(1)
    yield lambda: use(monkeypatch, ADDRESS=address)
    forks.use_cores(sys.maxsize)
    torch.set_num_threads(1)


def test_results_come_in_the_order_of_the_items_call_after_call(spread):
    spread()
    words = [f"word {number}" for number in range(12)]
    with open_workers(loaded, len(words), **WORDS) as each:
        for asked in (words, words[::-1], []):
            assert [*each(asked)] == [word.upper() for word in asked]


def test_an_error_is_that_of_the_function(spread):
    def divide(number):
        return 1 / number

    spread()
    with (
        open_workers(lambda: divide, 3, **WORDS) as each,
        pytest.raises(ZeroDivisionError),
    ):
        each([1, 0, 2])


def test_a_worker_that_ends_every_time_ends_the_run(spread):
    def end(code):
        sys.modules["os"]._exit(code)

    spread()
    with (
        open_workers(lambda: end, 2, **WORDS) as each,
        pytest.raises(ContractError, match="4 workers that had it ended"),
    ):
        each([1, 2])


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_nbest_lists_have_the_bytes_of_one_process(spread, tmp_path, precision):
    made = Translator(recipe("transformer", precision=precision), toy_subwords()).eval()
    made.save(tmp_path / "toy")
    sentences = [source for source, _ in toy_pairs(300)]

    def written(name, each):
        write_nbest(nbest_lists(made, sentences, str.split, each), tmp_path / name)
        return (tmp_path / name).read_bytes()

    here = written("here", None)
    spread()
    load = partial(searching, tmp_path / "toy")
    with open_workers(load, len(sentences), unit="batches", label="toy") as each:
        assert written("there", each) == here
    assert len(here.splitlines()) > 1000


def test_seeds_have_the_bytes_of_one_process(spread, tmp_path, capsys, monkeypatch):
    # A rate of which nothing is learnt: the stage says so, wherever it was.
    own = {"seeds": [1, 2, 3], "max_epochs": 2, "validate_every_updates": "epoch"}
    made = tiny.recipe(**own, learning_rate=1e-12)
    none = tiny.lexicon().iloc[:0]
    material = Material(made, tiny.pairs(), tiny.features(), none, {}, "none", {"features": "a"})

    def trained(name):
        work = {seed: tmp_path / name / "work" / str(seed) for seed in made.seeds}
        for folder in work.values():
            folder.mkdir(parents=True)
        home = tmp_path / name / "data"
        score = partial(validation_scores, tested={})
        train_seeds("tiny", material, score, tiny.PREPROCESSING, work, home / "m", home / "t")
        return tree_sha256(home)

    here = trained("here")
    monkeypatch.setattr(seeds, "on_all_cores", None)  # nothing is trained here
    spread()
    assert trained("there") == here
    shown = capsys.readouterr().err
    assert shown.count("warning: tiny seed 1") == 1  # once in a process
    assert "tiny: 100%" in shown


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_neighbours_in_blocks_on_workers_are_those_of_one_process(spread, monkeypatch, dtype):
    def drawn(count, seed):
        generator = torch.Generator().manual_seed(seed)
        # Equal vectors and near ones: ties are settled alike.
        return torch.randn(count, 24, generator=generator).round(decimals=1).to(dtype)

    a, b, offset = drawn(150, 1), drawn(90, 2), drawn(90, 3)[:, 0]
    expected = neighbours.nearest(a, b, 3, offset), *neighbours.nearest_both_ways(a, b, 3)
    for name, value in {"_WORTH": 1, "_QUERIES": 40}.items():
        monkeypatch.setattr(spread_neighbours, name, value)
    spread()
    with monkeypatch.context() as patch:
        patch.setattr(neighbours, "nearest", None)
        found = (
            spread_neighbours.nearest(a, b, 3, offset),
            *spread_neighbours.nearest_both_ways(a, b, 3),
        )
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one.indices, other.indices)
        assert torch.equal(one.scores, other.scores)


def test_a_short_search_stays_here(monkeypatch):
    use(monkeypatch, ADDRESS="rey://nowhere")
    a, b = torch.eye(8), torch.eye(8)
    assert spread_neighbours.nearest(a, b, 1).indices[:, 0].tolist() == list(range(8))
    assert spread_neighbours.nearest_both_ways(a, b, 1)[1].indices[:, 0].tolist() == list(range(8))
