"""How a text file is written, as far as the user says so; the rest is found in the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from milpbn.errors import InputError

#: The key of `TextFormat.na_values` whose values stand for missing ones in every column.
EVERY = "*"

_WORDS = {
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


@dataclass(frozen=True)
class TextFormat:
    """The options of a text file; None and nothing mean that the file is looked at.

    Attributes
    ----------
    separator : str or None
        The character between cells; a blank stands for any number of blanks and tabs.
    decimal : str or None
        The character before the decimal places.
    thousands : str or None
        The character between groups of digits; a blank and an apostrophe stand for all of their kind.
    encoding : str or None
        A name that Python knows, such as ``cp1252``.
    na_values : mapping from column name to tuple of str
        Values that mean a missing one; those of the name ``*`` in every column.
    header : bool or None
        Whether the first line holds the names of the columns.
    usual : str or None
        The decimal mark of the training table, for numbers that may be written in two ways.
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    na_values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    header: bool | None = None
    usual: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> TextFormat:
        """Return the format of the keyword arguments of `milpbn.read_table`.

        A character may also be given as a word: comma, semicolon, tab, pipe, colon, blank, point, apostrophe.

        Raises
        ------
        InputError
            If an option has a value that is of no use, or two contradict each other.
        """
        separator, decimal, thousands = (
            _character(name, options.get(name)) for name in ("separator", "decimal", "thousands")
        )
        if thousands is not None and decimal is None and thousands in ".,":
            decimal = "," if thousands == "." else "."
        if decimal is not None and decimal == thousands:
            raise InputError(
                f"The options 'decimal' and 'thousands' are both {decimal!r}; they must differ, as in --decimal , "
                "--thousands point."
            )
        encoding, header = options.get("encoding"), options.get("header")
        if encoding is not None:
            try:
                "".encode(encoding)
            except (LookupError, TypeError, ValueError):
                raise InputError(
                    f"The encoding {encoding!r} is not known; common ones are utf-8, cp1252, latin-1 and utf-16."
                ) from None
        if header is not None and not isinstance(header, bool):
            raise InputError(f"The option 'header' must be True, False or None; got {header!r}.")
        return cls(separator, decimal, thousands, encoding, _na_values(options.get("na_values")), header)

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of `milpbn.read_table` that give this format, in JSON-safe values."""
        found = {name: getattr(self, name) for name in NAMES if name != "na_values"}
        found["na_values"] = {name: list(values) for name, values in self.na_values.items()}
        return {name: value for name, value in found.items() if value is not None and value != {}}

    def lasting(self, decimal: str | None) -> dict[str, Any]:
        """Return the options of a training table that hold for tables for prediction, too, in JSON-safe values.

        Parameters
        ----------
        decimal : str or None
            The decimal mark that was found, if the option does not say it.
        """
        lasting = TextFormat(decimal=self.decimal or decimal, na_values=self.na_values)
        return lasting.options()

    def require_only(self, known: Iterable[str], what: str) -> None:
        """Refuse an option that is given, and not among the known ones of a kind of source."""
        for name in self.options():
            if name not in known:
                raise InputError(f"The option {name!r} is not for {what}; leave it out.")

    def after(self, training: TextFormat) -> TextFormat:
        """Return this format with what a classifier says about tables for prediction (`form_of`)."""
        return replace(self, na_values=self.na_values or training.na_values, usual=training.usual)


#: Names of the options.
NAMES = ("separator", "decimal", "thousands", "encoding", "na_values", "header")


def _character(name: str, value: Any) -> str | None:
    if value is None:
        return None
    found = _WORDS.get(value.lower(), value) if isinstance(value, str) else ""
    bad = '"\r\n\0' if name == "separator" else '"\r\n\0+-0123456789'
    if len(found) != 1 or found in bad or (name != "separator" and found.isalnum()):
        words = ", ".join(word for word in _WORDS if word.isalpha())
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
