"""Questions to a Bayesian network: posteriors, the most probable explanation, samples, log-likelihoods.

Evidence gives variables, the class among them, values as in a table: labels of nominal variables, numbers of
discretised ones (or the label of an interval). Variables of one raw column have one value. A missing value (None, NaN,
a word such as NA, or what the training table took for one) says nothing, unless missing values have a state of their
own. A value that training never saw makes the variable's own factor 1 and gives its children uniform rows, as in
predictions; a log-probability with such evidence is that of the remaining factors.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, UNKNOWN, Dataset, Variable, by_column
from milpbn.data.labels import label_of
from milpbn.errors import InputError, MilpbnWarning, warn
from milpbn.network.cpt import Cpt
from milpbn.network.inference.elimination import (
    Factor,
    Reduction,
    Step,
    draw,
    draw_forward,
    marginals,
    total_log,
)
from milpbn.network.inference.plan import EliminationPlan, Planner
from milpbn.network.inference.rows import log_joint_of_rows
from milpbn.util.memory import require_memory
from milpbn.util.validation import whole_number

#: Values of some variables by name.
Evidence = Mapping[str, Any]


class Explanation(NamedTuple):
    """The most probable states of all variables, given some of them."""

    #: Label of each variable's state, those of the evidence included; ``(unseen)`` if training never saw the value.
    states: dict[str, str]
    #: log P(states) in nats.
    log_joint: float
    #: log P(states | evidence) in nats, at most 0.
    log_posterior: float


class Network(NamedTuple):
    """The variables and tables of a directed acyclic graph, and whether the last variable is a class.

    `na_values` has, by column, the values that meant a missing one in the training table; ``*`` stands for all columns.
    """

    variables: tuple[Variable, ...]
    cpts: tuple[Cpt, ...]
    has_class: bool = True
    na_values: Mapping[str, Sequence[str]] = MappingProxyType({})


class Queries:
    """Questions to a joint distribution; a subclass that has one overrides `_network`.

    All answers are exact, by variable elimination. Its memory is forecast, and refused in a sentence beyond a limit.

    Where other parameters than the generative ones were fitted (``parameters``), the tables have the fitted P(class |
    all features), and of all tables with it those whose joint distribution is nearest to the generative one
    (`milpbn.network.parameters.nearest`). Frequencies of features are then those of the generative tables within each
    family. The frequencies of the classes, and their posteriors with missing features, may be others.
    """

    def _network(self) -> Network:
        """Return the network, or raise InputError with the reason why there is none."""
        raise InputError(
            f"This model ({type(self).__name__}) is not one directed acyclic graph with probability tables, so that it "
            "has no joint distribution to ask; use the classifier of a Bayesian network."
        )

    def posterior(self, variable: str, evidence: Evidence | None = None) -> dict[str, float]:
        """Return P(variable | evidence) by state label.

        Parameters
        ----------
        variable : str
            Name of a feature or of the class, which is not in the evidence.
        evidence : mapping from name to value, optional
            Known values of any variables.

        Raises
        ------
        InputError
            If a name or a class label is unknown, the evidence is impossible, or the tables would need too much memory.

        Warns
        -----
        MilpbnWarning
            If training never saw a value of the evidence.
        """
        network = self._network()
        i = _index(network, variable)
        codes = _codes(network, evidence)
        if codes[0, i] != MISSING:
            raise InputError(f"The evidence already gives {variable!r} a value; ask for another variable.")
        log = total_log(_left(network, codes, [i]), (i,))[0]
        if log.max() == -np.inf:
            raise InputError(_IMPOSSIBLE)
        odds = np.exp(log - log.max())
        return _by_label(network.variables[i], odds / odds.sum())

    def marginals(self, evidence: Evidence | None = None) -> dict[str, dict[str, float]]:
        """Return P(variable | evidence) of every variable that is not in the evidence; see `posterior`.

        It takes twice the time of one elimination, not one elimination per variable.
        """
        network = self._network()
        codes = _codes(network, evidence)
        steps, _ = _eliminated(network, codes, "sum")
        found = marginals(steps)
        return {network.variables[i].name: _by_label(network.variables[i], found[i]) for i in sorted(found)}

    def log_probability(self, evidence: Evidence) -> float:
        """Return log P(evidence) in nats, ``-inf`` if it is impossible; see `posterior`."""
        network = self._network()
        left = _left(network, _codes(network, evidence), [])
        return min(0.0, float(total_log(left)[0])) if left else 0.0

    def most_probable_explanation(self, evidence: Evidence | None = None) -> Explanation:
        """Return the most probable states of all variables together, given the evidence; see `posterior`.

        Of equally probable ones it is any. The states need not be the most probable ones of each variable by itself.
        """
        network = self._network()
        codes = _codes(network, evidence)
        steps, log_joint = _eliminated(network, codes, "max")
        best = draw(steps, codes, None)[0]
        states = {
            v.name: v.states[k] if k >= 0 else "(unseen)"
            for v, k in zip(network.variables, best, strict=True)
        }
        _, log_evidence = _eliminated(network, codes, "sum")
        return Explanation(states, log_joint, min(0.0, log_joint - log_evidence))

    def sample(
        self,
        n_samples: int = 1,
        evidence: Evidence | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> Dataset:
        """Return independent samples of all variables from P(variables | evidence).

        Parameters
        ----------
        n_samples : int
            Number of rows, at least 1.
        evidence : mapping from name to value, optional
            Known values, which every row has; see `posterior`.
        random_state : int, Generator or None
            Seed, or the generator itself; None draws other samples each time.

        Returns
        -------
        Dataset
            The rows in this classifier's states; its property ``labels`` has their labels.

        Raises
        ------
        InputError
            See `posterior`.
        """
        network = self._network()
        n_samples = whole_number("n_samples", n_samples)
        if n_samples < 1:
            raise InputError(f"n_samples must be at least 1, got {n_samples}.")
        codes = _codes(network, evidence)
        # Codes of 8 bytes, and 4 in the data; the uniform numbers of a variable.
        require_memory(n_samples * (12 * len(codes) + 16), f"Drawing {n_samples} rows", "draw fewer")
        try:
            generator = np.random.default_rng(random_state)
        except (TypeError, ValueError):
            raise InputError(
                f"random_state is a whole number from 0, a Generator or None, got {random_state!r}."
            ) from None
        # The evidence says something about its ancestors only; the others follow from their parents.
        steps, _ = _eliminated(network, codes, "sum", whole=False)
        rows = draw(steps, np.repeat(codes, n_samples, axis=0), generator)
        draw_forward(network.cpts, rows, generator)
        return Dataset("sample", network.variables, rows.astype(np.int32), np.ones(n_samples))

    def log_likelihood(self, source: Any) -> NDArray[np.float64]:
        """Return log P(known values of the row) of every row, in nats, shape (M,).

        Missing features are summed over, and so is the class where the row has none that the classifier knows.

        Parameters
        ----------
        source : Dataset, pandas.DataFrame, str or path-like
            Samples; see `milpbn.network.predictor.encode`.
        """
        network = self._network()
        data = self.encode(source)  # type: ignore[attr-defined]  # of every subclass with a network
        log_joint = log_joint_of_rows(data.codes, data.names, network.cpts, data.n_classes)
        known = data.y >= 0
        found = np.logaddexp.reduce(log_joint, axis=1)
        found[known] = log_joint[known, data.y[known]]
        return found


_IMPOSSIBLE = (
    "The evidence has the probability 0 in this classifier, so that nothing follows from it; learn the classifier with "
    "smoothing, or leave out some of the evidence."
)


def _names(network: Network) -> list[str]:
    return [v.name for v in network.variables]


def _index(network: Network, name: str) -> int:
    names = _names(network)
    if name not in names:
        raise InputError(
            f"There is no variable {name!r} in the classifier; it has {', '.join(map(repr, names))}."
        )
    return names.index(name)


def _codes(network: Network, evidence: Evidence | None) -> NDArray[np.intp]:
    """Return the states of the evidence, shape (1, V); `MISSING` without a value, `UNKNOWN` for unseen ones."""
    # Imported here because only values of users need pandas.
    from milpbn.data.cells import means_missing
    from milpbn.data.variables import encode_value

    codes = np.full((1, len(network.variables)), MISSING, dtype=np.intp)
    columns, given = by_column(network.variables), dict[str, str]()
    for name, value in (evidence or {}).items():
        i = columns[name][0] if name in columns else _index(network, name)
        variable = network.variables[i]
        column = variable.raw_column
        if given.setdefault(column, name) != name:
            raise InputError(
                f"The evidence gives values of {given[column]!r} and {name!r}, which code one column; leave one out."
            )
        places = columns[column]
        variables = [network.variables[j] for j in places]
        absent = means_missing(value, column, network.na_values)
        codes[0, places] = encode_value(variables, None if absent else value, "the evidence")
        if absent or isinstance(value, str):  # None and NaN say themselves that they are missing
            _warn_of_missing(variables, codes[0, places], name, value)
        if codes[0, i] != UNKNOWN:
            continue
        known = ", ".join(map(repr, variable.states))
        if i == len(network.variables) - 1 and network.has_class:
            raise InputError(f"The class {name!r} has no state {value!r}; it has {known}.")
        warn(
            f"Training never saw the value {value!r} of {name!r}, whose states are {known}: it says nothing about its "
            "parents, and its children get uniform rows.",
            MilpbnWarning,
        )
    return codes


def _warn_of_missing(variables: Sequence[Variable], codes: NDArray[np.intp], name: str, value: Any) -> None:
    """Warn of a value such as ``NA`` that stands for a missing one."""
    variable = variables[0]
    if (codes == MISSING).all():
        taken = f"{name!r} is taken as unknown"
    elif (
        variable.missing_state
        and codes[0] == variable.n_states - 1
        and label_of(value) != variable.states[-1]
    ):
        taken = f"{name!r} has the state {variable.states[-1]!r} of missing values"
    else:
        return
    warn(f"The value {value!r} of {name!r} stands for a missing value: {taken}.", MilpbnWarning)


def known_variables(model: Queries, evidence: Evidence | None) -> set[str]:
    """Return the names of the variables that the evidence gives a value, coarse and fine ones of a column.

    Those whose value is missing are not among them. `InputError` as of `Queries.posterior`.
    """
    network = model._network()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MilpbnWarning)  # the answer to the question has them
        codes = _codes(network, evidence)
    return {v.name for v, code in zip(network.variables, codes[0], strict=True) if code != MISSING}


def _left(network: Network, codes: NDArray[np.intp], kept: Sequence[int]) -> list[Factor]:
    """Sum out the variables without evidence but the kept ones, and return the factors that are left."""
    return _plan(network, codes, kept, whole=False).eliminate(codes)[1]


def _eliminated(
    network: Network, codes: NDArray[np.intp], reduction: Reduction, *, whole: bool = True
) -> tuple[list[Step], float]:
    """Eliminate variables without evidence, if not `whole` only its ancestors; return steps and log of the result."""
    steps, left = _plan(network, codes, [], whole=whole).eliminate(codes, reduction, keep=True)
    log = float(total_log(left)[0]) if left else 0.0
    if log == -np.inf:
        raise InputError(_IMPOSSIBLE)
    return steps, log


def _plan(network: Network, codes: NDArray[np.intp], kept: Sequence[int], *, whole: bool) -> EliminationPlan:
    planner = Planner(network.cpts, len(network.variables))
    plan = planner.plan(codes, codes[0] == MISSING, kept, whole=whole)
    plan.require_room(_names(network))
    return plan


def _by_label(variable: Variable, probabilities: NDArray[np.float64]) -> dict[str, float]:
    return dict(zip(variable.states, probabilities.tolist(), strict=True))
