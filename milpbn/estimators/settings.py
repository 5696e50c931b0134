"""The parameters of `MaxMarginBNClassifier` as the score, the options and the choices that a search takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from milpbn.errors import InputError
from milpbn.estimators.inputs import seed, threads
from milpbn.estimators.network import SELECT, policy_of
from milpbn.problem.scores.spec import Score
from milpbn.solving.grid import DISCRETISE, MISSING
from milpbn.solving.options import Options
from milpbn.solving.recipes import Choices

#: The options of `Score` and of `Options` that parameters of another name set. In scikit-learn `score` is a method, and
#: `warm_start` and `n_jobs` have fixed meanings.
RENAMED = {"name": "objective", "threads": "n_jobs", "warm_start": "heuristic_start"}
#: Value of a parameter that validation chooses.
CV = "cv"


def score_of(model: Any) -> Score:
    """Return the score; options that validation chooses have their defaults."""
    named = _named(model, Score)
    if named.get("p") == CV and named["gamma"] is not None:
        raise InputError("p='cv' chooses gamma itself; leave out p or gamma.")
    return Score(**{key: value for key, value in named.items() if not _is_cv(value)})


def options_of(model: Any, on_change: Callable[..., Any] | None) -> Options:
    """Return how to search; what is called at every change comes with it."""
    own = {
        "time_limit": None if model.time_limit == 0 else model.time_limit,
        "threads": threads(model.n_jobs),
        "random_state": seed(model.random_state),
        "verbose": bool(model.verbose),
        "on_change": on_change,
    }
    return Options(**{**_named(model, Options), **own})


def of_columns(numbers: Any, X: Any) -> Any:
    """Return the numbers of all columns of a data frame by column, since some may be no features; else as given."""
    columns = getattr(X, "columns", ())
    if numbers is None or isinstance(numbers, Mapping) or np.size(numbers) != len(columns):
        return numbers
    return dict(zip(columns, np.ravel(numbers), strict=True))


def choices_of(model: Any) -> Choices:
    """Return what validation chooses; parameters that contradict one another raise InputError."""
    choices = Choices(
        _is_cv(model.p),
        _is_cv(model.max_parents),
        grid=model.select,
        recipe=model.recipe,
        by=model.select_by,
        average=model.average,
    )
    if policy_of(model) == SELECT and not choices.of_missing:
        raise InputError(
            f"missing={SELECT!r} leaves the choice to validation; add recipe='accurate', or select with "
            "missing=drop,state in its grid, or choose drop, state or error."
        )
    if model.recipe is None and choices.of_missing and policy_of(model) != SELECT:
        raise InputError(
            f"{MISSING} is among the options to select, but missing={policy_of(model)!r}; set missing={SELECT!r}."
        )
    return choices


def given_to(model: Any) -> set[str]:
    """Return the options of the score and the table that the user has chosen, as far as defaults can tell."""
    defaults = {item.name: item.default for item in fields(model)}
    options = {field.name: RENAMED.get(field.name, field.name) for field in fields(Score)}
    options[DISCRETISE] = DISCRETISE
    values = {option: getattr(model, name) for option, name in options.items()}
    chosen = {
        option for option, value in values.items() if value != defaults[options[option]] and not _is_cv(value)
    }
    return chosen if policy_of(model) == SELECT else {*chosen, MISSING}


def _is_cv(value: Any) -> bool:
    return isinstance(value, str) and value == CV


def _named(model: Any, kind: type) -> dict[str, Any]:
    """Return the parameters that are options of a dataclass, by the names that they have there."""
    names = {field.name: RENAMED.get(field.name, field.name) for field in fields(kind)}
    return {option: getattr(model, name) for option, name in names.items() if hasattr(model, name)}
