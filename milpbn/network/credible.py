"""How sure a probability is: intervals of P(c | z) that come from how few rows the tables were estimated.

Counts with pseudo-counts are a Dirichlet distribution of every row of a table, whose mean is the row. Tables that are
drawn from it give draws of P(c | z).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.cpt import Cpt
from milpbn.network.inference.rows import log_joint_of_rows
from milpbn.network.margins import log_posterior
from milpbn.util.validation import real_number, whole_number

#: Number of drawn networks.
DRAWS = 1000
#: Most numbers that are drawn for the rows that are computed together.
_NUMBERS = 1 << 24


def credible_intervals(
    cpts: Sequence[Cpt], data: Dataset, share: float, draws: int, random_state: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower and upper ends of the intervals of P(c | z_m), shape (M, C) both.

    Between them is this share of the draws, and as many are below as above; where the probability by the tables
    themselves is outside, the interval is widened to it. `InputError` if the share is not between 0 and 1.
    """
    share = real_number("share", share)
    if not 0 < share < 1:
        raise InputError(f"share must be above 0 and below 1, such as 0.95; got {share:g}.")
    if whole_number("draws", draws) < 1:
        raise InputError(f"draws must be at least 1, got {draws}.")
    different, index = np.unique(data.codes[:, :-1], axis=0, return_inverse=True)
    found = np.empty((2, len(different), data.n_classes))
    step = max(1, _NUMBERS // (draws * (len(cpts) + data.n_classes)))
    for start in range(0, len(different), step):
        part, rng = different[start : start + step], np.random.default_rng(random_state)
        own, drawn = _posteriors(cpts, part, data), np.empty((draws, len(part), data.n_classes))
        several = max(1, _NUMBERS // (4 * sum(cpt.table.size for cpt in cpts)))
        for first in range(0, draws, several):
            block = drawn[first : first + several]
            block[:] = _drawn_posteriors(cpts, part, data, len(block), rng)
        low, high = np.quantile(drawn, [(1 - share) / 2, (1 + share) / 2], axis=0)
        found[:, start : start + step] = np.minimum(low, own), np.maximum(high, own)
    return found[0, index.ravel()], found[1, index.ravel()]


def _posteriors(
    cpts: Sequence[Cpt], codes: NDArray[np.int32], data: Dataset, more: Sequence[str] = ()
) -> NDArray[np.float64]:
    """Return P(c | z_m) of rows without a class; further variables are between features and class."""
    rows = np.column_stack([codes, np.zeros(len(codes), dtype=codes.dtype)])
    names = (*data.names[:-1], *more, data.names[-1])
    return np.exp(log_posterior(log_joint_of_rows(rows, names, cpts, data.n_classes)))


def _drawn_posteriors(
    cpts: Sequence[Cpt], codes: NDArray[np.int32], data: Dataset, draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return P(c | z_m) by drawn tables, shape (draws, M, C); a draw's number is a feature and parent of all."""
    last, tables = len(cpts) - 1, []
    for cpt in cpts:
        features = tuple(j for j in cpt.parents if j != last)
        below = (last + 1,) if last in cpt.parents else ()
        table = np.moveaxis(_drawn(cpt, draws, rng), 0, len(features))
        tables.append(Cpt(cpt.variable + (cpt.variable == last), (*features, last, *below), table))
    tables.insert(last, Cpt(last, (), np.full(draws, 1 / draws)))
    number = np.repeat(np.arange(draws, dtype=codes.dtype), len(codes))
    rows = np.column_stack([np.tile(codes, (draws, 1)), number])
    return _posteriors(tables, rows, data, ["draw"]).reshape(draws, len(codes), -1)


def _drawn(cpt: Cpt, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return tables that are drawn from the Dirichlet distributions of a table's rows, one after the other."""
    assert cpt.concentration is not None
    shapes = cpt.table * cpt.concentration[..., None]
    size = (draws, *shapes.shape)
    # A gamma variable of a small shape a underflows; its logarithm is that of one of shape a + 1, plus log(u) / a.
    with np.errstate(divide="ignore"):
        logs = np.log(rng.standard_gamma(shapes + 1, size)) + np.log(rng.random(size)) / shapes
    table = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return table / table.sum(axis=-1, keepdims=True)
