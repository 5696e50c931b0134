"""The options that several verbs share: those of the table, the score, the constraints and the search."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.sections import SEED, THREADS, given, option, option_group
from milpbn.cli.types import (
    ARC,
    ARC_WEIGHT,
    CHILD_LIMIT,
    CLASS_WEIGHTS,
    COUNT,
    COUNT_OR_CV,
    FAMILY,
    NAMES,
    NUMBER,
    NUMBER_OR_CV,
    SETTING,
    TIERS,
)
from milpbn.errors import InputError
from milpbn.problem.scores.registry import list_names

if TYPE_CHECKING:
    from milpbn.data import Table
    from milpbn.data.request import DataRequest
    from milpbn.problem.constraints import Constraints
    from milpbn.problem.scores.spec import Score
    from milpbn.solving.options import Options


@dataclass(frozen=True)
class TableOptions:
    """How to read the training data: the rows that train, and the options of `milpbn.read_table`."""

    rows: str = "train"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def read(self, source: str) -> Table:
        """Return the table; its split is dropped where ``rows`` is ``all``."""
        from dataclasses import replace

        from milpbn.data import read_table

        table = read_table(source, **self.settings)
        return replace(table, train_rows=None) if self.rows == "all" else table

    def request(self, source: str) -> DataRequest:
        """Return source and options as a record, for the sidecar of an exported model."""
        from milpbn.data.request import DataRequest

        return DataRequest(source, self.rows, self.settings)


@option_group(
    "Table",
    "table",
    option("--target", metavar="NAME", help="Class column; by default the last one."),
    option("--continuous", type=NAMES, multiple=True, help="Columns to discretise."),
    option(
        "--discretise",
        "--discretize",
        metavar="METHOD",
        default="mdl",
        show_default=True,
        help="How continuous columns are cut: mdl (minimum description length), or K intervals by quantile:K, "
        "uniform:K or kmeans:K, for example quantile:5.",
    ),
    option("--nominal", type=NAMES, multiple=True, help="Columns whose values are states as they stand."),
    option(
        "--missing",
        type=click.Choice(["drop", "state", "error"]),
        help="Missing values: drop their rows (the default), make them a state of their own, or refuse the data.",
    ),
    option("--weights", metavar="NAME", help="Column of sample weights, not used as a feature."),
    option("--class-weights", type=CLASS_WEIGHTS, help="Factor on the sample weights of each class."),
    option("--data-dir", metavar="DIR", help="Folder of the catalog; by default the variable MILPBN_DATA."),
    option(
        "--states",
        type=click.Choice(["seen", "declared"]),
        default="seen",
        help="States of nominal columns: those seen in training rows, or all that an ARFF or Parquet file declares.",
    ),
    option(
        "--split",
        type=click.Choice(["train", "all"]),
        default="train",
        show_default=True,
        help="Which rows to train on, where the catalog splits the data.",
    ),
)
def table_options(
    target: str | None,
    continuous: tuple[tuple[str, ...], ...],
    discretise: str,
    nominal: tuple[tuple[str, ...], ...],
    missing: str | None,
    weights: str | None,
    class_weights: dict[str, float] | str | None,
    data_dir: str | None,
    states: str,
    split: str,
) -> TableOptions:
    """Gather the options of the table; options at their defaults are left out."""
    settings = {
        "target": target,
        "continuous": [name for names in continuous for name in names],
        "discretise": None if discretise == "mdl" else discretise,
        "nominal": [name for names in nominal for name in names],
        "missing": missing,
        "weights": weights,
        "class_weights": class_weights,
        "data_dir": None if data_dir is None else os.path.abspath(data_dir),
        "states": None if states == "seen" else states,
    }
    # An empty name, for instance from an unset shell variable, is passed on so that it is refused.
    return TableOptions(split, {key: value for key, value in settings.items() if value or value == ""})


@dataclass(frozen=True)
class ScoreOptions:
    """The options of the score: attributes of `milpbn.Score`, and which of them validation chooses."""

    given: Mapping[str, Any]
    choose_p: bool = False
    choose_max_parents: bool = False

    @property
    def chooses(self) -> bool:
        """Whether validation chooses p or max_parents."""
        return self.choose_p or self.choose_max_parents

    def score(self) -> Score:
        """Return the score, checked."""
        from milpbn.problem.scores.spec import Score

        return Score(**self.given)


@option_group(
    "Score",
    "score",
    option(
        "--score",
        "name",
        metavar="NAME",
        help=f"{list_names()}; default sm.",
    ),
    option(
        "--p", type=NUMBER_OR_CV, help="gamma = log(p / (1 - p)); default 0.99. cv: choose p by validation."
    ),
    option("--gamma", type=NUMBER, help="Desired log-margin in nats, instead of --p."),
    option(
        "--max-parents",
        type=COUNT_OR_CV,
        help="Maximum number of parents of a variable, the class included; default 2. cv: choose 1 or 2 by validation.",
    ),
    option(
        "--class-parents/--no-class-parents",
        default=None,
        help="Allow the class to have feature parents (the default), or not.",
    ),
    option("--smoothing", type=NUMBER, help="Laplace constant of the parameters; default 1."),
    option(
        "--parent-sets",
        type=click.Choice(["paper", "all"]),
        help="For generative scores: the candidate parent sets of the margin scores (the default), or all sets.",
    ),
    option("--ess", "equivalent_sample_size", type=NUMBER, help="Equivalent sample size of bdeu; default 1."),
    option(
        "--penalty",
        metavar="bic|aic|NATS",
        help="Penalty per free parameter, subtracted from a margin score or cll.",
    ),
    option(
        "--hybrid", type=NUMBER, help="Factor on the log-likelihood, which is added to a margin score or cll."
    ),
    option(
        "--leave-one-out",
        is_flag=True,
        help="Score every sample with parameters that it does not count for: margin scores, cll and ll.",
    ),
)
def score_options(
    name: str | None,
    p: float | str | None,
    gamma: float | None,
    max_parents: int | str | None,
    class_parents: bool | None,
    smoothing: float | None,
    parent_sets: str | None,
    equivalent_sample_size: float | None,
    penalty: str | None,
    hybrid: float | None,
    leave_one_out: bool,
) -> ScoreOptions:
    """Gather the options of the score."""
    if p == "cv" and gamma is not None:
        raise InputError("--p cv chooses gamma itself; leave out --p or --gamma.")
    known = given(
        {
            "name": name,
            "p": None if p == "cv" else p,
            "gamma": gamma,
            "max_parents": None if max_parents == "cv" else max_parents,
            "class_parents": class_parents,
            "smoothing": smoothing,
            "parent_sets": parent_sets,
            "equivalent_sample_size": equivalent_sample_size,
            "penalty": penalty,
            "hybrid": hybrid,
            "leave_one_out": leave_one_out or None,
        }
    )
    return ScoreOptions(known, p == "cv", max_parents == "cv")


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
        metavar="FILE",
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
        max_children=_once("--max-children", base.max_children, max_children),
        fixed=_once("--fix", base.fixed, fix),
        allowed=_once("--allow", base.allowed, allow),
        arc_weights=_once("--arc-weight", base.arc_weights, arc_weight),
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


def _once(name: str, base: Mapping[Any, Any], given: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Add pairs to a mapping, each key once."""
    result = dict(base)
    for key, value in given:
        if key in result:
            shown = " -> ".join(key) if isinstance(key, tuple) else key
            raise InputError(f"{name} is given twice for {shown!r}; keep one of them.")
        result[key] = value
    return result


