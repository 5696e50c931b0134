"""How much memory coefficients and model will take, before anything is allocated."""

from __future__ import annotations

import math

from milpbn.data.dataset import Dataset
from milpbn.memory import require_memory
from milpbn.scores.candidates import Candidates, count_candidates
from milpbn.scores.families import active_columns, cell_limit
from milpbn.scores.spec import Score

#: Peak bytes per non-zero of the model, its own copies and HiGHS's; benchmarks/memory.py measures it.
BYTES_PER_NONZERO = 72
#: Tangents per sample that a model of the conditional log-likelihood holds when most of its rounds are over.
TANGENTS = 4
#: Bytes of a candidate parent set as the lists and look-ups of Python hold it.
BYTES_PER_SET = 200

COEFFICIENTS = "The coefficients alpha(i, k, m, c)"
TABLES = "The log-probability tables of all parent sets"
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
    if score.is_margin and for_milp:
        columns = n_sets - data.n_features  # all but every feature's set without the class
        per_column = 8 * n_margin_rows(data, score) + BYTES_PER_NONZERO * _n_model_rows(data, score)
        require_memory(per_column * columns, COEFFICIENTS_AND_MODEL, remedy(score))


def n_margin_rows(data: Dataset, score: Score) -> int:
    """Return the number of rows of coefficients: one per sample and competing class, or per sample under SBM."""
    return data.n_samples * (1 if score.name == "sbm" else data.n_classes - 1)


def _n_model_rows(data: Dataset, score: Score) -> int:
    """Return the number of rows of the samples in the model."""
    return TANGENTS * data.n_samples if score.name == "cll" else n_margin_rows(data, score)


def tables_bytes(data: Dataset, candidates: Candidates, score: Score) -> int:
    """Forecast the peak memory of building the tables of all families: all that the native backend needs.

    It is 8 bytes per cell and entry of the stacked tables, twice while they are stacked, and 4 bytes per sample
    and variable (and per sample and domain, where only the joint states that occur are numbered).

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
    kept, extra = _tables(data, candidates, score)
    return 2 * kept + extra


def tensor_bytes(data: Dataset, candidates: Candidates, score: Score) -> int:
    """Forecast the peak memory of building the tables and the tensor of all coefficients, which a MILP needs.

    The tensor takes 8 bytes per row and column, beside the stacked tables.

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
    kept, extra = _tables(data, candidates, score)
    tensor = 8 * n_margin_rows(data, score) * len(active_columns(candidates))
    return kept + extra + max(kept, tensor)


def _tables(data: Dataset, candidates: Candidates, score: Score) -> tuple[int, int]:
    """Return the bytes of the stacked tables, and of the codes."""
    c = candidates.n_variables - 1
    limit, n_states = cell_limit(data.n_samples), data.n_states
    cells = 0
    numbered = set()
    for p in active_columns(candidates):
        members = frozenset((int(candidates.variable[p]), *candidates.flat[p])) - {c}
        full = math.prod(int(n_states[j]) for j in members)
        if full > limit:
            numbered.add(members)
            full = data.n_samples
        cells += full
    entries = 2 * data.n_classes if score.name == "sbm" else data.n_classes
    return 8 * cells * entries, 4 * data.n_samples * (data.n_variables + len(numbered))


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
    nonzeros = _n_model_rows(data, score) * (len(active_columns(candidates)) + 1)
    return BYTES_PER_NONZERO * nonzeros
