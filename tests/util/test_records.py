"""Records: numbers with names that Python and kernels share."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from numba import njit, typeof

from milpbn.util import compiled
from milpbn.util.records import Record


class Counter(Record):
    total: float
    count: int
    full: bool


def add(record, value):
    record.total += value
    record.count += 1
    record.full = record.count >= 2


@pytest.mark.parametrize("function", [add, njit(add)], ids=["Python", "kernel"])
def test_python_and_kernels_change_the_same_record(function):
    record, other = Counter.zeros(), Counter.zeros()
    for value in (0.5, 2.0):
        function(record, value)
    assert (record.total, record.count, record.full) == (2.5, 2, True)
    assert other.tolist() == (0.0, 0, False)


def test_a_copy_has_memory_of_its_own():
    record = Counter.zeros()
    other = copy.copy(record)
    other.count = 3
    assert record.count == 0


def test_fields_have_the_types_of_their_annotations():
    fields = Counter.layout.fields
    assert {name: field[0] for name, field in fields.items()} == {
        "total": np.float64,
        "count": np.int64,
        "full": np.bool_,
    }


def test_the_layout_is_part_of_a_kernels_signature():
    class Other(Record):
        count: int
        total: float
        full: bool

    assert typeof(Counter.zeros()) == typeof(Counter.zeros()) != typeof(Other.zeros())


def test_definitions_are_part_of_the_hash_of_all_kernels():
    assert "class State(Record)" in compiled._records()
