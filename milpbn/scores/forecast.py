"""How much memory coefficients and model will take, before anything is allocated."""

from __future__ import annotations

import math

from milpbn.data.dataset import Dataset
from milpbn.scores.candidates import Candidates
from milpbn.scores.spec import Score
from milpbn.scores.tables import DENSE_CELLS_PER_SAMPLE, active_columns

#: Peak bytes per non-zero of the model, its own copies and HiGHS's; benchmarks/memory.py measures it.
BYTES_PER_NONZERO = 72


def n_margin_rows(data: Dataset, score: Score) -> int:
    """Return the number of margin rows: one per sample and competing class, or per sample under SBM."""
    return data.n_samples * (1 if score.name == "sbm" else data.n_classes - 1)


def tensor_bytes(data: Dataset, candidates: Candidates, score: Score) -> int:
    """Forecast the peak memory of building the margin coefficients.

    It is the cell numbers (4 bytes per sample and column), the stacked tables (8 bytes per cell and class,
    twice that for SBM), and the larger of the tensor (8 bytes per row and column) and the single tables, which
    are gone when the tensor comes.

    Parameters
    ----------
    data : Dataset
        Merged training data.
    candidates : Candidates
        Parent sets.
    score : Score
        A margin score.

    Returns
    -------
    int
        Bytes.
    """
    columns = active_columns(candidates)
    c = candidates.n_variables - 1
    bound = max(DENSE_CELLS_PER_SAMPLE * data.n_samples, 4096)
    n_states = data.n_states
    cells = 0
    for p in columns:
        i, parents = int(candidates.variable[p]), candidates.flat[p]
        full = math.prod(int(n_states[j]) for j in (i, *parents) if j != c)
        cells += full if full <= bound else data.n_samples
    kinds = 2 if score.name == "sbm" else 1
    tables = 8 * kinds * cells * data.n_classes
    tensor = 8 * n_margin_rows(data, score) * len(columns)
    return 4 * data.n_samples * len(columns) + tables + max(tables, tensor)


def solver_bytes(data: Dataset, candidates: Candidates, score: Score) -> int:
    """Forecast the memory of the sparse model of a margin score and of the solver's own copies.

    A non-zero takes 12 bytes (value and column index), and there are some six copies of it at the peak: the
    model's, and those of the solver's input, presolve and relaxations, by rows and by columns.

    Parameters
    ----------
    data : Dataset
        Merged training data.
    candidates : Candidates
        Parent sets.
    score : Score
        A margin score.

    Returns
    -------
    int
        Bytes, beyond those of the coefficients.
    """
    nonzeros = n_margin_rows(data, score) * (len(active_columns(candidates)) + 1)
    return BYTES_PER_NONZERO * nonzeros
