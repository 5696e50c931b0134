"""``milpbn export``: the MILP as a file, for a solver that milpbn does not run itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.constraint_options import constraint_options
from milpbn.cli.memory_option import memory_limit
from milpbn.cli.outputs import check_outputs
from milpbn.cli.score_options import ScoreOptions, score_options
from milpbn.cli.search_options import SUBSET, of_search
from milpbn.cli.sections import option, option_group, verb
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA, FILE, word
from milpbn.errors import InputError
from milpbn.milp.files.scripts import PACKAGES

if TYPE_CHECKING:
    from milpbn.data import Dataset
    from milpbn.problem.constraints import Constraints
    from milpbn.problem.scores.spec import Score


@dataclass(frozen=True)
class ModelOptions:
    """The options of the model and its files."""

    output: str
    start: str | None
    merge: bool
    reduced: bool
    subset: int | None
    time_limit: float | None
    threads: int | None
    random_state: int
    quiet: bool
    scripts: tuple[str, ...]


@option_group(
    "Model",
    "model",
    option(
        "--output",
        required=True,
        type=FILE,
        help="Model: .lp or .mps, also with .gz; local scores: .jkl.",
    ),
    *of_search("start", "merge"),
    option(
        "--reduced",
        is_flag=True,
        help="Leave out parent sets that are proved to be in no structure better than the start.",
    ),
    SUBSET,
    *of_search(
        "time_limit",
        "threads",
        "random_state",
        time_limit={"help": "Written into the command lines."},
        threads={"help": "Written into the command lines."},
        random_state={"help": "Seed of the subset, and of the search for the start.", "default": 0},
    ),
    option(
        "--script",
        "scripts",
        multiple=True,
        type=word("package", *PACKAGES),
        help="Also write a Python script for highspy, pyscipopt, gurobipy or cplex; may be repeated.",
    ),
    option("-q", "--quiet", is_flag=True, help="No notes on stderr."),
)
def model_options(merge: bool | None, **values: Any) -> ModelOptions:
    """Gather the options of the model, and refuse impossible numbers before the table is read."""
    from milpbn.problem.subset import Subset
    from milpbn.solving.options import Options

    model = ModelOptions(**values, merge=merge is not False)
    Subset.of(model.subset)
    Options(time_limit=model.time_limit, threads=model.threads, random_state=model.random_state)
    return model


@verb(short_help="Write the model for another solver.")
@click.argument("data", type=DATA, required=False)
@table_options
@score_options
@constraint_options
@model_options
@memory_limit("Model")
def export(
    data: str | None,
    table: TableOptions,
    score: ScoreOptions,
    constraints: Constraints,
    model: ModelOptions,
) -> None:
    """Write the MILP for another solver, and print the command lines that solve it.

    Two kinds of files are written beside the model: a sidecar (.json), which says what its columns mean, and start
    files for CPLEX, Gurobi, SCIP, HiGHS and CBC. DATA is as for milpbn solve. A FILE that ends in .jkl gets the local
    scores of all parent sets instead (ll, mdl, aic, bdeu), for GOBNILP and BLIP.

    \b
    Example:
      milpbn export table.csv --target class --output model.lp --script highspy
      scip ...                       (as printed)
      milpbn import model.scip.sol --classifier classifier.json
    """
    score.refuse_choices("A model holds")
    check_outputs({"--output": model.output}, [data, model.start])
    checked_score = score.score()

    from milpbn.cli.solve import show_notes, show_stages
    from milpbn.instances import DEFAULT
    from milpbn.milp.files.dialects import solvers_on_path
    from milpbn.network import read_structure
    from milpbn.solving.exporting import export_model
    from milpbn.solving.progress import among_lines, dropped_lines

    source = data or f"instance:{DEFAULT}"
    show_stages(None, quiet=model.quiet)
    dataset = table.read(source, in_units=checked_score.needs_units).dataset("train")
    if not model.quiet:
        show_notes(dataset)
    if model.output.lower().endswith(".jkl"):
        _export_scores(dataset, checked_score, constraints, model)
        return
    written = export_model(
        dataset,
        checked_score,
        path=model.output,
        constraints=constraints,
        start=None if model.start is None else read_structure(model.start, dataset.names),
        merge=model.merge,
        reduced=model.reduced,
        subset=model.subset,
        time_limit=model.time_limit,
        threads=model.threads,
        random_state=model.random_state,
        request=table.request(source),
        scripts=model.scripts,
    )
    click.echo(
        f"model    {written.model}: {written.rows} rows, {written.columns} columns, "
        f"{written.nonzeros} non-zeros"
    )
    for line in dropped_lines(dataset.notes, 9):
        click.echo(line)
    click.echo(f"sidecar  {written.sidecar}")
    click.echo(f"starts   {', '.join(sorted({str(path) for path in written.starts.values()}))}")
    click.echo(f"         with the score {written.start_objective:.6f}")
    if written.root_bound is not None:
        click.echo(f"bound    {written.root_bound:.6f}  (certified; milpbn import keeps it)")
    for line in among_lines(written.among, 9):
        click.echo(line)
    for package, script in written.scripts.items():
        click.echo(f"script   {script}  (python, with {package}; prints the bound for the import)")
    here = solvers_on_path()
    click.echo(
        "\nSolve it with one of these, then: milpbn import SOLUTION --bound BOUND, the solver's best bound."
    )
    for heading, found in (("On the path of this machine", True), ("Not on the path of this machine", False)):
        commands = {name: line for name, line in written.commands.items() if (name in here) == found}
        if commands:
            click.echo(f"\n{heading}:")
        for solver, command in commands.items():
            click.echo(f"\n# {solver}\n{command}")


def _export_scores(dataset: Dataset, score: Score, constraints: Constraints, model: ModelOptions) -> None:
    """Write local scores, and refuse the options of a model."""
    from milpbn.solving.local_scores import export_local_scores

    given = {
        "--start": model.start,
        "--no-merge": not model.merge,
        "--reduced": model.reduced,
        "--subset": model.subset,
        "--script": model.scripts,
    }
    for name, value in given.items():
        if value:
            raise InputError(
                f"{name} concerns a model, not local scores; drop it, or write an .lp or .mps file."
            )
    local = export_local_scores(dataset, score, path=model.output, constraints=constraints)
    click.echo(
        f"scores   {model.output}: {local.candidates.n_sets} parent sets of {local.candidates.n_variables} variables"
    )
