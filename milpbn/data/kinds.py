"""The kinds of columns: nominal or continuous."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from milpbn.data.column import Column
from milpbn.data.left_out import may_be_codes, may_identify
from milpbn.data.options import ReadingOptions
from milpbn.data.raw_table import RawTable
from milpbn.errors import InputError

Kind = Literal["nominal", "continuous"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: Columns of integers with at most this many distinct values are nominal.
MAX_NOMINAL_INTEGERS = 10
#: A class column with at most this many distinct values is never refused as an identifier.
ALWAYS_ALLOWED = 20


def detect_kind(column: Column) -> Kind:
    """Return the kind that the values suggest.

    A column is nominal if a value is not a number, if its values are declared (ARFF nominal, pandas
    categorical), if different texts are one number (01 and 1), or if it holds integers (1.0 is one) with at most
    `MAX_NOMINAL_INTEGERS` distinct values. All other columns are continuous.
    """
    if not _detected_as_numbers(column):
        return "nominal"
    few = column.integers is not None and column.n_numbers <= MAX_NOMINAL_INTEGERS
    return "nominal" if few else "continuous"


def decide_kinds(
    columns: Mapping[str, Column], target: str | None, raw: RawTable, options: ReadingOptions
) -> dict[str, Kind]:
    """Return the kind of every column: declared by the user, else known from the catalog, else detected.

    The class column, `target`, is always nominal; None if there is none. Raises `InputError` if a declared column does
    not exist or is declared as both kinds, if the class column is declared continuous or looks continuous, or if a
    value of a continuous column is not a finite number or float64 takes two different ones for one.
    """
    where, entry, continuous, nominal = raw.where, raw.entry, options.continuous, options.nominal
    unknown = [name for name in (entry.continuous if entry else ()) if name not in raw.frame.columns]
    if entry and unknown:
        raise InputError(
            f"The catalog calls {unknown[0]!r} of {entry.name!r} continuous, but there is no such column."
        )
    for option in ("continuous", "nominal"):
        for name in getattr(options, option):
            if name not in columns:
                raise InputError(f"The option {option!r} names {name!r}, which is not a column of {where}.")
    for name in continuous:
        if name in nominal:
            raise InputError(f"Column {name!r} was declared both continuous and nominal; choose one.")
    if target in continuous:
        raise InputError(f"The target {target!r} cannot be continuous: the class of a classifier is nominal.")

    kinds: dict[str, Kind]
    if entry:
        kinds = {name: "continuous" if name in entry.continuous else "nominal" for name in columns}
    else:
        kinds = {name: detect_kind(column) for name, column in columns.items()}
    kinds |= dict.fromkeys(nominal, "nominal")
    kinds |= dict.fromkeys(continuous, "continuous")
    if target is not None:
        if target not in nominal:
            _check_class(columns[target], where)
        kinds[target] = "nominal"

    for name, kind in kinds.items():
        if kind == "continuous":
            columns[name].check_numeric(where, "correct the value or declare the column nominal")
        columns[name].check_apart(where, nominal=kind == "nominal")
    return kinds


def holds_few_integers(column: Column, kind: Kind) -> bool:
    """Return whether a column is nominal only because it holds few different integers (`detect_kind`)."""
    return kind == "nominal" and _detected_as_numbers(column)


def _detected_as_numbers(column: Column) -> bool:
    return column.is_numeric and column.declared is None and not column.differs_as_text


def describe_kinds(
    columns: Mapping[str, Column], features: Sequence[str], kinds: Mapping[str, Kind]
) -> list[str]:
    """Return sentences that list the continuous features and the numeric nominal ones, for the user."""
    groups = {
        "Continuous, to be discretised": [f for f in features if kinds[f] == "continuous"],
        "Numeric, taken as nominal": [f for f in features if kinds[f] == "nominal" and columns[f].is_numeric],
    }
    notes = []
    for what, names in groups.items():
        if names:
            all_of_them = len(names) == len(features) > 1
            notes.append(f"{what}: {f'all {len(names)} features' if all_of_them else ', '.join(names)}.")
    return notes


def doubts_on_kinds(
    columns: Mapping[str, Column],
    features: Sequence[str],
    kinds: Mapping[str, Kind],
    declared: Collection[str] = (),
) -> list[str]:
    """Return sentences on kinds that may be wrong.

    They point out identifiers that repeat and integers that may be codes, except in the columns whose kind was
    `declared`; nominal columns with mostly numeric values; and different labels that are one number (01 and 1) or truth
    value (TRUE and True), and so one state.
    """
    notes = []
    undeclared = [f for f in features if f not in declared]
    named = [f for f in undeclared if may_identify(columns[f], kinds[f] == "continuous")]
    if named:
        notes.append(
            f"Columns whose names say that they identify something, taken as features: {', '.join(named)}. If new rows "
            f"have other values there, leave them out (--drop {','.join(named)}, or drop={named} in Python)."
        )
    codes = [
        f for f in undeclared if kinds[f] == "continuous" and f not in named and may_be_codes(columns[f])
    ]
    if codes:
        notes.append(
            f"Integers that may be codes, taken as numbers: {', '.join(codes)}. If their order means nothing, declare "
            f"them nominal (--nominal {','.join(codes)}, or nominal={codes} in Python)."
        )
    for name in features:
        if kinds[name] == "nominal" and (value := columns[name].stray_text):
            notes.append(f"Column {name!r} is nominal because of {value}; nearly all its values are numbers.")
    for name, column in columns.items():
        one = column.is_boolean or (column.is_numeric and not column.differs_as_text)
        if kinds[name] == "nominal" and one and (same := column.find_same()):
            what = "truth value" if column.is_boolean else "number"
            notes.append(
                f"Column {name!r} has {' and '.join(same)}, which are the same {what} and therefore one state; put a "
                "letter in front to keep them apart."
            )
    return notes


def _check_class(column: Column, where: str) -> None:
    """Raise InputError if a class column looks continuous or like an identifier.

    It may have `MAX_NOMINAL_INTEGERS` distinct numbers if some are fractions. Integers or labels may have
    `ALWAYS_ALLOWED` distinct values, or half as many as there are rows if that is more.
    """
    if column.declared is not None:
        return
    present = int(np.count_nonzero(column.codes >= 0))
    nearly_all = max(ALWAYS_ALLOWED, present // 2)
    if column.is_numeric:
        distinct = column.n_numbers
        most = MAX_NOMINAL_INTEGERS if column.integers is None else nearly_all
        what, looks, put = "numbers", "looks continuous", ", put its values into classes,"
    else:
        distinct, most = column.n_labels, nearly_all
        what, looks, put = "labels", "looks like an identifier", ""
    if distinct > most:
        raise InputError(
            f"The target {column.name!r} of {where} has {distinct} different {what} in {present} rows and {looks}; "
            f"name another target{put} or declare it nominal."
        )
