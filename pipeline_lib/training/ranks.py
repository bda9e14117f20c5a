"""One model trained in several processes, the ranks: each embeds its part of every batch.

All ranks plan the whole batch from the same seed. Each embeds its part of the images and of the
captions; vectors are gathered with their gradient, so that all of the batch are negatives; then
each takes the loss of its own queries alone. The sum of these losses is the loss of one process,
and the sum of their gradients its gradient. So an objective goes through :func:`own` and
:func:`gather`, which leave everything as it is in one process.

Not torch's DistributedDataParallel: it averages where losses here are sums, waits for ever for a
rank whose part of a batch reaches no weight, and has no sparse gradients on CUDA.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from zlib import crc32

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.distributed.nn.functional import all_reduce

from pipeline_lib.models.encoders import BatchNorm

Made = TypeVar("Made")

_NONE, _DENSE, _SPARSE = range(3)
"""Kinds of gradients."""

_embedded: Counter[str] = Counter()
"""How often an update has embedded what so far (:func:`own_chance`)."""


def count() -> int:
    """Return how many ranks train one model: 1 in a process of its own."""
    return dist.get_world_size() if dist.is_initialized() else 1


def is_first() -> bool:
    """Return whether this rank is the one that reads and writes files and says how far it is."""
    return not dist.is_initialized() or dist.get_rank() == 0


def from_first(make: Callable[[], Made]) -> Made:
    """Return what ``make`` makes in the first rank, the only one that calls it."""
    if count() == 1:
        return make()
    box = [make() if is_first() else None]
    dist.broadcast_object_list(box, src=0, device=torch.device("cpu"))
    return box[0]


def wait_for_first() -> None:
    """Return when the first rank has called this, too: what it refuses before, it alone says."""
    from_first(lambda: None)


# Parts of a batch


def part_of(items: int) -> slice:
    """Return which of a batch's items are this rank's: blocks of one size, the last ones less."""
    if count() == 1:
        return slice(None)
    block, rank = _block(items), dist.get_rank()
    return slice(min(rank * block, items), min((rank + 1) * block, items))


def own(values: Tensor) -> Tensor:
    """Return this rank's part of values of all items ``[items, ...]``; all of it in one process."""
    return values if count() == 1 else values[part_of(len(values))]


def gather(vectors: Tensor, items: int) -> Tensor:
    """Return the vectors ``[items, dim]`` of all ranks' parts, in order, with their gradient.

    The gradient is the sum of those that the ranks' own losses have.

    Args:
        vectors: Of this rank's part, perhaps of no item ``[part, dim]``.
        items: In all parts.
    """
    if count() == 1:
        return vectors
    # The way back is one for all ranks: also for one whose part is empty, and has no weights.
    if not vectors.requires_grad:
        vectors = vectors.detach().requires_grad_()
    return _Gather.apply(vectors, items)


def mean(values: Tensor, items: int) -> Tensor:
    """Return what this rank's values add to the mean over the ``items`` of all ranks."""
    return values.mean() if count() == 1 else values.sum() / items


def share(value: Tensor) -> Tensor:
    """Return this rank's share of a number that all ranks compute alike."""
    return value if count() == 1 else value / count()


def start_update(seed: int) -> None:
    """Let all chance of an update follow from its seed, on every device."""
    torch.manual_seed(seed)
    _embedded.clear()


@contextmanager
def own_chance(what: str) -> Iterator[None]:
    """Draw other random numbers than the other ranks within the block; afterwards go on as before.

    What is planned is drawn by all ranks, as by one process; what falls on the items of a part, as
    dropout does, by each for itself.

    Args:
        what: What is embedded; within an update, each has numbers of its own, each time.
    """
    if count() == 1:
        yield
        return
    of_update = [torch.initial_seed(), crc32(what.encode()), _embedded[what]]
    _embedded[what] += 1
    seeds = [*of_update, dist.get_rank()]
    seed = int(np.random.default_rng(seeds).integers(2**62))
    cuda = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(cuda):
        torch.manual_seed(seed)
        yield


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, vectors: Tensor, items: int) -> Tensor:
        ctx.part = len(vectors)
        return _of_all(vectors, _block(items))[:items]

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        block = _block(len(gradient))
        summed = gradient.new_empty(block, *gradient.shape[1:])
        dist.reduce_scatter_tensor(summed, _padded(gradient, block * count()))
        return summed[: ctx.part], None


