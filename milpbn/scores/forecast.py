"""How much memory coefficients and model will take, before anything is allocated."""

from __future__ import annotations

import math

from milpbn.data.dataset import Dataset
from milpbn.scores.candidates import Candidates
from milpbn.scores.spec import Score
from milpbn.scores.tables import DENSE_CELLS_PER_SAMPLE, active_columns


def n_margin_rows(data: Dataset, score: Score) -> int:
    """Return the number of margin rows: one per sample and competing class, or per sample under SBM."""
    return data.n_samples * (1 if score.name == "sbm" else data.n_classes - 1)


def tensor_bytes(data: Dataset, candidates: Candidates, score: Score) -> int:
    """Forecast the peak memory of building the margin coefficients.

    It is the tensor itself (8 bytes per row and column), the cell numbers (4 bytes per sample and column) and
    the stacked tables (8 bytes per cell and class, twice while they are put together; twice again for SBM).

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
    copies = 4 if score.name == "sbm" else 2
    return (
        8 * n_margin_rows(data, score) * len(columns)
        + 4 * data.n_samples * len(columns)
        + 8 * copies * cells * data.n_classes
    )


def model_bytes(problem_rows: int, n_columns: int, n_extra: int) -> int:
    """Forecast the bytes of the sparse model's matrix: 12 per non-zero (value and column index).

    Parameters
    ----------
    problem_rows : int
        Margin rows.
    n_columns : int
        Columns with margin coefficients.
    n_extra : int
        Non-zeros of all other rows.
    """
    return 12 * (problem_rows * (n_columns + 1) + n_extra)
