"""Read comparisons of learners back: rows of a checkpoint, and the file of ``milpbn compare --output``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from milpbn.claims.about import DataSummary
from milpbn.claims.reading import read_score
from milpbn.learners.figures import Comparison, ComparisonRow
from milpbn.trials.differences import Difference, Interval
from milpbn.util.declared import read_as
from milpbn.util.jsonable import Fields


def read_figures(values: Fields, where: str) -> ComparisonRow:
    """Read the figures of one learner, without the test rows one by one, the differences and the parts.

    Parameters
    ----------
    values : Fields
        The figures.
    where : str
        The beginning of error messages about the score.

    Raises
    ------
    InputError
        If a value is missing or impossible.
    """
    found, intervals = values.fields("details"), values.fields("intervals")
    details = _plain(found)
    if "bound" in found and not found.missing("bound"):  # the row of an exact search
        found.number("bound")
        details["score"] = read_score(found, where).to_dict()
    return ComparisonRow(
        name=values.text("name"),
        test=values.number("test", 0.0, 1.0, optional=True),
        training=values.number("training", 0.0, 1.0, optional=True),
        log_loss=values.number("log_loss", 0.0, optional=True),
        brier=values.number("brier", 0.0, 2.0, optional=True),
        unweighted=_later(values, "unweighted", 1.0),
        intervals={key: _interval(intervals, key) for key in intervals},
        arcs=values.number("arcs", 0.0, optional=True),
        parameters=values.number("parameters", 0.0, optional=True),
        score=values.number("score", optional=True),
        gap=values.number("gap", optional=True),
        relative_gap=values.number("relative_gap", optional=True),
        seconds=values.number("seconds", 0.0),
        stopped_early=values.flag("stopped_early"),
        note=values.text("note"),
        options=_plain(values.fields("options")),
        details=details,
    )


def read_comparison(document: Mapping[str, Any], where: str) -> Comparison:
    """Read what `Comparison.to_dict` returned.

    Parameters
    ----------
    document : mapping
        The contents of the file.
    where : str
        The beginning of error messages, such as the name of the file.

    Raises
    ------
    InputError
        If a value is missing or impossible.
    """
    f = Fields(document, where)
    f.known({*(a.name for a in fields(Comparison)), "version", "reference", "seed"} - {"random_state"})
    return Comparison(
        data=read_as(DataSummary, f.fields("data")),
        test_samples=f.whole("test_samples"),
        effective_rows=_later(f, "effective_rows"),
        score=_plain(f.fields("score")),
        time_limit=f.number("time_limit", 0.0, optional=True),
        random_state=f.whole("seed"),
        parameters=f.text("parameters", optional=True),
        notes=tuple(f.texts("notes")),
        folds=f.whole("folds", 2, optional=True),
        repeats=f.whole("repeats", 1, optional=True),
        parts_done=f.whole("parts_done"),
        against=f.text("against", optional=True),
        rows=tuple(_row(row, where) for row in f.objects("rows")),
    )


def _row(values: Fields, where: str) -> ComparisonRow:
    """Read a row with its differences and parts."""
    values.known({f.name for f in fields(ComparisonRow)} - {"judged"})
    differences = values.fields("differences")
    return replace(
        read_figures(values, where),
        differences={key: _difference(differences.fields(key)) for key in differences},
        parts=tuple(_row(part, where) for part in values.objects("parts")),
    )


def _difference(values: Fields) -> Difference:
    return Difference(
        values.number("value"),
        values.number("low"),
        values.number("high"),
        values.whole("rows", 1),
        _later(values, "effective_rows"),
    )


def _later(values: Fields, key: str, highest: float = np.inf) -> float | None:
    """Return a number that is None where all weights are equal, and absent from files of earlier versions."""
    return None if values.missing(key) else values.number(key, 0.0, highest)


def _interval(of: Fields, key: str) -> Interval:
    ends = of.numbers(key)
    if len(ends) != 2:
        raise of.contradiction(f"{key!r} is not an interval of two numbers")
    return ends[0], ends[1]


def _plain(of: Fields) -> dict[str, Any]:
    return {key: of.get(key) for key in of}
