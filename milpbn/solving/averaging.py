"""Averages the networks of the best settings of a selection: chooses the settings, and searches with each of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from milpbn.claims.average import Average
from milpbn.claims.reasons import Limit
from milpbn.claims.result import Result
from milpbn.claims.selection import Trial
from milpbn.data import Dataset, Table
from milpbn.errors import MilpbnError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import Classifier
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import maximise
from milpbn.solving.grid import PARAMETERS, Setting
from milpbn.solving.options import Options
from milpbn.solving.progress import wants_progress
from milpbn.solving.question import Question
from milpbn.util import interrupts
from milpbn.util.progress_line import LINE

#: Seconds for each network after the first, if there is no time limit. As in a trial, no result states its bound.
NETWORK_SECONDS = 60.0
#: Seconds below which a search is not begun.
LEAST_SECONDS = 0.05


@dataclass(frozen=True)
class Ranked:
    """A setting with what its trials found.

    Attributes
    ----------
    setting : Setting
        The setting.
    trial : Trial
        Its results, and the parameters that it chose.
    incumbent : Structure or None
        The structure that its last split gave.
    """

    setting: Setting
    trial: Trial
    incumbent: Structure | None

    def applied(self, source: Table | Dataset, options: Options) -> tuple[Score, Table | Dataset, Options]:
        """Return the score, the data and the options of a search with this setting on all training rows."""
        if self.setting.discretisation is not None and isinstance(source, Table):
            source = replace(source, discretisation=self.setting.discretisation)
        if self.setting.missing == "drop" and isinstance(source, Table):
            source = source.of_complete_rows()
        options = replace(options, parameters=self.trial.options.get(PARAMETERS, options.parameters))
        return self.setting.score, source, options


def to_average(ranked: Sequence[Ranked], most: int) -> list[Ranked]:
    """Return the settings whose networks are averaged, the best first.

    Settings that differ in nothing but the parameters would give the same structure, and count once. Those that were
    tried on fewer splits than the best fell behind, and do not count.

    Parameters
    ----------
    ranked : sequence of Ranked
        All settings, the best first.
    most : int
        Largest number of settings.
    """
    different: dict[tuple[Any, ...], Ranked] = {}
    for one in ranked:
        if one.trial.splits == ranked[0].trial.splits:
            setting = one.setting
            different.setdefault((setting.score, setting.discretisation, setting.missing), one)
    return list(different.values())[:most]


def averaged(
    result: Result,
    settings: Sequence[Ranked],
    asked: int,
    source: Table | Dataset,
    options: Options,
    constraints: Constraints | None,
    *,
    subset: int | None,
    screen: int | None = None,
    deadline: float | None,
    interrupted: bool,
) -> Result:
    """Solve the settings after the first, and return the result with the average of all networks as its classifier.

    The result is otherwise that of the first setting. The other searches start from the structures of their trials;
    each has an equal share of the time that is left.

    Parameters
    ----------
    result : Result
        What the search with the first setting found.
    settings : sequence of Ranked
        What `to_average` returned.
    asked : int
        Number of networks that were asked for.
    source, options, constraints, subset, screen
        As for the search with the first setting, before its setting was applied.
    deadline : float or None
        `time.monotonic` value at which the run has to end.
    interrupted : bool
        Whether the user has stopped the run.
    """
    if not isinstance(result.classifier, Classifier):
        return result
    began = time.monotonic()
    members, failures, note = [result.classifier], [], ""
    quiet = replace(options, start=None, output=None, trace=None, certificate=None, log=None)
    quiet = replace(quiet, verbose=False, on_change=None, n_best=1, checkpoint=None, resume=False)
    stopped = interrupted or result.limit is Limit.USER
    asks = options.interrupted or (lambda: False)
    with interrupts.deferred():
        for number, ranked in enumerate(settings[1:], start=2):
            now = time.monotonic()
            left = NETWORK_SECONDS if deadline is None else (deadline - now) / (len(settings) + 1 - number)
            stopped = stopped or interrupts.requested() or asks()
            if stopped or left < LEAST_SECONDS:
                note = "the run was interrupted" if stopped else "the time limit came before the others"
                break
            if wants_progress(options.verbose):
                LINE.keep(f"average: network {number} of {len(settings)}: {ranked.setting.describe()}")
            score, data, own = ranked.applied(source, replace(quiet, time_limit=left, start=ranked.incumbent))
            try:
                question = Question.of(
                    data, score, constraints, subset=subset, screen=screen, random_state=own.random_state
                )
                found = maximise(question, own, started=now)
            except MilpbnError as error:  # the first network is the result, whatever becomes of the others
                failures.append(str(error).rstrip("."))
            except MemoryError:
                failures.append("the machine ran out of memory")
            except KeyboardInterrupt:
                stopped = True
            else:
                # A network whose search the user has cut short is left out.
                stopped = found.limit is Limit.USER or interrupts.requested() or asks()
                if stopped:
                    continue
                if isinstance(found.classifier, Classifier):
                    members.append(found.classifier)
                else:
                    failures.append("no structure was found for one of the others")
        if stopped and not note:
            note = "the run was interrupted"
    if len(members) < asked and not note:
        note = "; ".join(dict.fromkeys(failures)) or (
            "no more settings differ in score or cuts and were compared on all splits"
        )
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
