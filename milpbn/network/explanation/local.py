"""Why a sample gets its class: the log-odds of two classes as an exact sum over families."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, UNKNOWN, Dataset, Variable, by_column
from milpbn.data.labels import label_of
from milpbn.errors import InputError
from milpbn.network.cpt import Cpt
from milpbn.network.decisions import DO_NOT_KNOW, DecisionRule
from milpbn.network.explanation.columns import effects_of, shared_columns, taken_apart
from milpbn.network.explanation.terms import Terms, base_rates, log_ratio, terms, with_base_rate
from milpbn.network.explanation.wording import (
    bar,
    base_rate_of,
    factor,
    joined,
    nats,
    of_members,
    shown_states,
)
from milpbn.network.margins import log_posterior
from milpbn.util.jsonable import json_safe
from milpbn.util.plurals import counted

#: What stands for a value that no training row has, and for a missing value.
NEW_VALUE, NOT_OBSERVED = "(not in the training data)", "(not observed)"
#: Width of the bars of the text, in characters.
_BAR = 20


@dataclass(frozen=True)
class Contribution:
    """What one family adds to the log-odds of a prediction, or several families that missing values join.

    In a network with two variables of one column, it is what a column adds, or several columns
    together (`milpbn.network.explanation.columns`).
    """

    #: The column of the family's variable; for the family of the class variable, its parents, and for the base rate of
    #: the classes the class variable. If a missing value is summed over, the families that it is in make one term.
    variables: tuple[str, ...]
    #: Their states; `NEW_VALUE` if the training data lack the value, `NOT_OBSERVED` for a missing one. Empty for the
    #: base rate.
    values: tuple[str, ...]
    #: The parents without the class, with their states.
    given: tuple[tuple[str, str], ...]
    #: log P(variable | parents) for every class, in nats. For the base rate log P(class) before any feature, and for
    #: the family of a class with parents log P(class | parents) - log P(class).
    log_probabilities: tuple[float, ...]
    #: The difference of the explained class and the other one, in nats. 0 where the class is not in the family.
    log_odds: float

    @property
    def is_base_rate(self) -> bool:
        """Whether this is the base rate of the classes, which is about no feature."""
        return self.values == ("",)

    @property
    def condition(self) -> str:
        """The values in words, such as ``a = x, given b = u``, or what the base rate is called."""
        if self.is_base_rate:
            return base_rate_of(self.variables[0])
        pairs = list(zip(self.variables, self.values, strict=True))
        missing = " and ".join(name for name, value in pairs if value == NOT_OBSERVED)
        known = [pair for pair in pairs if pair[1] != NOT_OBSERVED]
        if not known:
            return f"{missing} {NOT_OBSERVED}"
        words = joined(known) + (f", given {joined(self.given)}" if self.given else "")
        return f"{words}, summed over {missing}" if missing else words


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What is explained: the prediction of one sample, and two classes."""

    #: Position of the sample in the data, from 0.
    sample: int
    #: Name of the class variable.
    target: str
    #: Class labels.
    classes: tuple[str, ...]
    #: The sample's own class, if it is known.
    actual: str | None
    #: The most probable class.
    predicted: str
    #: The two classes whose log-odds are explained; by default the most probable ones.
    label: str
    against: str
    #: P(c | z).
    probabilities: tuple[float, ...]
    #: What costs or a threshold of the classifier choose, possibly "do not know"; None if it has none.
    decided: str | None = None

    def __str__(self) -> str:
        return self.to_text()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; infinite numbers are None."""
        return json_safe(vars(self))

    def to_text(self) -> str:
        """Return the explanation as lines of text."""
        return f"{self.heading}; {self.share}"

    @property
    def heading(self) -> str:
        """The sample, its predicted class, and its own class if it is known."""
        answer = self.predicted if self.decided is None else self.decided
        head = f"sample {self.sample + 1}: {self.target} = {answer}"
        if answer != self.predicted:
            head += f" by costs or threshold, most probable {self.predicted}"
        if self.actual is None:
            return head
        return head + (", as it is" if self.actual == answer else f"; it is {self.actual}")

    def at(self, sample: int) -> Self:
        """Return the same of a sample with this position in the data, from 0."""
        return replace(self, sample=sample)

    @property
    def share(self) -> str:
        """The probability of the explained class."""
        return f"P({self.label}) = {self.probabilities[self.classes.index(self.label)]:.4g}"


@dataclass(frozen=True, kw_only=True)
class LocalExplanation(Prediction):
    """The log-odds of two classes for one sample, as an exact sum. See `Prediction` for the other attributes."""

    #: log P(c, z) in nats, for every class the sum of the contributions' ``log_probabilities``.
    log_joint: tuple[float, ...]
    #: log P(label | z) - log P(against | z) in nats, the sum of the contributions' ``log_odds``. The equation holds
    #: where both classes are possible; unsmoothed tables can make a class impossible, with infinite terms.
    log_odds: float
    #: One per family in the order of the variables, then that of the class's parents if it has any, and the base rate
    #: of the classes last; families that missing values join are one.
    contributions: tuple[Contribution, ...]

    @property
    def ranked(self) -> tuple[Contribution, ...]:
        """The contributions that are not 0, the largest first; the base rate, which is no feature's, is last."""
        used = [c for c in self.contributions if c.log_odds != 0]
        return tuple(sorted(used, key=lambda c: (c.is_base_rate, -abs(c.log_odds))))

    def rows(self, shown: int) -> list[tuple[float, str]]:
        """Return log-odds and words of `ranked`; of more than `shown` features the smaller ones are one row."""
        features = [c for c in self.ranked if not c.is_base_rate]
        base = [c for c in self.ranked if c.is_base_rate]
        rows = [(c.log_odds, c.condition) for c in features[:shown]]
        if left := features[shown:]:
            rows.append((sum(c.log_odds for c in left), counted(len(left), "smaller contribution")))
        return rows + [(c.log_odds, c.condition) for c in base]

    def to_text(self, shown: int = 30) -> str:
        """Return the sum as lines of text, the largest contributions first.

        Parameters
        ----------
        shown : int
            Number of contributions beside the base rate; the rest is summed in one line.
        """
        odds = nats(self.log_odds)
        lines = [
            self.heading,
            f"log-odds of {self.label} against {self.against}: {odds} nats, odds {factor(self.log_odds)} to 1; "
            f"{self.share}",
        ]
        rows = self.rows(shown)
        largest = max((abs(value) for value, _ in rows if np.isfinite(value)), default=0.0)
        lines += [f"  {nats(value):>9}  {bar(value, largest, _BAR)}  {words}" for value, words in rows]
        return "\n".join([*lines, f"  {odds:>9}  sum"])


