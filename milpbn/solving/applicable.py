"""The settings of a grid that a selection compares on given data: those that differ there, and are no huge work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from milpbn.data import Dataset, Table, read_table
from milpbn.data.folds import Split
from milpbn.errors import InputError
from milpbn.problem.scores.spec import Score
from milpbn.solving.grid import MISSING, Grid, Setting, affordable
from milpbn.trials.parts import may_drop


def source_of(data: Any, grid: Grid) -> Table | Dataset:
    """Return the data, and read what is no table yet: with all rows if the grid chooses between policies."""
    if isinstance(data, Table | Dataset):
        return data
    return read_table(data, missing="state" if MISSING in grid.others else None)


def applicable(grid: Grid, score: Score, source: Table | Dataset, splits: Sequence[Split]) -> list[Setting]:
    """Return the settings to compare, in the order of the grid.

    Parameters
    ----------
    grid : Grid
        The values to choose from.
    score : Score
        The score whose options are replaced by these values.
    source : Table or Dataset
        Training rows, as `source_of` returns them.
    splits : sequence of Split
        Splits of the rows into training and held-out rows.

    Raises
    ------
    InputError
        If the score does not take an option of the grid, or a dataset would have to be discretised.
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
    return settings


def _of_policies(settings: list[Setting], source: Table | Dataset, splits: Sequence[Split]) -> list[Setting]:
    """Return the settings that differ on this data, if they differ in what they do with missing values.

    A table without missing values, or one whose incomplete rows are dropped already, has nothing to choose from. Where
    dropping rows would leave too few classes, they are not dropped.
    """
    chooses = isinstance(source, Table) and not source.complete.all()
    if not chooses:
        found = {
            replace(s, missing=None): replace(
                s, missing=None, options={k: v for k, v in s.options.items() if k != MISSING}
            )
            for s in reversed(settings)
        }
        return list(found.values())[::-1]
    assert isinstance(source, Table)
    if may_drop(source, splits):
        return settings
    return [s for s in settings if s.missing != "drop"] or settings
