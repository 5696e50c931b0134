"""Averages the networks of the best settings of a selection: chooses the settings, and searches with each of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from milpbn.claims.parts import Average
from milpbn.claims.reasons import Limit
from milpbn.claims.result import Result
from milpbn.errors import MilpbnError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import Classifier
from milpbn.solving.progress import wants_progress
from milpbn.solving.tally import Tally
from milpbn.solving.trials import Choosing
from milpbn.util import interrupts
from milpbn.util.progress_line import LINE

#: Seconds for each network after the first, if there is no time limit. As in a trial, no result states its bound.
NETWORK_SECONDS = 60.0
#: Seconds below which a search is not begun.
LEAST_SECONDS = 0.05


def to_average(ranked: Sequence[Tally], most: int) -> list[Tally]:
    """Return the settings whose networks are averaged, the best first.

    Settings that differ in nothing but the parameters would give the same structure, and count once. Those that were
    tried on fewer splits than the best fell behind, and do not count.
    """
    different: dict[tuple[Any, ...], Tally] = {}
    for one in ranked:
        if one.splits == ranked[0].splits:
            setting = one.setting
            different.setdefault((setting.score, setting.discretisation, setting.missing), one)
    return list(different.values())[:most]


def averaged(result: Result, settings: Sequence[Tally], choosing: Choosing, *, interrupted: bool) -> Result:
    """Search with the settings after the first, and return the result with the average of all networks.

    The result is otherwise that of the first setting. The other searches start from the structures of their trials;
    each has an equal share of the time that is left.
    """
    if not isinstance(result.classifier, Classifier):
        return result
    options, asked, deadline = choosing.options, choosing.grid.average, choosing.budget.deadline
    began = time.monotonic()
    members, failures, late = [result.classifier], [], False
    stopped = interrupted or result.limit is Limit.USER
    asks = options.interrupted or (lambda: False)
    with interrupts.deferred():
        for number, tally in enumerate(settings[1:], start=2):
            now = time.monotonic()
            left = NETWORK_SECONDS if deadline is None else (deadline - now) / (len(settings) + 1 - number)
            stopped, late = stopped or interrupts.requested() or asks(), left < LEAST_SECONDS
            if stopped or late:
                break
            if wants_progress(options.verbose):
                LINE.keep(f"average: network {number} of {len(settings)}: {tally.setting.describe()}")
            quiet = choosing.quiet(time_limit=left, start=tally.incumbent)
            try:
                found = choosing.search(tally, quiet, started=now)
            except MilpbnError as error:  # the first network is the result, whatever becomes of the others
                failures.append(str(error).rstrip("."))
            except MemoryError:
                failures.append("the machine ran out of memory")
            except KeyboardInterrupt:
                stopped = True
            else:
                # A network whose search the user has cut short is left out.
                stopped = found.limit is Limit.USER or interrupts.requested() or asks()
                if not stopped and isinstance(found.classifier, Classifier):
                    members.append(found.classifier)
                elif not stopped:
                    failures.append("no structure was found for one of the others")
    note = "; ".join(dict.fromkeys(failures)) or (
        "no more settings differ in score or cuts and were compared on all splits"
    )
    if stopped or late:
        note = "the run was interrupted" if stopped else "the time limit came before the others"
    seconds = time.monotonic() - began
    told = Average(
        asked=asked,
        networks=len(members),
        interrupted=stopped and len(members) < asked,
        note=note if len(members) < asked else "",
    )
    times = result.seconds
    return replace(
        result,
        classifier=members[0] if len(members) == 1 else AveragedClassifier(tuple(members)),
        average=told,
        seconds=replace(times, total=times.total + seconds, average=times.average + seconds),
    )


def later(result: Result, seconds: float) -> Result:
    """Return a result whose times count from so many seconds earlier, for work before its search began."""
    times = result.seconds
    return replace(
        result,
        seconds=replace(times, total=times.total + seconds, coefficients=times.coefficients + seconds),
        trace=tuple((t + seconds, objective, bound) for t, objective, bound in result.trace),
    )
