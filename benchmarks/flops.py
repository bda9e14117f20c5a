"""Floating-point operations of what is timed; a multiplication and its addition count as two."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from pipeline_lib.models.recurrent import SentenceLayer


def of_forward(network: nn.Module, example: Tensor) -> int:
    """Return the operations of one forward pass, as PyTorch counts them."""
    with FlopCounterMode(display=False) as counter:
        network(example)
    return counter.get_total_flops()


def of_update(model: nn.Module, update: Callable[[], object]) -> float:
    """Return the operations of a model's affine and recurrent layers in one update.

    A layer with N weights takes 2 N per row that it reads: an image, a caption, or for recurrent
    layers a word, of which pads are none. The gradient of its weights takes as many, and so does
    that of what it reads, if it has one. Scores of pairs, activations and the optimiser's step are
    left out: some per cent of the whole.

    Args:
        model: Whose layers are counted.
        update: A forward and backward pass of it.
    """
    counted: list[float] = []

    def affine(layer: nn.Linear, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
        rows, passes = inputs[0].numel() / layer.in_features, 3 if inputs[0].requires_grad else 2
        counted.append(2 * passes * rows * layer.weight.numel())

    def recurrent(reader: SentenceLayer, inputs: tuple, _output: Tensor) -> None:
        matrices = reader.layer.weight_ih_l0.numel() + reader.layer.weight_hh_l0.numel()
        counted.append(2 * 3 * int(inputs[2].sum()) * matrices)

    hooks = [m.register_forward_hook(affine) for m in model.modules() if isinstance(m, nn.Linear)]
    hooks += [
        m.register_forward_hook(recurrent) for m in model.modules() if isinstance(m, SentenceLayer)
    ]
    update()
    for hook in hooks:
        hook.remove()
    return sum(counted)


def of_product(rows: int, columns: int, dim: int) -> int:
    """Return the operations of all dot products of two sets of vectors."""
    return 2 * rows * columns * dim
