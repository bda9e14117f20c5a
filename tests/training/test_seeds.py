"""Seeds that train side by side end where they end alone, and a failure is not lost."""

import os
import signal

import pytest
import tiny
import torch

from pipeline_lib.training.seeds import side_by_side, train_each


def results(folder, at_once):
    folder.mkdir()

    def train(seed, number):
        torch.manual_seed(seed)
        weight = torch.randn(3, 3) @ torch.randn(3, 3)
        (folder / f"{seed}").write_text(f"{number} {weight.tolist()}")

    train_each([3, 1, 2], train, at_once)
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_several_at_once_end_as_one_after_the_other(tmp_path):
    alone = results(tmp_path / "alone", 1)
    assert set(alone) == {"1", "2", "3"}
    assert results(tmp_path / "two", 2) == alone


def test_they_run_in_processes_of_their_own(tmp_path):
    def train(seed, number):
        (tmp_path / str(seed)).write_text(str(os.getpid()))

    train_each([1, 2], train, 2)
    assert len({(tmp_path / str(s)).read_text() for s in (1, 2)} - {str(os.getpid())}) == 2


@pytest.mark.parametrize("end", ["raise", "kill"])
def test_a_seed_that_fails_fails_the_recipe(end):
    def train(seed, number):
        if seed == 2 and end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if seed == 2:
            raise ValueError("a mistake")

    with pytest.raises(RuntimeError, match="seed 2"):
        train_each([1, 2], train, 2)


def test_only_small_models_share_the_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    small = tiny.recipe(seeds=[1, 2, 3])
    large = tiny.recipe(seeds=[1, 2, 3], hidden_dim=4096, embed_dim=4096, batch_size=128)
    found = side_by_side(small), side_by_side(large), side_by_side(tiny.recipe())
    torch.set_num_threads(before)
    assert found == (2, 1, 1)
