"""Progress lines, trace files, and the closing block."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence

from milpbn.claims.about import COMPILED, ONLY_SMALL
from milpbn.claims.alternatives import Alternatives
from milpbn.claims.parts import Average
from milpbn.claims.result import Gap, Result, TracePoint
from milpbn.claims.selection import Selection, Trial
from milpbn.data.dataset import dropped_notes
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.structure import Structure
from milpbn.solving.engines.base import BY_SUBSETS
from milpbn.solving.grid import describe
from milpbn.solving.options import Options
from milpbn.solving.outlook import forecast
from milpbn.util import stages
from milpbn.util.options import listed
from milpbn.util.plurals import counted
from milpbn.util.printing import columns_of, padded
from milpbn.util.progress_line import LINE, ProgressLine, in_notebook

#: Seconds after which a line is shown even if nothing has changed; a little before `milpbn.util.stages` shows one.
HEARTBEAT = stages.HEARTBEAT - 0.5
#: Least seconds between lines that differ only in the bound, where a new line does not replace the last one.
PAUSE = 1.0
#: Seconds after which progress has the first line on what is ahead.
OUTLOOK = 30.0
HEADER = f"{'time':>9} {'nodes':>9} {'incumbent':>16} {'bound':>16} {'gap':>9}  source"


def wants_progress(verbose: bool | None) -> bool:
    """Return whether to show progress: as `verbose` says, or for None, in a terminal or a notebook."""
    if verbose is not None:
        return verbose
    return in_notebook() or sys.stderr.isatty()


def show_number(value: float | None) -> str:
    """Return a score as text: with six digits, or a dash if it is unknown."""
    return "-" if value is None else f"{value:.6f}"


def show_gap(value: float | None) -> str:
    """Return a relative gap in percent as text, or a dash if it is unknown."""
    if value is None:
        return "-"
    if value > 10:
        return "> 1000 %"  # the bound is near 0, so that the ratio says nothing
    return "0 %" if value < 1e-10 else (f"{100 * value:.2g} %" if value < 1e-4 else f"{100 * value:.3f} %")


def threads_alone(options: Options, backend: str) -> int | None:
    """Return the threads of a search that could also run on a cluster; None of any other."""
    alone = backend == "native" and options.workers is None and options.dask is None
    return options.n_threads if alone else None


def outlook_lines(
    trace: Sequence[TracePoint], seconds: float, gap: float = 0.0, threads: int | None = None
) -> list[str]:
    """Return a line that says when a search comes to a gap, by default the next round one; none if nothing is known."""
    ahead = forecast(trace, seconds, gap)
    return [] if ahead is None else [f"outlook    {ahead.describe(seconds, threads)}"]


class Progress:
    """Shows ``time nodes incumbent bound gap source`` on every change and at least every five seconds.

    In a file, where no line is replaced, a changed bound within a second of another line is not shown.
    """

    def __init__(self, line: ProgressLine = LINE) -> None:
        self._line = line
        self._last: tuple[float | None, float | None] | None = None
        self._header = False
        self._next = OUTLOOK

    def outlook(self, seconds: float, lines: Callable[[], list[str]]) -> None:
        """Keep a line on what is ahead, every time that the seconds have doubled."""
        if seconds >= self._next:
            self._next = 2 * seconds
            for line in lines():
                self._line.keep(f"{seconds:8.1f}s {line}")

    def line(
        self,
        seconds: float,
        nodes: int | None,
        objective: float | None,
        bound: float | None,
        source: str,
        more: str = "",
    ) -> None:
        """Show a line with its source if something changed, or with the current stage if the last line is old."""
        state, quiet = (objective, bound), time.monotonic() - self._line.shown_at
        if state == self._last:
            if quiet < HEARTBEAT:
                return
            source = stages.current() or source
        elif (
            self._last is not None
            and objective == self._last[0]
            and quiet < PAUSE
            and not self._line.replaces
        ):
            return
        if not self._header:
            self._line.keep(HEADER)
            self._header = True
        shown = "-" if nodes is None else str(nodes)
        gap = Gap.between(objective, bound).relative_to_bound
        self._line.show(
            f"{seconds:8.1f}s {shown:>9} {show_number(objective):>16} {show_number(bound):>16} "
            f"{show_gap(gap):>9}  {source}{more}"
        )
        self._last = state


def subset_line(samples: int) -> str:
    """Return a line that says that the numbers after it are those of a subset of the samples."""
    return f"subset     {samples} representative samples; these numbers are theirs"


def all_line(objective: float | None, bound: float | None) -> str:
    """Return a line with score, bound and gap over all samples, below those of a subset."""
    share = show_gap(Gap.between(objective, bound).relative_to_bound)
    return f"all        over all samples {show_number(objective)}, bound {show_number(bound)}, gap {share}"


def kept_line(kept: int, total: int) -> str:
    """Return a line that says that the bound after it holds over the kept parent sets only."""
    return f"screened   {kept} of {total} candidate parent sets were kept; the bound is over these only"


def among_lines(words: str, width: int = 11) -> list[str]:
    """Return a line that names the structures that bound and optimum are about, or none if all are meant."""
    return [f"{'among':{width}}{words}; others may score more"] if words else []


def dropped_lines(notes: Sequence[str], width: int = 11) -> list[str]:
    """Return the notes on dropped rows as lines under that of the data, after `width` spaces."""
    return [f"{'':{width}}{note}" for note in dropped_notes(notes)]


def scope_lines(result: Result) -> list[str]:
    """Return lines on the structures, samples or parent sets for which the searched numbers hold; none if for all."""
    lines = among_lines(result.among)
    lines += [] if result.subset is None else [subset_line(result.subset.samples)]
    of = result.screened
    return lines if of is None else [*lines, kept_line(of.n_kept, of.total)]


def number_lines(objective: float | None, bound: float | None, source: str = "", more: str = "") -> list[str]:
    """Return incumbent, bound with its source, and gap, with what `more` says of it, one line each."""
    gap = Gap.between(objective, bound)
    said = f"{show_number(gap.absolute)} nats; {show_gap(gap.relative_to_bound)} of the bound{more}"
    return [
        f"incumbent  {show_number(objective)}",
        f"bound      {show_number(bound)}" + (f"  ({source})" if source and bound is not None else ""),
        f"gap        {'-' if gap.absolute is None else said}",
    ]


def error_lines(result: Result) -> list[str]:
    """Return a line with the gap in standard errors of the score, unless an optimum is proved."""
    gap = result.gap_se
    if gap is None or result.searched.optimal:
        return []
    less = ": another sample of this size would typically change the score by more" if gap < 1 else ""
    return [
        f"           {gap:.3g} standard errors of the score (each {result.standard_error:.4g} nats){less}"
    ]


def compared_by(trial: Trial, by: str) -> str:
    """Return the figure that a selection compares, after a comma, if it is neither accuracy nor log-loss."""
    found = None if by in ("accuracy", "log-loss") else getattr(trial, by.replace("-", "_"))
    return "" if found is None else f", {by} {found:.4f}"


def selection_lines(selection: Selection | None) -> list[str]:
    """Return what a selection chose and from what, in the words of the command line, and what to know about it."""
    best = None if selection is None else selection.chosen
    if selection is None or best is None:
        return []
    tried, starved = len(selection.trials), sum(trial.starved for trial in selection.trials)
    searches = sum(trial.splits for trial in selection.trials)
    loss = "" if best.log_loss is None else f", log-loss {best.log_loss:.4f} nats"
    accuracy = f"held-out accuracy {100 * best.accuracy:.2f} %"
    if best.unweighted is not None:
        accuracy = f"held-out: weighted {accuracy[9:]}, {100 * best.unweighted:.2f} % of the rows"
        loss = loss.replace("log-loss", "weighted log-loss")
    lines = [
        f"selection  {describe(selection.p, selection.max_parents, selection.options)}",
        f"           by {selection.by} among {tried} settings, {selection.protocol}",
        f"           {accuracy}{loss}{compared_by(best, selection.by)}",
    ]
    if selection.tied:
        others = "1 other setting is" if selection.tied == 1 else f"{selection.tied} other settings are"
        of = " of those with arcs" if selection.for_arcs else ""
        lines.append(
            f"           {others} as good; the choice is the one{of} with the fewest parents, then the smallest p"
        )
    if starved:
        lines.append(
            f"           {starved} of {searches} searches ended at their start for lack of time; a longer --time-limit "
            "tells the settings apart"
        )
    if selection.interrupted:
        lines.append("           interrupted: the settings were not tried on all splits")
    if selection.timed_out:
        splits = "1 split" if best.splits == 1 else f"{best.splits} splits"
        lines += [
            "           ended by the time limit, before all settings were tried on all splits;",
            f"           the chosen one was tried on {splits}",
        ]
    return lines


def parameter_lines(record: ParameterFit | None, width: int = 11) -> list[str]:
    """Return lines about parameters that are not those of the score, with a label of `width` characters; else none."""
    return _labelled("parameters", record, width)


def _labelled(label: str, record: ParameterFit | Average | None, width: int = 11) -> list[str]:
    sentences = [] if record is None else record.describe()
    return [f"{'' if k else label:{width}}{sentence}" for k, sentence in enumerate(sentences)]


def left_out_lines(left_out: Mapping[str, str], width: int = 11) -> list[str]:
    """Return a line that names the columns that are no features, each with the reason; no line without any."""
    named = [f"{name} ({'as asked' if why == 'asked' else why})" for name, why in left_out.items()]
    return [f"{'left out':{width}}{', '.join(named)}"] if named else []


def alternative_lines(alternatives: Alternatives | None, among: str = "") -> list[str]:
    """Return lines about the K best structures, each beside the best one, and what they are among; else none."""
    if alternatives is None:
        return []
    best = alternatives.structures
    if alternatives.exhausted:
        said = f"proved: there are {len(best)} structures in all"
    elif alternatives.optimal:
        said = f"proved: no other structure scores more than {show_number(alternatives.bound)}"
    else:
        said = f"not proved: other structures may score up to {show_number(alternatives.bound)}"
    label = f"best {alternatives.asked}"
    if alternatives.within is not None:
        label, count = "best", counted(len(best), "structure")
        full = "" if len(best) < alternatives.asked else ", as many as --n-best allows"
        said = f"{count} within {alternatives.within:g} nats of the best one{full}; {said}"
    lines = [f"{label:<11}{said}", *among_lines(among)]
    first = best[0].structure.to_mapping()
    for number, one in enumerate(best, start=1):
        own = one.structure.to_mapping()
        changed = [
            f"{name} <- {', '.join(own[name]) or '(none)'}"
            for name in first
            if set(own[name]) != set(first[name])
        ]
        lines.append(
            f"{number:>9}  {show_number(one.objective)}  "
            + ("the structure below" if number == 1 else f"but {'; '.join(changed)}")
        )
    for groups, of in (
        (alternatives.same_posteriors, "have the same posteriors"),
        (alternatives.markov_equivalent, "are Markov equivalent"),
    ):
        lines += [f"{'':11}{listed(map(str, group), 'and')} {of}" for group in groups]
    return lines


def _source_of_bound(source: str, read: bool) -> str:
    """Return the source of a bound in words."""
    if not read:
        return source
    check = "; milpbn verify checks it with the certificate" if source == "certified" else ""
    return f"the file says {source}{check}"


def status_words(result: Result) -> str:
    """Return the reason, and what stopped the run, proved the optimum, or is left of the gap."""
    status = str(result.reason)
    if result.detail == BY_SUBSETS:
        status += f" ({BY_SUBSETS})"
    if result.limit is not None:
        explained = result.limit == "memory" and result.detail
        return status + (f" (stopped: {result.detail})" if explained else f" (stopped by: {result.limit})")
    gap = result.gap.absolute
    small = gap is not None and gap <= 1e-4 * max(1.0, abs(result.objective or 0.0))
    if result.reason == "feasible" and small:  # an import without a bound has a larger gap
        status += " (the search has ended; what is left of the gap is tolerance)"
    return status


def closing_block(result: Result, *, read: bool = False, options: Options | None = None) -> str:
    """Return the closing block: status, score, bound, all gaps, times, and the structure.

    For a result that was `read` from a file, the block says that the bound is the claim of the file. The options of the
    search, if they are known, say which gap the outlook is on, and how many threads it is about.
    """
    gap = result.gap
    data = result.data
    within = ""
    if not result.optimal and gap.relative_to_bound is not None and gap.relative_to_bound <= 1e-4:
        within = "  (within 1e-4)"
    lines = [
        f"data       {data.name}: {result.described_data}",
        *dropped_lines(result.notes),
        *left_out_lines(result.data.left_out),
        f"score      {result.described_score}",
        f"backend    {result.backend.described}",
        f"status     {status_words(result)}{result.among_clause}",
        *number_lines(
            result.objective,
            result.bound,
            _source_of_bound(result.bound_source, read),
            f", {show_gap(gap.relative_to_incumbent)} of the incumbent{within}",
        ),
    ]
    whole = result.subset is None and result.screened is None
    lines += error_lines(result) if whole else []
    lines += [f"           ({note})" for note in result.notes if note.startswith((COMPILED, ONLY_SMALL))]
    if whole and not result.optimal:
        how: tuple[float, int | None] = (0.0, None)
        if options is not None:
            asked = options.target.relative(result.objective, result.standard_error)
            how = asked, threads_alone(options, result.backend.name)
        lines += outlook_lines(result.trace, result.seconds.total, *how)
    if result.subset is not None:
        of = result.subset
        lines.append(f"{'':11}(over all samples; the search was over the subset)")
        proof = ", proved best" if of.optimal else ""
        lines.append(
            f"subset     {of.samples} representative samples: {show_number(of.objective)}, bound "
            f"{show_number(of.bound)}{f' ({_source_of_bound(result.bound_source, read)})' if read else ''}, "
            f"gap {show_gap(of.gap.relative_to_bound)}{proof}"
        )
    if result.screened is not None:
        kept = result.screened
        proof = ", proved best of these" if kept.optimal else ""
        lines.append(
            f"screened   {kept.n_kept} of {kept.total} candidate parent sets were kept, by {kept.criterion}; over them"
        )
        lines.append(
            f"           bound {show_number(kept.bound)} ({_source_of_bound(result.bound_source, read)}), gap "
            f"{show_number(kept.gap.absolute)} nats, {show_gap(kept.gap.relative_to_bound)} of the bound{proof}"
        )
    lines += [] if whole else error_lines(result)
    if gap.absolute is not None and any(v is not None and v <= 0 for v in (result.objective, result.bound)):
        lines.append("           (the score can be negative: only the gap in nats is meaningful)")
    integral = result.primal_dual_integral()
    if integral is not None:
        lines.append(f"integral   {integral:.3f} s of gap (primal-dual)")
    s = result.seconds
    lines.append(
        f"seconds    {s.total:.2f} = {s.coefficients:.2f} data and coefficients + {s.model:.2f} model + "
        f"{s.solve:.2f} search"
        + (f" + {s.parameters:.2f} parameters" if s.parameters else "")
        + (f" + {s.average:.2f} other networks" if s.average else "")
    )
    lines += selection_lines(result.selection)
    lines += _labelled("parameters", result.parameters)
    lines += _labelled("classifier", result.average)
    lines += alternative_lines(result.alternatives, result.among)
    if result.structure is not None:
        lines += structure_lines(result.structure)
        if data.classes and not result.structure.markov_blanket:
            lines.append("  (no arc joins the class: this network gives every sample the same class)")
    return "\n".join(lines)


def structure_lines(structure: Structure) -> list[str]:
    """Return a heading and the parents of every variable, one line each."""
    width = max(columns_of(name) for name in structure.names)
    return [
        "structure",
        *(
            f"  {padded(name, width)} <- {', '.join(parents) if parents else '(none)'}"
            for name, parents in structure.to_mapping().items()
        ),
    ]
