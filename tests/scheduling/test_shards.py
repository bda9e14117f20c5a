"""The scheduler: every shard once, whoever ends, is slow or fails."""

import hashlib
import threading
import time
from collections import deque
from dataclasses import replace

import pytest

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.scheduling.shards import (
    IN_FLIGHT,
    MOST_LOSSES,
    FileStore,
    Finished,
    Gone,
    InMemory,
    Ready,
    Shard,
    ThisProcess,
    UnusableError,
    in_shards,
    run_shards,
)

WORDS = [f"word {number}" for number in range(23)]


class Upper:
    """A worker that writes its items in capitals, and cannot do those that begin with ``bad``."""

    description = {"case": "upper"}  # noqa: RUF012

    def __init__(self):
        self.read_items = []

    def read(self, shard):
        self.read_items += shard.items
        return shard.items

    def compute(self, read):
        problems = [f"{item}: is bad" for item in read if item.startswith("bad")]
        if problems:
            raise UnusableError(problems)
        return " ".join(read).upper().encode()


class Memory:
    """A store in memory, which holds each shard once."""

    def __init__(self):
        self.results = {}

    def is_finished(self, index):
        return index in self.results

    def write(self, index, result, sha256):
        assert index not in self.results
        assert hashlib.sha256(result).digest() == sha256
        self.results[index] = result


class Acted:
    """A pool whose workers do what the test says: ``script`` gives the next event from what is had.

    Attributes:
        had: Shards that each worker has, oldest first.
        given: All that were handed out, in order.
    """

    description = {}  # noqa: RUF012

    def __init__(self, names, script):
        self.had, self.given = {name: deque() for name in names}, []
        self._events, self._script = deque(), script

    def begin(self):
        assert not self._events
        self._events.extend(Ready(name) for name in self.had)

    def submit(self, worker, shard):
        assert len(self.had[worker]) < IN_FLIGHT
        self.had[worker].append(shard)
        self.given.append((worker, shard.index))

    def events(self):
        return [self._events.popleft() if self._events else self._script(self)]

    def status(self):
        return f"{len(self.had)} workers"

    def finish(self, worker):
        shard = self.had[worker].popleft()
        result = " ".join(shard.items).upper().encode()
        return Finished(worker, shard.index, result, hashlib.sha256(result).digest(), ())

    def end(self, worker):
        self.had[worker].clear()
        return Gone(worker, "it was killed")

    def join(self):
        name = f"new {len(self.had)}"
        self.had[name] = deque()
        return Ready(name)


def run(shards, pool, store):
    return run_shards(shards, pool, store, unit="words", label="upper")


@pytest.fixture
def expected():
    store = Memory()
    assert run(in_shards(WORDS, 4), ThisProcess(Upper()), store) == []
    return store.results


def test_shards_cover_the_items_in_order():
    shards = in_shards(WORDS, 4)
    assert [shard.index for shard in shards] == list(range(6))
    assert [item for shard in shards for item in shard.items] == WORDS
    assert {len(shard.items) for shard in shards[:-1]} == {4}
    assert in_shards([], 4) == []


def test_this_process_computes_each_shard_and_shows_it(capsys):
    store = Memory()
    store.results[1] = b"of an earlier run"
    run(in_shards(WORDS, 4), ThisProcess(Upper()), store)
    assert store.results[0] == b"WORD 0 WORD 1 WORD 2 WORD 3"
    assert store.results[1] == b"of an earlier run"
    assert sorted(store.results) == list(range(6))
    assert "upper, 4 done before: 100%" in capsys.readouterr().err


def test_all_that_fail_for_their_own_sake_are_named_and_not_kept():
    items = [*WORDS]
    items[2], items[3], items[17] = "bad a", "bad b", "bad c"
    store = Memory()
    found = run(in_shards(items, 4), ThisProcess(Upper()), store)
    assert found == ["bad a: is bad", "bad b: is bad", "bad c: is bad"]
    assert sorted(store.results) == [1, 2, 3, 5]


def test_an_error_of_the_code_is_raised():
    worker = Upper()
    worker.compute = lambda read: 1 // 0
    pool = ThisProcess(worker)
    with pytest.raises(ZeroDivisionError):
        run(in_shards(WORDS, 4), pool, Memory())
    pool.close()


def test_reading_stays_one_shard_ahead_of_the_work():
    worker, lock, most = Upper(), threading.Lock(), []
    computed = 0

    def compute(read):
        nonlocal computed
        time.sleep(0.01)  # time enough to read too far ahead
        with lock:
            most.append(len(worker.read_items) - computed)
        computed += len(read)
        return b""

    worker.compute = compute
    run(in_shards(WORDS, 1), ThisProcess(worker), Memory())
    assert max(most) == IN_FLIGHT


