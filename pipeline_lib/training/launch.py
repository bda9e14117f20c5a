"""Starting the ranks of a training, and ending them together.

``POLYVIEW_TRAIN_PROCESSES=n`` has the stage start itself n times by PyTorch's elastic agent, on
this machine; ``torchrun`` does the same for several machines. It comes from the environment, not
from the parameters, and no hash depends on it. Where there is dropout each rank draws its own: the
numbers are others of the same distribution, as with another seed (docs/machines.md).
"""

import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from pipeline_lib.compute.arithmetic.mode import F64
from pipeline_lib.compute.device import best_device
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.settings.strict import Precision, SettingsError
from pipeline_lib.training.chunks import captions_at_once

if TYPE_CHECKING:
    from torch.distributed.launcher.api import LaunchConfig

VARIABLE = "POLYVIEW_TRAIN_PROCESSES"

_RUN = "polyview-"
"""What the name of a run begins with that this module starts."""

_PATIENCE = 5
"""Seconds in which whoever started a rank that was killed says so, and ends the others."""


class RankEnded(ContractError):
    """A rank ended before its time; those that are left cannot go on."""


def asked_processes() -> int:
    """Return how many ranks the environment asks for.

    Raises:
        SettingsError: If it asks for no number.
    """
    text = os.environ.get(VARIABLE, "1")
    if not text.isdecimal() or int(text) < 1:
        raise SettingsError(f"{VARIABLE}: expected a number of processes, 1 or more, found {text}")
    return int(text)


def is_rank() -> bool:
    """Return whether this process was started as one of several ranks, as torchrun does it."""
    return dist.is_torchelastic_launched() and int(os.environ["WORLD_SIZE"]) > 1


def in_ranks(train: Callable[[], None], precision: Precision, module: str, name: str) -> None:
    """Call ``train`` in each of the ranks that are asked for: in this process, if none is.

    In the precision f64 the first trains alone: its bits are those of one process.

    Args:
        train: All that a rank does.
        precision: That it trains in.
        module: That calls this with the argument ``name``; each rank runs it.
        name: Of what is trained.
    """
    processes = asked_processes()
    captions_at_once(precision)  # which is refused once, and not by each rank
    if precision == F64 and (is_rank() or processes > 1):
        if not is_rank() or os.environ["RANK"] == "0":
            print(f"{name}: trains in one process, whose bits f64 promises", file=sys.stderr)
            train()
    elif is_rank():
        with _joined():
            train()
    elif processes > 1:
        _run_ranks(module, name, processes)
    else:
        train()


def _run_ranks(module: str, name: str, processes: int) -> None:
    """Run a module once per rank on this machine, until all have ended.

    Raises:
        RankEnded: If one was killed.
        SystemExit: If one failed, with its exit code; it has said why. Or if this process was
            interrupted, with a shell's code.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    _check_gpus(processes)
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    try:
        with _launch_config(processes) as config:
            elastic_launch(config, sys.executable)("-m", module, name)
    except SignalException as error:
        print("\ninterrupted. Run again: it goes on from the last validation", file=sys.stderr)
        sys.exit(128 + error.sigval)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode > 0:
            sys.exit(failure.exitcode)
        name = signal.Signals(-failure.exitcode).name
        print(file=sys.stderr)  # after a progress bar
        raise RankEnded(
            f"rank {rank} of {processes} was ended by {name}, perhaps for lack of memory. Run the "
            "command again: it goes on from the last validation."
        ) from None


@contextmanager
def _launch_config(processes: int) -> Iterator["LaunchConfig"]:
    """Yield how ranks of this machine are started, with a folder that PyTorch would leave."""
    from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs
    from torch.distributed.launcher.api import LaunchConfig

    with TemporaryDirectory(prefix="polyview-ranks-") as logs:
        yield LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=processes,
            run_id=f"{_RUN}{os.getpid()}",
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(logs),
        )


@contextmanager
def _joined() -> Iterator[None]:
    """Be one of the ranks within the block, on a device of its own if there are any.

    Raises:
        SettingsError: If this machine has fewer GPUs than ranks.
        ContractError: If the ranks cannot connect.
        RankEnded: If another rank ended.
    """
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    here, local = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    backend = "gloo"
    if best_device().type == "cuda":
        backend = "cpu:gloo,cuda:nccl"
        _check_gpus(here)
        torch.cuda.set_device(local)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() // here))
    _connect(backend)
    try:
        yield
    except KeyboardInterrupt:
        if os.environ.get("TORCHELASTIC_RUN_ID", "").startswith(_RUN):
            sys.exit(130)  # who started it says so, once for all
        raise
    except RuntimeError as error:
        if not _is_of_others(error):
            raise
        time.sleep(_PATIENCE)
        raise RankEnded(
            f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}: another rank ended. Run the "
            "command again: it goes on from the last validation."
        ) from error
    dist.destroy_process_group()


def _check_gpus(ranks: int) -> None:
    if best_device().type == "cuda" and torch.cuda.device_count() < ranks:
        raise SettingsError(
            f"{ranks} ranks on this machine: expected a GPU for each, found "
            f"{torch.cuda.device_count()}. Start fewer, or hide the GPUs: CUDA_VISIBLE_DEVICES="
        )


def _connect(backend: str) -> None:
    try:
        dist.init_process_group(backend)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ContractError(
            f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}: expected to reach all "
            f"others, found: {reason}. Start all of them, and name the network that joins their "
            "machines: GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME"
        ) from error


def _is_of_others(error: RuntimeError) -> bool:
    return isinstance(error, dist.DistError) or "gloo" in str(error)


def _end_with_parent(parent: int) -> None:
    """End this process with the one that started it: nobody else would."""
    if os.getppid() == parent:
        select.select([os.pidfd_open(parent)], [], [])
    os._exit(1)