@dataclass(frozen=True, kw_only=True)
class SeveralLocalExplanations(Prediction):
    """The prediction of an average for one sample, and the explanations of its networks for the same two classes.

    `Prediction` has the other attributes; the probabilities are those of the average.
    """

    #: One per network, in their order.
    members: tuple[LocalExplanation, ...]

    def at(self, sample: int) -> Self:
        """Return the same of a sample with this position in the data, from 0."""
        return replace(self, sample=sample, members=tuple(member.at(sample) for member in self.members))

    def to_text(self, shown: int = 30) -> str:
        """Return the explanations as lines of text; each network's has at most this many contributions."""
        return of_members([f"{self.heading}; {self.share}"], self.members, shown)


def explain_rows(
    variables: tuple[Variable, ...],
    cpts: Sequence[Cpt],
    data: Dataset,
    label: str | None = None,
    against: str | None = None,
) -> tuple[LocalExplanation, ...]:
    """Explain the prediction of every sample of data that are encoded with these variables, the class last.

    `InputError` if a class is not one of the classifier's, or both are the same.

    Parameters
    ----------
    cpts : sequence of Cpt, length V
        One table per variable.
    label, against : str, optional
        The class to explain, by default the most probable class of the sample that is not `against`, and the class
        to compare with, by default the most probable one of the others.
    """
    classes = variables[-1].states
    label, against = check_classes(classes, label, against)
    found: dict[int, LocalExplanation] = {}
    base = base_rates(data.names, cpts, len(classes))
    families = effects_of(variables, cpts)
    for part in terms(data.codes, data.names, cpts, len(classes), shared_columns(variables)):
        apart = taken_apart(with_base_rate(part, base, cpts[-1].parents), families, data.codes)
        found.update(_explain(apart, variables, cpts, data, label, against))
    return tuple(found[m] for m in range(data.n_samples))


_P = TypeVar("_P", bound=Prediction)


def decided(found: Sequence[_P], rule: DecisionRule | None) -> tuple[_P, ...]:
    """Return explanations with what a classifier's rule chooses for their samples; without a rule as they are."""
    if rule is None or not found:
        return tuple(found)
    answers = rule.answer(np.array([one.probabilities for one in found]))
    names = (*found[0].classes, DO_NOT_KNOW)
    return tuple(replace(one, decided=names[k]) for one, k in zip(found, answers.tolist(), strict=True))


