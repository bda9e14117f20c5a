"""Workers of Ray: two nodes on this machine, of which everything is killed."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from clusters import two_nodes, use
from PIL import Image

from pipeline_lib.compute import forks
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.batches import FeatureStore
from pipeline_lib.images.extraction import ImageWorker, extract
from pipeline_lib.scheduling import cluster
from pipeline_lib.scheduling.cluster import asked_for, open_pool
from pipeline_lib.scheduling.shards import UnusableError, in_shards, run_shards

SIZE, SHARDS = 4, 30
KEYS = [hashlib.sha256(bytes([index])).digest() for index in range(SHARDS)]
NUMBERS = list(range(SIZE * SHARDS))
NUMBERS[7], NUMBERS[90] = 1000, 2000  # which nobody can do
GOOD = SHARDS - 2
TOO_LARGE = ["1000 is too large", "2000 is too large"]


class Squares:
    """A worker that squares numbers below 1,000."""

    description = {"exponent": 2}  # noqa: RUF012

    def read(self, shard):
        return shard.items

    def compute(self, read):
        time.sleep(0.05)
        if problems := [f"{number} is too large" for number in read if number >= 1000]:
            raise UnusableError(problems)
        return (np.array(read, "<f4") ** 2).tobytes()


class Watched(FeatureStore):
    """A store that does something once it has so many shards."""

    def __init__(self, folder, then):
        super().__init__(folder, KEYS, SIZE, len(NUMBERS), 1)
        self.written, self.then = 0, then

    def write(self, index, result, sha256):
        super().write(index, result, sha256)
        self.written += 1
        if self.written in self.then:
            self.then[self.written]()


def run(pool, store):
    return run_shards(in_shards(NUMBERS, SIZE), pool, store, unit="numbers", label="squares")


@pytest.fixture
def expected(tmp_path, monkeypatch):
    """Return the bytes that one process leaves."""
    use(monkeypatch)
    folder = tmp_path / "expected"
    with open_pool(Squares) as pool, Watched(folder, {}) as store:
        assert run(pool, store) == TOO_LARGE
    return contents(folder)


def contents(folder):
    return [(folder / name).read_bytes() for name in ("vectors.f32", "finished.sha256")]


# Without Ray


def test_nothing_is_asked_for_where_no_variable_is_set(monkeypatch):
    use(monkeypatch)
    assert asked_for() is None
    use(monkeypatch, ADDRESS="auto", WORKERS=3, GPUS=0.5)
    assert asked_for() == cluster.Asked("auto", 3, 1, 0.5)


@pytest.mark.parametrize(
    ("name", "value"),
    [("WORKERS", "two"), ("CPUS", "0"), ("CPUS", "1.5"), ("GPUS", "-1"), ("GPUS", "nan")],
)
def test_a_wrong_number_is_named(monkeypatch, name, value):
    use(monkeypatch, ADDRESS="local", **{name: value})
    with pytest.raises(ContractError, match=rf"{getattr(cluster, name)}: .*found '{value}'"):
        asked_for()


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch):
    use(monkeypatch, ADDRESS="local")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ContractError, match="uv sync --group ray"), open_pool(Squares):
        pass


def test_a_node_without_the_shared_folder_is_named(tmp_path):
    with pytest.raises(ContractError, match=rf"{os.uname().nodename}: .*{tmp_path}/project.*Mount"):
        cluster._Actor().load(str(tmp_path / "project"), 1, Squares)


def test_a_node_without_a_file_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    class Reader(Squares):
        def read(self, shard):
            return [open(item) for item in shard.items]

    actor = cluster._Actor()
    actor.load(str(tmp_path), 1, Reader)
    with pytest.raises(ContractError, match=rf"{os.uname().nodename}: .*a.jpg.*Each node needs"):
        actor.run("1", in_shards(["a.jpg"], 1)[0])


def of_resources(**found):
    return SimpleNamespace(cluster_resources=lambda: found)


@pytest.mark.parametrize(
    ("cpus", "gpus", "workers"), [(1, 0, 8), (3, 0, 2), (1, 1, 2), (1, 0.25, 8)]
)
def test_there_are_as_many_workers_as_there_is_room_for(cpus, gpus, workers):
    asked = cluster.Asked("auto", 0, cpus, gpus)
    assert cluster._room(of_resources(CPU=8.0, GPU=2.0), asked) == workers


def test_a_cluster_without_room_is_an_error():
    asked = cluster.Asked("auto", 0, 2, 1)
    with pytest.raises(ContractError, match=r"a worker of 2 CPUs and 1 GPUs, found .* 8 CPUs"):
        cluster._room(of_resources(CPU=8.0), asked)


@pytest.mark.parametrize(
    ("address", "asked", "workers"), [("auto", 12, 12), ("local", 12, 8), ("local", 3, 3)]
)
def test_a_machine_alone_starts_no_more_workers_than_its_gpus_have_room_for(
    address, asked, workers
):
    """Other nodes may join a cluster."""
    found = of_resources(CPU=12.0, GPU=2.0)
    assert cluster._workers(found, cluster.Asked(address, asked, 1, 0.25)) == workers


def test_ray_counts_the_gpus_of_a_machine_itself():
    """It takes whole ones alone, and one that is not there hides those that are."""
    given = {}
    ray = SimpleNamespace(init=lambda **options: given.update(options))
    cluster._connect(ray, cluster.Asked("local", 3, 1, 0.33))
    assert given["num_cpus"] == 3
    assert "num_gpus" not in given


class Nodes:
    """Ray as far as a pool knows it: each worker is ready at once, and is as described."""

    exceptions = SimpleNamespace(RayTaskError=ConnectionError, RayError=TimeoutError)

    def __init__(self, *descriptions):
        self.loaded = iter([(f"node{n}", each) for n, each in enumerate(descriptions, start=1)])

    def put(self, load):
        return load

    def remote(self, actor):
        worker = SimpleNamespace(load=SimpleNamespace(remote=lambda *given: object()))
        return SimpleNamespace(options=lambda **o: SimpleNamespace(remote=lambda: worker))

    def wait(self, calls, num_returns, timeout):
        return calls[:num_returns], calls[num_returns:]

    def get(self, call):
        return next(self.loaded)


def test_the_bar_names_no_worker_where_none_is_ready():
    starting = SimpleNamespace(_names={}, _actors={"0": None})
    assert cluster.RayPool.status(starting) == "0 workers; 1 start"


def test_a_worker_that_computes_otherwise_is_refused():
    asked = cluster.Asked("auto", 2, 1, 0)
    own = {"code": "a", "packages": ["2.15"]}
    assert cluster.RayPool(Nodes(own, own), asked, Squares, 2).description == own
    other = Nodes(own, own | {"packages": ["2.14"]})
    with pytest.raises(ContractError, match=r"node2: expected a worker .* found another packages"):
        cluster.RayPool(other, asked, Squares, 2)


# With Ray


def test_too_little_memory_and_a_full_disk_are_said_as_such():
    ray = pytest.importorskip("ray", reason="needs the group ray: uv sync --group ray")
    assert "too little memory" in cluster._reason(ray, ray.exceptions.OutOfMemoryError("..."))
    assert "disk" in cluster._reason(ray, ray.exceptions.OutOfDiskError("..."))


def test_a_machine_too_busy_for_ray_is_tried_again_and_named_in_the_end():
    own = subprocess.Popen(["sleep", "60"])
    started = []

    def init(address, **options):
        started.append(subprocess.Popen(["sleep", "60"]))
        if len(started) < 3 or address == "never":
            raise Exception("The current node timed out during startup.")

    def refuse(address, **options):
        raise ConnectionError

    ray = SimpleNamespace(init=init)
    cluster._connect(ray, cluster.Asked("local", 2, 1, 0))
    *left, last = started
    assert [process.wait() for process in left] == [-signal.SIGKILL] * 2
    assert own.poll() is None
    assert last.poll() is None
    last.kill()
    with pytest.raises(ContractError, match="too busy: Ray has not started in 3 half minutes"):
        cluster._connect(ray, cluster.Asked("never", 2, 1, 0))
    with pytest.raises(ContractError, match=r"does not start on this machine \(ConnectionError\)"):
        cluster._connect(SimpleNamespace(init=refuse), cluster.Asked("local", 2, 1, 0))
    own.kill()
    for process in (own, *started):
        process.wait()


def test_no_cluster_at_the_address_is_an_error(monkeypatch):
    pytest.importorskip("ray", reason="needs the group ray: uv sync --group ray")
    use(monkeypatch, ADDRESS="rey://nowhere")
    with pytest.raises(ContractError, match="at 'rey://nowhere', found none"), open_pool(Squares):
        pass


@pytest.fixture(scope="module")
def ray_cluster():
    """Yield a cluster of two nodes and its second node."""
    with two_nodes(__name__) as found:
        yield found


DRIVER = """
import sys
sys.path[:0] = sys.argv[1].split(":")
import test_cluster
from ray import cloudpickle
cloudpickle.register_pickle_by_value(test_cluster)
from pathlib import Path
from pipeline_lib.scheduling.cluster import open_pool
with open_pool(test_cluster.Squares) as pool:
    with test_cluster.Watched(Path(sys.argv[2]), {}) as store:
        test_cluster.run(pool, store)
