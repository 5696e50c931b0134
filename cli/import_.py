"""``milpbn import``: turns another solver's solution of an exported model into a result."""

from __future__ import annotations

import click

from milpbn.cli.outputs import check_outputs
from milpbn.cli.report import say
from milpbn.cli.sections import verb
from milpbn.cli.types import DATA, FILE, NUMBER


@verb("import", short_help="Read another solver's solution of an exported model.")
@click.argument("solution", type=FILE)
@click.option(
    "--model", type=FILE, help="The exported model, if its name does not begin like the solution's."
)
@click.option("--data", type=DATA, help="The training data, if they moved since the export.")
@click.option(
    "--bound", type=NUMBER, help="The bound that the solver printed, if the solution file has none."
)
@click.option(
    "--gap-rel",
    type=NUMBER,
    help="The relative gap at which the solver was told to stop, if the file says optimal and has no bound.",
)
@click.option("--output", type=FILE, help="The result as JSON (result.json).")
@click.option("--classifier", type=FILE, help="The classifier as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No notes on stderr.")
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
    """Read the solution file of CPLEX, Gurobi, SCIP, HiGHS, CBC or GLPK for an exported model.

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
    from milpbn.cli.solve import show_result
    from milpbn.data.dataset import dropped_notes
    from milpbn.network import save_classifier
    from milpbn.solving.importing import import_solution, model_files

    read = [solution, model, data, *map(str, model_files(solution, model))]
    check_outputs({"--output": output, "--classifier": classifier}, read)

    result = import_solution(solution, model=model, data=data, bound=bound, gap_rel=gap_rel)
    if output is not None:
        result.save(output)
    if classifier is not None and result.classifier is not None:
        save_classifier(result.classifier, classifier)
    for note in result.notes:
        if not quiet and note not in dropped_notes(result.notes):  # the closing block has these
            say(note, err=True)
    return show_result(result)