def check_classes(
    classes: Sequence[str], label: str | None, against: str | None
) -> tuple[str | None, str | None]:
    """Return the classes to compare as text; `InputError`, with a list, if they are not two of the classifier's."""
    label, against = (None if name is None else label_of(name) for name in (label, against))
    for name in (label, against):
        if name is not None and name not in classes:
            raise InputError(
                f"{name!r} is not a class of the classifier; its classes are {', '.join(map(repr, classes))}."
            )
    if label is not None and label == against:
        raise InputError(f"The class {label!r} cannot be compared with itself; name two classes.")
    return label, against


def pair(log_joint: NDArray[np.float64], label: int | None, against: int | None) -> tuple[int, int]:
    """Return the classes to compare: the given ones, and the most probable one of the others where one is not given."""
    order = np.argsort(-log_joint, kind="stable").tolist()
    own = label if label is not None else next(c for c in order if c != against)
    return own, against if against is not None else next(c for c in order if c != own)


def _explain(
    part: Terms,
    variables: tuple[Variable, ...],
    cpts: Sequence[Cpt],
    data: Dataset,
    label: str | None,
    against: str | None,
) -> Iterator[tuple[int, LocalExplanation]]:
    classes = variables[-1].states
    log_joint = part.log_probabilities.sum(axis=1)
    probabilities = np.exp(log_posterior(log_joint))
    chosen = [None if name is None else classes.index(name) for name in (label, against)]
    for k, m in enumerate(part.rows.tolist()):
        own, other = pair(log_joint[k], *chosen)
        codes, by_group = data.codes[m], part.log_probabilities[k]
        ratios = log_ratio(by_group[:, own], by_group[:, other])
        contributions = tuple(
            Contribution(
                *_named(group, part, variables, cpts, codes),
                tuple(by_group[g].tolist()),
                float(ratios[g]),
            )
            for g, group in enumerate(part.groups)
        )
        yield (
            m,
            LocalExplanation(
                sample=m,
                target=variables[-1].name,
                classes=classes,
                actual=None if codes[-1] < 0 else classes[codes[-1]],
                predicted=classes[log_joint[k].argmax()],
                label=classes[own],
                against=classes[other],
                log_joint=tuple(log_joint[k].tolist()),
                probabilities=tuple(probabilities[k].tolist()),
                log_odds=float(log_ratio(log_joint[k, own], log_joint[k, other])),
                contributions=contributions,
            ),
        )


def _named(
    group: tuple[int, ...],
    part: Terms,
    variables: tuple[Variable, ...],
    cpts: Sequence[Cpt],
    codes: NDArray[np.int32],
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return columns, states, and the parents with their states of the families of a term."""
    last = len(variables) - 1
    if not group:
        return (variables[last].name,), ("",), ()
    # The parents of the class are what its family tells of.
    own = sorted({*group, *(cpts[last].parents if last in group else ())} - {last})
    # The term of a family that is taken apart does not depend on the parents, if the states of all are known.
    apart = {i for i in part.apart if (codes[[j for j in (i, *cpts[i].parents) if j != last]] >= 0).all()}
    whole = () if group in part.together else [i for i in group if i not in apart]
    above = sorted({j for i in whole for j in cpts[i].parents} - {last, *own})
    if last in group and all(codes[i] == MISSING for i in own):
        own, above = sorted([*own, *above]), []  # what is known of the parents comes from these
    names, values = zip(*_states(own, variables, codes), strict=True)
    return names, values, tuple(_states(above, variables, codes))


def _states(
    places: Sequence[int], variables: tuple[Variable, ...], codes: NDArray[np.int32]
) -> list[tuple[str, str]]:
    """Return the columns of some variables with their states, those of the finest variable that has a value."""
    found = []
    for name, positions in by_column([variables[i] for i in places]).items():
        of_column = [places[k] for k in positions]
        i = max(of_column, key=lambda i: (codes[i] != MISSING, variables[i].n_states))
        found.append((name, state_of(variables[i], codes[i])))
    return found


def state_of(variable: Variable, code: int) -> str:
    """Return the label of a state, or what stands for a value without one."""
    return {UNKNOWN: NEW_VALUE, MISSING: NOT_OBSERVED}.get(int(code)) or shown_states(variable)[code]
