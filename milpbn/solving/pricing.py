"""What rules cost: the best scores with and without a constraint, each with its bound."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

from milpbn.claims.reasons import Limit
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError, NoIncumbentError
from milpbn.problem.class_free import adapted
from milpbn.problem.conflicts import resolve
from milpbn.problem.constraints import Constraints
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
#: What the items of each constraint are called; {} stands for the item.
TITLES = {
    "required": "required arc {}",
    "forbidden": "forbidden arc {}",
    "tiers": "tiers {}",
    "max_children": "limit of children {}",
    "max_features": "at most {} features",
    "fixed": "fixed parents {}",
    "allowed": "allowed parents {}",
    "ancestors": "path {}",
    "no_ancestors": "no path {}",
    "independences": "independence {}",
}


@dataclass(frozen=True)
class Best:
    """The best score known, and a bound on all, in nats; None if there is none."""

    objective: float | None
    bound: float | None
    optimal: bool

    def within(self, low: float | None, high: float | None) -> Best:
        """Return the same where a structure with the score `low` is allowed, too, and none exceeds `high`."""
        known = [x for x in (self.objective, low) if x is not None]
        above = [x for x in (self.bound, high) if x is not None]
        return Best(max(known, default=None), min(above, default=None), self.optimal)


@dataclass(frozen=True)
class Price:
    """What a rule costs: the best score without it less the best score with it, in nats.

    Attributes
    ----------
    rule : str
    without, having : Best
        The best structures without the rule and with it.
    price : float or None
        The difference of the two scores.
    low, high : float or None
        The difference of the two optima lies between these, by the bounds; None if one of them is missing.
    per_row : float or None
        The price divided by the sum of the weights of the rows.
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
        price = high = None
        if without.objective is not None and having.objective is not None:
            price = without.objective - having.objective
            high = None if without.bound is None else max(price, without.bound - having.objective)
        low = 0.0
        if without.objective is not None and having.bound is not None:
            low = max(0.0, without.objective - having.bound)
        return cls(rule, without, having, price, low, high, None if price is None else price / weight)


