"""A classifier's log-joint as a sequence of sums over factors, for formats that compute it elsewhere.

A missing value is summed over. A format does not know which values will be missing; so it sums over every feature, one
after the other (variable elimination): the sum over a feature that is known has one term. Each step multiplies the
factors that contain the feature, and sums the product over its states.

Families of the variables of one raw column that share no feature with other families need no sum. They are one function
of the column's value, which is 0 where the value is missing, since their tables sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, Variable, by_column
from milpbn.data.labels import MISSING_MARKERS, number_of
from milpbn.data.variables import coarser_codes, states_of
from milpbn.errors import InputError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import TableClassifier
from milpbn.network.cpt import Cpt, padded_table
from milpbn.network.inference.elimination import aligned

#: Most entries of a factor, of a table or between two steps, for one row and class.
MOST_ENTRIES = 10**6
#: Stands for the logarithm of 0, which many formats have not, and what a sum with such a term is raised to.
IMPOSSIBLE, FLOOR = -1e100, -1e99


class ValueRule(NamedTuple):
    """How a value becomes the code of a state, `MISSING` or `UNKNOWN`, by the rule of `milpbn.data.labels`.

    The first that fits decides: ``texts``, the usual texts of each state; ``markers``, the texts of missing values,
    which have the code ``missing``; ``ranges`` (least number, greatest number, code), in ascending order.
    """

    texts: tuple[tuple[str, ...], ...]
    markers: tuple[str, ...]
    ranges: tuple[tuple[float, float, int], ...]
    missing: int

    @classmethod
    def of(cls, variable: Variable) -> ValueRule:
        """Return the rule of a variable."""
        known = states_of(variable)
        if variable.cuts is None:
            ranges = sorted((*r, code) for code, r in enumerate(known.ranges) if r is not None)
            if not variable.numeric:  # only intervals, since 01 may be a code, other than 1
                ranges = [r for r in ranges if np.isnan(number_of(known.states[r[2]]))]
        else:
            lows = [-np.inf, *np.nextafter(variable.cuts, np.inf).tolist()]
            ranges = [
                (low, high, k)
                for k, (low, high) in enumerate(zip(lows, [*variable.cuts, np.inf], strict=True))
            ]
        missing = variable.n_states - 1 if variable.missing_state else MISSING
        markers = tuple(sorted(MISSING_MARKERS - {*known.states}))
        return cls(tuple(known.spellings()), markers, tuple(ranges), missing)


class SumStep(NamedTuple):
    """The function of a column, or the product of factors, summed over the states of a feature.

    The axes of the table are the feature, the features of the result (`left`), and the class; its entries are in nats,
    and logarithms of 0 are `IMPOSSIBLE`. The axis of a feature in `left` has one position per state, and a last one for
    a value without a state. `results` are the positions of earlier steps whose results are further factors. With them,
    the feature's own axis is like those of `left`. Without them, the table is the result of the step, and the feature's
    axis has two positions after the states: for a missing value, and for one without a state.
    """

    feature: int
    left: tuple[int, ...]
    table: NDArray[np.float64]
    results: tuple[int, ...] = ()


class RowNumber(NamedTuple):
    """A number of a row: an entry of `logs` by the code of a feature, whose axis is that of a `SumStep`.

    With `sources`, positions of earlier cells for each state, these are added, and the states are summed that the row
    allows: the logarithm of the sum of exponentials.
    """

    feature: int
    logs: list[float]
    sources: list[list[int]]


@dataclass(frozen=True, eq=False)
class ScoringPlan:
    """The computation of the log-joint of one network.

    The log-joint is the sum of the results of those steps whose `left` is empty, and of the constants, shape (C,): the
    sum of the tables without features.
    """

    variables: tuple[Variable, ...]
    steps: tuple[SumStep, ...]
    constants: NDArray[np.float64]

    @property
    def features(self) -> tuple[int, ...]:
        """The features that the posteriors depend on, in order."""
        return tuple(sorted(step.feature for step in self.steps))

    def cells(self) -> tuple[list[RowNumber], list[float], list[list[int]]]:
        """Return the numbers of a row, and for each class the constant and the positions whose sum is the log-joint."""
        steps = self.steps
        found: list[RowNumber] = []
        ends: list[list[int]] = [[] for _ in self.constants]
        places: dict[tuple[int, ...], int] = {}  # by step, positions of the states left, and class
        for k, step in enumerate(steps):
            for index in np.ndindex(step.table.shape[1:]):
                states = dict(zip(step.left, index[:-1], strict=True))
                sources = []
                for s in range(len(step.table) if step.results else 0):
                    states[step.feature] = s
                    keys = [(r, *(states[i] for i in steps[r].left), index[-1]) for r in step.results]
                    sources.append([places[key] for key in keys])
                places[k, *index] = len(found)
                if not step.left:
                    ends[index[-1]].append(len(found))
                found.append(RowNumber(step.feature, step.table[(slice(None), *index)].tolist(), sources))
        return found, self.constants.tolist(), ends


def plans_of(classifier: TableClassifier | AveragedClassifier) -> tuple[ScoringPlan, ...]:
    """Return the computation of each network of a classifier, one if it is no average.

    Raises `InputError` if there is no class, or a sum would need more than `MOST_ENTRIES` entries.
    """
    if isinstance(classifier, AveragedClassifier):
        return tuple(map(_plan, classifier.members))
    classifier.require_class()
    return (_plan(classifier),)


def check_results(classifier: TableClassifier | AveragedClassifier) -> None:
    """Raise `InputError` if a feature has the name of a result that is written beside the table's columns."""
    results = {f"predicted {classifier.variables[-1].name}", *(f"P({label})" for label in classifier.classes)}
    results = {name.lower() for name in results}
    for variable in classifier.variables[:-1]:
        if variable.raw_column.lower() in results:
            raise InputError(
                f"The column {variable.raw_column!r} has the name of a result, which would take its place; rename it "
                "in the training data."
            )


