"""How much memory coefficients and model will take, before anything is allocated."""

from __future__ import annotations

import math

from milpbn.data.dataset import Dataset
from milpbn.memory import require_memory
from milpbn.scores.candidates import Candidates, count_candidates
from milpbn.scores.spec import Score
from milpbn.scores.tables import DENSE_CELLS_PER_SAMPLE, active_columns

#: Peak bytes per non-zero of the model, its own copies and HiGHS's; benchmarks/memory.py measures it.
BYTES_PER_NONZERO = 72
#: Bytes of a candidate parent set as the lists and look-ups of Python hold it.
BYTES_PER_SET = 200

COEFFICIENTS = "The coefficients alpha(i, k, m, c)"
COEFFICIENTS_AND_MODEL = COEFFICIENTS + " and the model made of them"


def remedy(score: Score) -> str:
    """Return which options make a problem smaller."""
    options = ["reduce --max-parents"] if score.max_parents > 1 else []
    if score.name == "sm":
        options.append("use --score sbm")
    if score.parent_sets == "all":
        options.append("use --parent-sets paper")
    if score.class_parents:
        options.append("use --no-class-parents")
    return ", ".join([*options, "or take fewer features or rows"])


def require_room(data: Dataset, score: Score, *, for_milp: bool = True) -> None:
    """Refuse a problem without constraints that is far too large, before its parent sets are even listed.

    Raises
    ------
    InputError
        With the forecast, the memory there is, and the options that reduce it.
    """
    n_sets = count_candidates(data.n_features, score)
    require_memory(BYTES_PER_SET * n_sets, f"A list of {n_sets} candidate parent sets", remedy(score))
    if score.is_margin:
        columns = n_sets - data.n_features  # all but every feature's set without the class
        per_coefficient, what = 8, COEFFICIENTS
        if for_milp:
            per_coefficient, what = 8 + BYTES_PER_NONZERO, COEFFICIENTS_AND_MODEL
        require_memory(per_coefficient * n_margin_rows(data, score) * columns, what, remedy(score))


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
