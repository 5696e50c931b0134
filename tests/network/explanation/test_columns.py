"""Networks with two variables of one column: curves and maps whose sums are the log-odds."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from fine import fine_classifier, raw_rows

from milpbn.data.dataset import Dataset, Variable
from milpbn.network import Classifier
from milpbn.network.additive.interactions import network_of_blocks
from milpbn.network.additive.model import Additive
from milpbn.network.additive.tables import tables_of
from milpbn.network.explanation.local import NOT_OBSERVED


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_contributions_of_columns_and_pairs_add_up(seed, missing):
    classifier = fine_classifier(seed, missing=seed == 2, most_parents=1 + seed)
    frame = raw_rows(classifier, 60, seed, missing)
    frame.loc[2, "colour"] = "new"
    logs, joint = classifier.predict_log_posterior(frame), classifier.predict_log_joint(frame)
    names = {"x0", "colour", "x2", "x3", "kind"}
    for found in classifier.explain_local(frame):
        own, other = (classifier.classes.index(name) for name in (found.label, found.against))
        row = logs[found.sample]
        assert sum(c.log_odds for c in found.contributions) == pytest.approx(row[own] - row[other], abs=1e-9)
        parts = np.sum([c.log_probabilities for c in found.contributions], axis=0)
        np.testing.assert_allclose(parts, joint[found.sample], rtol=0, atol=1e-9)
        assert {name for c in found.contributions for name in c.variables} <= names


@pytest.mark.parametrize("most_parents", [1, 2, 3])
def test_tables_are_curves_and_maps_that_hold_what_predictions_use(most_parents):
    classifier = fine_classifier(3, n_columns=5, coarse=4, fine=12, most_parents=most_parents)
    frame = raw_rows(classifier, 80, 1)
    prior, *tables = classifier.explain_global().tables
    codes = classifier.encode(frame)
    finest = {"colour": "colour", **{f"x{k}": f"x{k} (fine)" for k in (0, 2, 3, 4)}}
    total = np.repeat(prior.log_probabilities[np.newaxis], len(frame), axis=0)
    for table in tables:
        names = [finest[table.variable]] if table.form == "curve" else [*table.parents, table.variable]
        total += table.log_probabilities[tuple(codes.codes[:, codes.names.index(n)] for n in names)]
    np.testing.assert_allclose(total, classifier.predict_log_joint(frame), rtol=0, atol=1e-9)
    forms = [table.form for table in tables]
    assert forms == ["curve"] * 5 + ["interaction"] * forms.count("interaction")
    assert forms.count("interaction") >= 2
    assert max(len(table.parents) for table in tables) == most_parents
    for table in tables:
        if table.form == "interaction":
            for axis in range(len(table.parents) + 1):
                assert np.abs(table.log_probabilities.mean(axis=axis)).max() < 1e-12
        elif table.variable != "colour":
            assert len(table.states) == 12


@pytest.mark.parametrize("most_parents", [1, 2])
def test_importances_of_columns_and_pairs_add_up_to_the_margin(most_parents):
    classifier = fine_classifier(3, most_parents=most_parents)
    frame = raw_rows(classifier, 70, 2, missing=0.2)
    found = classifier.explain_global(frame)
    mean = np.average(found.margins.log_margins, weights=found.margins.weights)
    assert sum(each.mean_margin for each in found.importances) == pytest.approx(mean, abs=1e-9)
    names = [each.name for each in found.importances]
    assert sorted(names[:-1]) == sorted(
        [
            *("x0", "colour", "x2", "x3"),
            *(" and ".join((*t.parents, t.variable)) for t in found.tables if t.form == "interaction"),
        ]
    )
    assert found.unused == ()


def test_words():
    classifier = fine_classifier(0, n_classes=2, coarse=4, fine=30)
    text = str(classifier.explain_global())
    assert "x0 (means over 30 intervals): (-inf, " in text
    assert "(fine)" not in text
    pairs = [
        (t.parents[0], t.variable) for t in classifier.explain_global().tables if t.form == "interaction"
    ]
    assert pairs
    assert all(f"{one} and {other}, what they add only together:" in text for one, other in pairs)
    assert "x0 (means over 30 intervals):\n  (-inf, " in str(fine_classifier(0, fine=30).explain_global())
    frame = raw_rows(classifier, 2, 1).assign(x0=[np.nan, 0.1])
    first, second = classifier.explain_local(frame)
    assert any(c.condition.endswith("summed over x0") for c in first.contributions)
    at = classifier.encode(frame).codes[1, 1]
    label = classifier.variables[1].states[at]
    assert f"x0 = {label}" in [c.condition for c in second.contributions]
    absent = frame.assign(colour=None, x0=np.nan, x3=np.nan)
    assert f"x3 {NOT_OBSERVED}" in str(
        [c.condition for c in classifier.explain_local(absent)[0].contributions]
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_wide_families_are_read_by_what_does_not_cancel_in_their_sum(classes):
    """Tables of all pairs need families of four features; what three or four say together is a normaliser only."""
    rng = np.random.default_rng(0)
    sizes = {"a": 4, "b": 4, "c": 2, "d": 3, "kind": classes}
    variables = tuple(Variable(name, tuple(map(str, range(n)))) for name, n in sizes.items())
    codes = np.column_stack([rng.integers(0, n, 60) for n in sizes.values()]).astype(np.int32)
    data, pairs = Dataset("wide", variables, codes, np.ones(60)), list(combinations(range(4), 2))
    model = Additive(data, pairs)
    weights = rng.normal(size=(model.terms.n_cells, 1 if classes == 2 else classes))
    made = tables_of(model, weights, 0.0, network_of_blocks(data, range(4), pairs)[0])
    assert not isinstance(made, str)
    classifier = Classifier(variables, *made)
    assert max(map(len, classifier.structure.parents)) == 4
    found = classifier.explain_global()
    together = [(*t.parents, t.variable) for t in found.tables if t.form == "interaction"]
    assert sorted(together) == sorted(combinations("abcd", 2))
    logs = classifier.predict_log_posterior(data)
    for each in classifier.explain_local(data):
        assert len(each.contributions) == 4 + 6 + 1
        own, other = (classifier.classes.index(name) for name in (each.label, each.against))
        expected = logs[each.sample, own] - logs[each.sample, other]
        assert sum(c.log_odds for c in each.contributions) == pytest.approx(expected, abs=1e-9)
    largest = next(t for t in found.tables if (*t.parents, t.variable) == ("a", "b"))
    sizes = np.sort(np.ptp(largest.log_probabilities, axis=-1).ravel())
    lines = str(found).splitlines()
    start = lines.index("a and b, what they add only together:")
    assert f"  ... 11 more cells, of at most {sizes[-6]:.3f} nats" == lines[start + 6]
    number = lines[start + 1].split(": ")[1].split(" (")[-1].rstrip(")")
    assert classes > 2 or abs(float(number)) == pytest.approx(sizes[-1], abs=1e-3)


def test_a_table_with_a_probability_of_0_is_left_whole():
    classifier = fine_classifier(0, n_classes=2)
    k = next(i for i, cpt in enumerate(classifier.cpts) if classifier.variables[i].name == "colour")
    table = classifier.cpts[k].table.copy()
    table[0, 0] = [0.0, 0.5, 0.5]
    cpts = tuple(replace(cpt, table=table) if i == k else cpt for i, cpt in enumerate(classifier.cpts))
    changed = Classifier(classifier.variables, classifier.structure, cpts)
    found = {(t.variable, t.form) for t in changed.explain_global().tables}
    assert ("colour", "family") in found
    frame = raw_rows(changed, 30, 2)
    joint = changed.predict_log_joint(frame)
    for each in changed.explain_local(frame):
        assert np.sum([c.log_probabilities for c in each.contributions], axis=0) == pytest.approx(
            joint[each.sample]
        )
