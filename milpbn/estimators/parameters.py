"""The parameters that all estimators share: how X and y are read, and the attributes that `fit` sets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass
from textwrap import fill, indent
from typing import Any, TypeVar, dataclass_transform

from milpbn.data.options import ReadingOptions
from milpbn.estimators.inputs import Columns
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.options import DeclaredScore
from milpbn.util.options import declared

T = TypeVar("T", bound=type)

#: Entries of a docstring in the place of ``{data}``: the parameters of `DataParameters`.
DATA = """\
drop, features : collection of str or int, default=None
    Columns of X to leave out, and the only columns to use, by name or by position. By default all columns are
    features, except those of a data frame that look like identifiers, dates or free text.
continuous, nominal : collection of str or int, default=None
    Features declared as continuous and as nominal, by name or by position. Of the others, floats are continuous,
    text, booleans and categoricals are nominal, and integers are nominal if they have at most 10 different values.
missing : {"drop", "state", "error"}, default="drop"
    What to do with missing values in training: drop the rows that have any (with a `milpbn.DataWarning`, and their
    number in ``n_dropped_``), give those of a feature a state of their own, or refuse them. Unless it is "error",
    predictions take missing values, too: they have that state, or else are marginalised.
states : {"seen", "declared"}, default="seen"
    Whether the states of a pandas categorical are the values of the training rows, or all of its categories.
absent_columns : {"error", "marginalise"}, default="error"
    What to do at prediction if a data frame lacks features: refuse it as scikit-learn does, or sum over their
    states, with a `milpbn.DataWarning`. Columns that training left out may always be absent.
discretise : str, default="mdl"
    How continuous features are cut into intervals: ``mdl``, ``quantile:K``, ``uniform:K``, ``kmeans:K`` or
    ``boosted:K``.
class_weight : dict, "balanced" or None, default=None
    Factors on the sample weights by class label.
costs : mapping, DataFrame or None, default=None
    What decisions cost: by true label (rows) and predicted label (columns), or ``{"missed": 20, "false_alarm": 1}`` of
    two classes, where the rarer one is missed unless ``"positive"`` names it. `predict` then gives the class of least
    expected cost; probabilities stay as they are. With ``"abstain"``, it gives "do not know" where that costs less.
"""
#: Entries in the place of ``{search}``: parameters of `SearchParameters`.
SEARCH = """\
constraints : Constraints or None, default=None
    Arcs and paths that are required or forbidden, and more; see `milpbn.Constraints`.
screen : int or None, default=None
    Search only over this many promising parent sets per variable, beside the small ones; the bound then holds for
    structures over these sets only, and ``bound_`` and ``gap_`` are NaN.
time_limit : float or None, default=None
    Wall-clock seconds from the call of `fit`; None searches for a proof as long as it takes. With 0, and if the
    time ends before there is a structure, the model has no arcs but those that the constraints require.
n_jobs : int or None, default=None
    Threads; None means 1, and -1 all cores.
verbose : bool, default=False
    Whether to show a line for every change of incumbent or bound.
"""
#: Entries in the place of ``{fitted}``: attributes that all fits set.
FITTED = """\
classes_ : array, shape (C,)
    Class labels, sorted, of the type of y.
structure_ : dict of str to list of str or None
    Parents of every variable, the class included. Columns of arrays are called ``x0``, ``x1``, ..., and the class
    has the name of y, or is called ``class``. None if the model is not an acyclic network.
n_dropped_ : int
    Number of training rows that were dropped because values are missing.
feature_importances_ : float64 array, shape (N,)
    How much the class probabilities of the training rows change on average where the feature is unknown, between 0
    and 1: half the sum of the absolute changes, over at most 2,000 rows (200 to 2,000 with more than 50 columns).
    0 for a feature that no prediction depends on. Classifiers only.
n_features_in_ : int
    Number of features.
feature_names_in_ : array of str, shape (N,)
    Names of the features, if X has column names that are all text.
"""


#: Entries in the place of ``{figures}``: attributes that all searches set.
FIGURES = """\
objective_ : float
    The score of the structure, in nats, under the generative parameters of the score.
bound_ : float
    Upper bound on the score of every structure; NaN if there is none.
gap_ : float
    ``bound_ - objective_`` in nats; ``result_.gap`` has the relative gaps.
optimal_ : bool
    Whether the structure is proved best.
