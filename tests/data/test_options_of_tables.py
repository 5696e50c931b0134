from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import pytest

from milpbn.data import read_table
from milpbn.data.options import OPTIONS, ReadingOptions, TextFormat
from milpbn.errors import InputError


def test_the_signature_of_read_table_is_that_of_the_declaration() -> None:
    signature = inspect.signature(read_table).parameters
    defaults = {name: item.default for name, item in signature.items() if item.kind is item.KEYWORD_ONLY}
    assert {*defaults} == {*OPTIONS}
    declared = {item.name: item.default for item in fields(ReadingOptions) if item.name != "na_values"}
    assert all(default == declared.get(name, default) for name, default in defaults.items())


def test_characters_may_be_given_as_words() -> None:
    found = TextFormat.of(
        {"separator": "tab", "decimal": "comma", "thousands": "blank", "na_values": [999, "?"]}
    )
    assert (found.separator, found.decimal, found.thousands) == ("\t", ",", " ")
    assert found.na_values == {"*": ("999", "?")}
    assert TextFormat.of(found.options()) == found
    assert TextFormat.of({"thousands": "."}).decimal == ","
    assert TextFormat.of({}).options() == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"separator": ";;"}, "'separator' must be one character"),
        ({"separator": '"'}, "'separator' must be one character"),
        ({"separator": ""}, "'separator' must be one character"),
        ({"decimal": "5"}, "'decimal' must be one character"),
        ({"decimal": 1}, "'decimal' must be one character"),
        ({"decimal": ",", "thousands": ","}, "must differ"),
        ({"encoding": "utf-99"}, "'utf-99' is not known"),
        ({"encoding": "rot13"}, "'rot13' is not known"),
        ({"encoding": 7}, "7 is not known"),
        ({"header": "no"}, "'header' must be True, False or None"),
    ],
)
def test_useless_values_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        TextFormat.of(options)


def test_what_lasts_for_predictions() -> None:
    training = TextFormat.of({"na_values": {"a": 9}})
    assert training.lasting(",") == {"decimal": ",", "na_values": {"a": ["9"]}}
    new = TextFormat(decimal=".").after(TextFormat(na_values={"a": ("9",)}, usual=","))
    assert (new.decimal, new.usual, new.na_values) == (".", ",", {"a": ("9",)})


@pytest.mark.parametrize("option", ["target", "drop", "features", "continuous", "nominal"])
def test_the_column_of_weights_has_no_other_use(option: str) -> None:
    with pytest.raises(InputError, match=f"'w' holds the weights.*leave it out of '{option}'"):
        read_table({"a": [1, 2], "w": [1.0, 2.0], "c": ["x", "y"]}, weights="w", **{option: "w"})