def test_results_arrive_in_any_order(expected):
    def last_first(pool):
        return pool.finish([name for name, had in pool.had.items() if had][-1])

    store = Memory()
    run(in_shards(WORDS, 4), Acted(["a", "b", "c"], last_first), store)
    assert store.results == expected
    assert list(store.results) != sorted(store.results)


def test_what_an_ended_worker_held_is_done_by_others(expected):
    def first_ends(pool):
        if pool.had["a"]:
            return pool.end("a")
        return pool.finish("b")

    store, pool = Memory(), Acted(["a", "b"], first_ends)
    run(in_shards(WORDS, 4), pool, store)
    assert store.results == expected
    assert {index for name, index in pool.given if name == "a"} == {0, 1}


def test_a_shard_that_ends_every_worker_ends_the_run():
    def all_end(pool):
        for name, had in pool.had.items():
            if had:
                return pool.end(name)
        return pool.join()

    pool = Acted(["a"], all_end)
    with pytest.raises(ContractError, match=r"shard 0 \(word 0 to word 3\).*4 workers.*was killed"):
        run(in_shards(WORDS, 4), pool, Memory())
    assert len([index for _, index in pool.given if index == 0]) == MOST_LOSSES


def test_the_shard_that_ends_workers_while_they_read_it_is_the_one_that_is_named():
    def the_second_one_kills(pool):
        for name, had in pool.had.items():
            if any(shard.index == 1 for shard in had):
                return pool.end(name)
        for name, had in pool.had.items():
            if had:
                return pool.finish(name)
        return pool.join()

    store, pool = Memory(), Acted(["a"], the_second_one_kills)
    with pytest.raises(ContractError, match=r"shard 1 \(word 4 to word 7\).*4 workers"):
        run(in_shards(WORDS, 4), pool, store)
    assert 0 in store.results  # which had been lost with it
    assert len([index for _, index in pool.given if index == 1]) == MOST_LOSSES


def test_an_idle_worker_does_what_a_slow_one_holds(expected):
    def only_b_works(pool):
        return pool.finish("b")  # fails when it has nothing while "a" holds on

    store, pool = Memory(), Acted(["a", "b"], only_b_works)
    run(in_shards(WORDS, 4), pool, store)
    assert store.results == expected
    assert {(name, index) for name, index in pool.given if index < 2} == {
        ("a", 0), ("a", 1), ("b", 0), ("b", 1)
    }  # fmt: skip


def test_the_first_of_two_results_counts():
    def both(pool):
        if len(pool.given) < 3:
            return pool.finish("b") if pool.had["b"] else pool.finish("a")
        return pool.finish("a") if pool.had["a"] else pool.finish("b")

    store = Memory()  # which refuses a second one
    run([Shard(0, ["x"]), Shard(1, ["y"]), Shard(2, ["z"])], Acted(["a", "b"], both), store)
    assert sorted(store.results) == [0, 1, 2]


def test_one_at_a_time_no_worker_has_two_and_no_shard_is_with_two(expected):
    def last_first(pool):
        held = [shard.index for had in pool.had.values() for shard in had]
        assert len(held) == len({*held})
        assert max(map(len, pool.had.values())) == 1
        return pool.finish([name for name, had in pool.had.items() if had][-1])

    store, pool = Memory(), Acted(["a", "b", "c"], last_first)
    shards = in_shards(WORDS, 4)
    run_shards(shards, pool, store, unit="words", label="upper", one_at_a_time=True)
    assert store.results == expected
    assert len(pool.given) == len(shards)


def test_this_process_serves_several_calls(expected):
    pool = ThisProcess(Upper())
    for _ in range(2):
        store = Memory()
        run(in_shards(WORDS, 4), pool, store)
        assert store.results == expected
    pool.close()


def test_results_are_kept_until_they_are_read():
    store = InMemory()
    store.write(3, b"result", hashlib.sha256(b"result").digest())
    assert store.is_finished(3)
    assert store.read(3) == b"result"
    assert not store.is_finished(3)


def test_a_result_that_changed_on_its_way_is_refused_whatever_keeps_it(tmp_path):
    def changed(pool):
        return replace(pool.finish("a"), result=b"another")

    for store in (Memory(), InMemory(), FileStore(tmp_path)):
        with pytest.raises(ContractError, match="shard 0: expected the result as it was computed"):
            run(in_shards(WORDS, 4), Acted(["a"], changed), store)
        assert not store.is_finished(0)


def test_a_long_shard_is_named_in_short():
    def ends(pool):
        return pool.end("a") if pool.had["a"] else Ready("a")

    with pytest.raises(ContractError) as error:
        run([Shard(0, [list(range(1000))])], Acted(["a"], ends), Memory())
    assert len(str(error.value)) < 700


def test_the_bar_says_who_works_and_what_waits(capsys):
    def in_turn(pool):
        return pool.finish("a")

    run(in_shards(WORDS, 4), Acted(["a"], in_turn), Memory())
    assert "1 workers; 0 shards wait" in capsys.readouterr().err
