"""Forecasts of the memory that coefficients and model take, made before anything is allocated."""

from __future__ import annotations

import math

from milpbn.data.dataset import Dataset
from milpbn.problem.candidates import Candidates, count_candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.counts import cell_limit
from milpbn.problem.scores.base import Shape
from milpbn.problem.scores.spec import Score
from milpbn.problem.tables import active_columns
from milpbn.util.memory import require_memory

#: Peak bytes per non-zero of the model in this program's copies and in those of HiGHS (benchmarks/memory.py).
BYTES_PER_NONZERO = 72
#: Tangents per sample that the model of a concave score holds near the end of its rounds.
TANGENTS = 4
#: Bytes of one candidate parent set in Python's lists and dictionaries.
BYTES_PER_SET = 200

COEFFICIENTS = "The coefficients alpha(i, k, m, c)"
TABLES = "The log-probability tables of all parent sets"
COEFFICIENTS_AND_MODEL = COEFFICIENTS + " and the model built from them"


def remedy(score: Score) -> str:
    """Return a clause that lists the options that make a problem smaller."""
    options = ["reduce --max-parents"] if score.max_parents > 1 else []
    if score.kind.lighter:
        options.append(f"use --score {score.kind.lighter}")
    if score.parent_sets == "all":
        options.append("use --parent-sets paper")
    if score.class_parents:
        options.append("use --no-class-parents")
    return ", ".join([*options, "or take fewer features or rows"])


def require_lists(n_features: int, score: Score, rules: Rules | None = None) -> None:
    """Refuse candidate parent sets that are too many to list, before they are listed.

    Raises
    ------
    InputError
        The message gives the forecast, the available memory, and the options that reduce the need.
    """
    n_sets = count_candidates(n_features, score, rules)
    require_memory(BYTES_PER_SET * n_sets, f"A list of {n_sets} candidate parent sets", remedy(score))


def require_room(data: Dataset, score: Score, *, for_milp: bool = True) -> None:
    """Refuse a problem without constraints that is far too large, before its parent sets are listed.

    Raises
    ------
    InputError
        The message gives the forecast, the available memory, and the options that reduce the need.
    """
    require_lists(data.n_features, score)
    n_sets = count_candidates(data.n_features, score)
    if score.is_margin and for_milp:
        _require_columns(data, score, n_sets, remedy(score))


def require_kept_room(data: Dataset, score: Score, n_sets: int, *, for_milp: bool) -> None:
    """Refuse a screening that would keep far too many parent sets, before any is ranked.

    Raises
    ------
    InputError
        The message gives the forecast, the available memory, and the option that reduces the need.
    """
    cure = "keep fewer with --screen (screen)"
    require_memory(BYTES_PER_SET * n_sets, f"A list of {n_sets} kept parent sets", cure)
    if score.is_margin and for_milp:
        _require_columns(data, score, n_sets, cure)


def _require_columns(data: Dataset, score: Score, n_sets: int, cure: str) -> None:
    columns = n_sets - data.n_features  # all but every feature's set without the class
    per_column = 8 * n_margin_rows(data, score) + BYTES_PER_NONZERO * _n_model_rows(data, score)
    require_memory(per_column * columns, COEFFICIENTS_AND_MODEL, cure)


def n_margin_rows(data: Dataset, score: Score) -> int:
    """Return the number of rows of coefficients: one per sample and competing class, or one per sample."""
    return data.n_samples * (1 if score.kind.binary else data.n_classes - 1)


def _n_model_rows(data: Dataset, score: Score) -> int:
    """Return the number of rows that the samples have in the model."""
    return TANGENTS * data.n_samples if score.kind.shape is Shape.CONCAVE else n_margin_rows(data, score)


def tables_bytes(data: Dataset, candidates: Candidates, score: Score) -> int:
    """Forecast the peak memory of building the tables of all families, which is all that the native backend needs.

    The tables take 8 bytes per cell and class, under leave-one-out scores twice that. The codes take 4 bytes per sample
    and variable, and 4 bytes per sample and domain in which only the joint states that occur have a cell, and twice
    that while they are stacked.

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
    return kept + 2 * extra


def tensor_bytes(data: Dataset, candidates: Candidates, score: Score) -> int:
    """Forecast the peak memory of building the tables and the tensor of all coefficients, which a MILP needs.

    The tensor takes 8 bytes per row and column, beside the tables.

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
    return kept + extra + max(extra, tensor)


def _tables(data: Dataset, candidates: Candidates, score: Score) -> tuple[int, int]:
    """Return the bytes of the tables and the bytes of the codes."""
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
    # Two entries for each class: those of the binary margin, or those of the two tables of a leave-one-out score.
    entries = 2 * data.n_classes if score.kind.binary or score.leave_one_out else data.n_classes
    return 8 * cells * entries, 4 * data.n_samples * (data.n_variables + len(numbered))


def solver_bytes(data: Dataset, candidates: Candidates, score: Score) -> int:
    """Forecast the memory of the sparse model of a margin score and of the solver's own copies.

    A non-zero takes 12 bytes (value and column index). At the peak there are about six copies of it: one in the
    model, and the others in the solver's input, presolve and relaxations, by rows and by columns.

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
        Bytes, without those of the coefficients.
    """
    nonzeros = _n_model_rows(data, score) * (len(active_columns(candidates)) + 1)
    return BYTES_PER_NONZERO * nonzeros
