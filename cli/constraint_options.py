"""The options of the constraints, and the file that may hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.sections import Verb, once, option, option_group, options
from milpbn.cli.steps import read_document
from milpbn.cli.types import ARC, ARC_WEIGHT, CHILD_LIMIT, COUNT, FAMILY, FILE, INDEPENDENCE, PAIR, TIERS
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.problem.constraints import Constraints


SECTION = "Constraints (put names that contain commas in double quotes)"
STRUCTURE = options(
    option(
        "--structure",
        click.Choice(["naive-bayes", "selective", "tan", "forest"]),
        "Class of structures, in which the class has no parents. naive-bayes: it is the only parent of all features; "
        "selective: of some. forest: a feature has no parents, or the class and at most one feature; tan: all have the "
        "class, too.",
    ),
    section=SECTION,
)


@option_group(
    SECTION,
    "constraints",
    option("--require", ARC, "An arc that the structure must have.", multiple=True),
    option("--forbid", ARC, "An arc that the structure must not have.", multiple=True),
    option("--tiers", TIERS, "Tiers of variables; no arc leads from a later tier to an earlier one."),
    option(
        "--max-children",
        CHILD_LIMIT,
        "Maximum number of children, of every feature or of one variable.",
        multiple=True,
    ),
    option(
        "--max-features",
        COUNT,
        "Predictions depend on at most K features: the parents of the class, its children and their other parents.",
        metavar="K",
    ),
    option("--fix", FAMILY, "Exact parents of a variable; NAME= for none.", multiple=True),
    option("--allow", FAMILY, "The only possible parents of a variable.", multiple=True),
    option(
        "--arc-weight", ARC_WEIGHT, "Nats added to the score of structures that have an arc.", multiple=True
    ),
    option("--ancestor", PAIR, "A directed path must lead from A to B.", multiple=True),
    option("--no-ancestor", PAIR, "No directed path may lead from A to B.", multiple=True),
    option(
        "--independence",
        INDEPENDENCE,
        "The structure must d-separate A and B given C and D; 'A,B' alone means given nothing. Example: "
        "--independence 'A,B|C,D'",
        multiple=True,
    ),
    option(
        "--constraints constraints_file",
        FILE,
        "JSON file with the keys required, forbidden, tiers, max_children, max_features, fixed, allowed, arc_weights, "
        "ancestors, no_ancestors, independences.",
    ),
)
def constraint_options(constraints_file: str | None, **values: Any) -> Constraints:
    """Gather the constraints of the options and of the file."""
    from milpbn.problem.constraints import Constraints

    base = Constraints() if constraints_file is None else read_constraints(constraints_file)
    if values["tiers"] and base.tiers:
        raise InputError(f"--tiers and the file {constraints_file!r} both give tiers; keep one of them.")
    most = values["max_features"]
    if most is not None and base.max_features is not None:
        raise InputError(
            f"--max-features and the file {constraints_file!r} both give max_features; keep one."
        )
    return Constraints(
        required=(*base.required, *values["require"]),
        forbidden=(*base.forbidden, *values["forbid"]),
        tiers=values["tiers"] or base.tiers,
        max_children=once("--max-children", base.max_children, values["max_children"]),
        max_features=base.max_features if most is None else most,
        fixed=once("--fix", base.fixed, values["fix"]),
        allowed=once("--allow", base.allowed, values["allow"]),
        arc_weights=once("--arc-weight", base.arc_weights, values["arc_weight"]),
        ancestors=(*base.ancestors, *values["ancestor"]),
        no_ancestors=(*base.no_ancestors, *values["no_ancestor"]),
        independences=(*base.independences, *values["independence"]),
    )


def search_constraints(verb: Verb) -> Verb:
    """Add the constraints, and as an argument of its own the class of structures."""
    return constraint_options(STRUCTURE(verb))


def read_constraints(path: str) -> Constraints:
    """Read a file of constraints, in the form of `milpbn.Constraints.to_dict`; raise InputError for another form."""
    from milpbn.problem.constraints import Constraints

    return Constraints.from_dict(
        read_document(path, "file of constraints"), f"The file of constraints {path!r}"
    )
