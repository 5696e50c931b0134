"""Tables of log-ratios, their sentences, and the text that `print` shows of a classifier."""

from __future__ import annotations

import numpy as np
import pytest

from milpbn.data.dataset import Dataset, Variable
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


def classifier(n_features: int, labels: tuple[str, ...]) -> Classifier:
    rng = np.random.default_rng(0)
    variables = tuple(Variable(f"x{i}", ("a", "b", "c")) for i in range(n_features))
    codes = rng.integers(0, (*[3] * n_features, len(labels)), (200, n_features + 1)).astype(np.int32)
    data = Dataset("random", (*variables, Variable("kind", labels)), codes, np.ones(200))
    return Classifier.fit(data, Structure.naive_bayes(data.names))


def test_two_classes_have_one_number_per_state():
    shown = classifier(2, ("no", "yes"))
    lines = str(shown).splitlines()
    assert lines[:2] == [
        "Classes of kind: no, yes",
        "Each number is added to the log-odds of yes against no, in nats:",
    ]
    counts = np.log(shown.cpts[2].table)
    assert lines[2] == f"base rate of kind, before any feature: {counts[1] - counts[0]:+.3f}"
    table = np.log(shown.cpts[0].table)
    ratios = table[1] - table[0]
    expected = ", ".join(f"{state} ({ratio:+.3f})" for state, ratio in zip("abc", ratios, strict=True))
    assert f"x0: {expected}" in lines


def test_families_are_in_the_order_of_their_largest_log_ratio():
    shown = classifier(6, ("no", "yes"))
    tables = [np.log(cpt.table) for cpt in shown.cpts[:-1]]
    strengths = {f"x{i}": np.abs(table[1] - table[0]).max() for i, table in enumerate(tables)}
    named = [line.split(":")[0] for line in str(shown).splitlines()[3:]]
    assert named == sorted(strengths, key=lambda name: -strengths[name])


def test_many_classes_show_the_favoured_ones_first():
    shown = classifier(1, tuple("uvwxyz"))
    lines = [line for line in str(shown).splitlines() if line.startswith("  a: ")]
    table = np.log(shown.cpts[0].table[:, 0])
    best = "uvwxyz"[table.argmax()]
    assert lines[0].startswith(f"  a: {best} (0), ")
    assert lines[0].endswith("... 1 more classes")


def test_wide_networks_are_shortened_and_the_representation_is_short():
    shown = classifier(60, ("no", "yes"))
    lines = str(shown).splitlines()
    assert lines[-1] == "... 40 more features"
    assert len(lines) == 24
    assert repr(shown).startswith("<Classifier of 'kind': 2 classes, 60 features, 60 arcs")
    assert len(repr(shown)) < 100
