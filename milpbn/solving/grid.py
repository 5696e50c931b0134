"""The settings that a selection compares: values of options, and which of their combinations differ on given data."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from milpbn.claims.selection import CRITERIA
from milpbn.data import Dataset, Table, read_table
from milpbn.data.discretisation import Discretisation
from milpbn.data.folds import Split
from milpbn.errors import InputError
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.prior import check_towards
from milpbn.problem.candidates import count_candidates
from milpbn.problem.counts import require_units
from milpbn.problem.scores.options import ALL, PAPER
from milpbn.problem.scores.registry import find_score, score_names
from milpbn.problem.scores.spec import P_GRID, Score
from milpbn.trials.parts import may_drop
from milpbn.util.options import declared, spelling, types_of
from milpbn.util.validation import whole_number

#: Peharz and Pernkopf (2012) choose the number of parents from these.
MAX_PARENTS_GRID = (1, 2)
#: The grid of ``--select default``.
DEFAULT_GRID = "score=sm,cll p=.6,.8,.9,.95,.99 max-parents=1,2 leave-one-out=no,yes"
#: The options of a score that a grid may name, by the names of the command line.
OPTIONS = {spelling(item)[2:]: item for item in declared(Score) if item.metadata.get("selectable", True)}
#: Their names in Python.
NAMES = {key: item.name for key, item in OPTIONS.items()}
DISCRETISE, PARAMETERS, MISSING = "discretise", "parameters", "missing"
#: What a grid may compare for missing values in training: drop their rows, or give them a state.
MISSING_VALUES = ("drop", "state")
#: All options that a grid may name.
SELECTABLE = (*NAMES, DISCRETISE, MISSING, PARAMETERS)
_FLAGS = {"yes": True, "no": False}
#: Options that only some scores have, by the name under which those declare them.
_OWN = {
    key: item.metadata.get("belongs_to", item.name)
    for key, item in OPTIONS.items()
    if "refused" in item.metadata
}


@dataclass(frozen=True)
class Setting:
    """One combination of values.

    `p` is None if the grid does not choose it, or the score does not take it; `discretisation` and `missing` are None
    for the table's own way. `options` has the values other than p and max_parents, by the names of the command line, as
    JSON values. The trial compares all values of the method `parameters` (`milpbn.network.parameters.method.METHODS`).
    """

    score: Score
    p: float | None
    discretisation: Discretisation | None
    options: Mapping[str, Any] = field(compare=False)
    parameters: str = "ml"
    missing: str | None = None

    def describe(self) -> str:
        """Return the values in the words of the command line, for example ``p = 0.9, max-parents = 2``."""
        return describe(self.p, self.score.max_parents, self.options)


def describe(p: float | None, max_parents: int, options: Mapping[str, Any]) -> str:
    """Return values in the words of the command line."""
    flags = {value: word for word, value in _FLAGS.items()}
    shown = {key: flags[value] if isinstance(value, bool) else value for key, value in options.items()}
    shown |= {} if p is None else {"p": p}
    shown["max-parents"] = max_parents
    return ", ".join(f"{key} = {value}" for key, value in shown.items())


@dataclass(frozen=True)
class Grid:
    """The values to choose from. All combinations are compared, as far as a score takes the options."""

    #: Values of p; None for scores without gamma, or to keep the value of the score.
    p: Sequence[float] | None = P_GRID
    max_parents: Sequence[int] = MAX_PARENTS_GRID
    #: Values of further options by the names of the command line: the keys of `NAMES`, ``discretise``, ``missing`` and
    #: ``parameters``.
    others: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    by: str = "accuracy"
    #: After each split, go on with the better half of the settings only, but with at least `FEWEST`, and stop settings
    #: that can no longer have the highest accuracy. The paper compares all settings on all splits.
    halving: bool = False
    #: Compare the settings with the fewest parents on all splits, then those with more. So if the time is over while
    #: the tables of large parent sets are built, the others have been compared.
    smallest_first: bool = False
    #: Settings with more candidate parent sets times training rows are left out, except those with the fewest.
    most_work: float = math.inf
    #: Number of the best settings whose networks are averaged, the best one among them. Settings that differ in their
    #: parameters only count once, and those that were tried on fewer splits than the best do not count.
    average: int = 1

    def __post_init__(self) -> None:
        if whole_number("average", self.average) < 1:
            raise InputError(f"The number of networks to average must be at least 1, got {self.average}.")
        if self.by not in CRITERIA:
            raise InputError(f"Settings are compared by {' or '.join(CRITERIA)}, not by {self.by!r}.")
        unknown = [key for key in self.others if key not in SELECTABLE]
        if unknown:
            raise InputError(f"{unknown[0]!r} cannot be selected; {', '.join(SELECTABLE)} can.")

    @classmethod
    def parse(cls, text: str, by: str = "accuracy") -> Grid:
        """Return the grid that a text such as ``p=.6,.9 max-parents=1,2 leave-one-out=no,yes`` describes.

        ``default`` stands for `DEFAULT_GRID`. Options that the text does not name keep the score's values. Raise
        InputError if an option is unknown or named twice, or a value cannot be read.
        """
        values: dict[str, tuple[Any, ...]] = {}
        for word in (DEFAULT_GRID if text.strip() == "default" else text).split():
            key, equals, listed = word.partition("=")
            key = key.replace("_", "-")
            if key == "discretize":
                key = DISCRETISE
            if not equals or not listed or key not in SELECTABLE:
                raise InputError(
                    f"The grid has {word!r}; write OPTION=VALUE,VALUE with {', '.join(SELECTABLE)}, for "
                    "example 'p=.6,.9 max-parents=1,2'."
                )
            if key in values:
                raise InputError(f"The grid names {key} twice; list all its values once.")
            values[key] = tuple(dict.fromkeys(_value(key, item) for item in listed.split(",")))
        if not values:
            raise InputError(
                "The grid is empty; name values, for example 'p=.6,.9 max-parents=1,2', or 'default'."
            )
        return cls(values.pop("p", None), values.pop("max-parents", ()), values, by, halving=True)

    def joined(self, other: Grid, given: Collection[str]) -> Grid:
        """Return this grid with the values of p and max_parents of another one, where this one names none.

        The other one is the grid without ``--select``; `given` has attributes of the score, or ``discretise``, that the
        user gave as single values. Raise InputError if an option of this grid is given elsewhere, too.
        """
        own = {"p": self.p, "max-parents": tuple(self.max_parents), **self.others}
        elsewhere = [key for key in own if own[key] and NAMES.get(key, key) in given]
        elsewhere += ["p"] if self.p is not None and (other.p is not None or "gamma" in given) else []
        elsewhere += ["max-parents"] if self.max_parents and len(other.max_parents) > 1 else []
        if elsewhere:
            raise InputError(
                f"{elsewhere[0]} is among the options to select, and is given as --{elsewhere[0]}; keep one of them."
            )
        return replace(
            self, p=other.p if self.p is None else self.p, max_parents=self.max_parents or other.max_parents
        )

    def always_leaves_one_out(self, score: Score) -> bool:
        """Return whether all settings are leave-one-out scores, if the others' options are those of a score."""
        return all(self.others.get("leave-one-out", (score.leave_one_out,)))

    def settings(self, score: Score) -> list[Setting]:
        """Return all combinations of values, in the order in which they are compared.

        Options that a score does not take are left out, so that a grid may name several scores. Raise InputError if a
        value is out of range, or no score of the grid takes an option.
        """
        chosen = {
            "score": self.others.get("score", (score.name,)),
            "max-parents": tuple(self.max_parents) or (score.max_parents,),
        }
        chosen |= {key: tuple(values) for key, values in self.others.items() if key != "score"}
        cuts, fits = chosen.pop(DISCRETISE, (None,)), chosen.pop(PARAMETERS, (None,))
        policies = chosen.pop(MISSING, (None,))
        if self.p is not None:
            chosen["p"] = tuple(self.p)  # last: settings that differ only in p follow one another
        found: dict[tuple[Any, ...], Setting] = {}
        taken: set[str] = set()
        for policy, cut, fit, combination in product(policies, cuts, fits, list(product(*chosen.values()))):
            own = _taken(dict(zip(chosen, combination, strict=True)))
            taken.update(own)
            told = {k: v for k, v in own.items() if k in self.others}
            told |= {} if cut is None else {DISCRETISE: str(cut)}
            told |= {} if fit is None else {PARAMETERS: fit}
            told |= {} if policy is None else {MISSING: policy}
            how = None if cut is None else Discretisation.parse(cut)
            setting = Setting(
                _score(score, own), own.get("p"), how, told, "ml" if fit is None else fit, policy
            )
            found.setdefault((setting.score, how, setting.parameters, policy), setting)
        unused = next((key for key in chosen if key not in taken), None)
        if unused is not None:
            names = " and ".join(chosen["score"])
            those = " and ".join(score_names(lambda kind: kind.takes(_OWN[unused])))
            raise InputError(f"{unused} belongs to the scores {those}, not to {names}; leave it out.")
        return list(found.values())


