"""Powers and logarithms against Python's, which round correctly or nearly so."""

import math
from decimal import Decimal

import pytest
import torch

from pipeline_lib.synthesis.exponentials import log, power_of_two


def test_powers_are_right_to_the_last_bits():
    x = torch.tensor([*(n / 50 for n in range(-4500, 51)), -1000.25, 1000], dtype=torch.float64)
    expected = [2.0**value for value in x.tolist()]
    assert power_of_two(x).tolist() == pytest.approx(expected, rel=1e-15, abs=0)
    whole = torch.arange(-50, 50, dtype=torch.float64)
    assert power_of_two(whole).tolist() == [math.ldexp(1, n) for n in range(-50, 50)]


def test_logarithms_are_right_to_the_last_bits():
    x = torch.tensor([*(n / 300 for n in range(1, 1000)), 1e-300, 1e300], dtype=torch.float64)
    expected = [float(Decimal(value).ln()) for value in x.tolist()]
    assert log(x).tolist() == pytest.approx(expected, rel=1e-15, abs=1e-15)
    assert log(torch.ones(1, dtype=torch.float64)).item() == 0
