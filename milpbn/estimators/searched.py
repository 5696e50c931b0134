"""What the estimators with a search share: the smallest model where there is no time for it, and its figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from milpbn.claims.reasons import Limit
from milpbn.claims.result import NotSavedError, Reason, Result
from milpbn.errors import InputError, NoIncumbentError, warn
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.smallest import smallest_model
from milpbn.util import interrupts


def found_or_smallest(
    model: Any, search: Callable[[], Result], question: Question, options: Options, began: float
) -> Result:
    """Return the result of a search, or of the smallest model if there is no time for it.

    `question` is what the smallest model answers; seconds count from `began`, a `time.monotonic` value.
    """
    result = None
    # No search with a limit of 0, which `Options` would refuse; it has checked all others.
    if options.time_limit is not None or model.time_limit is None:
        try:
            result = search()
        except NoIncumbentError:
            result = None
    if result is not None and result.reason is Reason.INFEASIBLE:
        raise InputError("No structure obeys the constraints; relax one of them.")
    if result is None or result.structure is None:
        limit = Limit.TIME if result is None else result.limit or Limit.TIME
        asked = question.data, question.score, options
        result = smallest_model(*asked, constraints=question.constraints, started=began, limit=limit)
    return result


def finished(search: Callable[[], Result]) -> tuple[Result, NotSavedError | None]:
    """Return the result of a search that Ctrl-C stops, and the error if a file could not be written at its end."""
    try:
        with interrupts.handled():
            return search(), None
    except NotSavedError as error:
        return error.result, error


def figures_of(result: Result) -> dict[str, Any]:
    """Return the fitted attributes that say how good a structure is, by name."""
    stop = result.reason if result.limit is None else result.limit
    return {
        "objective_": _number(result.objective),
        "bound_": _number(result.bound),
        "gap_": _number(result.gap.absolute),
        "optimal_": result.optimal,
        "stop_reason_": str(stop),
        "trace_": np.array(result.trace, dtype=np.float64).reshape(-1, 3),
        "result_": result,
    }


def warn_of_gap(result: Result) -> None:
    """Warn if the search ended before a proof and the gap that was asked for."""
    searched = result.searched
    if searched.optimal or result.limit in (Limit.GAP, Limit.GAP_SE):
        return
    if result.limit is None and result.parameters is not None and result.parameters.additive is not None:
        return  # the search is complete, but held-out rows prefer another structure
    gap = result.searched.gap
    known = "no bound is known"
    if gap.absolute is not None:
        relative = gap.relative_to_bound
        share = "" if relative is None else f" ({100 * relative:.3g} % of the bound)"
        known = f"the gap is at most {gap.absolute:.6g} nats{share}"
    how = "ended within the solver's tolerances" if result.limit is None else result.limit.words
    warn(
        f"The search {how} before it proved the structure best; {known}. Allow more time with time_limit, or "
        "accept a gap with gap_rel, gap_abs or gap_se.",
        ConvergenceWarning,
    )


def _number(value: float | None) -> float:
    """Return a number, NaN if it is unknown."""
    return math.nan if value is None else float(value)
