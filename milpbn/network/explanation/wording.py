"""Numbers and conditions in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from milpbn.data.dataset import Variable
from milpbn.data.labels import cuts_of_labels
from milpbn.util.plurals import counted

#: The state of missing values in words.
MISSING_SHOWN = "(missing)"
#: Begins every explanation of an average of networks.
OF_AN_AVERAGE = (
    "The probabilities are the mean of {count} networks' probabilities. Such a mean is no sum over families, so each "
    "network is explained by itself."
)


def nats(value: float) -> str:
    """Return a signed number of nats with three decimals: ``0``, ``+1.234``, ``-inf``."""
    if value == 0:
        return "0"
    return f"{value:+.3f}" if abs(value) < 1e6 else f"{value:+.3g}"


def factor(log_ratio: float) -> str:
    """Return exp(log_ratio), the factor of the odds, in three digits."""
    if abs(log_ratio) == math.inf:
        return "infinite" if log_ratio > 0 else "0"
    if abs(log_ratio) > 700:
        return f"1e{log_ratio / math.log(10):+.0f}"
    return f"{math.exp(log_ratio):.3g}"


def base_rate_of(target: str) -> str:
    """Return what the classes' own probabilities are called, which say nothing of any feature."""
    return f"base rate of {target}, before any feature"


def shown_states(variable: Variable) -> tuple[str, ...]:
    """Return the labels of a variable's states in words; an interval without a cut only says that there is a number."""
    states = ("(any number)", *variable.states[1:]) if variable.cuts == () else variable.states
    return (*states[:-1], MISSING_SHOWN) if variable.missing_state else states


def cuts_between(states: Sequence[str]) -> tuple[float, ...] | None:
    """Return the cuts between shown states that are intervals, beside a state of missing values; None for others."""
    return cuts_of_labels(states[:-1] if states[-1:] == (MISSING_SHOWN,) else states)


def joined(conditions: Iterable[tuple[str, str]]) -> str:
    """Return names and values as ``a = x and b = u``; of an empty value only the name."""
    return " and ".join(f"{name} = {value}" if value else name for name, value in conditions)


def more(left: int, what: str) -> list[str]:
    """Return a line that says how many things are not shown, if there are any."""
    return [f"... {counted(left, f'more {what}')}"] if left > 0 else []


def bar(value: float, largest: float, width: int) -> str:
    """Return a bar that is as long as a value is large: ``+`` or ``-`` signs, at most `width` of them, padded."""
    share = 1.0 if not math.isfinite(value) else abs(value) / largest if largest else 0.0
    return (("+" if value > 0 else "-") * round(width * share)).ljust(width)


def of_members(first: Iterable[str], members: Sequence[Any], shown: int) -> str:
    """Return the text of an average: some lines, and below them what every network says of itself."""
    lines = [*first, OF_AN_AVERAGE.format(count=len(members))]
    for number, member in enumerate(members, start=1):
        lines += [f"network {number}", member.to_text(shown)]
    return "\n".join(lines)
