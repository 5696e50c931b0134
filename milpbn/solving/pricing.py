"""What rules cost: the best scores with and without a constraint, each with its bound."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

from milpbn.claims.reasons import Limit
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError, NoIncumbentError
from milpbn.problem.class_free import adapted
from milpbn.problem.conflicts import resolve
from milpbn.problem.constraints import JSON_FORMS, Constraints
from milpbn.problem.gate import objection
from milpbn.problem.scores.spec import Score
from milpbn.problem.structures import FOREST, TAN, structured
from milpbn.solving.api import solve, training_data
from milpbn.solving.options import OptionKeywords, takes_options
from milpbn.util import interrupts
from milpbn.util.atomic import atomic_write_text
from milpbn.util.jsonable import dump_json
from milpbn.util.printing import aligned

#: A constraint beside those of a result, or the name of a structure (`milpbn.problem.structures`).
Rule = Constraints | str
#: The constraints that have prices; a weight of an arc belongs to the score.
KINDS = tuple(key for key in JSON_FORMS if key != "arc_weights")
HEADS = ("rule", "without", "bound", "with", "bound", "price", "between", "and", "per row")


@dataclass(frozen=True)
class Best:
    """The best score known, and a bound on all scores, in nats; None where there is none."""

    objective: float | None
    bound: float | None

    def within(self, low: float | None, high: float | None) -> Best:
        """Return the same where a structure with the score `low` is allowed, too, and no score exceeds `high`."""
        known = [x for x in (self.objective, low) if x is not None]
        above = [x for x in (self.bound, high) if x is not None]
        return Best(max(known, default=None), min(above, default=None))


@dataclass(frozen=True)
class Price:
    """What a rule costs, in nats: the `price` is the best score without it less that `having` it.

    The difference of the two optima lies between `low` and `high`, by the bounds, and `per_row` is the price divided by
    the weight of the rows. Numbers that need a missing one are None.
    """

    rule: str
    without: Best
    having: Best
    price: float | None
    low: float
    high: float | None
    per_row: float | None

    @classmethod
    def of(cls, rule: str, without: Best, having: Best, weight: float) -> Price:
        """Return the price of a rule; structures that obey it are allowed without it, too."""
        without, having = without.within(having.objective, None), having.within(None, without.bound)
        price, low, high = None, 0.0, None
        if without.objective is not None and having.bound is not None:
            low = max(0.0, without.objective - having.bound)
        if without.objective is not None and having.objective is not None:
            price = without.objective - having.objective
            high = None if without.bound is None else max(price, without.bound - having.objective)
        return cls(rule, without, having, price, low, high, None if price is None else price / weight)


@dataclass(frozen=True)
class Prices:
    """The prices of rules; its text is a table. `missing` are rules that a limit or the user left without a search."""

    data: str
    score: str
    prices: tuple[Price, ...]
    missing: tuple[str, ...]
    seconds: float

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the prices as JSON, with the names of the attributes."""
        atomic_write_text(path, dump_json(asdict(self)))

    def __str__(self) -> str:
        rows: list[Sequence[str]] = [HEADS]
        for p in self.prices:
            best = (p.without.objective, p.without.bound, p.having.objective, p.having.bound)
            numbers = (*best, p.price, p.low, p.high, p.per_row)
            rows.append((p.rule, *("-" if x is None else f"{x:.4f}" for x in numbers)))
        lines = [f"data       {self.data}", f"score      {self.score}; nats", "", *aligned(rows, left=1)]
        return "\n".join([*lines, *(f"not searched: {rule}" for rule in self.missing)])


@takes_options
def price(
    result: Result,
    data: Any,
    rules: Mapping[str, Rule] | None = None,
    *,
    report: Callable[[str], None] = lambda line: None,
    **options: Unpack[OptionKeywords],
) -> Prices:
    """Return what rules cost: the best score without a rule less the best score with it, and an interval by the bounds.

    The searches start from the structure of the result and share the time limit: each gets its part of what is left.
    Ctrl-C keeps what is done.

    Parameters
    ----------
    result : Result
        A result over all samples and parent sets of the data.
    data : Dataset, Table, or anything `read_table` reads
        The training data of that run.
    rules : mapping of str to Constraints or str, optional
        Rules that are added to the constraints of the result, by the words that name them: constraints, or the name of
        a structure (`milpbn.problem.structures.structured`). By default each constraint of the result is a rule, the
        best structure without which is searched, and all together. Weights of arcs belong to the score.
    report : callable
        Called with a line before every search.
    **options
        How to search; see `milpbn.solving.options.Options`.

    Raises
    ------
    InputError
        If the result is of other data or of a part of the problem, a rule is none, excludes all structures with the
        other constraints, or there is no rule.

    Examples
    --------
    >>> import milpbn
    >>> result = milpbn.solve("corral", milpbn.Score(p=0.9))
    >>> found = milpbn.price(result, "corral", {"few": milpbn.Constraints(max_features=3)})
    >>> found.prices[0].price > 0
    True
    """
    began, dataset = time.monotonic(), training_data(data)
    if result.subset is not None or result.screened is not None:
        raise InputError(
            "Prices need a result over all samples and parent sets; solve without --subset and --screen."
        )
    if dataset.sha256 != result.data.sha256:
        raise result.data.refusal(result.request)
    for name in ("certificate", "checkpoint", "trace", "log"):
        if options.get(name) is not None:
            raise InputError(f"Several searches cannot write to one file; leave out {name}.")
    output = options.pop("output", None)
    if rules is None:
        asked = {text: (result.score, rest) for text, rest in _removed(result.constraints).items()}
    else:
        asked = {text: _added(text, rule, dataset, result) for text, rule in rules.items()}
    if not asked:
        raise InputError("The result has no constraints; name rules (--rule), such as max-features=5.")
    searches = asked if result.optimal else {"": (result.score, result.constraints), **asked}
    found: dict[str, Best] = {}

    def made() -> Prices:
        base = found.get("", Best(None, None)).within(result.objective, result.bound)
        if rules is not None:  # what obeys one more rule is allowed here, too
            for best in found.values():
                base = base.within(best.objective, None)
        missing = tuple(text for text in asked if text not in found)
        pairs = ((text, base, found[text]) for text in asked if text in found)
        in_order = (pair if rules is not None else (pair[0], pair[2], pair[1]) for pair in pairs)
        prices = tuple(Price.of(*pair, dataset.total_weight) for pair in in_order)
        return Prices(dataset.name, result.described_score, prices, missing, time.monotonic() - began)

    with interrupts.deferred():
        for text, best in _searches(result, dataset, searches, began, report, dict(options)):
            found[text] = best
            if output is not None:
                made().save(output)
    return made()


