"""How a table is read: the options of `milpbn.read_table` and of the command line, declared once.

This module imports nothing that takes time, since the help of the command line reads it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, Literal, Self, get_args

from milpbn.errors import InputError
from milpbn.util.options import option

#: The key of `TextFormat.na_values` whose values stand for missing ones in every column.
EVERY = "*"


class DefaultTarget(Enum):
    """The class column if no name is given."""

    LAST = "the last one that does not number the rows"


Missing = Literal["drop", "state", "error"]
States = Literal["seen", "declared"]
MISSING_POLICIES: tuple[Missing, ...] = get_args(Missing)

#: Words for characters.
_CHARACTERS = {
    "comma": ",",
    "semicolon": ";",
    "tab": "\t",
    "\\t": "\t",
    "pipe": "|",
    "colon": ":",
    "blank": " ",
    "space": " ",
    "point": ".",
    "apostrophe": "'",
}


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """How a text file is written, as far as the user says so; None and nothing mean that the file is looked at.

    Characters may also be given as words: comma, semicolon, tab, pipe, colon, blank, point, apostrophe.

    Attributes
    ----------
    separator : str or None
        The character between cells; a blank stands for any number of blanks and tabs. By default it is found
        (`milpbn.data.separators`).
    decimal : str or None
        The character before the decimal places. By default it is found (`milpbn.data.numerals`).
    thousands : str or None
        The character between groups of digits; a blank and an apostrophe stand for all of their kind.
    encoding : str or None
        A name that Python knows, such as ``cp1252``.
    na_values : mapping from column name to tuple of str
        More values that mean a missing one; those of the name ``*``, and those that are given alone, in every column.
    header : bool or None
        Whether the first line holds the names of the columns. By default it does unless it looks like a row
        (`milpbn.data.delimited`); columns without names are called ``x1``, ``x2``, ... and ``class``.
    usual : str or None
        The decimal mark of the training table, for numbers that may be written in two ways.

    Raises
    ------
    InputError
        If an option has a value that is of no use, or two contradict each other.
    """

    separator: str | None = option(
        None,
        "What separates the cells of a text file: a character, or comma, semicolon, tab, pipe or blank.",
        completes=("comma", "semicolon", "tab", "pipe", "blank"),
        metavar="character",
    )
    decimal: str | None = option(
        None,
        "What stands before decimal places: a character, or point or comma.",
        completes=("point", "comma"),
        metavar="character",
    )
    thousands: str | None = option(
        None,
        "What stands between groups of digits: a character, or point, comma, blank or apostrophe.",
        completes=("point", "comma", "blank", "apostrophe"),
        metavar="character",
    )
    encoding: str | None = option(
        None,
        "Encoding of a text file, such as cp1252; by default UTF-8.",
        completes=("utf-8", "utf-16", "cp1252", "latin-1"),
        metavar="name",
    )
    na_values: Mapping[str, tuple[str, ...]] = option(
        dict, "More values that mean a missing one: 999,unknown for all columns, or age=999 for one."
    )
    header: bool | None = option(
        None,
        "Whether the first line of a text file holds the names of the columns.",
        spelling=("--header/--no-header",),
    )
    usual: str | None = None

    def __post_init__(self) -> None:
        marks = {
            name: _character(name, getattr(self, name)) for name in ("separator", "decimal", "thousands")
        }
        if marks["decimal"] is None and marks["thousands"] in (".", ","):
            marks["decimal"] = "," if marks["thousands"] == "." else "."
        if marks["decimal"] is not None and marks["decimal"] == marks["thousands"]:
            raise InputError(
                f"The options 'decimal' and 'thousands' are both {marks['decimal']!r}; they must differ, as in "
                "--decimal , --thousands point."
            )
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, TypeError, ValueError):
                raise InputError(
                    f"The encoding {self.encoding!r} is not known; common ones are utf-8, cp1252, latin-1 and utf-16."
                ) from None
        if self.header is not None and not isinstance(self.header, bool):
            raise InputError(f"The option 'header' must be True, False or None; got {self.header!r}.")
        for name, value in {**marks, "na_values": _na_values(self.na_values)}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the options among the arguments of `milpbn.read_table`, by their names."""
        names = (item.name for item in fields(cls) if item.name != "usual")
        return cls(**{name: arguments[name] for name in names if name in arguments})

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments that give this format, in JSON-safe values."""
        return _given({name: getattr(self, name) for name in TEXT_OPTIONS})

    def lasting(self, decimal: str | None) -> dict[str, Any]:
        """Return the options of a training table that hold for tables for prediction, too, in JSON-safe values.

        `decimal` is the decimal mark that was found, if the option does not say it.
        """
        return TextFormat(decimal=self.decimal or decimal, na_values=self.na_values).options()

    def require_only(self, known: Iterable[str], what: str) -> None:
        """Refuse an option that is given, and not among the known ones of a kind of source."""
        for name in self.options():
            if name not in known:
                raise InputError(f"The option {name!r} is not for {what}; leave it out.")

    def after(self, training: TextFormat) -> TextFormat:
        """Return this format with what a classifier says about tables for prediction (`form_of`)."""
        return replace(self, na_values=self.na_values or training.na_values, usual=training.usual)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(TextFormat):
    """The options of `milpbn.read_table`: those of text files, and which columns and rows are used, and how.

    Attributes
    ----------
    target : str, None or DefaultTarget.LAST
        The class column; None if the data have no class. By default it is the last column that does not number the
        rows (`milpbn.data.left_out.default_target`), or y of a pair.
    drop : collection of str
        Columns that are not features.
    features : collection of str
        The features; all other columns are left out. By default all columns are features, except those that look like
        identifiers, dates or free text (`milpbn.data.left_out.looks_like`) and are neither declared continuous or
        nominal nor in a table of the catalog.
    continuous, nominal : collections of str
        Columns declared as continuous and as nominal. The kinds of the others come from the catalog or
        are detected (see `milpbn.data.kinds.detect_kind`).
    discretise : str or Discretisation
        How continuous features are cut into intervals: ``mdl``, or ``quantile:K``, ``uniform:K``, ``kmeans:K`` or
        ``boosted:K`` with K intervals; see `milpbn.data.discretisation.Discretisation`. Cuts come from training rows
        only.
    missing : {'drop', 'state', 'error'} or None
        Drop rows with missing values, give the missing values of a feature a state of their own, or
        raise an error. The default is the catalog's choice, or 'drop' without one. Nulls and the words in
        `milpbn.data.labels.MISSING_MARKERS` are missing. 'state', too, drops rows without a class.
    weights : str or None
        A column of sample weights; it is not a feature then. Rows of weight zero are dropped.
    class_weights : mapping from label to weight, 'balanced' or None
        Factors on the weights; see `milpbn.data.weights.class_factors`.
    data_dir : path-like or None
        The catalog's folder; by default the value of the environment variable ``MILPBN_DATA``.
    name : str or None
        Name for reports; by default the file's stem or the source's name.
    states : {'seen', 'declared'}
        Take the states of nominal variables from the training rows, or from the declarations of an ARFF
        file or a pandas categorical.

    Raises
    ------
    InputError
        If an option has a value that is of no use, or two contradict each other.
    """

    target: Any = option(
        DefaultTarget.LAST,
        "Class column; by default the last one that does not number the rows.",
        takes="variable",
    )
    drop: tuple[str, ...] = option((), "Columns that are not features, such as --drop id,name.")
    features: tuple[str, ...] = option(
        (),
        "The features; other columns are left out. By default all columns, except those that look like row numbers, "
        "identifiers, dates or free text.",
    )
    continuous: tuple[str, ...] = option((), "Columns to discretise.")
    discretise: Any = option(
        "mdl",
        "How continuous columns are cut: mdl (minimum description length), or K intervals by quantile:K, uniform:K, "
        "kmeans:K or boosted:K, for example quantile:5.",
        completes=("mdl", "quantile:5", "uniform:5", "kmeans:5", "boosted:8"),
        metavar="method",
        spelling=("--discretise", "--discretize"),
    )
    nominal: tuple[str, ...] = option((), "Columns whose values are states as they stand.")
    missing: Missing | None = option(
        None,
        "Missing values: drop their rows (the default), make them a state of their own, or refuse the data.",
        choices=MISSING_POLICIES,
    )
    weights: Any = option(None, "Column of sample weights, not used as a feature.", takes="variable")
    class_weights: Mapping[str, float] | str | None = option(
        None, "Factor on the sample weights of each class."
    )
    data_dir: str | os.PathLike[str] | None = option(
        None, "Folder of the catalog; by default the variable MILPBN_DATA."
    )
    name: str | None = None
    states: States = option(
        "seen",
        "States of nominal columns: those seen in training rows, or all that an ARFF or Parquet file declares.",
        choices=get_args(States),
    )

    def __post_init__(self) -> None:
        if self.missing is not None and self.missing not in MISSING_POLICIES:
            raise InputError(
                f"The missing value policy must be one of {', '.join(MISSING_POLICIES)}; got {self.missing!r}."
            )
        if self.states not in get_args(States):
            raise InputError(f"The states must be one of {', '.join(get_args(States))}; got {self.states!r}.")
        for column_list in COLUMN_LISTS:
            given = getattr(self, column_list)
            names = (given,) if isinstance(given, str) else tuple(str(name) for name in given)
            object.__setattr__(self, column_list, names)
        for name in ("target", *COLUMN_LISTS) if self.weights is not None else ():
            given = getattr(self, name)
            if str(self.weights) in (given if name in COLUMN_LISTS else (str(given),)):
                raise InputError(
                    f"Column {str(self.weights)!r} holds the weights, so that it is neither a feature nor the class; "
                    f"leave it out of {name!r}, or of 'weights'."
                )
        super().__post_init__()

    @property
    def declared(self) -> tuple[str, ...]:
        """The columns whose kind the user declares."""
        return *self.continuous, *self.nominal

    def stored(self) -> dict[str, Any]:
        """Return the options that are not at their defaults, in JSON-safe values; how to discretise is not among them.

        A selection may change the latter.
        """
        own = {name: getattr(self, name) for name in OPTIONS if name not in (*TEXT_OPTIONS, "discretise")}
        own["states"] = None if self.states == "seen" else self.states
        own["target"] = None if self.target is DefaultTarget.LAST else self.target
        if isinstance(self.class_weights, Mapping):
            own["class_weights"] = {str(label): float(w) for label, w in self.class_weights.items()}
        without = {"target": None} if self.target is None else {}
        return {**_given(own), **without, **self.options()}


#: Names of the options of text files, of all options, and of those whose values are names of columns.
TEXT_OPTIONS = tuple(item.name for item in fields(TextFormat) if "help" in item.metadata)
OPTIONS = tuple(item.name for item in fields(ReadingOptions) if item.name != "usual")
COLUMN_LISTS = tuple(item.name for item in fields(ReadingOptions) if item.default == ())


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are neither None nor empty, in JSON-safe values."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if name == "na_values":
            value = {column: list(values) for column, values in value.items()}
        elif isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, os.PathLike):
            value = os.fspath(value)
        elif not isinstance(value, bool | Mapping) and value is not None:
            value = str(value)
        if value or value is False:
            found[name] = value
    return found


def _character(name: str, value: Any) -> str | None:
    if value is None:
        return None
    found = _CHARACTERS.get(value.lower(), value) if isinstance(value, str) else ""
    bad = '"\r\n\0' if name == "separator" else '"\r\n\0+-0123456789'
    if len(found) != 1 or found in bad or (name != "separator" and found.isalnum()):
        words = ", ".join(word for word in _CHARACTERS if word.isalpha())
        raise InputError(
            f"The option {name!r} must be one character or one of the words {words}; got {value!r}."
        )
    return found


def _na_values(value: Any) -> dict[str, tuple[str, ...]]:
    if value is None:
        return {}
    by_column = value if isinstance(value, Mapping) else {EVERY: value}
    found = {}
    for name, values in by_column.items():
        one = isinstance(values, str) or not isinstance(values, Iterable)
        texts = tuple(str(text).strip() for text in ([values] if one else values))
        if texts:
            found[str(name)] = texts
    return found
