"""Methods as a user writes them."""

from __future__ import annotations

import pytest

from milpbn.errors import InputError
from milpbn.network.parameters.method import METHODS, ParameterMethod


def test_names_leave_the_values_to_folds() -> None:
    for name in METHODS:
        method = ParameterMethod.parse(name)
        assert (method.name, method.kappa, method.strength) == (name, None, None)
        assert method.given == (name == "ml")


@pytest.mark.parametrize(
    ("text", "kappa", "strength"),
    [
        ("cll:10", 0.0, 10.0),
        ("hybrid:0.5", 0.5, None),
        ("hybrid:0:0.3", 0.0, 0.3),
        ("temperature:1.5", 1.5, None),
    ],
)
def test_values_are_read_and_written_back(text, kappa, strength) -> None:
    method = ParameterMethod.parse(text)
    assert (method.kappa, method.strength) == (kappa, strength)
    assert method.given
    assert str(method) == text
    assert ParameterMethod.parse(str(method)) == method


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="'mle'; choose one of ml, cll, hybrid, temperature"):
        ParameterMethod.parse("mle")


#: Methods with values that are missing, too many, or out of range.
IMPOSSIBLE = [
    *("ml:1", "cll:", "cll:0", "cll:1:2", "temperature:-1", "temperature:inf", "temperature:1:2"),
    *("hybrid:2", "hybrid:0.5:0", "hybrid:0.5:inf", "hybrid:a", "hybrid:1:2:3", "hybrid:nan"),
]


@pytest.mark.parametrize("text", IMPOSSIBLE)
def test_values_out_of_range_are_refused(text) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        ParameterMethod.parse(text)
