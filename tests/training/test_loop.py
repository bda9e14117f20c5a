"""The loop of all training, with work that does nothing but note what it is given."""

import numpy as np
import pytest
import torch
from torch import nn

from pipeline_lib.training.loop import Pace, train

UPDATES = 6


class Noting:
    """Work whose losses are given, which notes all chance that an update has."""

    def __init__(self, seed=1, losses=(0.0,) * UPDATES):
        self.network, self.seed, self.losses = nn.Linear(1, 1), seed, losses
        self.drawn, self.torch_seeds = [], []
        self.pace = Pace(
            learning_rate=lambda update, stalls: 0.1,
            optimizer=lambda network: torch.optim.SGD(network.parameters()),
            clip_norm="none",
            epoch=float,
            updates_before=0,
            last_update=UPDATES,
            validate_every=3,
            patience=9,
            decays=0,
            averaged=1,
        )

    def loss(self, progress, random):
        self.drawn.append(int(random.integers(2**62)))
        self.torch_seeds.append(torch.initial_seed())
        loss = 0 * self.network.weight.sum() + self.losses[progress.update]
        return loss, {"loss": loss.detach()}

    def after_update(self, progress):
        pass

    def validate(self):
        return 0.0, {}


def test_every_update_of_every_seed_has_chance_of_its_own(tmp_path):
    """Else a seed repeats its dropout and draws, or two seeds share them."""
    runs = [Noting(seed) for seed in (1, 2)]
    for number, work in enumerate(runs):
        train(work, tmp_path / str(number), "test")
    for of in ([n for work in runs for n in work.drawn], [n for w in runs for n in w.torch_seeds]):
        assert len(of) == len(set(of)) == 2 * UPDATES


def test_a_row_of_the_history_has_the_mean_over_its_updates(tmp_path):
    found = train(Noting(losses=(1, 2, 6, 0, 0, 3)), tmp_path, "test").history
    assert [row["loss"] for row in found] == pytest.approx([3, 1])
    assert np.array_equal([row["update"] for row in found], [3, 6])