stop_reason_ : str
    ``optimal``, or what stopped the search: ``time``, ``gap``, ``gap-se``, ``user``, ``node`` or ``memory``;
    ``feasible`` if a solver ended by itself within its tolerances.
trace_ : float64 array, shape (T, 3)
    Seconds, incumbent and bound at every change; NaN where unknown.
result_ : Result
    Everything that is known about the run; ``result_.save("result.json")`` writes it.
"""


#: Entries in the place of ``{parameters}``, behind those of the learner's options.
PARAMETERS = """\
parameters : str or None, default=None
    How the parameters are fitted: ``ml``, ``cll``, ``hybrid`` or ``temperature``. None and ``ml`` give smoothed
    relative frequencies.
"""


def _entries(options: Iterable[Field[Any]]) -> str:
    """Return entries of a docstring for options, from their declarations."""
    entries = []
    for item in options:
        words = item.metadata.get("choices") or item.metadata.get("completes", ())
        listed = ", ".join(f'"{word}"' for word in words)
        kind = str(item.type).replace("str", f"{{{listed}}}" if words else "str").replace(" | ", " or ")
        default = f'"{item.default}"' if isinstance(item.default, str) else item.default
        text = re.sub(r"--([a-z-]+)", lambda found: f"`{found[1].replace('-', '_')}`", item.metadata["help"])
        entries.append(f"{item.name} : {kind}, default={default}\n{indent(fill(text, 108), '    ')}\n")
    return "".join(entries)


@dataclass_transform(kw_only_default=True, eq_default=False)
def estimator(kind: T) -> T:
    """Make the annotated attributes of a class and of its bases the keyword-only parameters of an estimator.

    In the docstring, ``{data}``, ``{search}``, ``{fitted}``, ``{figures}`` and ``{parameters}`` stand for the entries
    of `DATA`, `SEARCH`, `FITTED`, `FIGURES` and `PARAMETERS`, ``{score}`` for the options of a score and
    ``{options}`` for those of the learner `_kind` that are parameters of the estimator; without those that the
    docstring has itself.
    """
    made: Any = dataclass(kw_only=True, eq=False, repr=False)(kind)
    options = declared(made._kind) if hasattr(made, "_kind") else []
    text = made.__doc__ or ""
    for place, entries in (
        ("{data}", DATA),
        ("{search}", SEARCH),
        ("{fitted}", FITTED),
        ("{figures}", FIGURES),
        ("{score}", _entries(declared(DeclaredScore)[1:])),
        ("{options}", _entries(item for item in options if hasattr(made, item.name))),
        ("{parameters}", PARAMETERS),
    ):
        shared = re.split(r"^(?=\S)", entries, flags=re.MULTILINE)[1:]
        others = [entry for entry in shared if f"\n    {entry.partition(' :')[0]} :" not in text]
        if place not in ("{fitted}", "{figures}"):
            others = [entry for entry in others if hasattr(made, re.split(" :|,", entry)[0])]
        text = text.replace(f"    {place}\n", indent("".join(others), "    "))
    made.__doc__ = text
    return made


@estimator
class DataParameters:
    """The parameters that say how X is read."""

    drop: Columns = None
    features: Columns = None
    continuous: Columns = None
    nominal: Columns = None
    missing: str | None = "drop"
    states: str = ReadingOptions.states
    absent_columns: str = "error"
    discretise: str = ReadingOptions.discretise
    random_state: Any = 0


@estimator
class ClassifierParameters(DataParameters):
    """The parameters of classifiers that say how X and y are read."""

    class_weight: Mapping[Any, float] | str | None = None
    costs: Any = None


@estimator
class SearchParameters:
    """The parameters that estimators with a search share; see `milpbn.Score` and `milpbn.solving.options.Options`."""

    smoothing: float = 1.0
    equivalent_sample_size: float = 1.0
    constraints: Constraints | None = None
    screen: int | None = None
    time_limit: float | None = None
    memory_limit: int | None = None
    gap_rel: float = 0.0
    gap_abs: float = 0.0
    gap_se: float = 0.0
    backend: str = "auto"
    start: Structure | None = None
    n_best: int = 1
    within: float | None = None
    solver_options: Mapping[str, str] | None = None
    output: str | os.PathLike[str] | None = None
    trace: str | os.PathLike[str] | None = None
    log: str | os.PathLike[str] | None = None
    interrupted: Callable[[], bool] | None = None
    n_jobs: int | None = None
    verbose: bool = False
