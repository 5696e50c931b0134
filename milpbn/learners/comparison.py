"""Exact structures and other learners on one split, side by side: accuracy, score, gap and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError, MilpbnError
from milpbn.learners.appraisal import suboptimality
from milpbn.learners.base import Control, Predictor, require_used
from milpbn.learners.closed_form import check_data
from milpbn.learners.registry import LEARNERS, get_learner
from milpbn.network.evaluation import accuracy
from milpbn.result import Gap, Result
from milpbn.scores.spec import MARGIN_SCORES, Score

#: What is compared unless somebody names other learners.
DEFAULT = ("sm", "sbm", "differentiable-tan", "tan", "naive-bayes")
#: Attributes of `Score` that some scores only have, and which those are.
OF_SOME = {"p": ("sm", "sbm"), "gamma": ("sm", "sbm")}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One learner's figures.

    Attributes
    ----------
    name : str
        A score (its exact structure), or a learner.
    test, training : float or None
        Share of correctly classified weight.
    arcs : int or None
        Arcs of the structure; None for a model that is no acyclic graph.
    score : float or None
        The structure's score in nats under the reference's score, with Laplace-smoothed ML parameters.
    gap, relative_gap : float or None
        Distance of that to the reference's bound, in nats and relative to the bound.
    seconds : float
        Wall-clock time of learning.
    stopped_early : bool
        The time limit ended a learner before its method did; an exact search says so by its gap.
    note : str
        Why something is missing.
    options : mapping
        The learner's options that are not its defaults.
    details : mapping
        What the learner has to say of its run (`Learned.details`); of an exact search, its score, bound and status.
    """

    name: str
    test: float | None = None
    training: float | None = None
    arcs: int | None = None
    score: float | None = None
    gap: float | None = None
    relative_gap: float | None = None
    seconds: float = 0.0
    stopped_early: bool = False
    note: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return asdict(self)


def check_names(names: Sequence[str], options: Mapping[str, Mapping[str, Any]] | None = None) -> None:
    """Refuse what is neither a score of the margins nor a learner, and options of what is not compared.

    Raises
    ------
    InputError
        Naming what there is, or the option that is out of range or changes nothing.
    """
    for name in names:
        if name not in MARGIN_SCORES and name not in LEARNERS:
            raise InputError(
                f"There is nothing called {name!r} to compare; choose scores ({', '.join(MARGIN_SCORES)}) and learners "
                f"({', '.join(LEARNERS)})."
            )
    learners = [name for name in names if name in LEARNERS]
    for name in options or {}:
        if name not in learners:
            raise InputError(
                f"There are options for {name!r}, which is none of the learners to compare ({', '.join(learners)})."
            )
    for name in learners:
        own = (options or {}).get(name, {})
        known = [f.name for f in fields(get_learner(name)) if f.init]  # type: ignore[arg-type]  # a dataclass
        for key in own:
            if key not in known:
                raise InputError(f"The learner {name} has no option {key!r}; it has {', '.join(known)}.")
        learner = get_learner(name)(**own)
        learner.check()
        require_used(learner, own)


def exact_scores(names: Sequence[str], attributes: Mapping[str, Any]) -> dict[str, Score]:
    """Return the scores among some names, each with those of the attributes that it has.

    Raises
    ------
    InputError
        If an attribute is out of range, or none of the scores has it.
    """
    exact = [name for name in names if name in MARGIN_SCORES]
    for key, those in OF_SOME.items():
        if key in attributes and not set(those) & set(exact):
            raise InputError(
                f"{key} belongs to the scores {' and '.join(those)}, and neither is compared; leave it out."
            )
    return {
        name: Score(
            name=name,
            **{key: value for key, value in attributes.items() if name in OF_SOME.get(key, MARGIN_SCORES)},
        )
        for name in exact
    }


def reference_row(rows: Sequence[Row]) -> Row | None:
    """Return the row of the exact search that scores and gaps are of; None if none had a bound."""
    return next(
        (row for row in rows if row.name in MARGIN_SCORES and row.details.get("bound") is not None), None
    )


