"""A classifier's log-joint as a sequence of sums over factors, for formats that compute it elsewhere.

A missing value is summed over. A format does not know which values will be missing; so it sums over every feature, one
after the other (variable elimination): the sum over a feature that is known has one term. Each step multiplies the
factors that contain the feature, and sums the product over its states.

Families of the variables of one raw column that share no feature with other families need no sum. They are one function
of the column's value, which is 0 where the value is missing, since their tables sum to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, Variable, by_column
from milpbn.data.labels import MISSING_MARKERS
from milpbn.data.variables import coarser_codes, states_of
from milpbn.errors import InputError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import TableClassifier
from milpbn.network.cpt import Cpt, padded_table

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
        else:
            lows = [-np.inf, *np.nextafter(variable.cuts, np.inf).tolist()]
            ranges = [
                (low, high, k)
                for k, (low, high) in enumerate(zip(lows, [*variable.cuts, np.inf], strict=True))
            ]
        missing = variable.n_states - 1 if variable.missing_state else MISSING
        markers = tuple(sorted(MISSING_MARKERS - {*known.states}))
        return cls(tuple(known.spellings()), markers, tuple(ranges), missing)


@dataclass(frozen=True, eq=False)
class TableFactor:
    """Logarithms of a function of features, and possibly the class.

    The features are indices, one axis each. The table has the shape (states + 1 of each feature..., C or 1) and is in
    nats: the last position of an axis is that of a value without a state, and the last axis has length 1 if the class
    is not in the function.
    """

    features: tuple[int, ...]
    table: NDArray[np.float64]

    def aligned(self, scope: Sequence[int]) -> NDArray[np.float64]:
        """Return the table with the axes of a scope and the class; those it lacks have length 1."""
        order = sorted(range(len(self.features)), key=lambda k: scope.index(self.features[k]))
        sizes = dict(zip(self.features, self.table.shape, strict=False))
        own = np.transpose(self.table, [*order, len(self.features)])
        return own.reshape([*(sizes.get(i, 1) for i in scope), own.shape[-1]])


@dataclass(frozen=True, eq=False)
class ColumnFactor:
    """Logarithms of a function of one raw column and the class.

    The feature is an index, that of the column's finest variable. The table, shape (states + 2, C), is
    in nats; its last two positions are those of a missing value and of one without a state, and hold 0.
    """

    feature: int
    table: NDArray[np.float64]


@dataclass(frozen=True)
class SumStep:
    """One step: the product of factors, summed over the states of a feature.

    The factors are given by their positions: those of the tables come first, then the results of the steps in order.
    `left` are the features of the result.
    """

    feature: int
    factors: tuple[int, ...]
    left: tuple[int, ...]


class MergedStep(NamedTuple):
    """The function of a column, or a `SumStep` with the product of its tables.

    The table, in nats, has an axis for the feature, one of states + 1 for each feature of `left`, and the class axis.
    With `results`, positions of earlier steps, the feature's axis has states + 1, too. Without, the table is the step's
    result by the feature's code: its last two positions are those of a missing value and of one without a state.
    """

    feature: int
    left: tuple[int, ...]
    table: NDArray[np.float64]
    results: tuple[int, ...] = ()


class RowNumber(NamedTuple):
    """A number of a row: an entry of `logs` by the code of a feature, whose axis is that of a `MergedStep`.

    With `sources`, positions of earlier cells for each state, these are added, and the states are summed that the row
    allows: the logarithm of the sum of exponentials.
    """

    feature: int
    logs: list[float]
    sources: list[list[int]]


@dataclass(frozen=True, eq=False)
class ScoringPlan:
    """The computation of the log-joint of one network.

    The sum of the functions of columns and of the factors `last`, which have no features, is the log-joint; see
    `SumStep` for their positions.
    """

    variables: tuple[Variable, ...]
    columns: tuple[ColumnFactor, ...]
    factors: tuple[TableFactor, ...]
    steps: tuple[SumStep, ...]
    last: tuple[int, ...]

    @property
    def features(self) -> tuple[int, ...]:
        """The features that the posteriors depend on, in order."""
        summed = {i for factor in self.factors for i in factor.features}
        return tuple(sorted(summed | {column.feature for column in self.columns}))

    def merged(self) -> tuple[list[MergedStep], NDArray[np.float64]]:
        """Return all steps with one table each, and the sum of the tables without features, shape (C,).

        The log-joint is the sum of these and of the results of the steps that leave nothing. Logarithms of 0 are
        `IMPOSSIBLE`.
        """
        n_tables, n_columns = len(self.factors), len(self.columns)

        def product(used: tuple[int, ...], scope: tuple[int, ...]) -> NDArray[np.float64]:
            """Return the sum of the logarithms of the tables among some factors, with the axes of a scope."""
            shape = [*(self.variables[i].n_states + 1 for i in scope), self.variables[-1].n_states]
            tables = [self.factors[k].aligned(scope) for k in used if k < n_tables]
            return sum(tables, np.zeros(shape))

        steps = [MergedStep(column.feature, (), column.table) for column in self.columns]
        for step in self.steps:
            table = product(step.factors, (step.feature, *step.left))
            results = tuple(k - n_tables + n_columns for k in step.factors if k >= n_tables)
            if not results:
                missing = np.logaddexp.reduce(table[:-1], axis=0, keepdims=True)
                table = np.concatenate([table[:-1], missing, table[-1:]])
            steps.append(MergedStep(step.feature, step.left, table, results))
        finite = [step._replace(table=np.maximum(step.table, IMPOSSIBLE)) for step in steps]
        return finite, np.maximum(product(self.last, ()), IMPOSSIBLE)

    def cells(self) -> tuple[list[RowNumber], list[float], list[list[int]]]:
        """Return the numbers of a row, and for each class the constant and the positions whose sum is the log-joint."""
        steps, constants = self.merged()
        found: list[RowNumber] = []
        ends: list[list[int]] = [[] for _ in constants]
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
        return found, constants.tolist(), ends


def plans_of(classifier: TableClassifier | AveragedClassifier) -> tuple[ScoringPlan, ...]:
    """Return the computation of each network of a classifier, one if it is no average.

    Raises `InputError` if there is no class, or a sum would need more than `MOST_ENTRIES` entries.
    """
    if isinstance(classifier, AveragedClassifier):
        return tuple(map(_plan, classifier.members))
    classifier.require_class()
    return (_plan(classifier),)


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
    last = len(classifier.variables) - 1
    columns, others = _column_factors(classifier.variables, classifier.cpts)
    tables = [padded_table(cpt, last) for cpt in others]
    factors = _relevant([TableFactor(tuple(features), table) for features, table in tables])
    sizes = {i: n for factor in factors for i, n in zip(factor.features, factor.table.shape, strict=False)}
    scopes: list[frozenset[int]] = [frozenset(factor.features) for factor in factors]
    open_ = set(range(len(scopes)))
    steps = []
    for _ in range(len(sizes)):
        costs = {}
        for i in {i for k in open_ for i in scopes[k]}:
            scope = frozenset().union(*(scopes[k] for k in open_ if i in scopes[k]))
            costs[i] = (int(np.prod([float(sizes[j]) for j in scope])), i, scope)
        entries, feature, scope = min(costs.values(), key=lambda cost: cost[:2])
        if entries > MOST_ENTRIES:
            name = classifier.variables[feature].name
            raise InputError(
                f"The sum over the missing values of {name!r} would need {entries} entries, more than {MOST_ENTRIES}; "
                "learn a network with fewer parents (--max-parents) or fewer states."
            )
        used = tuple(sorted(k for k in open_ if feature in scopes[k]))
        steps.append(SumStep(feature, used, tuple(sorted(scope - {feature}))))
        open_ -= set(used)
        open_.add(len(scopes))
        scopes.append(scope - {feature})
    return ScoringPlan(
        classifier.variables, tuple(columns), tuple(factors), tuple(steps), tuple(sorted(open_))
    )


def _column_factors(
    variables: Sequence[Variable], cpts: Sequence[Cpt]
) -> tuple[list[ColumnFactor], list[Cpt]]:
    """Return the functions of single columns that depend on the class, and the tables of the other families."""
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
        if np.ptp(table, axis=1).any():
            found.append(ColumnFactor(finest, table))
    return found, [cpt for cpt in cpts if cpt.variable not in merged]


def _relevant(factors: Sequence[TableFactor]) -> list[TableFactor]:
    """Return the factors with the class, and those that share features with them, directly or through others."""
    chosen = {k for k, factor in enumerate(factors) if factor.table.shape[-1] > 1}
    while True:
        seen = {i for k in chosen for i in factors[k].features}
        more = {k for k, factor in enumerate(factors) if not seen.isdisjoint(factor.features)} - chosen
        if not more:
            return [factors[k] for k in sorted(chosen)]
        chosen |= more