def _searches(
    result: Result,
    data: Dataset,
    searches: Mapping[str, tuple[Score, Constraints]],
    began: float,
    report: Callable[[str], None],
    options: dict[str, Any],
) -> Iterator[tuple[str, Best]]:
    """Search one after the other, from the structure of a result where it is allowed, until the time is used up."""
    total, start = options.pop("time_limit", None), result.structure
    for number, (text, (score, constraints)) in enumerate(searches.items()):
        left = None if total is None else began + total - time.monotonic()
        if interrupts.requested() or (left is not None and left <= 0):
            return
        report(f"{number + 1} of {len(searches)}: {text or 'the result itself'}")
        usable = start is not None and not objection(start, score, constraints, any_class_free=True)
        options["start"] = start if usable else None
        options["time_limit"] = None if left is None else left / (len(searches) - number)
        try:
            found = solve(data, score, constraints=constraints, **options)
        except NoIncumbentError:
            yield text, Best(None, None)
            continue
        yield text, Best(found.objective, found.bound)
        if found.limit is Limit.USER:
            return


def _added(text: str, rule: Rule, data: Dataset, result: Result) -> tuple[Score, Constraints]:
    """Return score and constraints of a result with a rule more; InputError if that leaves no structure."""
    base, score = result.constraints, result.score
    try:
        if isinstance(rule, str):
            if rule in (TAN, FOREST) and score.max_parents > 2:
                score = replace(score, max_parents=2)
            found = structured(rule, data, score, base)
        else:
            found = _joined(base, rule)
        own, constraints = adapted(data, score, found)
        resolve(constraints, data.names, own)
    except InputError as error:
        raise InputError(f"The rule {text!r}: {error}") from None
    return score, found


def _joined(base: Constraints, rule: Constraints) -> Constraints:
    """Return the constraints of both; InputError if both have one of the same variable, or tiers."""
    changes: dict[str, Any] = {}
    for key in JSON_FORMS:
        more, own = getattr(rule, key), getattr(base, key)
        if key == "max_features":
            changes[key] = min((n for n in (more, own) if n is not None), default=None)
        elif key == "arc_weights" and more:
            raise InputError("a weight of an arc changes the score, and has no price.")
        elif isinstance(own, Mapping):
            if same := {*more} & {*own}:
                raise InputError(f"the result has a constraint of this kind on {min(same)!r} already.")
            changes[key] = {**own, **more}
        elif key == "tiers" and more and own:
            raise InputError("the result has tiers already.")
        else:
            changes[key] = tuple(dict.fromkeys((*own, *more)))
    return replace(base, **changes)


def _removed(base: Constraints) -> dict[str, Constraints]:
    """Return the constraints without each one of them, and without all, by what was left out."""
    found: dict[str, Constraints] = {}
    for key in KINDS:
        own = getattr(base, key)
        parts: dict[str, Any] = {}
        if key == "max_features":
            parts = {} if own is None else {str(own): None}
        elif key == "tiers":
            parts = {_words(own): ()} if own else {}
        elif isinstance(own, Mapping):
            parts = {_words((k, v)): {i: x for i, x in own.items() if i != k} for k, v in own.items()}
        else:
            parts = {_words(item): tuple(x for x in own if x != item) for item in own}
        for item, rest in parts.items():
            found[f"{key.replace('_', ' ')}: {item}"] = replace(base, **{key: rest})
    if len(found) > 1:
        found["all of these"] = Constraints(arc_weights=base.arc_weights)
    return found


def _words(item: Any) -> str:
    """Return a constraint in words: names, and groups of names in parentheses."""
    if isinstance(item, tuple | list):
        return ", ".join(f"({_words(x)})" if isinstance(x, tuple | list) else str(x) for x in item)
    return str(item)
