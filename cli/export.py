"""``milpbn export``: the MILP as a file, for a solver that milpbn does not run itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.constraint_options import search_constraints
from milpbn.cli.score_options import ScoreOptions, score_options
from milpbn.cli.search_options import MEMORY_LIMIT, NO_NOTES, SUBSET, of_search
from milpbn.cli.sections import Values, flag, option, option_group, options, verb
from milpbn.cli.steps import read, show_notes, started
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA, OUTPUT, word
from milpbn.errors import InputError
from milpbn.milp.files.scripts import PACKAGES

if TYPE_CHECKING:
    from milpbn.data import Dataset
    from milpbn.problem.constraints import Constraints
    from milpbn.problem.scores.spec import Score
    from milpbn.solving.exporting import Export


#: Options of the model that the library takes as they are.
PASSED_ON = ("merge", "reduced", "subset", "time_limit", "threads", "random_state", "scripts")


@option_group(
    "Model",
    "model",
    option("--output", OUTPUT, "Model: .lp or .mps, also with .gz; local scores: .jkl.", required=True),
    *of_search("start", "merge"),
    flag("--reduced", "Leave out parent sets that are proved to be in no structure better than the start."),
    flag(
        "--dominated",
        "Local scores: also write parent sets with a subset that scores no less (for --n-best).",
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
        "--script scripts",
        word("package", *PACKAGES),
        "Also write a Python script for highspy, pyscipopt, gurobipy or cplex; may be repeated.",
        multiple=True,
    ),
    NO_NOTES,
)
def model_options(merge: bool | None, **values: Any) -> Values:
    """Gather the options of the model, and refuse impossible numbers before the table is read."""
    from milpbn.problem.subset import Subset
    from milpbn.solving.options import Options

    model = Values(**values, merge=merge is not False)
    Subset.of(model.subset)
    Options(time_limit=model.time_limit, threads=model.threads, random_state=model.random_state)
    return model


@verb(short_help="Write the model for another solver.")
@click.argument("data", type=DATA, required=False)
@table_options
@score_options
@search_constraints
@model_options
@options(MEMORY_LIMIT, section="Model")
def export(
    data: str | None,
    table: TableOptions,
    score: ScoreOptions,
    constraints: Constraints,
    structure: str | None,
    model: Values,
) -> None:
    """Write the MILP for another solver, and print the command lines that solve it.

    Two kinds of files are written beside the model: a sidecar (.json), which says what its columns mean, and start
    files for CPLEX, Gurobi, SCIP, HiGHS and CBC. DATA is as for milpbn solve. A FILE that ends in .jkl gets local
    scores instead (ll, mdl, aic, bdeu), for GOBNILP and BLIP: those of all parent sets that a best structure may need.

    \b
    Example:
      milpbn export table.csv --target class --output model.lp --script highspy
      scip ...                       (as printed)
      milpbn import model.scip.sol --classifier classifier.json
    """
    score.refuse_choices("A model holds")
    spec = score.score()

    from milpbn.instances import DEFAULT
    from milpbn.network import read_structure
    from milpbn.problem.structures import structured
    from milpbn.solving.exporting import export_model

    source = data or f"instance:{DEFAULT}"
    _, dataset = read(table, source, started(), quiet=model.quiet, in_units=spec.needs_units)
    show_notes(dataset, quiet=model.quiet)
    constraints = structured(structure, dataset, spec, constraints)
    if model.output.lower().endswith(".jkl"):
        _export_scores(dataset, spec, constraints, model)
        return
    if model.dominated:
        raise InputError("--dominated concerns local scores; drop it, or write a .jkl file.")
    written = export_model(
        dataset,
        spec,
        path=model.output,
        constraints=constraints,
        start=None if model.start is None else read_structure(model.start, dataset.names),
        request=table.request(source),
        **{name: getattr(model, name) for name in PASSED_ON},
    )
    click.echo("\n".join(_describe(written, dataset)))


def _describe(written: Export, data: Dataset) -> list[str]:
    """Return what was written, and the command lines that solve it, those of installed solvers first."""
    from milpbn.milp.files.dialects import solvers_on_path
    from milpbn.solving.progress import among_lines, dropped_lines

    bound = written.root_bound
    lines = [
        f"model    {written.model}: {written.rows} rows, {written.columns} columns, {written.nonzeros} non-zeros",
        *dropped_lines(data.notes, 9),
        f"sidecar  {written.sidecar}",
        f"starts   {', '.join(sorted({str(path) for path in written.starts.values()}))}",
        f"         with the score {written.start_objective:.6f}",
        *([] if bound is None else [f"bound    {bound:.6f}  (certified; milpbn import keeps it)"]),
        *among_lines(written.among, 9),
    ]
    for package, script in written.scripts.items():
        lines.append(f"script   {script}  (python, with {package}; prints the bound for the import)")
    lines += [
        "",
        "Solve it with one of these, then: milpbn import SOLUTION --bound BOUND, the solver's best bound.",
    ]
    here = solvers_on_path()
    for heading, found in (("On the path of this machine", True), ("Not on the path of this machine", False)):
        commands = {name: line for name, line in written.commands.items() if (name in here) == found}
        lines += [f"\n{heading}:"] if commands else []
        lines += [f"\n# {solver}\n{command}" for solver, command in commands.items()]
    return lines


def _export_scores(dataset: Dataset, score: Score, constraints: Constraints, model: Values) -> None:
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
    local = export_local_scores(
        dataset, score, path=model.output, constraints=constraints, dominated=model.dominated
    )
    click.echo(
        f"scores   {model.output}: {local.candidates.n_sets} parent sets of {local.candidates.n_variables} variables"
    )
