"""Progress lines, trace files, and the closing block."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from typing import IO

from milpbn.errors import InputError
from milpbn.result import Gap, Result, TracePoint

#: A progress line appears at every change, and at least every so many seconds.
HEARTBEAT = 5.0
HEADER = f"{'time':>9} {'nodes':>9} {'incumbent':>16} {'bound':>16} {'gap':>9}  source"


def wants_progress(verbose: bool | None) -> bool:
    """Return whether to show progress: as asked, else in a terminal or a notebook."""
    if verbose is not None:
        return verbose
    return "ipykernel" in sys.modules or sys.stderr.isatty()


def show_number(value: float | None, digits: int = 6) -> str:
    """Return a score for people: fixed digits, or a dash for an unknown one."""
    return "-" if value is None else f"{value:.{digits}f}"


def show_gap(value: float | None) -> str:
    """Return a relative gap in percent, or a dash."""
    if value is None:
        return "-"
    return "0 %" if value < 1e-10 else (f"{100 * value:.2g} %" if value < 1e-4 else f"{100 * value:.3f} %")


class Progress:
    """Prints ``time nodes incumbent bound gap source`` on every change and at least every five seconds."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream
        self._last: tuple[float | None, float | None] | None = None
        self._printed = 0.0
        self._header = False

    def line(
        self,
        seconds: float,
        nodes: int | None,
        objective: float | None,
        bound: float | None,
        gap: float | None,
        source: str,
    ) -> None:
        """Print a line if something changed or the last one is too old."""
        now = time.monotonic()
        state = (objective, bound)
        if state == self._last and now - self._printed < HEARTBEAT:
            return
        stream = self._stream or sys.stderr
        if not self._header:
            print(HEADER, file=stream)
            self._header = True
        shown = "-" if nodes is None else str(nodes)
        print(
            f"{seconds:8.1f}s {shown:>9} {show_number(objective):>16} {show_number(bound):>16} "
            f"{show_gap(gap):>9}  {source}",
            file=stream,
            flush=True,
        )
        self._last, self._printed = state, now


class TraceFile:
    """Any-time trace as JSON lines, written as it grows."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115  # open for the whole run
        except OSError as error:
            raise self._refusal(path, error) from None
        self._path = path
        self._written = 0

    def update(self, trace: Iterable[TracePoint]) -> None:
        """Append what is new.

        Raises
        ------
        InputError
            If the file can no longer be written.
        """
        points = list(trace)
        try:
            for seconds, objective, bound in points[self._written :]:
                line = {"seconds": round(seconds, 6), "incumbent": objective, "bound": bound}
                self._file.write(json.dumps(line) + "\n")
            self._written = len(points)
            self._file.flush()
        except OSError as error:
            raise self._refusal(self._path, error) from None

    def close(self) -> None:
        """Close the file; errors as of `update`."""
        try:
            self._file.close()
        except OSError as error:
            raise self._refusal(self._path, error) from None

    @staticmethod
    def _refusal(path: str | os.PathLike[str], error: OSError) -> InputError:
        return InputError(f"The trace file {os.fspath(path)} cannot be written ({error.strerror}).")


def _threads(count: int | None) -> str:
    return "" if count is None else f", {count} thread{'' if count == 1 else 's'}"


def number_lines(objective: float | None, bound: float | None, samples: int | None = None) -> list[str]:
    """Return incumbent, bound and gap, a line each, and before them the size of the subset whose numbers they are."""
    gap = Gap.between(objective, bound)
    subset = [] if samples is None else [f"subset     {samples} samples stand for all in these numbers"]
    return [
        *subset,
        f"incumbent  {show_number(objective)}",
        f"bound      {show_number(bound)}",
        f"gap        {show_number(gap.absolute)} nats; {show_gap(gap.relative_to_bound)} of the bound",
    ]


def closing_block(result: Result) -> str:
    """Return the closing block: status, score, bound, all gaps, times, and the structure."""
    score = result.score
    described = score.name if score.gamma is None else f"{score.name}, gamma = {score.gamma:.6g}"
    described += f", max_parents = {score.max_parents}"
    if not score.class_parents:
        described += ", no class parents"
    gap = result.gap
    status = result.reason
    if result.limit is not None:
        said = result.limit == "memory" and result.detail
        status += f" (stopped: {result.detail})" if said else f" (stopped by: {result.limit})"
    unique = (
        ""
        if result.data.unique_samples == result.data.samples
        else f" ({result.data.unique_samples} different)"
    )
    within = ""
    if not result.optimal and gap.relative_to_bound is not None and gap.relative_to_bound <= 1e-4:
        within = "  (within 1e-4)"
    lines = [
        f"data       {result.data.name}: {result.data.samples} samples{unique}, "
        f"{result.data.features} features, {result.data.classes} classes",
        f"score      {described}",
        f"backend    {result.backend.version}{_threads(result.backend.threads)}",
        f"status     {status}",
        f"incumbent  {show_number(result.objective)}",
        f"bound      {show_number(result.bound)}"
        + ("" if result.bound is None else f"  ({result.bound_source})"),
        f"gap        {show_number(gap.absolute)} nats; {show_gap(gap.relative_to_bound)} of the bound, "
        f"{show_gap(gap.relative_to_incumbent)} of the incumbent{within}",
    ]
    if result.subset is not None:
        of = result.subset
        proof = ", proved best" if of["optimal"] else ""
        lines.append(
            f"subset     {of['samples']} samples stand for all: {show_number(of['objective'])}, bound "
            f"{show_number(of['bound'])}, gap {show_gap(of['gap']['relative_to_bound'])}{proof}"
        )
    if any(v is not None and v <= 0 for v in (result.objective, result.bound)):
        lines.append("           (the score can be negative: only the gap in nats means something)")
    integral = result.primal_dual_integral()
    if integral is not None:
        lines.append(f"integral   {integral:.3f} s of gap (primal-dual)")
    s = result.seconds
    lines.append(
        f"seconds    {s.total:.2f} = {s.coefficients:.2f} data and coefficients + {s.model:.2f} model + "
        f"{s.solve:.2f} search"
    )
    if result.structure is not None:
        lines.append("structure")
        width = max(len(name) for name in result.structure.names)
        for name, parents in result.structure.to_mapping().items():
            lines.append(f"  {name:<{width}} <- {', '.join(parents) if parents else '(none)'}")
    return "\n".join(lines)
