"""Kill workers, nodes and drivers of a small cluster of Ray, again and again, and compare bytes.

``python -m benchmarks.scale_kills`` starts two nodes of one CPU each on this machine and has the
pipeline's scheduler square numbers on them, slowly. While it works, a worker gets SIGKILL, a whole
node is taken away and another one added, or the driver is killed and started again. Each round
must end with the bytes that one process leaves. It exits with 1 if one does not. Names of victims
as arguments leave the others alone: ``python -m benchmarks.scale_kills driver``.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import click
import numpy as np

from pipeline_lib.images.batches import FeatureStore
from pipeline_lib.scheduling import cluster
from pipeline_lib.scheduling.cluster import RayPool, open_pool
from pipeline_lib.scheduling.shards import Shard, in_shards, run_shards

SIZE, SHARDS = 4, 400
SECONDS = 0.1
NODE = {"num_cpus": 1, "object_store_memory": 2**27, "include_dashboard": False}
KILLS_A_ROUND = 5
VICTIMS = ("worker", "node", "driver")

DRIVER = """
import sys
from contextlib import suppress
from pathlib import Path
from benchmarks.scale_kills import compute
compute(Path(sys.argv[1]))
"""


class Squares:
    """A worker that squares numbers, slowly."""

    def __init__(self, seconds: float) -> None:
        self.description, self._seconds = {"exponent": 2}, seconds

    def read(self, shard: Shard) -> np.ndarray:
        """Return the numbers."""
        return np.array(shard.items, "<f4")

    def compute(self, read: np.ndarray) -> bytes:
        """Return their squares."""
        time.sleep(self._seconds)
        return (read**2).tobytes()


def load() -> Squares:
    """Return a worker that is as slow as a small network."""
    return Squares(SECONDS)


class Watched(FeatureStore):
    """A store that calls a function after each shard."""

    def __init__(self, folder: Path, then: Callable[[], None]) -> None:
        keys = [index.to_bytes(32) for index in range(1, SHARDS + 1)]
        super().__init__(folder, keys, SIZE, SIZE * SHARDS, 1)
        self._then = then

    def write(self, index: int, result: bytes, sha256: bytes) -> None:
        """Store a shard."""
        super().write(index, result, sha256)
        self._then()


def compute(folder: Path, killer: Callable[[RayPool], None] = lambda pool: None) -> list[bytes]:
    """Square all numbers, where the environment says; return the files that this leaves."""
    shards = in_shards(range(SIZE * SHARDS), SIZE)
    with open_pool(load) as pool, Watched(folder, lambda: killer(pool)) as store:
        run_shards(shards, pool, store, unit="numbers", label="squares")
    return contents(folder)


def contents(folder: Path) -> list[bytes]:
    """Return the files that are there after a run."""
    return [path.read_bytes() for path in sorted(folder.iterdir())]


class Killer:
    """Kills at random moments, when all is well again after the last time.

    Args:
        kill: From the pool to its victim's end.
        most: How often.
        chance: Draws the moments.
    """

    def __init__(self, kill: Callable[[RayPool], None], most: int, chance: random.Random) -> None:
        self.kill, self.most, self.done, self._chance = kill, most, 0, chance

    def __call__(self, pool: RayPool) -> None:
        """Kill, perhaps."""
        is_well = pool.status().startswith("2 workers")
        if is_well and self.done < self.most and self._chance.random() < 0.2:
            with suppress(ProcessLookupError):  # killed before, which the pool does not yet know
                self.kill(pool)
                self.done += 1


def kill_worker(pool: RayPool) -> None:
    """Kill the process of one worker that is ready."""
    name = random.choice(sorted(pool.status().split(": ")[1].split("; ")[0].split(", ")))
    os.kill(int(name.rpartition(":")[2]), signal.SIGKILL)


class Nodes:
    """The cluster, whose second node comes and goes."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args=NODE)
        self._second = self.cluster.add_node(**NODE)

    def kill_second(self, pool: RayPool) -> None:
        """Take a node away with all its processes; add another one."""
        self.cluster.remove_node(self._second, allow_graceful=False)
        self._second = self.cluster.add_node(**NODE)


def finished(folder: Path) -> int:
    """Return how many shards are finished on disk."""
    path = folder / "finished.sha256"
    stored = path.read_bytes() if path.exists() else b""
    return sum(any(stored[first : first + 64]) for first in range(0, len(stored), 64))


def killed_drivers(folder: Path, most: int, chance: random.Random) -> int:
    """Start drivers and kill each at a random moment of its work, until one ends."""
    kills, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        before = finished(folder)
        goal = before + chance.randint(1, SHARDS // (2 * KILLS_A_ROUND))
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(folder)], stderr=subprocess.DEVNULL
        )
        while driver.poll() is None and (kills == most or finished(folder) < goal):
            time.sleep(0.01)
        if driver.poll() is None:
            driver.kill()
            kills += 1
        code = driver.wait()
    if code:
        raise click.ClickException(f"a driver that was not killed ended with {code}")
    return kills


def campaign(victims: Sequence[str], kills: int, seed: int) -> tuple[Counter[str], int, int]:
    """Return the kills by victim, the rounds, and those that ended with other bytes."""
    chance, done, rounds, different = random.Random(seed), Counter[str](), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = compute(folder / "expected")
        nodes = Nodes()
        os.environ[cluster.ADDRESS] = nodes.cluster.address
        for victim in victims:
            while done[victim] < kills:
                rounds += 1
                round_folder, most = folder / str(rounds), min(KILLS_A_ROUND, kills - done[victim])
                if victim == "driver":
                    done[victim] += killed_drivers(round_folder, most, chance)
                else:
                    kill = kill_worker if victim == "worker" else nodes.kill_second
                    killer = Killer(kill, most, chance)
                    compute(round_folder, killer)
                    done[victim] += killer.done
                different += contents(round_folder) != expected
                click.echo(f"round {rounds}: {dict(done)}, {different} different")
        nodes.cluster.shutdown()
    return done, rounds, different


@click.command(help=__doc__)
@click.option("--kills", default=20, help="Of each: workers, nodes, drivers.")
@click.option("--seed", default=1, help="Of the moments.")
@click.argument("victims", nargs=-1, type=click.Choice(VICTIMS))
def main(victims: tuple[str, ...], kills: int, seed: int) -> None:
    """Run the campaign and print its counts."""
    for variable, value in cluster.SETTINGS_OF_RAY.items():
        os.environ.setdefault(variable, value)
    began = time.monotonic()
    done, rounds, different = campaign(victims or VICTIMS, kills, seed)
    for victim, count in done.items():
        click.echo(f"{victim + 's killed':<40}{count}")
    click.echo(f"{'rounds':<40}{rounds}\n{'rounds with other bytes (0)':<40}{different}")
    click.echo(f"{'minutes':<40}{(time.monotonic() - began) / 60:.1f}")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
