"""The score that a user asks for: its name and options, checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from milpbn.errors import InputError
from milpbn.network.prior import Prior, check_towards
from milpbn.problem.scores.base import ScoreKind
from milpbn.problem.scores.options import PAPER, DeclaredScore
from milpbn.problem.scores.registry import ALIASES, find_score, score_names
from milpbn.util.options import check_choice, declared, listed
from milpbn.util.validation import convert_fields

#: The values of p from which Peharz & Pernkopf (2012, P12) choose; gamma = log(p / (1 - p)).
P_GRID = (0.501, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
#: The penalties with a name, in nats per free parameter; M is the sum of the weights.
_NAMED_PENALTIES = {"bic": "log(M)/2", "aic": "1"}
#: The default of p.
DEFAULT_P = 0.99


def gamma_from_p(p: float) -> float:
    """Return the desired log-margin gamma = log(p / (1 - p)) in nats (P12, section 6); p must be in (0.5, 1)."""
    if not 0.5 < p < 1:
        raise InputError(
            f"p must lie strictly between 0.5 and 1, got {p}; {P_GRID[0]} to {P_GRID[-1]} are usual."
        )
    return math.log(p / (1 - p))


@dataclass(frozen=True, kw_only=True, repr=False)
class Score(DeclaredScore):
    """A score and its options, which `DeclaredScore` declares.

    The name may be given by position: ``Score("cll", max_parents=3)``.

    Two scores are equal if they are the same function: `gamma` is compared, whether it was given as `gamma` or as `p`.
    P12 is Peharz & Pernkopf (2012), and numbers in parentheses are those of its equations.

    Attributes
    ----------
    name : str
        ``sm``, ``sbm``, ``hard-margin``, ``cll``, ``ll``, ``mdl`` (also ``bic``), ``aic``, ``aicc`` or ``bdeu``.
    gamma : float or None
        Desired log-margin in nats, from 1e-9 to 1e6, for ``sm`` and ``sbm`` only; by default it follows from `p`.
    p : float or None
        The desired margin as a probability: gamma = log(p / (1 - p)). If neither is given, p is `DEFAULT_P`. If gamma
        was given, p is None. To change one of them by `dataclasses.replace`, set the other one to None.
    max_parents : int
        The most parents of a variable, the class included, as in P12.
    class_parents : bool
        The class variable may have feature parents, as in P12 (19).
    smoothing : float
        Laplace constant a of the parameters, from 1e-12 to 1e12 (P12 uses 1): those of the classifier, and those that
        margin scores, ``cll`` and leave-one-out scores count with.
    smoothing_towards : {"uniform", "marginal", "class"}
        What the parameters of margin scores and ``cll`` are shrunk towards, with the weight of a pseudo-counts per
        state: the uniform distribution (Laplace smoothing, as in P12), the distribution of the variable without
        parents, or that given the class alone. `milpbn.network.prior` has the formula.
    parent_sets : {"auto", "paper", "all"}
        Candidate parent sets of the features: those of P12, section 4, which are {} and the sets with the class, or
        all. With ``auto`` they are all sets for margin scores and ``cll``, of which those are left out that cannot
        belong to a better structure, and the sets of P12 for generative scores. Where sets are left out that a better
        structure may have, every claim names the class of structures (`milpbn.problem.class_free.among`).
    equivalent_sample_size : float
        Equivalent sample size of ``bdeu``, from 1e-12 to 1e12.
    penalty : float, "bic" or "aic"
        Nats subtracted per free parameter from a margin score or ``cll``: a number from 0 to 1e12, or log(M) / 2 for
        "bic", or 1 for "aic".
    hybrid : float
        Factor of the log-likelihood that is added to a margin score or ``cll``, from 0 to 1e12.
    leave_one_out : bool
        Score every sample with parameters that it does not count for: one unit of its weight is left out of the counts.
        It is for the margin scores, ``cll`` and ``ll``, and for weights of at least 1. States, classes and cut points
        stay as they are. ``ll`` and the hybrid term then have smoothed parameters, too. The classifier that is
        fitted in the end counts all samples.

    Raises
    ------
    InputError
        If an option is out of range or does not belong to the score.
    """

    def __post_init__(self) -> None:
        convert_fields(self)
        object.__setattr__(self, "name", ALIASES.get(self.name, self.name))
        kind = find_score(self.name)
        if kind.takes("gamma"):
            self._settle_gamma()
        object.__setattr__(self, "penalty", _parse_penalty(self.penalty))
        check_towards(self.smoothing_towards)
        for item in declared(self):
            value, known = getattr(self, item.name), item.metadata
            if "choices" in known:
                check_choice(item.name, value, known["choices"])
            if "refused" in known and value != item.default:
                self._refuse_of_others(kind, item.name, known["refused"], known.get("belongs_to", item.name))
            if "range" in known and value is not None and not isinstance(value, str):
                known["range"].check(value)
        _ = self.kind  # refuses options that contradict each other

    def _settle_gamma(self) -> None:
        """Compute gamma from p, or from the default of p, unless gamma was given."""
        if self.gamma is None:
            p = DEFAULT_P if self.p is None else self.p
            object.__setattr__(self, "p", p)
            object.__setattr__(self, "gamma", gamma_from_p(p))
        elif self.p is not None and self.gamma != gamma_from_p(self.p):
            # Both may be given if they agree, because `dataclasses.replace` passes both on.
            raise InputError("gamma and p say the same thing; give one of them.")

    def _refuse_of_others(self, kind: type[ScoreKind], option: str, message: str, own: str) -> None:
        """Refuse an option that was given and belongs to other scores only: those that take the option `own`."""
        if not kind.takes(own):
            those = score_names(lambda other: other.takes(own))
            shown = listed(those, "and") if len(those) == 2 else ", ".join(those)
            raise InputError(message.format(option=option, scores=shown, score=self.name))

    def __repr__(self) -> str:
        """Show the name and the options that differ from their defaults; p if it was given, else gamma."""
        shown = [f"name={self.name!r}"]
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            if value != item.default and not (item.name == "gamma" and self.p is not None):
                shown.append(f"{item.name}={value!r}")
        return f"Score({', '.join(shown)})"

    @property
    def summary(self) -> str:
        """The score in full, for lines that users see; see `describe`."""
        return self.describe()

    def describe(
        self, *, arc_weights: Mapping[tuple[str, str], float] | None = None, discretisation: str | None = None
    ) -> str:
        """Return all that decides the value of a structure: the score with its terms, its parameters and parent sets.

        Every line that names a score takes its words from here. An option is named if it differs from its default, and
        `max_parents` always is. Two scores have the same words only if they have the same options, up to the digits
        that are shown. `arc_weights` are nats that constraints add to the score of every structure with the arc
        (parent, child), and `discretisation` says how continuous columns were cut, None or empty without such columns.
        """
        terms = [self.name]
        if self.hybrid:
            terms.append(f"+ {self.hybrid:.6g} x log-likelihood")
        if self.penalty:
            penalty = self.penalty
            size = (
                f"{_NAMED_PENALTIES[penalty]} ({penalty})" if isinstance(penalty, str) else f"{penalty:.6g}"
            )
            terms.append(f"- {size} per parameter")
        if arc_weights:
            first, *more = arc_weights.items()
            if more:
                terms.append(f"+ the weights of {len(arc_weights)} arcs")
            else:
                (parent, child), weight = first
                terms.append(f"+ {weight:.6g} for the arc {parent} -> {child}")
        parts = [" ".join(terms)]
        named = {item.name for item in declared(self) if getattr(self, item.name) != item.default}
        towards = f" towards {self.smoothing_towards}" if "smoothing_towards" in named else ""
        named |= {"max_parents"} | ({"smoothing"} if towards else set())
        shown = [item for item in declared(self) if item.name in named and "words" in item.metadata]
        for item in sorted(shown, key=lambda item: item.metadata["words"][0]):
            words = item.metadata["words"][1].format(value=getattr(self, item.name))
            parts.append(words + (towards if item.name == "smoothing" else ""))
        if discretisation:
            parts.append(f"cuts by {discretisation}")
        return ", ".join(parts)

    @property
    def limits(self) -> str:
        """The limits on parent sets, in words."""
        return f"max_parents = {self.max_parents}" + ("" if self.class_parents else " and no class parents")

    @property
    def prior(self) -> Prior:
        """The prior of the parameters."""
        return Prior(self.smoothing, self.smoothing_towards)

    @property
    def needs_units(self) -> bool:
        """Whether a sample needs a weight of at least 1, because one unit of it is left out."""
        return self.kind.unit > 0

    @cached_property
    def kind(self) -> ScoreKind:
        """The score's class, which has its facts and formulas, with the options of this score."""
        kind = find_score(self.name)
        return kind(**{item.name: getattr(self, item.name) for item in fields(kind)})

    @property
    def is_margin(self) -> bool:
        """Whether the score is a function of class margins, as ``cll`` is; otherwise it is generative."""
        return self.kind.is_margin

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Score:
        """Read what `to_dict` wrote; without `parent_sets`, as in old files, they are those of P12."""
        return cls(**{"parent_sets": PAPER, **values})

    def to_dict(self) -> dict[str, Any]:
        """Return all options as JSON-safe values; p is written as gamma."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name != "p"}


def _parse_penalty(penalty: float | str) -> float | str:
    if penalty in ("bic", "aic"):
        return penalty
    try:
        return float(penalty)
    except (TypeError, ValueError):
        raise InputError(f"penalty must be bic, aic or a number, got {penalty!r}.") from None
