"""Claims that are parts of a result: about a subset of the samples, about arcs, and about the choice of options.

Each claim is a small frozen type that is read from ``result.json`` and written to it. `SubsetClaim` is a claim about a
smaller problem than the one the user asked for, with an objective and a bound of its own. Another claim of this kind
needs one more type beside it, and one more case in `milpbn.claims.result.Result.searched`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from milpbn.claims.gap import Gap, is_optimal
from milpbn.network.structure import Structure
from milpbn.util.jsonable import Fields

GAPS = ("absolute", "relative_to_bound", "relative_to_incumbent")
#: Relative difference up to which two numbers of a file are taken as the same number, written with fewer digits.
SAME_NUMBER = 1e-12

#: Parent and child.
Arc = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Searched:
    """Score and bound of what a search maximised: the sum over all samples, or over representative ones.

    Attributes
    ----------
    objective : float or None
        Score z of the result's structure, in nats.
    bound : float or None
        Proved upper bound b on every structure's score, in nats.
    optimal : bool
        It is proved that no structure has a better score.
    """

    objective: float | None
    bound: float | None
    optimal: bool

    @property
    def gap(self) -> Gap:
        """All gaps between objective and bound."""
        return Gap.between(self.objective, self.bound)

    @property
    def possible(self) -> bool:
        """Whether score and bound support the claim `optimal`; true where nothing is claimed.

        Numbers that would prove an optimum need not be claimed as one: rounding counts against the structure.
        """
        if not self.optimal:
            return True
        return (
            self.objective is not None and self.bound is not None and is_optimal(self.objective, self.bound)
        )


@dataclass(frozen=True, kw_only=True)
class SubsetClaim(Searched):
    """Score and bound of the weighted sum over representative samples.

    The bound says nothing about the score over all samples.

    Attributes
    ----------
    samples : int
        Number of representative samples: the distinct rows with a weight above 0.
    """

    samples: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        return {
            "samples": self.samples,
            "objective": self.objective,
            "bound": self.bound,
            "gap": vars(self.gap),
            "optimal": self.optimal,
        }

    @classmethod
    def read(cls, f: Fields) -> SubsetClaim:
        """Read what `to_dict` returned."""
        f.known(("samples", "objective", "bound", "gap", "optimal"))
        objective, bound = read_pair(f)
        return cls(samples=f.whole("samples", 1), objective=objective, bound=bound, optimal=f.flag("optimal"))


def read_pair(f: Fields) -> tuple[float | None, float | None]:
    """Return score and bound, and refuse gaps beside them that do not follow from them."""
    objective, bound = f.number("objective", optional=True), f.number("bound", optional=True)
    if objective is not None and bound is not None and bound < objective:
        raise f.contradiction(f"the bound {bound!r} is below the score {objective!r}")
    gap = f.fields("gap")
    gap.known(GAPS)
    for key, value in vars(Gap.between(objective, bound)).items():
        stated = gap.number(key, 0.0, optional=True)
        if not _same(stated, value):
            raise f.contradiction(f"the gap ({key}: {stated!r}) is not that of score and bound ({value!r})")
    return objective, bound


def _same(a: float | None, b: float | None) -> bool:
    """Whether two numbers are the same up to `SAME_NUMBER`; None equals only None."""
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=SAME_NUMBER, abs_tol=0.0)


@dataclass(frozen=True)
class ProvedArcs:
    """Arcs that every optimal structure over the candidate parent sets has, and arcs that none has.

    Attributes
    ----------
    inside : tuple of (parent, child)
        Arcs of every optimal structure; ``in`` in the JSON.
    outside : tuple of (parent, child)
        Arcs of no optimal structure; ``out`` in the JSON.
    """

    inside: tuple[Arc, ...] = ()
    outside: tuple[Arc, ...] = ()

    @classmethod
    def of(cls, arcs: Mapping[str, Iterable[Iterable[str]]]) -> ProvedArcs:
        """Build the claim from lists of arcs under the keys ``in`` and ``out``."""
        inside, outside = (
            tuple((parent, child) for parent, child in arcs.get(key, ())) for key in ("in", "out")
        )
        return cls(inside, outside)

    def to_dict(self) -> dict[str, list[list[str]]]:
        """Return JSON-safe values."""
        return {"in": [list(arc) for arc in self.inside], "out": [list(arc) for arc in self.outside]}

    @classmethod
    def read(cls, f: Fields) -> ProvedArcs:
        """Read what `to_dict` returned.

        Raises
        ------
        InputError
            If an arc is listed twice.
        """
        f.known(("in", "out"))
        arcs = {key: [(row.text("0"), row.text("1")) for row in f.rows(key, 2)] for key in ("in", "out")}
        seen: dict[Arc, str] = {}
        for key, listed in arcs.items():
            for arc in listed:
                before = seen.setdefault(arc, key)
                if before is not key:
                    raise f.contradiction(f"every optimum, and none, has the arc {arc[0]} -> {arc[1]}")
            if len(listed) > sum(found == key for found in seen.values()):
                raise f.contradiction(f"an arc is listed twice under {key!r}")
        return cls.of(arcs)


@dataclass(frozen=True)
class Trial:
    """One setting that a selection tried.

    Attributes
    ----------
    p, max_parents : float or None, int
        The values (p is None for scores without gamma).
    accuracy : float
        Share of the validation weight that is classified correctly, over all splits.
    proved : int
        Number of splits in which the structure was proved optimal.
    splits : int
        Number of splits in which the values were tried. It differs between trials if the selection was interrupted, or
        stopped the trials that were behind.
    log_loss : float or None
        Mean of -log P(class | features) over the validation weight, in nats; None in files of earlier versions.
    starved : int
        Number of splits in which the time limit ended the search at the structure that it started from.
    options : mapping
        The setting's other values, by the names of the command line.
    """

    p: float | None
    max_parents: int
    accuracy: float
    proved: int
    splits: int
    log_loss: float | None = None
    starved: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def value(self, by: str) -> float:
        """Return what is compared, the smaller the better: minus the accuracy, or the log-loss."""
        if by == "log-loss":
            return math.inf if self.log_loss is None else round(self.log_loss, 12)
        return -round(self.accuracy, 12)

    def rank(self, by: str = "accuracy") -> tuple[int, float, int, float]:
        """Return the sort key, the best first: most splits, then best value, then fewest parents, then smallest p."""
        return -self.splits, self.value(by), self.max_parents, self.p or 0.0

    @classmethod
    def read(cls, f: Fields) -> Trial:
        """Read one trial of what `Selection.to_dict` returned."""
        f.known(("p", "max_parents", "accuracy", "proved", "splits", "log_loss", "starved", "options"))
        splits = f.whole("splits", 1)
        return cls(
            f.number("p", optional=True),
            f.whole("max_parents", 1),
            f.number("accuracy", 0.0, 1.0 + SAME_NUMBER),
            f.whole("proved", 0, splits),
            splits,
            None if f.missing("log_loss") else f.number("log_loss", 0.0),
            0 if f.missing("starved") else f.whole("starved", 0, splits),
            read_options(f),
        )


def read_options(f: Fields) -> dict[str, Any]:
    """Read the object of a setting's other values: texts, numbers and flags."""
    if f.missing("options"):
        return {}
    own = f.fields("options")
    return {key: own.text(key) if isinstance(own.get(key), str) else _plain(own, key) for key in own}


