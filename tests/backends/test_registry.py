"""Finding backends by name."""

from __future__ import annotations

import pytest

from milpbn.backends.base import Backend
from milpbn.backends.registry import available_backends, backend_names, get_backend
from milpbn.errors import InputError


def test_every_name_gives_a_backend() -> None:
    names = backend_names()
    assert {"native", "highs", "cbc", "cpsat", "scip", "pulp:GUROBI"} <= set(names)
    for name in names:
        assert isinstance(get_backend(name), Backend)


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"no backend 'cplex'; choose one of auto, native, highs, .* or pulp:NAME"
    ):
        get_backend("cplex")


def test_available_backends_say_version_or_reason() -> None:
    answers = available_backends()
    assert list(answers) == backend_names()
    assert answers["highs"].startswith("HiGHS 1.")
    assert all(answers.values())
