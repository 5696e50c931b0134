"""The table and the picture of `gap_over_time.py`, from the records of its runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milpbn.claims.gap import proves
from milpbn.claims.result import Gap, TracePoint
from milpbn.problem.scores.spec import Score
from milpbn.trials.store import Store
from milpbn.util.atomic import atomic_path

#: The comparison: the seconds until the native engine has the gap that HiGHS has after this number of seconds.
REFERENCE = 300.0
#: A bound that HiGHS has had since this second is that of its presolve, or the trivial one, and compared with nothing.
EARLY = 5.0
#: The data sets and values of p whose ratios are averaged.
AVERAGED = {(data, p) for data in ("segment", "soybean-large", "adult", "waveform-21") for p in (0.9, 0.99)}
#: The earliest moment of a trace; earlier changes count as made at this moment.
FIRST_MOMENT = 0.01
#: The lower end of the picture, in percent: a proved run is drawn here.
FLOOR = 1e-4
NAMES = {"native": "native", "highs": "HiGHS"}

Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A data set, and the score that is maximised on it."""

    data: str
    score: str
    p: float | None
    max_parents: int
    class_parents: bool

    @property
    def spec(self) -> Score:
        """The score."""
        return Score(
            name=self.score, p=self.p, max_parents=self.max_parents, class_parents=self.class_parents
        )

    @property
    def setting(self) -> str:
        """Everything but data and p, in words."""
        text = f"{self.score}, max_parents {self.max_parents}"
        return f"{text}, {'with' if self.class_parents else 'no'} class parents"

    def key(self, backend: str) -> str:
        """Return the key of a run's record."""
        parts = [self.data, self.score, *([] if self.p is None else [f"p{self.p:g}"]), f"k{self.max_parents}"]
        return "-".join([*parts, *(["class-parents"] if self.class_parents else []), backend])


def state_at(record: Record, seconds: float) -> TracePoint | None:
    """Return the last change up to a moment; None if the run was stopped before that moment."""
    proved = record["status"]["reason"] == "optimal"
    if seconds > record["time_limit"] and not proved and seconds != math.inf:
        return None
    return next((point for point in reversed(record["trace"]) if point[0] <= seconds), None)


def gap_of(point: TracePoint | None) -> float | None:
    """Return the gap relative to the bound; 0 if it is at most 1e-6 of the score, which old records call optimal."""
    if point is None or point[1] is None or point[2] is None:
        return None
    return 0.0 if proves(point[1], point[2], None) else Gap.between(point[1], point[2]).relative_to_bound


def gap_text(record: Record, seconds: float) -> str:
    """Return the gap at a moment in percent, for the table."""
    gap = gap_of(state_at(record, seconds))
    return "-" if gap is None else "0" if gap == 0 else f"{100 * gap:.3g}"


def since(record: Record, gap: float) -> float | None:
    """Return when a run first had a gap of at most `gap`."""
    for point in record["trace"]:
        reached = gap_of(point)
        if reached is not None and reached <= gap:
            return point[0]
    return None


@dataclass(frozen=True)
class Comparison:
    """HiGHS's gap at a moment, and when HiGHS and the native engine first had that gap."""

    gap: float
    seconds: float
    first: float
    native: float | None
    native_limit: float

    @property
    def ratio(self) -> float:
        """Seconds of HiGHS over seconds of the native engine; an upper limit if the native engine never had the gap."""
        return self.seconds / max(FIRST_MOMENT, self.native_limit if self.native is None else self.native)


def compare(native: Record, highs: Record | None) -> Comparison | str:
    """Compare two runs, or say why that is impossible."""
    if highs is None:
        return "HiGHS was not run"
    if "failure" in highs:
        return highs["failure"]
    if "failure" in native:
        return f"native: {native['failure']}"
    moment = min(REFERENCE, highs["time_limit"])
    point = state_at(highs, moment)
    gap = gap_of(point)
    if point is None or gap is None:
        return f"HiGHS has no gap after {moment:g} s"
    early = state_at(highs, EARLY)
    if gap > 0 and early is not None and point[2] == early[2]:
        return f"HiGHS has no better bound after {moment:g} s than after {EARLY:g} s"
    first = since(highs, gap)
    assert first is not None
    seconds = first if gap == 0 else moment
    return Comparison(gap, seconds, first, since(native, gap), native["time_limit"])


def runs_in(store: Store) -> dict[Case, dict[str, Record]]:
    """Return the runs of an archive by case and backend."""
    runs: dict[Case, dict[str, Record]] = {}
    for _, record in sorted(store.items()):
        runs.setdefault(Case(**record["case"]), {})[record["backend"]["name"]] = record
    return dict(sorted(runs.items(), key=lambda item: (item[0].setting, item[0].data, item[0].p or 0)))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def native_cells(case: Case, record: Record | None, checkpoints: Sequence[float]) -> list[str]:
    first = [case.data, "-" if case.p is None else f"{case.p:g}"]
    if record is None or "failure" in record:
        return [*first, *["-"] * (len(checkpoints) + 4)]
    proved = since(record, 0.0)
    return [
        *first,
        *(gap_text(record, seconds) for seconds in checkpoints),
        "-" if record["objective"] is None else f"{record['objective']:.4f}",
        "-" if record["bound"] is None else f"{record['bound']:.4f}",
        "-" if record["nodes"] is None else str(record["nodes"]),
        "-" if proved is None else f"{proved:.2f}",
    ]


