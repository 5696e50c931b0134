"""Delta debugging: make a failing case small while it still fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from campaign.case import Case

#: Numbers that are tried instead of a drawn one.
PLAIN = (1.0, 0.5, 2.0, 10.0, 0.1)


def shrink(case: Case, fails: Callable[[Case], bool], seconds: float = 60.0) -> Case:
    """Return a failing case such that no simpler case that was tried fails; or the simplest one when the time is over.

    Parameters
    ----------
    case : Case
        One that fails.
    fails : callable
        Whether a case fails in the same way; what it raises counts as no.
    seconds : float
        When to stop.
    """
    end = time.monotonic() + seconds

    def still(other: Case) -> bool:
        try:
            return time.monotonic() < end and fails(other)
        except Exception:
            return False

    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for step in (_switches, _constraints, _rows, _features, _states, _scores, _weights):
            again = True
            while again and time.monotonic() < end:
                again = False
                for other in step(case):
                    if other != case and still(other):
                        case, changed, again = other, True, True
                        break
    return case


def _switches(case: Case) -> Iterator[Case]:
    """Remove options, and set unusual values to usual ones."""
    plain: dict[str, Any] = {
        "certificate": False,
        "start": None,
        "target_first": False,
        "missing": "drop",
        "declared": False,
        "copies": [],
        "way": "command",
    }
    for name, value in plain.items():
        yield case.but(**{name: value})
    if case.copies:
        for divisor in (1000, 10, 2):
            yield case.but(copies=[max(1, count // divisor) for count in case.copies])
    for key in case.options:
        yield case.but(options=_without(case.options, key))
    if case.options.get("threads", 1) > 1:
        yield case.but(options={**case.options, "threads": 1})
    if case.start is not None:
        for name, parents in case.start.items():
            for parent in parents:
                fewer = [p for p in parents if p != parent]
                yield case.but(start={**case.start, name: fewer})


def _constraints(case: Case) -> Iterator[Case]:
    for key, value in case.constraints.items():
        yield case.but(constraints=_without(case.constraints, key))
        if isinstance(value, int):
            yield case.but(constraints={**case.constraints, key: value + 1})
            continue
        for item in value:
            if isinstance(value, dict):
                fewer: Any = _without(value, item)
            elif key == "tiers":
                continue
            else:
                fewer = [other for other in value if other != item]
            yield case.but(constraints={**case.constraints, key: fewer})


def _rows(case: Case) -> Iterator[Case]:
    """Leave out a half, a quarter, ..., one row."""
    count = len(case.rows)
    size = count // 2
    while size >= 1:
        for first in range(0, count, size):
            keep = [k for k in range(count) if not first <= k < first + size]
            if keep:
                yield _take(case, keep)
        size //= 2


def _take(case: Case, keep: list[int]) -> Case:
    return case.but(
        rows=[case.rows[k] for k in keep],
        weights=[case.weights[k] for k in keep],
        copies=[case.copies[k] for k in keep] if case.copies else [],
    )


def _features(case: Case) -> Iterator[Case]:
    for i, name in enumerate(case.names[:-1]):
        if len(case.names) == 2:
            return
        rules = {key: _unnamed(value, name) for key, value in case.constraints.items()}
        start = None
        if case.start is not None:
            start = {n: [p for p in parents if p != name] for n, parents in case.start.items() if n != name}
        yield case.but(
            names=case.names[:i] + case.names[i + 1 :],
            labels=case.labels[:i] + case.labels[i + 1 :],
            rows=[row[:i] + row[i + 1 :] for row in case.rows],
            constraints={key: value for key, value in rules.items() if value or key == "max_features"},
            start=start,
        )


def _unnamed(value: Any, name: str) -> Any:
    """Return the part of a constraint that does not mention a variable."""
    if isinstance(value, int):
        return value
    if isinstance(value, dict):
        return {
            k: [p for p in v if p != name] if isinstance(v, list) else v
            for k, v in value.items()
            if k != name
        }
    if value and all(isinstance(part, list) and part and name not in part for part in value):
        return value
    tiers = [[n for n in part if n != name] for part in value if isinstance(part, list)]
    return [part for part in tiers if len(part) >= 2] if value and len(value[0]) != 3 else []


def _states(case: Case) -> Iterator[Case]:
    """Leave out states that no row has, and make two states one."""
    for i, labels in enumerate(case.labels):
        used = sorted({row[i] for row in case.rows} - {-1})
        if len(used) < len(labels):
            place = {code: k for k, code in enumerate(used)} | {-1: -1}
            yield _relabelled(case, i, [labels[k] for k in used], place)
            continue
        for code in range(1, len(labels)):
            place = {k: 0 if k == code else k - (k > code) for k in range(-1, len(labels))}
            yield _relabelled(case, i, labels[:code] + labels[code + 1 :], place)


def _relabelled(case: Case, i: int, labels: list[str], place: dict[int, int]) -> Case:
    rows = [[*row[:i], place[row[i]], *row[i + 1 :]] for row in case.rows]
    return case.but(labels=[*case.labels[:i], labels, *case.labels[i + 1 :]], rows=rows)


def _scores(case: Case) -> Iterator[Case]:
    """Leave out options of the score; fewer parents, and no class parents, are simpler than the defaults."""
    for key, value in case.score.items():
        if key in ("name", "max_parents", "class_parents"):
            continue
        yield case.but(score=_without(case.score, key))
        if isinstance(value, float) and value not in PLAIN:
            for other in (*PLAIN, float(f"{value:.1g}")):
                yield case.but(score={**case.score, key: other})
    if case.score.get("max_parents", 2) > 1:
        yield case.but(score={**case.score, "max_parents": case.score.get("max_parents", 2) - 1})
    if case.score.get("class_parents", True):
        yield case.but(score={**case.score, "class_parents": False})


def _weights(case: Case) -> Iterator[Case]:
    if set(case.weights) != {1.0}:
        yield case.but(weights=[1.0] * len(case.rows))
    for k, weight in enumerate(case.weights):
        for other in (1.0, float(f"{weight:.1g}"), float(f"{weight:.2g}")):
            if len(f"{other:.17g}".rstrip("0")) < len(f"{weight:.17g}".rstrip("0")) or other == 1.0 != weight:
                yield case.but(weights=[*case.weights[:k], other, *case.weights[k + 1 :]])


def _without(values: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k != key}
