"""A classifier's log-joint as a sequence of sums over factors, for formats that compute it elsewhere.

A missing value is summed over. A format does not know which values will be missing; so it sums over every feature, one
after the other (variable elimination): the sum over a feature that is known has one term. Each step multiplies the
factors that contain the feature, and sums the product over its states.

Families of the variables of one raw column that share no feature with other families need no sum. They are one function
of the column's value, which is 0 where the value is missing, since their tables sum to 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, UNKNOWN, Variable, by_column
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

    def cells(self) -> Iterator[tuple[tuple[int, ...], list[float]]]:
        """Yield the codes of the features, with `UNKNOWN` for a value without a state, and the logarithms."""
        ends = [size - 1 for size in self.table.shape[:-1]]
        for index in np.ndindex(self.table.shape[:-1]):
            codes = tuple(UNKNOWN if k == end else int(k) for k, end in zip(index, ends, strict=True))
            yield codes, self.table[index].tolist()

    def aligned(self, scope: Sequence[int]) -> NDArray[np.float64]:
        """Return the table with the axes of a scope, which ascends, and the class; those it lacks have length 1."""
        table = np.transpose(self.table, [*np.argsort(self.features, kind="stable"), len(self.features)])
        sizes = dict(zip(sorted(self.features), table.shape, strict=False))
        return table.reshape([*(sizes.get(i, 1) for i in scope), table.shape[-1]])


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


@dataclass(frozen=True, eq=False)
class MergedStep:
    """A `SumStep` whose tables are one, and the positions of the steps before it whose results it multiplies.

    The table, in nats, has an axis for each feature of the ascending `scope`, of states + 1, and the class axis, C.
    """

    feature: int
    left: tuple[int, ...]
    table: NDArray[np.float64]
    results: tuple[int, ...]

    @property
    def scope(self) -> tuple[int, ...]:
        """The features of the product."""
        return tuple(sorted((*self.left, self.feature)))

    def rows(self) -> Iterator[tuple[tuple[int, ...], int, list[float]]]:
        """Yield the positions of the states `left`, a class, and the logarithms by the position of the feature's state.

        Without `results` the sum itself is yielded, with two more positions, those of a `ColumnFactor`: a missing value
        and one without a state. Impossible cells have `IMPOSSIBLE`.
        """
        table = np.moveaxis(self.table, self.scope.index(self.feature), 0)
        if not self.results:
            table = np.concatenate([table[:-1], np.logaddexp.reduce(table[:-1], axis=0)[None], table[-1:]])
        for index in np.ndindex(table.shape[1:]):
            yield index[:-1], index[-1], np.maximum(table[(slice(None), *index)], IMPOSSIBLE).tolist()


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
        """Return the steps with one table each, and the sum of the tables without features, shape (C,)."""
        n_tables = len(self.factors)

        def product(used: tuple[int, ...], scope: tuple[int, ...]) -> NDArray[np.float64]:
            """Return the sum of the logarithms of the tables among some factors."""
            shape = [*(self.variables[i].n_states + 1 for i in scope), self.variables[-1].n_states]
            tables = [self.factors[k].aligned(scope) for k in used if k < n_tables]
            return sum(tables, np.zeros(shape))

        steps = []
        for step in self.steps:
            scope = tuple(sorted((*step.left, step.feature)))
            results = tuple(k - n_tables for k in step.factors if k >= n_tables)
            steps.append(MergedStep(step.feature, step.left, product(step.factors, scope), results))
        return steps, product(self.last, ())


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