def table(runs: dict[Case, dict[str, Record]], checkpoints: Sequence[float]) -> str:
    """Return the text of table.md."""
    parts = [
        "# Gaps over time\n\nGaps are relative to the bound, in percent; 0 is proved (within 1e-6), - is unknown or "
        "after the end. Seconds count from the finished coefficients. Both backends began with the same structure, "
        "so both have an incumbent from the start. The columns on the right compare the two at the gap that HiGHS had "
        f'"after s" seconds: {REFERENCE:g}, or its time limit if that is less, or its time to proof. "First at s" '
        'is when HiGHS first had this gap, "native there at s" when the native engine first had it, and the ratio is '
        '"after s" divided by the seconds of the native engine (≤ if that never had the gap). Traces are thinned, so '
        "a moment may be up to 8 % later than in the run itself.\n"
    ]
    head = [
        "data",
        "p",
        *(f"{c:g} s" for c in checkpoints),
        "incumbent",
        "bound",
        "nodes",
        "proved in s",
    ]
    for setting in dict.fromkeys(case.setting for case in runs):
        beside, alone, ratios = [], [], []
        for case, both in runs.items():
            if case.setting != setting:
                continue
            native = both.get("native")
            cells = native_cells(case, native, checkpoints)
            found = "native was not run" if native is None else compare(native, both.get("highs"))
            if isinstance(found, str):
                alone.append([*cells, found])
                continue
            if (case.data, case.p) in AVERAGED:
                ratios.append(found.ratio)
            beside.append(
                [
                    *cells,
                    "0" if found.gap == 0 else f"{100 * found.gap:.3g}",
                    f"{found.seconds:.4g}",
                    f"{found.first:.4g}",
                    "-" if found.native is None else f"{found.native:.3g}",
                    f"{'≤ ' if found.native is None else ''}{found.ratio:.3g}",
                ]
            )
        parts.append(f"## {setting}\n")
        if beside:
            more = ["HiGHS gap", "after s", "first at s", "native there at s", "ratio"]
            parts.append(markdown([*head, *more], beside))
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            parts.append(
                f"Geometric mean of the ratios over segment, soybean-large, adult and waveform-21 at p = .9 and "
                f".99: **{mean:.3g}** ({len(ratios)} of {len(AVERAGED)} runs).\n"
            )
        if alone:
            parts.append("Without a comparison:\n")
            parts.append(markdown([*head, "why"], alone))
    return "\n".join([*parts, "## Where\n", *where(runs)])


def where(runs: dict[Case, dict[str, Record]]) -> list[str]:
    """Return the machines, versions and commands of all runs, each once."""
    lines: dict[str, None] = {}
    for both in runs.values():
        for record in both.values():
            m, version = record["machine"], record["backend"].get("version", record["backend"]["name"])
            lines[
                f"- {version}, threads: {record['threads']}; {m['processor']}, {m['cores']} cores; {m['system']}, "
                f"Python {m['python']}, NumPy {m['numpy']}"
            ] = None
            lines[f"- `{record['command']}`"] = None
    return [*lines, ""]


def draw(runs: dict[Case, dict[str, Record]], path: Path) -> None:
    """Draw the gaps over time, one panel per data set and setting; a dot at the lower end marks a proof."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys((case.setting, case.data) for case in runs))
    settings = {setting for setting, _ in panels}
    ps = sorted({case.p or 0.0 for case in runs})
    columns = min(4, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4 * columns, 3 * rows + 0.5), squeeze=False)
    for place, (setting, data) in zip(axes.flat, panels, strict=False):
        for case, both in runs.items():
            if (case.setting, case.data) != (setting, data):
                continue
            for name, record in both.items():
                points = [(p[0], gap_of(p)) for p in record.get("trace", ())]
                known = [(max(t, FIRST_MOMENT), max(FLOOR, 100 * g)) for t, g in points if g is not None]
                if not known:
                    continue
                proved = known[-1][1] == FLOOR
                end = known[-1][0] if proved else max(known[-1][0], record["time_limit"])
                t, g = zip(*known, (end, known[-1][1]), strict=True)
                label = NAMES[name] + ("" if case.p is None else f", p = {case.p:g}")
                colour = f"C{ps.index(case.p or 0.0)}"
                style = "-" if name == "native" else "--"
                place.step(t, g, where="post", color=colour, linestyle=style, label=label, linewidth=1.4)
                if proved:
                    place.plot(
                        t[-1], g[-1], "o", color=colour, fillstyle="full" if name == "native" else "none"
                    )
        place.set_xscale("log")
        place.set_yscale("log")
        place.set_title(data if len(settings) == 1 else f"{data}\n{setting}", fontsize=10)
        for axis in (place.xaxis, place.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")
        place.tick_params(labelsize=8)
    for place in axes.flat[len(panels) :]:
        place.set_axis_off()
    named: dict[str, Any] = {}
    for place in axes.flat:
        handles, labels = place.get_legend_handles_labels()
        named.update(zip(labels, handles, strict=True))
    figure.legend(named.values(), named.keys(), loc="lower center", ncols=max(1, len(named)), frameon=False)
    height = figure.get_figheight()
    figure.supxlabel("seconds", y=0.35 / height, fontsize=10)
    figure.supylabel("gap relative to the bound, %", fontsize=10)
    figure.tight_layout(rect=(0.01, 0.5 / height, 1, 1))
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110)
    plt.close(figure)