#: Shared by the verbs that return classifiers.
PARAMETERS = option(
    "--parameters",
    metavar="ml|cll|hybrid|temperature",
    help="Parameters of the classifier, fitted after the search: generative (ml), by conditional likelihood (cll), by "
    "that shrunk towards the generative ones (hybrid), or generative with one factor (temperature). Score and bound "
    "stay those of the generative ones.",
)


@dataclass(frozen=True)
class SearchOptions:
    """The options of the search.

    Attributes
    ----------
    options : Options
        How to search. Its start structure and its files are set later, by the verb.
    start : str or None
        File with the structure to start from.
    subset : int or None
        Number of representative samples that the search uses instead of all.
    """

    options: Options
    start: str | None
    subset: int | None


#: Shared by all verbs that can maximise over a subset of the samples.
SUBSET = option(
    "--subset",
    type=COUNT,
    help="Search over this many weighted, representative samples; the bound then holds for their score only.",
)


@option_group(
    "Search",
    "search",
    option(
        "--backend",
        metavar="NAME",
        help="native, highs, cbc, cpsat, scip, pulp:NAME, or auto (the default): native for the scores it can bound, "
        "highs for all others.",
    ),
    option(
        "--acyclicity",
        metavar="order|cluster",
        help="How MILP solvers exclude cycles: order rows (the default), or cluster rows as cutting planes.",
    ),
    option("--time-limit", type=NUMBER, metavar="SECONDS", help="For everything, reading included."),
    option(
        "--gap-rel",
        "--gap",
        "gap_rel",
        type=NUMBER,
        help="Stop at this gap relative to the bound.",
    ),
    option("--gap-abs", type=NUMBER, metavar="NATS", help="Stop at this absolute gap."),
    option(*THREADS, "threads", type=COUNT, help="By default all cores."),
    option(*SEED, "random_state", type=COUNT, help="Random seed; default 0."),
    option("--start", metavar="FILE", help="Structure to start from: arc list, result or classifier file."),
    option(
        "--no-warm-start",
        is_flag=True,
        help="Do not start the MILP solver from the heuristics' best structure.",
    ),
    option("--no-root-bound", is_flag=True, help="Do not compute a root bound before the MILP solver runs."),
    option(
        "--no-reduce",
        is_flag=True,
        help="Give the MILP solver all parent sets, also those that the root bound excludes.",
    ),
    option("--no-merge", is_flag=True, help="Do not merge identical samples."),
    SUBSET,
    option(
        "--solver-option", type=SETTING, multiple=True, help="One of the solver's own parameters; repeatable."
    ),
)
def search_options(
    backend: str | None,
    acyclicity: str | None,
    time_limit: float | None,
    gap_rel: float | None,
    gap_abs: float | None,
    threads: int | None,
    random_state: int | None,
    start: str | None,
    no_warm_start: bool,
    no_root_bound: bool,
    no_reduce: bool,
    no_merge: bool,
    subset: int | None,
    solver_option: tuple[tuple[str, str], ...],
) -> SearchOptions:
    """Gather the options of the search."""
    from milpbn.problem.subset import Subset
    from milpbn.solving.options import Options

    Subset.of(subset)  # refuses an impossible size before the table is read
    known = given(
        {
            "backend": backend,
            "acyclicity": acyclicity,
            "time_limit": time_limit,
            "gap_rel": gap_rel,
            "gap_abs": gap_abs,
            "threads": threads,
            "random_state": random_state,
        }
    )
    options = Options(
        **known,
        warm_start=not no_warm_start,
        root_bound=not no_root_bound,
        reduce=not no_reduce,
        merge=not no_merge,
        solver_options=_once("--solver-option", {}, solver_option),
    )
    return SearchOptions(options, start, subset)