def affordable(settings: Sequence[Setting], n_features: int, n_rows: int, most_work: float) -> list[Setting]:
    """Return the settings whose candidate parent sets times rows are at most `most_work`, or those with the fewest."""
    work = [n_rows * count_candidates(n_features, setting.score) for setting in settings]
    return [s for s, own in zip(settings, work, strict=True) if own <= max(most_work, min(work))]


def source_of(data: Any, grid: Grid) -> Table | Dataset:
    """Return the data, and read what is no table yet: with all rows if the grid chooses between policies."""
    if isinstance(data, Table | Dataset):
        return data
    return read_table(data, missing="state" if MISSING in grid.others else None)


def applicable(grid: Grid, score: Score, source: Table | Dataset, splits: Sequence[Split]) -> list[Setting]:
    """Return the settings to compare, in the order of the grid.

    Raise InputError if the score does not take an option of the grid, a dataset would have to be discretised, or a
    weight is too small for a leave-one-out score.
    """
    settings = grid.settings(score)
    if isinstance(source, Table) and "continuous" not in source.kinds.values():
        # Without a continuous column, settings that differ in their discretisation are the same.
        settings = list({(s.score, s.parameters, s.missing): s for s in reversed(settings)}.values())[::-1]
    settings = _of_policies(settings, source, splits)
    if isinstance(source, Table):
        n_features, n_rows = len(source.features), len(source.train_indices)
    else:
        n_features, n_rows = source.n_features, source.n_samples
    settings = affordable(settings, n_features, n_rows, grid.most_work)
    if isinstance(source, Dataset) and any(setting.discretisation for setting in settings):
        raise InputError(
            "Only a table can be discretised in other ways; give the selection a table, not a dataset."
        )
    # Before any trial: what the first ones find may be written before the trial that would refuse the weights.
    for missing, unit in {s.missing: s.score.kind.unit for s in settings if s.score.needs_units}.items():
        rows = source
        if isinstance(source, Table):
            kept = source.of_complete_rows() if missing == "drop" else source
            rows = kept.of_rows(kept.train_indices)
        require_units(rows, unit)
    return settings