"""


def test_features_have_the_bytes_of_one_process_and_go_on_in_one(
    ray_cluster, tmp_path, monkeypatch
):
    for number in range(14):
        pixels = np.random.default_rng(number).integers(0, 256, (48, 72, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number:02d}.png")
    names = sorted(path.name for path in tmp_path.glob("*.png"))
    images = pd.DataFrame({"image_id": names, "dataset": "d", "split": "train", "path": names})

    def features(name, **variables):
        use(monkeypatch, **variables)
        resume = tmp_path / f"{name}.resume"
        extract(images, tmp_path, tiny.extractor(), tmp_path / name, resume)
        return (tmp_path / name).read_bytes()

    forks.use_cores(1)  # as many as a worker: sums in float32 depend on it
    try:
        spread = features("ray", ADDRESS=ray_cluster[0].address)
        assert features("one") == spread
        monkeypatch.setattr(ImageWorker, "compute", None)  # nothing is left for one process
        assert features("ray") == spread
    finally:
        forks.use_cores(sys.maxsize)
        torch.set_num_threads(1)


def test_a_pool_serves_several_calls_and_forgets_what_is_late(
    ray_cluster, expected, tmp_path, monkeypatch
):
    use(monkeypatch, ADDRESS=ray_cluster[0].address)
    with open_pool(Squares) as pool:
        for folder in (tmp_path / "first", tmp_path / "second"):
            with Watched(folder, {}) as store:
                assert run(pool, store) == TOO_LARGE
                assert store.written == GOOD
            assert contents(folder) == expected
            # What a slow worker still does of this call ends in the next one.
            pool.submit(next(iter(pool._names)), in_shards(NUMBERS, SIZE)[0])


def finished(folder):
    path = folder / "finished.sha256"
    stored = path.read_bytes() if path.exists() else b""
    return sum(any(stored[first : first + 64]) for first in range(0, len(stored), 64))


def test_the_driver_is_killed_and_one_process_ends_its_work(
    ray_cluster, expected, tmp_path, monkeypatch
):
    use(monkeypatch, ADDRESS=ray_cluster[0].address)
    command = [sys.executable, "-c", DRIVER, ":".join(sys.path), str(tmp_path)]
    driver = subprocess.Popen(command, stderr=subprocess.PIPE)
    while finished(tmp_path) < 5 and driver.poll() is None:
        time.sleep(0.01)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL, driver.stderr.read().decode()[-3000:]
    driver.stderr.close()
    done = finished(tmp_path)
    assert 5 <= done < GOOD
    use(monkeypatch)
    with open_pool(Squares) as pool, Watched(tmp_path, {}) as store:
        run(pool, store)
        assert store.written == GOOD - done
    assert contents(tmp_path) == expected


def test_a_worker_and_a_node_are_killed_and_no_byte_differs(
    ray_cluster, expected, tmp_path, monkeypatch, capfd
):
    started, second = ray_cluster
    use(monkeypatch, ADDRESS=started.address)
    names = []

    def kill_worker():
        names.extend(pool._names.values())
        os.kill(int(names[0].rpartition(":")[2]), signal.SIGKILL)

    def kill_node():
        started.remove_node(second, allow_graceful=False)

    then = {3: kill_worker, 12: kill_node}
    with open_pool(Squares) as pool, Watched(tmp_path, then) as store:
        assert run(pool, store) == TOO_LARGE
        assert store.written == GOOD
    assert contents(tmp_path) == expected
    shown = capfd.readouterr().err
    assert re.search(rf"\d workers: {re.escape(names[0])}.*; \d+ shards wait", shown)
    # The bar, and nothing that Ray says.
    assert not re.search(r"ray|Ray|WARN|INFO", re.sub(r"squares[^\n]*", "", shown))
