"""PyTorch's convolution of images."""

import math

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.compute.arithmetic.functions import CACHED
from pipeline_lib.compute.arithmetic.grid import product


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    _output_padding: list[int],
    groups: int,
) -> Tensor:
    """Convolve images ``[n, channels, rows, columns]``: ``aten::convolution`` without dilation."""
    depthwise = groups == x.shape[1] == len(weight)
    if transposed or set(dilation) != {1} or not (groups == 1 or depthwise):
        raise NotImplementedError("expected a convolution of all channels, or of each by itself")
    # Channels last, so that the numbers of a pixel lie together.
    x = torch.constant_pad_nd(x.permute(0, 2, 3, 1), [0, 0, *[padding[1]] * 2, *[padding[0]] * 2])
    convolve = _depthwise if depthwise and groups > 1 else _dense
    y = convolve(x, weight, stride)
    return (y if bias is None else y.add_(bias)).permute(0, 3, 1, 2)


def _windows(x: Tensor, weight: Tensor, stride: list[int]) -> Tensor:
    """Return all windows ``[images, rows, columns, channels, kernel rows, kernel columns]``."""
    return x.unfold(1, weight.shape[2], stride[0]).unfold(2, weight.shape[3], stride[1])


def _dense(x: Tensor, weight: Tensor, stride: list[int]) -> Tensor:
    windows = _windows(x, weight, stride)
    terms = math.prod(windows.shape[3:])
    each = product(windows.reshape(-1, terms), weight.view(-1, terms).T)
    return each.view(*windows.shape[:3], -1)


def _depthwise(x: Tensor, weight: Tensor, stride: list[int]) -> Tensor:
    """Add the shifted images one after the other, some rows at a time that stay in the cache."""
    windows = _windows(x, weight, stride)
    kernel = weight[:, 0].permute(1, 2, 0).contiguous()
    y = x.new_zeros(windows.shape[:4])
    step = max(1, CACHED // math.prod(y.shape[2:]))
    for image, found in zip(windows, y, strict=True):
        for some, part in zip(image.split(step), found.split(step), strict=True):
            for i, j in np.ndindex(*kernel.shape[:2]):
                part.add_(some[..., i, j] * kernel[i, j])
    return y
