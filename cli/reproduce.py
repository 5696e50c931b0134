"""``milpbn reproduce``: the tables and figures of the papers, computed cell by cell, beside the published numbers."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli import completion
from milpbn.cli.report import say
from milpbn.cli.search_options import DASK, QUIET, of_search
from milpbn.cli.sections import Values, flag, option, option_group, typed, verb
from milpbn.cli.steps import say_notes, show_stages, started, write_text
from milpbn.cli.types import COUNT, FOLDER, NUMBER, Parsed, parse_names
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.experiments.paper import StudyState

#: The papers, which `milpbn.experiments.papers` imports too much to be asked for.
NAMES = ("p12", "p11", "r20", "slides")


def _paper(text: str) -> str:
    if text not in NAMES:
        raise ValueError(f"is not a paper; choose from {', '.join(NAMES)}")
    return text


@option_group(
    "Options",
    "asked",
    option(
        "--only",
        Parsed("a,b,...", parse_names),
        "Compute only these data sets, methods (kinds of structures) and parts, such as iris,heart,sm,fold-1.",
    ),
    option(
        "--budget",
        NUMBER,
        "Seconds of each final search of p12 (default 1800; a trial of the choice before it has at most 10), of each "
        "search of p11 (7200), or of all experiments of r20 on a data set (3600, of processor time).",
    ),
    option("--epochs", COUNT, "Epochs of each training of r20.", default=500, show_default=True),
    flag(
        "--status",
        "Compute nothing; say what is done, running, failed and missing, and the time that is left.",
    ),
    flag("--retry-failed", "Compute failed cells again."),
    option("--data-dir", FOLDER, "Folder of the data, or above it; by default the variable MILPBN_DATA."),
    option(
        "--output", FOLDER, "Folder of the cells, the page and its pictures; by default the paper's name."
    ),
    option("--n-jobs", COUNT, "Number of processes.", default=1, show_default=True),
    *of_search("dask", dask={"help": DASK.format("Compute the cells")}),
    QUIET,
)
def asked_options(**values: Any) -> Values:
    """Gather the options; numbers must be positive."""
    for name in ("budget", "epochs", "n_jobs"):
        if values[name] is not None and values[name] <= 0:
            raise InputError(f"--{name.replace('_', '-')} must be positive, got {values[name]:g}.")
    return Values(**values)


@verb(short_help="Reproduce the tables and figures of the papers.")
@click.argument("paper", type=Parsed("paper", _paper, completion.words(*NAMES)))
@asked_options
def reproduce(paper: str, asked: Values) -> None:
    """Compute the tables and figures of PAPER from the data in --data-dir, and write them beside the published numbers.

    \b
    p12     Tables 1 to 3 of Peharz and Pernkopf (2012): exact structures on the UCI data
    p11     Table 1 and Figure 2 of Pernkopf, Wohlmayr and Mücke (2011): heuristics and bits on digits
    r20     Table 1 and Figures 2 and 3 of Roth and Pernkopf (2020): random searches of differentiable TAN
    slides  trees and forests with the penalties of Ihler's slides, on the data of p12

    Every method on every part of a data set is a cell in the archive in --output; a command that is interrupted, or
    killed, goes on where it stopped. README.md there has the tables. Data sets that are not there are skipped, unless
    --only names them; milpbn data list says where each can be had.

    \b
    Example:
      milpbn reproduce p12 --only iris,heart --data-dir DIR --budget 60 --output p12
      milpbn reproduce r20 --only letter --epochs 10 --budget 600 --data-dir DIR
      milpbn reproduce r20 --status --data-dir DIR
    """
    for name, papers in (("budget", ("p12", "p11", "r20")), ("epochs", ("r20",))):
        if name in typed() and paper not in papers:
            raise InputError(f"--{name} changes nothing with {paper}; leave it out.")
    from milpbn.experiments.cells import KeptCells
    from milpbn.experiments.paper import Wanted, compute, running, state
    from milpbn.experiments.papers import PAPERS
    from milpbn.util import stages
    from milpbn.util.progress_line import LINE

    chosen, folder = PAPERS[paper], Path(asked.output or paper)
    given = asked.data_dir or os.environ.get("MILPBN_DATA")
    wanted = Wanted(
        only=tuple(asked.only or ()),
        budget=asked.budget,
        epochs=asked.epochs,
        data_dir=None if given is None else Path(given),
    )
    show_stages(started(), quiet=asked.quiet)
    choice = chosen.choose(wanted)
    if choice.skipped:
        say_notes([f"{chosen.lacking(choice.skipped)}; skipped."], quiet=asked.quiet)
    store, studies = KeptCells(folder), chosen.studies(choice, wanted)
    try:
        if asked.status:
            keys = running(folder)
            for study in studies:
                say(_told(state(study, store, keys), asked.n_jobs))
        else:
            how = {"n_jobs": asked.n_jobs, "dask": asked.dask, "retry_failed": asked.retry_failed}
            for line in chain.from_iterable(compute(study, store, folder, **how) for study in studies):
                if not asked.quiet:
                    LINE.show(line)
    except KeyboardInterrupt:
        LINE.end()
        say_notes(["Interrupted; the finished cells are kept, and the same command goes on."])
    LINE.end()
    stages.enter("writing the page")
    everything = replace(wanted, only=())
    folder.mkdir(parents=True, exist_ok=True)
    text = chosen.page(chosen.studies(chosen.choose(everything), everything), store, folder)
    write_text(str(folder / "README.md"), text)
    say_notes([f"The page is {str(folder / 'README.md')!r}."], quiet=asked.quiet)


def _told(state: StudyState, n_jobs: int) -> list[str]:
    """Return the state of a study in lines."""
    limited = state.study.budget is not None
    more = f"at most {len(state.missing):,} more" if limited else f"{len(state.missing)} missing"
    counts = f"{state.done} done, {len(state.running)} running, {len(state.failed)} failed, {more}"
    lines = [f"{state.study.title}: {counts}"]
    lines += [f"  running  {task.cell}" for task in state.running]
    lines += [f"  failed   {task.cell}: {reason}" for task, reason in state.failed]
    if limited:
        lines.append(f"  spent    {state.spent:.0f} s of the budget of {state.study.budget:g} s")
    else:
        places: dict[str, list[str]] = {}
        for task in state.missing:
            places.setdefault(f"{task.data} {task.cell.method}", []).append(task.part)
        lines += [f"  missing  {place}: {', '.join(parts)}" for place, parts in places.items()]
    if state.left is None:
        lines.append("  left     unknown: nothing has been computed")
    elif state.missing or state.running:
        seconds = state.left / n_jobs
        about = (
            f"{seconds:.0f} s" if seconds < 120 else f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
        )
        doubt = f"; {state.guessed} of the cells are unlike those that are done, and count with their limits"
        lines.append(f"  left     about {about} with --n-jobs {n_jobs}{doubt if state.guessed else ''}")
    return lines
