"""Tests of minima and maxima in kernels."""

import numpy as np
import pytest

from milpbn.util.compiled import kernel
from milpbn.util.extrema import maximum, minimum


@kernel
def _extremes(numbers):
    low, high = np.inf, -np.inf
    for x in range(len(numbers)):
        low, high = minimum(low, numbers[x]), maximum(high, numbers[x])
    return low, high


@pytest.mark.parametrize("n", [0, 1, 7, 8, 33, 1000])
def test_kernels_find_the_same_extremes_as_numpy(n):
    numbers = np.random.default_rng(n).normal(size=n)
    numbers[n // 2 : n // 2 + 2] = [-np.inf, np.inf][: n - n // 2]
    expected = numbers.min(initial=np.inf), numbers.max(initial=-np.inf)
    assert _extremes(numbers) == expected


def test_they_are_those_of_python_outside_of_kernels():
    assert (minimum(1.0, -np.inf), maximum(-2.0, 3.0)) == (-np.inf, 3.0)
