"""BDeu against 60 digits, where logarithms of the gamma function of heavy rows nearly cancel."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from milpbn.problem.scores.bdeu import LARGE, bdeu, bdeu_size, rise

EPS = 2.0**-52


def exactly(counts: np.ndarray, q: int, ess: float) -> mpmath.mpf:
    """Return the score of a family; the caller sets the precision."""
    above = mpmath.mpf(ess) / q
    cell = above / counts.shape[1]
    return mpmath.fsum(
        mpmath.loggamma(above)
        - mpmath.loggamma(above + mpmath.fsum(map(mpmath.mpf, row)))
        + mpmath.fsum(mpmath.loggamma(cell + mpmath.mpf(n)) - mpmath.loggamma(cell) for n in row)
        for row in counts.tolist()
    )


@pytest.mark.parametrize("seed", range(40))
def test_errors_are_a_few_units_of_the_stated_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        rows, states, more = rng.integers(1, 5), rng.integers(1, 6), rng.integers(0, 4)
        counts = 10 ** rng.uniform(-8, 10, (rows, states))
        counts[rng.random(counts.shape) < 0.3] = 0.0
        ess = float(10 ** rng.uniform(-3, 3))
        with mpmath.workdps(60):
            error = abs(
                mpmath.mpf(bdeu(counts, int(rows + more), ess)) - exactly(counts, int(rows + more), ess)
            )
        assert error <= 8 * EPS * bdeu_size(counts, int(rows + more), ess)


def test_a_heavy_row_with_a_light_cell_keeps_its_digits() -> None:
    counts = np.array([[3.65e8, 390.0], [0.0, 1e7]])
    with mpmath.workdps(60):
        expected = exactly(counts, 2, 1.0)
        assert abs(mpmath.mpf(bdeu(counts, 2, 1.0)) - expected) < 1e-14 * abs(expected)
    assert bdeu_size(counts, 2, 1.0) < 3 * abs(expected)


def test_the_two_forms_meet() -> None:
    y = np.array([0.0, 1e-9, 1.0, 50.0, 1e6])
    below, above = rise(np.full(5, np.nextafter(LARGE, 0)), y), rise(np.full(5, LARGE), y)
    assert below == pytest.approx(above, rel=1e-12, abs=1e-12)
