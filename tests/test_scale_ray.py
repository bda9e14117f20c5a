"""The simulation runs the real scheduler, and can show a bad one."""

from dataclasses import replace

import pytest

from benchmarks.scale_ray import Simulation, simulate
from pipeline_lib.scheduling import shards

MEASURED = (0.9, 1.0, 1.3, 2.0)
SMALL = Simulation(workers=100, shards=20)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_failing_and_slow_workers_lose_nothing_and_cost_little(seed):
    found = simulate(replace(SMALL, seed=seed), MEASURED)
    assert found.lost == 0
    assert found.efficiency >= 0.9
    assert found.ended == 2
    assert found.seconds > 20 * min(MEASURED)


def test_without_backup_tasks_the_slowest_worker_decides(monkeypatch):
    def only_what_waits(self, held):
        return self._waiting.popleft() if self._waiting else None

    settings = replace(SMALL, shards=10)
    with_them = simulate(settings, MEASURED)
    monkeypatch.setattr(shards._Run, "_next", only_what_waits)
    assert simulate(settings, MEASURED).efficiency < 0.75 < with_them.efficiency


def test_one_worker_alone_is_as_fast_as_it_can_be():
    found = simulate(Simulation(workers=1, shards=7, failing=0, slow=0), MEASURED)
    assert found.efficiency == pytest.approx(1)
    assert found.repeated == 0
