"""Forecasts of the memory that coefficients and model take, made before anything is allocated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile
from math import comb
from typing import NamedTuple, TypeAlias

from milpbn.data.dataset import Dataset
from milpbn.problem.candidates import Admitted, Candidates, admitted_sets, count_candidates
from milpbn.problem.class_free import has_larger
from milpbn.problem.constraints import Rules
from milpbn.problem.counts import cell_limit
from milpbn.problem.family_tables import active_columns
from milpbn.problem.scores.base import Shape
from milpbn.problem.scores.options import PAPER
from milpbn.problem.scores.spec import Score
from milpbn.util.memory import available_memory, require_memory

#: The parent sets of all variables, as a list or as what rules and options admit.
ParentSets: TypeAlias = Candidates | Sequence[Admitted]
#: Peak bytes per non-zero of the model in this program's copies and in those of HiGHS (benchmarks/memory.py).
BYTES_PER_NONZERO = 72
#: Tangents per sample that the model of a concave score holds near the end of its rounds.
TANGENTS = 4
#: Parent sets that advice to screen keeps of every variable.
SCREENED = 100
#: Bytes of one candidate parent set in Python's lists and dictionaries.
BYTES_PER_SET = 200

COEFFICIENTS = "The coefficients alpha(i, k, m, c)"
TABLES = "The log-probability tables of all parent sets"
COEFFICIENTS_AND_MODEL = COEFFICIENTS + " and the model built from them"


def require_fit(data: Dataset, score: Score, sets: ParentSets, rules: Rules, *, for_milp: bool) -> None:
    """Refuse a problem that would not fit into memory, before its parent sets are listed or a table is built.

    The message of the InputError gives the forecast, the available memory, and the options with which the problem would
    fit.
    """
    for needed, what in _needs(data, score, sets, for_milp):
        require_memory(needed, what, lambda: _cures(data, score, rules, for_milp))


def _needs(data: Dataset, score: Score, sets: ParentSets, for_milp: bool) -> list[tuple[int, str]]:
    """Return forecasts in bytes, each with what it is for: the list of parent sets, and tables or model."""
    n_sets = sets.n_sets if isinstance(sets, Candidates) else sum(own.count(data.n_features) for own in sets)
    needs = [(BYTES_PER_SET * n_sets, f"A list of {n_sets} candidate parent sets")]
    if score.is_margin and for_milp:
        both = tensor_bytes(data, sets, score) + solver_bytes(data, sets, score)
        needs.append((both, COEFFICIENTS_AND_MODEL))
    elif score.is_margin:
        needs.append((tables_bytes(data, sets, score), TABLES))
    return needs


def _cures(data: Dataset, score: Score, rules: Rules, for_milp: bool) -> str:
    """Return a clause that lists the options with which the problem would fit into memory."""
    available = available_memory() or 0

    def fits(other: Score, milp: bool = for_milp, share: float = 1.0) -> bool:
        admitted = admitted_sets(data.n_features, other, rules)
        return share * max(needed for needed, _ in _needs(data, other, admitted, milp)) <= available

    options = []
    if for_milp and score.kind.sums_samples and fits(score, False):
        options.append("use milpbn solve --backend native, which needs no model")
    n_sets = count_candidates(data.n_features, score, rules)
    if fits(score, share=min(1.0, SCREENED * data.n_variables / n_sets)):
        options.append(
            f"keep only the best parent sets of every variable with milpbn solve --screen {SCREENED}"
        )
    fewer = takewhile(lambda k: fits(replace(score, max_parents=k)), range(1, score.max_parents))
    if most := max(fewer, default=0):
        options.append(f"reduce --max-parents to {most}")
    lighter = score.kind.lighter
    if lighter and fits(replace(score, name=lighter)):
        options.append(f"use --score {lighter}")
    if has_larger(score, rules) and fits(replace(score, parent_sets=PAPER)):
        options.append("use --parent-sets paper")
    if score.class_parents and fits(replace(score, class_parents=False)):
        options.append("use --no-class-parents")
    return ", ".join(
        [*options, "or take fewer features or rows" if options else "take fewer features or rows"]
    )


def require_list(n_features: int, score: Score, rules: Rules) -> None:
    """Refuse candidate parent sets that are too many to list, before they are listed; see `require_fit`."""
    n_sets = count_candidates(n_features, score, rules)
    require_memory(
        BYTES_PER_SET * n_sets, f"A list of {n_sets} candidate parent sets", "take a machine with more of it"
    )


def require_kept_room(data: Dataset, score: Score, n_sets: int, *, for_milp: bool) -> None:
    """Refuse a screening that would keep far too many parent sets, before any is ranked; see `require_fit`."""
    cure = "keep fewer with --screen (screen)"
    require_memory(BYTES_PER_SET * n_sets, f"A list of {n_sets} kept parent sets", cure)
    if score.is_margin and for_milp:
        with_class = count_candidates(data.n_features, replace(score, parent_sets=PAPER))
        columns = min(n_sets, with_class) - data.n_features  # all but the features' sets without the class
        per_column = 8 * n_margin_rows(data, score) + BYTES_PER_NONZERO * _n_model_rows(data, score)
        require_memory(per_column * columns, COEFFICIENTS_AND_MODEL, cure)


def n_margin_rows(data: Dataset, score: Score) -> int:
    """Return the number of rows of coefficients: one per sample and competing class, or one per sample."""
    return data.n_samples * (1 if score.kind.binary else data.n_classes - 1)


def _n_model_rows(data: Dataset, score: Score) -> int:
    """Return the number of rows that the samples have in the model."""
    return TANGENTS * data.n_samples if score.kind.shape is Shape.CONCAVE else n_margin_rows(data, score)


def tables_bytes(data: Dataset, sets: ParentSets, score: Score) -> int:
    """Forecast the bytes at the peak of building the tables of all families, all that the native engine needs.

    The tables take 8 bytes per cell and class, under leave-one-out scores twice that. The codes take 4 bytes per sample
    and variable, and 4 bytes per sample and domain in which only the joint states that occur have a cell, and twice
    that while they are stacked. The data are merged, and the score is one on margins.
    """
    kept, extra = _table_bytes(data, extent(data, sets), score)
    return kept + 2 * extra


def tensor_bytes(data: Dataset, sets: ParentSets, score: Score) -> int:
    """Forecast the peak memory of building the tables and the tensor of all coefficients, which a MILP needs.

    The tensor takes 8 bytes per row and column, beside the tables. The parameters are those of `tables_bytes`.
    """
    size = extent(data, sets)
    kept, extra = _table_bytes(data, size, score)
    tensor = 8 * n_margin_rows(data, score) * size.columns
    return kept + extra + max(extra, tensor)


class Extent(NamedTuple):
    """The number of families whose coefficients are not all 0, and the number of cells of their tables.

    `numbered` is the number of domains in which only the joint states that occur have a cell.
    """

    columns: int
    cells: int
    numbered: int


def extent(data: Dataset, sets: ParentSets) -> Extent:
    """Count families, cells and domains.

    What rules and options admit is counted without being listed. The number of domains is then an upper bound if rules
    leave out some features as parents.
    """
    if isinstance(sets, Candidates):
        return _listed_extent(data, sets)
    c, states, n_samples = len(sets) - 1, data.n_states.tolist(), data.n_samples
    limit = cell_limit(n_samples)
    columns, cells, numbered, largest = 0, 0, 0, 0
    for i, own in enumerate(sets):
        room = own.without_class if i == c else own.with_class
        base = math.prod(states[j] for j in ({i, *own.required} - {c}))
        for product, count in _products([states[j] for j in own.free], room, limit):
            columns += count
            cells += count * (base * product if base * product <= limit else n_samples)
            numbered += count * (base * product > limit)
        largest = max(largest, len(own.required) + room + (i != c))
    domains = _products(states[:c], largest, limit)
    return Extent(columns, cells, min(numbered, sum(n for product, n in domains if product > limit)))


def _listed_extent(data: Dataset, candidates: Candidates) -> Extent:
    c = candidates.n_variables - 1
    limit, n_states = cell_limit(data.n_samples), data.n_states.tolist()
    columns, cells = active_columns(candidates), 0
    numbered = set()
    for p in columns.tolist():
        members = frozenset((int(candidates.variable[p]), *candidates.flat[p])) - {c}
        full = math.prod(n_states[j] for j in members)
        if full > limit:
            numbered.add(members)
            full = data.n_samples
        cells += full
    return Extent(len(columns), cells, len(numbered))


def _products(states: Sequence[int], room: int, limit: int) -> list[tuple[int, int]]:
    """Return products of the numbers of states of sets of variables, each with how many sets have it.

    The sets have at most `room` members; with a negative room there are none. Sets with the same numbers of states are
    counted together, and so are all whose product exceeds `limit`: they have one that does.
    """
    return _counted_products(tuple(sorted(Counter(states).items())), room, limit)


@lru_cache(maxsize=256)
def _counted_products(states: tuple[tuple[int, int], ...], room: int, limit: int) -> list[tuple[int, int]]:
    sets = {(0, 1): 1} if room >= 0 else {}  # size and product: number of sets
    for n_states, count in states:
        longer: Counter[tuple[int, int]] = Counter()
        for (size, product), n in sets.items():
            for more in range(min(room - size, count) + 1):
                longer[size + more, min(product * n_states**more, limit + 1)] += n * comb(count, more)
        sets = dict(longer)
    return [(product, n) for (_, product), n in sets.items()]


def _table_bytes(data: Dataset, size: Extent, score: Score) -> tuple[int, int]:
    """Return the bytes of the tables and the bytes of the codes."""
    # Two entries for each class: those of the binary margin, or those of the two tables of a leave-one-out score.
    entries = 2 * data.n_classes if score.kind.binary or score.kind.unit else data.n_classes
    return 8 * size.cells * entries, 4 * data.n_samples * (data.n_variables + size.numbered)


def solver_bytes(data: Dataset, sets: ParentSets, score: Score) -> int:
    """Forecast the memory of the sparse model of a margin score and of the solver's own copies.

    A non-zero takes 12 bytes (value and column index). At the peak there are about six copies of it: one in the
    model, and the others in the solver's input, presolve and relaxations, by rows and by columns. Those of the
    coefficients do not count here. The parameters are those of `tables_bytes`.
    """
    nonzeros = _n_model_rows(data, score) * (extent(data, sets).columns + 1)
    return BYTES_PER_NONZERO * nonzeros
