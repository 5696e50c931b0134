"""Dataclasses read from JSON objects by their annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import pytest

from milpbn.errors import InputError
from milpbn.util.declared import Count, NotNegative, OneOf, Within, read_as
from milpbn.util.jsonable import Fields


class Kind(StrEnum):
    ONE = "one"
    TWO = "two"


@dataclass(frozen=True)
class Part:
    size: NotNegative | None


@dataclass(frozen=True)
class Whole:
    total: Count
    few: Annotated[int, Within(0, "total")]
    kind: Kind
    part: Part
    word: Annotated[str, OneOf(("a", "b"))] = "a"
    sizes: Mapping[str, Annotated[int, Within(1, "total")]] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    names: tuple[str, ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)
    LATER: ClassVar = ("word", "sizes", "parts", "names")


LEAST = {"total": 3, "few": 3, "kind": "two", "part": {"size": None}, "other": {}}


def test_attributes_are_read_as_they_are_declared() -> None:
    own = {
        "sizes": {"x": 2},
        "parts": [{"size": 0.5}],
        "names": ["n"],
        "other": {"a": True, "b": "t", "c": 2},
    }
    found = read_as(Whole, Fields({**LEAST, **own, "beside": 1}, "It"), "beside")
    assert found == Whole(
        3, 3, Kind.TWO, Part(None), "a", {"x": 2}, (Part(0.5),), ("n",), {"a": True, "b": "t", "c": 2.0}
    )
    assert read_as(Whole, Fields({**LEAST, "names": None}, "It"), word="b").word == "b"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"total": 0}, "It needs a whole number of at least 1 as 'total', but has 0"),
        ({"few": 4}, "It needs a whole number from 0 to 3 as 'few', but has 4"),
        ({"kind": "three"}, "It needs one of one, two as 'kind', but has 'three'"),
        ({"part": {}}, "It lacks the key 'size' in 'part'"),
        ({"part": {"size": -1.0}}, "It needs a finite number of at least 0 as 'part.size'"),
        ({"word": "c"}, "It needs one of a, b as 'word'"),
        ({"sizes": {"x": 9}}, "from 1 to 3 as 'sizes.x'"),
        ({"parts": [{"size": "s"}]}, r"as 'parts\[0\].size', but has 's'"),
        ({"more": 1}, "It has the unknown key 'more'"),
        ({"other": None}, "It needs an object as 'other', but has None"),
    ],
)
def test_other_values_are_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_as(Whole, Fields({**LEAST, **change}, "It"))