def compare(
    train: Dataset,
    test: Dataset | None,
    names: Sequence[str] = DEFAULT,
    *,
    score: Mapping[str, Any] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    control: Control = Control(),
) -> Iterator[Row]:
    """Learn with one method after the other, and yield its figures as soon as they are there.

    The exact searches come first. The first of them that has a bound is the reference: all scores are its own, and
    the gaps are to its bound (`reference_row` says which it was).

    Parameters
    ----------
    train : Dataset
        Training data.
    test : Dataset or None
        Held-out rows, encoded with the training data's variables.
    names : sequence of str
        Scores, solved exactly, and learners.
    score : mapping, optional
        Attributes of `Score` for the exact searches, but for its name; see `exact_scores`.
    options : mapping of mappings, optional
        By learner, its options where they are not to be its defaults.
    control : Control
        Seed, threads and reports; the time limit is each method's own.

    Raises
    ------
    InputError
        As `check_names`; what one method refuses, or fails at, becomes the note of its row.
    """
    check_names(names, options)
    for own in (options or {}).values():
        if own.get("smoothing") is not None:
            check_data(train, own["smoothing"])
    exact = exact_scores(names, score or {})
    reference: tuple[str, Result] | None = None
    for name in [*exact, *(name for name in names if name not in exact)]:
        if control.interrupted():
            return
        control.report(f"learning {name}")
        begun = time.monotonic()
        own = (options or {}).get(name, {})
        try:
            if name in exact:
                result = _solve(train, exact[name], control)
                if reference is None and result.bound is not None:
                    reference = name, result
                predictor: Predictor | None = result.classifier  # None: nothing was found in time
                structure, stopped = result.structure, False
                values = result.to_dict()
                details = {key: values[key] for key in ("score", "objective", "bound", "status")}
            else:
                learned = get_learner(name)(**own).fit(train, control)
                predictor, structure, details = learned.predictor, learned.structure, dict(learned.details)
                stopped = bool(details.get("stopped_early"))
        except Exception as error:
            note = str(error)
            if not isinstance(error, MilpbnError):
                note = f"failed unexpectedly ({type(error).__name__}: {error})"
            yield Row(name=name, seconds=time.monotonic() - begun, note=note, options=own)
            continue
        seconds = time.monotonic() - begun
        if predictor is None:
            yield Row(
                name=name, seconds=seconds, note="nothing was found in time", options=own, details=details
            )
            continue
        value, gap, notes = None, Gap(None, None, None), ["stopped by the time limit"] if stopped else []
        if structure is None:
            notes.append("no acyclic graph over the variables, so no score")
        elif reference is not None:
            found = suboptimality(train, structure, reference[1], f"of {reference[0]}")
            value, gap = found.score, found.gap or gap
            notes += [found.reason] if found.reason else []
        yield Row(
            name=name,
            test=None if test is None else accuracy(predictor, test),
            training=accuracy(predictor, train),
            arcs=None if structure is None else len(structure.arcs),
            score=value,
            gap=gap.absolute,
            relative_gap=gap.relative_to_bound,
            seconds=seconds,
            stopped_early=stopped,
            note="; ".join(notes),
            options=own,
            details=details,
        )


def _solve(train: Dataset, score: Score, control: Control) -> Result:
    from milpbn.solving import solve  # whose first incumbent is one of these learners' structures

    return solve(
        train,
        score,
        time_limit=control.time_limit,
        threads=control.n_jobs,
        random_state=control.random_state,
        verbose=False,
    )


def show(rows: Sequence[Row], show_gap: Callable[[float | None], str]) -> str:
    """Return a table for people, and under it what the gaps are to, and the notes."""
    head: tuple[str, ...] = ("", "test %", "training %", "arcs", "score", "gap", "of bound", "seconds")
    lines = [head]
    for row in rows:
        shares = ["-" if s is None else f"{100 * s:.2f}" for s in (row.test, row.training)]
        lines.append(
            (
                row.name,
                *shares,
                "-" if row.arcs is None else str(row.arcs),
                "-" if row.score is None else f"{row.score:.4f}",
                "-" if row.gap is None else f"{row.gap:.4f}",
                show_gap(row.relative_gap),
                f"{row.seconds:.1f}",
            )
        )
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    out = [
        "  ".join(
            [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    ]
    solved = reference_row(rows)
    if solved is None:
        why = "no exact search came to a bound"
        if not any(row.name in MARGIN_SCORES for row in rows):
            why = f"they need an exact search; name a score ({', '.join(MARGIN_SCORES)}) among the learners"
        out.append(f"no score and no gap: {why}")
    else:
        score = solved.details["score"]
        own = [
            f"{key} {score[key]:g}" for key in ("gamma", "max_parents", "smoothing") if score[key] is not None
        ]
        own.append("class parents" if score["class_parents"] else "no class parents")
        out.append(
            f"score and gap in nats: {solved.name}, {', '.join(own)}; bound {solved.details['bound']:.4f}"
        )
    notes = [f"{row.name}: {row.note}" for row in rows if row.note]
    return "\n".join([*out, *notes])