def _of_policies(settings: list[Setting], source: Table | Dataset, splits: Sequence[Split]) -> list[Setting]:
    """Return the settings that differ on this data, if they differ in what they do with missing values.

    A table without missing values, or one whose incomplete rows are dropped already, has nothing to choose from. Where
    dropping rows would leave too few classes, they are not dropped.
    """
    if not isinstance(source, Table) or source.complete.all():
        without = [{k: v for k, v in s.options.items() if k != MISSING} for s in settings]
        same = (replace(s, missing=None, options=own) for s, own in zip(settings, without, strict=True))
        return list(dict.fromkeys(same))
    if may_drop(source, splits):
        return settings
    return [s for s in settings if s.missing != "drop"] or settings


def _value(key: str, text: str) -> Any:
    """Return one value of a grid's text."""
    if key == DISCRETISE:
        return str(Discretisation.parse(text))
    if key == PARAMETERS:
        method = ParameterMethod.parse(text)
        if method.kappa is not None:
            raise InputError(
                f"The grid has {key}={text}; the selection tries all values of {method.name}: give the name."
            )
        return method.name
    if key == MISSING:
        if text not in MISSING_VALUES:
            raise InputError(f"The grid has {key}={text!r}; {key} is {' or '.join(MISSING_VALUES)}.")
        return text
    if key == "parent-sets":
        if text not in (PAPER, ALL):
            raise InputError(f"The grid has {key}={text!r}; {key} is {PAPER} or {ALL}.")
        return text
    if key == "smoothing-towards":
        check_towards(text)
    types = types_of(Score, NAMES[key])
    if str in types and (types == [str] or text in OPTIONS[key].metadata["completes"]):
        return text
    try:
        return _FLAGS[text] if bool in types else int(text) if int in types else float(text)
    except (KeyError, ValueError):
        kind = "yes or no" if bool in types else "a number"
        raise InputError(f"The grid has {key}={text!r}; {key} is {kind}.") from None


def _taken(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that their score takes."""
    kind = find_score(options["score"])
    return {key: value for key, value in options.items() if key not in _OWN or kind.takes(_OWN[key])}


def _score(score: Score, options: Mapping[str, Any]) -> Score:
    """Return the score with other options; without gamma if the new score does not take it."""
    attributes = {NAMES[key]: value for key, value in options.items()}
    kind = find_score(attributes["name"])
    if not kind.takes("gamma"):
        attributes |= {"gamma": None, "p": None}
    elif "p" in attributes:
        attributes["gamma"] = None
    return replace(score, **attributes)