def _plain(own: Fields, key: str) -> Any:
    return own.flag(key) if isinstance(own.get(key), bool) else own.number(key)


@dataclass(frozen=True)
class Selection:
    """How p, max_parents and other options were chosen by validation: the chosen setting, and all that were tried.

    Attributes
    ----------
    p, max_parents : float or None, int
        The values of the first trial by `Trial.rank`: among equal accuracies, fewer parents, then the smaller p.
    protocol : str
        ``validation set of 20 %`` or ``5-fold cross-validation``.
    trials : tuple of Trial
        In the order in which they were tried.
    incumbent : Structure or None
        The structure that the last split gave for the chosen values. The final search starts from it. Not part of the
        JSON.
    interrupted : bool
        Whether the user stopped the selection. Only the trials before that count.
    by : {'accuracy', 'log-loss'}
        What was compared.
    options : mapping
        The chosen values of further options, by the names of the command line.
    """

    p: float | None
    max_parents: int
    protocol: str
    trials: tuple[Trial, ...]
    incumbent: Structure | None = field(default=None, compare=False)
    interrupted: bool = False
    by: str = "accuracy"
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        return {
            "p": self.p,
            "max_parents": self.max_parents,
            "protocol": self.protocol,
            "interrupted": self.interrupted,
            "by": self.by,
            "options": dict(self.options),
            "trials": [{**vars(trial), "options": dict(trial.options)} for trial in self.trials],
        }

    @property
    def chosen(self) -> Trial | None:
        """The trial of the chosen setting; None if none has its values."""
        own = (self.p, self.max_parents, dict(self.options))
        return next((t for t in self.trials if (t.p, t.max_parents, dict(t.options)) == own), None)

    @property
    def is_best(self) -> bool:
        """Whether no trial ranks before the trial of the chosen setting."""
        chosen = self.chosen
        return chosen is not None and chosen.rank(self.by) <= min(t.rank(self.by) for t in self.trials)

    @property
    def tied(self) -> int:
        """Number of other trials with as many splits and the same value as the chosen one."""
        best = self.chosen
        if best is None:
            return 0
        same = (best.splits, best.value(self.by))
        return sum((t.splits, t.value(self.by)) == same for t in self.trials) - 1

    @classmethod
    def read(cls, f: Fields) -> Selection:
        """Read what `to_dict` returned."""
        f.known(("p", "max_parents", "protocol", "interrupted", "by", "options", "trials"))
        return cls(
            f.number("p", optional=True),
            f.whole("max_parents", 1),
            f.text("protocol"),
            tuple(Trial.read(trial) for trial in f.objects("trials")),
            interrupted=f.flag("interrupted"),
            by="accuracy" if f.missing("by") else f.text("by", ("accuracy", "log-loss")),
            options=read_options(f),
        )
