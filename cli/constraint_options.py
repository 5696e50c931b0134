"""The options of the constraints, and the file that may hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from milpbn.cli.sections import once, option, option_group
from milpbn.cli.types import ARC, ARC_WEIGHT, CHILD_LIMIT, FAMILY, FILE, TIERS
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.problem.constraints import Constraints


@option_group(
    "Constraints (put names that contain commas in double quotes)",
    "constraints",
    option("--require", type=ARC, multiple=True, help="An arc that the structure must have."),
    option("--forbid", type=ARC, multiple=True, help="An arc that the structure must not have."),
    option(
        "--tiers", type=TIERS, help="Tiers of variables; no arc leads from a later tier to an earlier one."
    ),
    option(
        "--max-children",
        type=CHILD_LIMIT,
        multiple=True,
        help="Maximum number of children, of every feature or of one variable.",
    ),
    option("--fix", type=FAMILY, multiple=True, help="Exact parents of a variable; NAME= for none."),
    option("--allow", type=FAMILY, multiple=True, help="The only possible parents of a variable."),
    option(
        "--arc-weight",
        type=ARC_WEIGHT,
        multiple=True,
        help="Nats added to the score of structures that have an arc.",
    ),
    option(
        "--constraints",
        "constraints_file",
        type=FILE,
        help="JSON file with the keys required, forbidden, tiers, max_children, fixed, allowed, arc_weights.",
    ),
)
def constraint_options(
    require: tuple[tuple[str, str], ...],
    forbid: tuple[tuple[str, str], ...],
    tiers: tuple[tuple[str, ...], ...] | None,
    max_children: tuple[tuple[str, int], ...],
    fix: tuple[tuple[str, tuple[str, ...]], ...],
    allow: tuple[tuple[str, tuple[str, ...]], ...],
    arc_weight: tuple[tuple[tuple[str, str], float], ...],
    constraints_file: str | None,
) -> Constraints:
    """Gather the constraints of the options and of the file."""
    from milpbn.problem.constraints import Constraints

    base = Constraints() if constraints_file is None else read_constraints(constraints_file)
    if tiers and base.tiers:
        raise InputError(f"--tiers and the file {constraints_file!r} both give tiers; keep one of them.")
    return Constraints(
        required=(*base.required, *require),
        forbidden=(*base.forbidden, *forbid),
        tiers=tiers or base.tiers,
        max_children=once("--max-children", base.max_children, max_children),
        fixed=once("--fix", base.fixed, fix),
        allowed=once("--allow", base.allowed, allow),
        arc_weights=once("--arc-weight", base.arc_weights, arc_weight),
    )


def read_constraints(path: str) -> Constraints:
    """Read a file of constraints, in the form of `milpbn.Constraints.to_dict`.

    Raises
    ------
    InputError
        If the file cannot be read or does not have this form.
    """
    from milpbn.problem.constraints import Constraints
    from milpbn.util.jsonable import parse_object, read_text

    text = read_text(path, "file of constraints")
    try:
        values = parse_object(text)
    except InputError as error:
        raise InputError(f"The file of constraints {path!r} is unusable: {error}") from None
    return Constraints.from_dict(values, f"The file of constraints {path!r}")
