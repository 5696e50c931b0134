"""``milpbn import``: turns another solver's solution of an exported model into a result."""

from __future__ import annotations

import click

from milpbn.cli.outputs import check_outputs
from milpbn.cli.search_options import NO_NOTES
from milpbn.cli.sections import option, options, verb
from milpbn.cli.steps import say_notes, show_result
from milpbn.cli.types import DATA, FILE, NUMBER, OUTPUT


@verb("import", short_help="Read another solver's solution of an exported model.")
@click.argument("solution", type=FILE)
@options(
    option("--model", FILE, "The exported model, if its name does not begin like the solution's."),
    option("--data", DATA, "The training data, if they moved since the export."),
    option("--bound", NUMBER, "The bound that the solver printed, if the solution file has none."),
    option(
        "--gap-rel",
        NUMBER,
        "The relative gap at which the solver was told to stop, if the file says optimal and has no bound.",
    ),
    option("--output", OUTPUT, "The result as JSON (result.json)."),
    option("--classifier", OUTPUT, "The classifier as JSON."),
    NO_NOTES,
)
def import_(
    solution: str,
    model: str | None,
    data: str | None,
    bound: float | None,
    gap_rel: float | None,
    output: str | None,
    classifier: str | None,
    quiet: bool,
) -> int:
    """Read the solution of CPLEX, Gurobi, COPT, Xpress, SCIP, HiGHS, CBC or GLPK for an exported model.

    The structure is rebuilt, checked, and scored from the data. A solution that belongs to other data or options
    is refused.

    Without a bound of the solver the result has the root bound of the export. Give the bound as the solver prints it:
    after "best bound" (CPLEX, Gurobi), "Dual bound" (HiGHS, SCIP), "Upper bound" or "Lower bound" (CBC) at the end of
    its log; for an .mps file it is that of the minimisation.

    \b
    Example:
      milpbn import model.gurobi.sol --bound 5341.6 --output result.json --classifier classifier.json
      milpbn import model.highs.sol --gap-rel 1e-4
    """
    from milpbn.data.dataset import dropped_notes
    from milpbn.network import save_classifier
    from milpbn.solving.importing import import_solution, model_files

    check_outputs([("input", "--model", str(path)) for path in model_files(solution, model)])
    result = import_solution(solution, model=model, data=data, bound=bound, gap_rel=gap_rel)
    if output is not None:
        result.save(output)
    if classifier is not None and result.classifier is not None:
        save_classifier(result.classifier, classifier)
    shown = dropped_notes(result.notes)  # in the closing block
    say_notes([note for note in result.notes if note not in shown], quiet=quiet)
    return show_result(result)