def _block(items: int) -> int:
    return -(-items // count())


def _of_all(values: Tensor, block: int) -> Tensor:
    """Return the parts of all ranks ``[ranks * block, ...]``, each with zeros at its end."""
    found = values.new_empty(count() * block, *values.shape[1:])
    dist.all_gather_into_tensor(found, _padded(values, block))
    return found


def _padded(values: Tensor, rows: int) -> Tensor:
    missing = values.new_zeros(rows - len(values), *values.shape[1:])
    return torch.cat([values, missing])


# Weights and their gradients


def same_weights(network: nn.Module) -> None:
    """Give all ranks the weights of the first: what they compute alike may differ in a last bit."""
    if count() > 1:
        for value in network.state_dict().values():
            dist.broadcast(value, src=0)


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by the sum of all ranks' ones; one that no rank has remains None."""
    if count() == 1:
        return
    parameters = list(parameters)
    kinds = torch.tensor([_kind(p.grad) for p in parameters], device=parameters[0].device)
    dist.all_reduce(kinds, dist.ReduceOp.MAX)
    by_kind = {kind: [] for kind in (_NONE, _DENSE, _SPARSE)}
    for parameter, kind in zip(parameters, kinds.tolist(), strict=True):
        by_kind[kind].append(parameter)
    _sum_dense(by_kind[_DENSE])
    for table in by_kind[_SPARSE]:
        table.grad = _sum_of_rows(table)


def total(value: Tensor) -> Tensor:
    """Return the sum of a number of each rank."""
    if count() > 1:
        value = value.clone()
        dist.all_reduce(value)
    return value


def _kind(gradient: Tensor | None) -> int:
    if gradient is None:
        return _NONE
    return _SPARSE if gradient.is_sparse else _DENSE


def _sum_dense(parameters: list[nn.Parameter]) -> None:
    calls = []
    for parameter in parameters:
        missing = parameter.grad is None
        parameter.grad = torch.zeros_like(parameter) if missing else parameter.grad.contiguous()
        calls.append(dist.all_reduce(parameter.grad, async_op=True))
    for call in calls:
        call.wait()


def _sum_of_rows(table: nn.Parameter) -> Tensor:
    """Return the sum of all ranks' sparse gradients of a table of words ``[words, dim]``."""
    rows, values = table.new_empty(0, dtype=torch.int64), table.new_empty(0, table.shape[1])
    if table.grad is not None:
        gradient = table.grad.coalesce()
        rows, values = gradient.indices()[0], gradient.values()
    sizes = _of_all(torch.tensor([len(rows)], device=rows.device), 1)
    block = int(sizes.max())
    there = torch.arange(block, device=rows.device)[None, :] < sizes[:, None]
    found = (_of_all(each, block)[there.flatten()] for each in (rows[:, None], values))
    rows, values = found
    return torch.sparse_coo_tensor(rows.T, values, table.shape).coalesce()


# Normalisation over the batch


class SynchronizedBatchNorm(BatchNorm):
    """Batch normalisation over the items of all ranks, on any device.

    torch.nn.SyncBatchNorm is of CUDA alone.
    """

    def forward(self, values: Tensor) -> Tensor:
        """Normalise this rank's values ``[part, dim]``, which may be of no item."""
        if not self.training:
            return super().forward(values)
        sums = torch.cat([values.sum(dim=0), values.new_tensor([len(values)])])
        sums = all_reduce(sums)
        items = sums[-1].detach()
        if items == 1 and self.running_mean is not None:
            return self.by_running_statistics(values)
        average = sums[:-1] / items
        deviations = values - average
        variance = all_reduce(deviations.square().sum(dim=0)) / items
        self._keep(average.detach(), variance.detach() * items / (items - 1))
        return self.scaled(deviations / (variance + self.eps).sqrt())

    @torch.no_grad()
    def _keep(self, average: Tensor, variance: Tensor) -> None:
        if self.running_mean is None:
            return
        self.num_batches_tracked += 1
        # Without a momentum, of all batches alike.
        share = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(average, share)
        self.running_var.lerp_(variance, share)


def synchronize_normalization(network: nn.Module) -> None:
    """Have a network's batch normalisation count the items of all ranks, in place."""
    if count() > 1:
        for layer in network.modules():
            if isinstance(layer, nn.BatchNorm1d):
                layer.__class__ = SynchronizedBatchNorm  # the same weights, under the same names
