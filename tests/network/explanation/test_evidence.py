"""Tables of log-ratios, and their sentences."""

from __future__ import annotations

import numpy as np
import pytest

from milpbn.errors import InputError
from milpbn.network import Classifier, Structure
from milpbn.network.explanation.evidence import family_tables, favours


def test_log_ratios_are_those_of_the_probability_tables(make_data, make_structure):
    data = make_data(4)
    classifier = Classifier.fit(data, make_structure(data.names, 4))
    tables = {table.variable: table for table in family_tables(classifier.variables, classifier.cpts)}
    last = len(data.names) - 1
    assert {data.names.index(name) for name in tables} == {
        cpt.variable for cpt in classifier.cpts if last in (cpt.variable, *cpt.parents)
    }
    for name, table in tables.items():
        cpt = classifier.cpts[data.names.index(name)]
        axis = [*cpt.parents, cpt.variable].index(last)
        logs = np.log(np.moveaxis(cpt.table, axis, -1))
        np.testing.assert_array_equal(table.log_ratios("s2", "s0"), logs[..., 2] - logs[..., 0])
        assert table.strength == pytest.approx((logs.max(axis=-1) - logs.min(axis=-1)).max())
        assert len(list(table.cells())) == table.n_cells == len(list(table.sentences()))


def test_a_class_with_parents_has_a_row_per_state_of_its_parents(make_data):
    data = make_data(0)
    parents = [(), (), (), (), (0, 1)]
    (table,) = family_tables(data.variables, Classifier.fit(data, Structure(data.names, tuple(parents))).cpts)
    assert (table.variable, table.states, table.parents) == ("class", (), ("x0", "x1"))
    assert next(iter(table.sentences())).startswith("x0 = s0 and x1 = s0: favours s")


def test_sentences_say_which_class_is_favoured_and_by_how_much():
    classes = ("a", "b", "c")
    assert favours(classes, np.log([1, 0.25, 0.5])) == "favours a by 2 over c, 4 over b"
    assert favours(classes, np.log([1, 1, 0.5])) == "favours a and b by 2 over c"
    assert favours(classes, np.zeros(3)) == "favours no class"
    assert (
        favours(classes, np.array([0, -np.inf, -np.inf])) == "favours a by infinite over b, infinite over c"
    )


def test_only_classes_are_compared(make_data):
    data = make_data(0)
    table = family_tables(data.variables, Classifier.fit(data, Structure.naive_bayes(data.names)).cpts)[0]
    with pytest.raises(InputError, match="'z' is not one of the classes"):
        table.log_ratios("z", "s0")