def columns_of_numbers(plans: Sequence[ScoringPlan], what: str) -> dict[str, bool]:
    """Return the raw columns of all features, and whether they are read as numbers, with cuts or as states.

    Raises `InputError` if the networks of an average differ; `what` is the format, which has one type for a column.
    """
    found: dict[str, bool] = {}
    for variable in (v for plan in plans for v in plan.variables[:-1]):
        if found.setdefault(variable.raw_column, is_number(variable)) != is_number(variable):
            raise InputError(
                f"The networks of the average read {variable.raw_column!r} as numbers and as text; {what} has one type "
                "of input per column."
            )
    return found


def is_number(variable: Variable) -> bool:
    """Return whether the values of a variable are numbers."""
    return variable.cuts is not None or variable.numeric


def _plan(classifier: TableClassifier) -> ScoringPlan:
    variables, last = classifier.variables, len(classifier.variables) - 1
    steps, others = _column_steps(variables, classifier.cpts)
    # Features and table of each factor, or of the result of a step, which has a number instead of a table.
    factors: list[tuple[Sequence[int], NDArray[np.float64] | int]] = []
    factors += _relevant([padded_table(cpt, last) for cpt in others])

    def product(used: Sequence[tuple[Sequence[int], Any]], scope: tuple[int, ...]) -> NDArray[np.float64]:
        """Return the sum of the logarithms of the tables among some factors, with the axes of a scope."""
        shape = [*(variables[i].n_states + 1 for i in scope), variables[last].n_states]
        tables = ((own, table) for own, table in used if not isinstance(table, int))
        return sum((aligned(table, (*own, last), (*scope, last)) for own, table in tables), np.zeros(shape))

    while features := {i for own, _ in factors for i in own}:
        scopes = {i: {j for own, _ in factors if i in own for j in own} for i in features}
        entries, i = min((math.prod(variables[j].n_states + 1 for j in scopes[i]), i) for i in features)
        if entries > MOST_ENTRIES:
            raise InputError(
                f"The sum over the missing values of {variables[i].name!r} would need {entries} entries, more than "
                f"{MOST_ENTRIES}; learn a network with fewer parents (--max-parents) or fewer states."
            )
        used, left = [one for one in factors if i in one[0]], tuple(sorted(scopes[i] - {i}))
        factors = [one for one in factors if i not in one[0]] + [(left, len(steps))]
        table, results = product(used, (i, *left)), tuple(k for _, k in used if isinstance(k, int))
        if not results:
            missing = np.logaddexp.reduce(table[:-1], axis=0, keepdims=True)
            table = np.concatenate([table[:-1], missing, table[-1:]])
        steps.append(SumStep(i, left, np.maximum(table, IMPOSSIBLE), results))
    return ScoringPlan(variables, tuple(steps), np.maximum(product(factors, ()), IMPOSSIBLE))


def _column_steps(variables: Sequence[Variable], cpts: Sequence[Cpt]) -> tuple[list[SumStep], list[Cpt]]:
    """Return the functions of single columns, by their finest variables, and the tables of the other families."""
    last = len(variables) - 1
    found, merged = [], set()
    for places in by_column(variables[:last]).values():
        own = {i for i in places if set(cpts[i].parents) <= {*places, last}}
        # A variable with a child in another family is needed there.
        while used := {j for cpt in cpts if cpt.variable not in own for j in cpt.parents} & own:
            own -= used
        if not own:
            continue
        finest = max(places, key=lambda i: variables[i].n_states)
        codes = {i: coarser_codes(variables[finest], variables[i]) for i in places}
        table = np.zeros((variables[finest].n_states + 2, variables[last].n_states))
        for i in own:
            features, logs = padded_table(cpts[i], last)
            table[:-2] += logs[tuple(codes[j] for j in features)]
        merged |= own
        if _matters(table):
            found.append(SumStep(finest, (), np.maximum(table, IMPOSSIBLE)))
    return found, [cpt for cpt in cpts if cpt.variable not in merged]


def _matters(table: NDArray[np.float64]) -> bool:
    """Return whether a table of logarithms can change a posterior: classes (last axis) differ, or one is -inf."""
    return bool((table != table[..., :1]).any() or np.isinf(table).any())


def _relevant(
    factors: Sequence[tuple[list[int], NDArray[np.float64]]],
) -> list[tuple[list[int], NDArray[np.float64]]]:
    """Return the factors that matter, and those that share features with them, directly or through others."""
    chosen = {k for k, (_, table) in enumerate(factors) if _matters(table)}
    while True:
        seen = {i for k in chosen for i in factors[k][0]}
        more = {k for k, (own, _) in enumerate(factors) if not seen.isdisjoint(own)} - chosen
        if not more:
            return [factors[k] for k in sorted(chosen)]
        chosen |= more
