"""Tables of changes: added to naive Bayes they are the classifier that was fitted from scratch."""

from __future__ import annotations

import numpy as np
import plain_scores
import pytest
from running import random_data

from milpbn.errors import InputError
from milpbn.learners.discriminative import family_changes
from milpbn.learners.discriminative.family_changes import Estimation, FamilyChanges
from milpbn.network import Structure
from milpbn.problem.products import add_columns

ESTIMATIONS = [Estimation(), Estimation(0.3), Estimation(zero_probability=1e-5)]


def options(estimation: Estimation) -> dict:
    return {"smoothing": estimation.smoothing, "zero": estimation.zero_probability}


def make(seed: int, n_features: int = 5, folded: bool = False):
    data = random_data(seed, n_features=n_features, max_states=4, n_samples=60, weights=bool(seed % 2))
    fold = np.random.default_rng(seed).integers(4, size=data.n_samples) if folded else None
    return data, fold


@pytest.mark.parametrize("estimation", ESTIMATIONS, ids=str)
@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_changes_lead_from_naive_bayes_to_any_structure(
    estimation: Estimation, folded: bool, seed: int
) -> None:
    data, fold = make(seed, folded=folded)
    families = FamilyChanges(data, estimation, fold)
    expected = plain_scores.log_joint(data, [()] * 5, fold=fold, **options(estimation))
    np.testing.assert_allclose(families.naive_bayes(), expected, atol=1e-10)
    for parents in ([(), (0,), (0, 1), (1,), (0, 2, 3)], [(1, 2, 3, 4), (4,), (), (), ()]):
        chosen = [(i, s) for i, s in enumerate(parents) if s]
        logits = families.naive_bayes()
        add_columns(
            families.changes(chosen).tables, np.arange(len(chosen)), np.ones(len(chosen)), logits, False
        )
        expected = plain_scores.log_joint(data, parents, fold=fold, **options(estimation))
        np.testing.assert_allclose(logits, expected, atol=1e-10)


def test_spreads_bound_the_change_of_any_margin() -> None:
    data, _ = make(3)
    families = FamilyChanges(data, Estimation())
    changes = families.changes([(0, (1,)), (2, (3, 4))])
    for k in range(2):
        logits = np.zeros((data.n_samples, data.n_classes))
        add_columns(changes.tables, np.array([k]), np.ones(1), logits, False)
        change = logits[:, :, None] - logits[:, None, :]
        assert 0 < np.abs(change).max() <= changes.spreads[k] + 1e-12


def test_threads_change_nothing() -> None:
    data, fold = make(4, folded=True)
    wanted = [(i, (j,)) for i in range(5) for j in range(5) if i != j]
    one, many = (FamilyChanges(data, Estimation(), fold, parallel=p).changes(wanted) for p in (False, True))
    np.testing.assert_array_equal(one.tables.values, many.tables.values)


def test_portions_are_all_families_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = make(5)
    families = FamilyChanges(data, Estimation())
    wanted = [(i, (j,)) for i in range(5) for j in range(5) if i != j]
    monkeypatch.setattr(family_changes, "PORTION", 60)
    portions = list(families.portions(wanted))
    assert [f for portion in portions for f in portion] == wanted
    assert len(portions) > 3
    for portion in portions:
        assert len(portion) == 1 or families.changes(portion).tables.values.size <= 60
    assert list(families.portions([])) == []


def test_zero_probabilities_are_replaced() -> None:
    data, _ = make(6)
    structure = Structure(data.names, ((5,), (0, 5), (1, 5), (2, 5), (0, 3, 5), ()))
    plain = Estimation(zero_probability=1e-5).classifier(data, structure, {"by": "test"})
    assert plain.provenance["by"] == "test"
    expected = plain_scores.cpts(data, structure, 0.0, 1e-5)
    smallest = []
    for cpt, own in zip(plain.cpts, expected, strict=True):
        np.testing.assert_allclose(cpt.table, own.table, rtol=1e-12)
        smallest.append(cpt.table.min())
    assert 0.99e-5 < min(smallest) <= 1e-5
    smoothed = Estimation(0.5).classifier(data, structure)
    assert smoothed.smoothing == 0.5


@pytest.mark.parametrize(
    "values",
    [{"smoothing": 0.0}, {"smoothing": np.inf}, {"zero_probability": 0.0}, {"zero_probability": 1.0}],
    ids=str,
)
def test_numbers_out_of_range_are_refused(values: dict) -> None:
    with pytest.raises(InputError, match=next(iter(values))):
        Estimation(**values)


def test_tables_beyond_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = make(7)
    monkeypatch.setattr("milpbn.util.memory.available_memory", lambda: 100)
    with pytest.raises(InputError, match="fewer feature parents"):
        FamilyChanges(data, Estimation()).changes([(0, (1, 2))])