@dataclass(frozen=True)
class Prices:
    """The prices of some rules; its text is a table. `missing` are the rules that a limit or the user left out."""

    data: str
    score: str
    rows: float
    prices: tuple[Price, ...]
    missing: tuple[str, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-safe values."""
        return asdict(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the prices as JSON."""
        atomic_write_text(path, dump_json(self.to_dict()))

    def __str__(self) -> str:
        def show(value: float | None) -> str:
            return "-" if value is None else f"{value:.4f}"

        heads = ("rule", "without", "bound", "with", "bound", "price", "between", "and", "per row")
        rows = [heads]
        for p in self.prices:
            best = (p.without.objective, p.without.bound, p.having.objective, p.having.bound)
            rows.append((p.rule, *map(show, (*best, p.price, p.low, p.high, p.per_row))))
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
    _check(result, dataset)
    for name in ("certificate", "checkpoint", "trace", "log"):
        if options.get(name) is not None:
            raise InputError(f"Several searches cannot write to one file; leave out {name}.")
    output = options.pop("output", None)
    asked = _asked(rules, dataset, result)
    if not asked:
        raise InputError("The result has no constraints; name rules (--rule), such as max-features=5.")
    searches = asked if result.optimal else {"": (result.score, result.constraints), **asked}
    found: dict[str, Best] = {}
    made = _prices(result, dataset, asked, found, began, added=rules is not None)
    with interrupts.deferred():
        for text, best in _searches(result, dataset, searches, began, report, dict(options)):
            found[text] = best
            made = _prices(result, dataset, asked, found, began, added=rules is not None)
            if output is not None:
                made.save(output)
    return made


def _asked(
    rules: Mapping[str, Rule] | None, data: Dataset, result: Result
) -> dict[str, tuple[Score, Constraints]]:
    """Return score and constraints of the search for each rule; InputError for one that leaves no structure."""
    if rules is None:
        return {text: (result.score, rest) for text, rest in _removed(result.constraints).items()}
    asked = {}
    for text, rule in rules.items():
        try:
            asked[text] = _added(rule, data, result)
            score, constraints = adapted(data, *asked[text])
            resolve(constraints, data.names, score)
        except InputError as error:
            raise InputError(f"The rule {text!r}: {error}") from None
    return asked


def _searches(
    result: Result,
    data: Dataset,
    searches: Mapping[str, tuple[Score, Constraints]],
    began: float,
    report: Callable[[str], None],
    options: dict[str, Any],
) -> Iterator[tuple[str, Best]]:
    """Search one after the other, from the structure of a result where it is allowed, until the time is used up."""
    total = options.pop("time_limit", None)
    for number, (text, (score, constraints)) in enumerate(searches.items()):
        spent = time.monotonic() - began
        if interrupts.requested() or (total is not None and spent >= total):
            return
        report(f"{number + 1} of {len(searches)}: {text or 'the result itself'}")
        start = result.structure
        if start is not None and objection(start, score, constraints, any_class_free=True):
            start = None
        limit = None if total is None else (total - spent) / (len(searches) - number)
        own = {**options, "start": start, "time_limit": limit}
        try:
            found = solve(data, score, constraints=constraints, **own)
        except NoIncumbentError:
            yield text, Best(None, None, False)
            continue
        yield text, Best(found.objective, found.bound, found.optimal)
        if found.limit is Limit.USER:
            return


def _prices(
    result: Result,
    data: Dataset,
    asked: Mapping[str, object],
    found: Mapping[str, Best],
    began: float,
    *,
    added: bool,
) -> Prices:
    """Return the prices of the rules whose searches were made; `added` says whether the result lacks the rules."""
    base = Best(result.objective, result.bound, result.optimal)
    if (again := found.get("")) is not None:
        base = again.within(base.objective, base.bound)
    for best in found.values() if added else ():  # a structure that obeys a rule more is allowed without it
        base = base.within(best.objective, None)
    weight = data.total_weight
    done = {text: (base, found[text]) if added else (found[text], base) for text in asked if text in found}
    return Prices(
        data.name,
        result.described_score,
        weight,
        tuple(Price.of(text, *both, weight) for text, both in done.items()),
        tuple(text for text in asked if text not in found),
        time.monotonic() - began,
    )


def _check(result: Result, data: Dataset) -> None:
    """Raise InputError for a result of other data, or of a part of the problem."""
    if result.subset is not None or result.screened is not None:
        raise InputError(
            "Prices need a result over all samples and parent sets; solve without --subset and --screen."
        )
    if data.sha256 != result.data.sha256:
        raise result.data.refusal(result.request)


def _added(rule: Rule, data: Dataset, result: Result) -> tuple[Score, Constraints]:
    """Return score and constraints of a result with a rule beside its constraints."""
    base, score = result.constraints, result.score
    if isinstance(rule, str):
        if rule in (TAN, FOREST) and score.max_parents > 2:
            score = replace(score, max_parents=2)
        return score, structured(rule, data, score, base)
    changes: dict[str, Any] = {}
    for key in TITLES:
        more, own = getattr(rule, key), getattr(base, key)
        if key == "max_features":
            changes[key] = min((n for n in (more, own) if n is not None), default=None)
        elif isinstance(own, Mapping):
            if same := {*more} & {*own}:
                raise InputError(f"the result has a constraint of this kind on {min(same)!r} already.")
            changes[key] = {**own, **more}
        elif key == "tiers" and more and own:
            raise InputError("the result has tiers already.")
        else:
            changes[key] = tuple(dict.fromkeys((*own, *more)))
    if rule.arc_weights:
        raise InputError("a weight of an arc changes the score, and has no price.")
    return score, replace(base, **changes)


def _removed(base: Constraints) -> dict[str, Constraints]:
    """Return the constraints without each one of them, and without all, by what was left out."""
    found: dict[str, Constraints] = {}
    for key, title in TITLES.items():
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
            found[title.format(item)] = replace(base, **{key: rest})
    if len(found) > 1:
        found["all of these"] = Constraints(arc_weights=base.arc_weights)
    return found


def _words(item: Any) -> str:
    """Return a constraint in words: names, and groups of names in parentheses."""
    if isinstance(item, tuple | list):
        return ", ".join(f"({_words(x)})" if isinstance(x, tuple | list) else str(x) for x in item)
    return str(item)
