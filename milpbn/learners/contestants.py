"""The scores and learners of a comparison: their names, their order, their options, and checks of these."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypedDict

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.base import Control, Learner, require_used
from milpbn.learners.registry import LEARNERS, RAW_LEARNERS, get_learner
from milpbn.network.cpt import check_smoothing
from milpbn.network.evaluation import positive_class, rarest
from milpbn.problem.scores.registry import find_score, margin_scores
from milpbn.problem.scores.spec import Score
from milpbn.solving.warm_up import compile_all, count, tiny_data
from milpbn.util import interrupts

#: The scores and learners that are compared by default.
DEFAULT = (
    *("sm", "sbm", "differentiable-tan", "tan", "naive-bayes"),
    *("logistic", "boosting", "random-forest", "svm"),
)
#: Attributes of `Score` that set gamma; only some scores have it.
OF_GAMMA = ("p", "gamma")


def names_by_default(*, raw: bool) -> tuple[str, ...]:
    """Return what is compared by default; on `raw` columns EBM only where its package is installed."""
    if not raw:
        return DEFAULT
    return tuple(name for name in RAW_LEARNERS if name != "ebm" or find_spec("interpret") is not None)


def check_names(
    names: Sequence[str], options: Mapping[str, Mapping[str, Any]] | None = None, *, raw: bool = False
) -> None:
    """Refuse names that are neither margin scores nor learners, and options that cannot be used.

    These are options for a learner that is not compared, and those that are unknown, out of range or without effect.
    On `raw` columns there are only the learners that take them.
    """
    known = RAW_LEARNERS if raw else LEARNERS
    for name in names:
        if raw and name not in known:
            raise InputError(
                f"{name!r} does not learn from raw columns (--raw, raw); choose among {', '.join(known)}."
            )
        if name not in margin_scores() and name not in known:
            raise InputError(
                f"There is no score or learner {name!r}; choose scores ({', '.join(margin_scores())}) and "
                f"learners ({', '.join(known)})."
            )
    learners = [name for name in names if name in known]
    for name in options or {}:
        if name not in learners:
            raise InputError(
                f"There are options for {name!r}, which is not one of the learners to compare ({', '.join(learners)})."
            )
    for name in learners:
        own = (options or {}).get(name, {})
        kind = get_learner(name, raw=raw)
        has = [f.name for f in fields(kind) if f.init]  # type: ignore[arg-type]  # a dataclass
        for key in own:
            if key not in has:
                raise InputError(
                    f"The learner {name} has no option {key!r}; it has {', '.join(has) or 'none'}."
                )
        learner = kind(**own)
        learner.check()
        check_smoothing(getattr(learner, "smoothing", None) or 0.0)
        require_used(learner, own)


def exact_scores(names: Sequence[str], attributes: Mapping[str, Any]) -> dict[str, Score]:
    """Return the scores among some names, each with the attributes that apply to it; refuse others."""
    exact = [name for name in names if name in margin_scores()]
    those = [name for name in margin_scores() if find_score(name).takes("gamma")]
    for key in OF_GAMMA:
        if key in attributes and not set(those) & set(exact):
            raise InputError(
                f"{key} belongs to the scores {' and '.join(those)}, and neither is compared; leave it out."
            )
    return {
        name: Score(
            name=name,
            **{key: value for key, value in attributes.items() if name in those or key not in OF_GAMMA},
        )
        for name in exact
    }


def check_against(names: Sequence[str], against: str | None) -> None:
    """Refuse a learner that is not one of those to compare."""
    if against is not None and against not in names:
        raise InputError(
            f"--against (against) names {against!r}, which is not compared; choose one of {', '.join(names)}."
        )


class ContestOptions(TypedDict, total=False):
    """The attributes of a `Contest` that may be given by name."""

    score: Mapping[str, Any] | None
    options: Mapping[str, Mapping[str, Any]] | None
    control: Control
    against: str | None
    positive: str | None
    raw: bool


@dataclass(frozen=True)
class Contest:
    """What is compared, and how: arguments of `milpbn.learners.comparison.compare`.

    Without names it is `names_by_default`. `check_names`, `check_against` and `exact_scores` say what is refused.
    """

    names: Sequence[str] = ()
    score: Mapping[str, Any] | None = None
    options: Mapping[str, Mapping[str, Any]] | None = None
    control: Control = Control()
    against: str | None = None
    positive: str | None = None
    raw: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names) or names_by_default(raw=self.raw))
        check_names(self.names, self.options, raw=self.raw)
        if self.raw and self.control.parameters is not None:
            raise InputError(
                "--parameters (parameters) is about networks on our cuts, and learners on raw columns fit their own; "
                "leave out --raw (raw) or --parameters."
            )
        check_against(self.names, self.against)
        _ = self.exact

    @cached_property
    def exact(self) -> dict[str, Score]:
        """The scores whose structures are found by exact search."""
        return exact_scores(self.names, self.score or {})

    def detecting(self, data: Dataset) -> tuple[Contest, float]:
        """Return the contest with a positive class, and the rarest class's share of the weight.

        Of two classes the rarest one is positive; of more there is none unless the user names it.
        """
        share = float(data.weights[data.y == rarest(data)].sum() / data.weights.sum())
        positive = positive_class(data.variables[-1].states, data, self.positive)
        return replace(self, positive=positive), share

    def positive_code(self, data: Dataset) -> int | None:
        """Return the code of the positive class in some data; None without one."""
        return None if self.positive is None else data.variables[-1].states.index(self.positive)

    def learner(self, name: str) -> type[Learner]:
        """Return the class of a learner that is compared."""
        return get_learner(name, raw=self.raw)

    def options_of(self, name: str) -> Mapping[str, Any]:
        """Return the given options of a learner."""
        return (self.options or {}).get(name, {})

    @property
    def order(self) -> list[str]:
        """The names in the order in which they run: exact searches first."""
        return sorted(self.names, key=lambda name: name not in self.exact)

    def on_worker(self) -> Contest:
        """Return the contest as a worker runs it: with one thread, and without reports."""
        asked = interrupts.requested
        control = replace(self.control, n_jobs=1, report=_silent, interrupted=asked, verbose=False)
        return replace(self, control=control)

    def compile_kernels(self) -> None:
        """Compile the kernels of all searches and learners before the first time limit starts.

        Each learner runs once on a few rows for that. Its errors are ignored here: they occur again with the real data,
        and are reported then.
        """
        control = self.control
        if self.exact or (self.raw and any(self.learner(name).compiles for name in self.names)):
            compile_all(lambda done, of: control.report(count(done, of)), control.interrupted)
        rehearsal = replace(control, time_limit=None, report=_silent, parameters=None)
        for name in self.names:
            if name in self.exact or not self.learner(name).compiles or control.interrupted():
                continue
            # Without the user's checkpoint file, which must not contain the state of this rehearsal.
            own = {key: value for key, value in self.options_of(name).items() if key != "checkpoint"}
            with suppress(Exception):
                self.learner(name)(**own).fit(tiny_data(), rehearsal)

    def described(self, data: str, **others: Any) -> dict[str, Any]:
        """Return what a comparison must have in common with the one whose checkpoint it goes on from.

        `data` is a hash, and `others` are further options by their names on the command line.
        """
        of_learners = {}
        for name, own in (self.options or {}).items():
            kinds = {f.name: f.metadata.get("file") for f in fields(self.learner(name))}  # type: ignore[arg-type]
            for key, value in own.items():
                if kinds.get(key) != "output":
                    of_learners[f"--set {name}.{key}"] = value
                if kinds.get(key) == "input":
                    with suppress(OSError, TypeError):  # the learner says what is wrong
                        content = Path(value).read_bytes()
                        of_learners[f"the file of {name}.{key}"] = hashlib.sha256(content).hexdigest()
        return {
            "data": data,
            "score": dict(self.score or {}),
            "options": {
                "--learners": list(self.names),
                "--seed": self.control.random_state,
                "--time-limit": self.control.time_limit,
                "--parameters": self.control.parameters,
                "--positive": self.positive,
                **({"--raw": True} if self.raw else {}),
                **of_learners,
                **others,
            },
        }


def _silent(line: str) -> None:
    """Report nothing."""
