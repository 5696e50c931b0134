"""Tables have the posteriors of the weights, on every structure that meets the condition, and on no other."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from weight_cases import COMPLETED, NAMES, PERFECT, all_states, random_weights

from milpbn.network.cpt import Cpt, class_log_joint, log_cpts
from milpbn.network.margins import log_posterior
from milpbn.network.parameters.normalised import MAX_ENTRIES, completed, normalised, widened
from milpbn.network.structure import Structure


def obstacle(structure: Structure) -> str | None:
    """Return why a structure does not meet the condition of Roos et al. (2005), Theorem 3; None if it does."""
    target, parents = len(structure.names) - 1, structure.parents
    for i, own in enumerate(parents[:target]):
        for one, other in combinations(own, 2) if target in own else ():
            if not (other in parents[one] or one in parents[other] or {one, other} <= set(parents[target])):
                return f"{one} and {other}, parents of {i}, are not adjacent"
    return None


def posteriors(codes, structure: Structure, logs, n_classes: int) -> np.ndarray:
    return np.exp(log_posterior(class_log_joint(codes, structure, logs, n_classes, np.asarray)))


def check_agreement(data, structure: Structure, weights: list[Cpt]) -> Structure:
    """Complete, normalise, and compare the posteriors of all joint states."""
    whole, _, reason = completed(structure, data.n_states)
    assert reason is None
    cpts = normalised(whole, widened(weights, whole, data.n_states))
    assert cpts is not None
    for cpt, parents in zip(cpts, whole.parents, strict=True):
        assert cpt.parents == parents
        np.testing.assert_allclose(cpt.table.sum(axis=-1), 1, rtol=0, atol=1e-12)
    codes = all_states(data)
    expected = posteriors(codes, structure, weights, data.n_classes)
    actual = np.exp(log_posterior(class_log_joint(codes, whole, cpts, data.n_classes)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10)
    return whole


@pytest.mark.parametrize("name", PERFECT)
@pytest.mark.parametrize("seed", range(3))
def test_tables_have_the_posteriors_of_the_weights(make_data, name, seed) -> None:
    data = make_data(seed, states=(2, 3, 4, 1 + seed, 3))
    structure = Structure(data.names, PERFECT[name])
    assert obstacle(structure) is None
    assert check_agreement(data, structure, random_weights(data, structure, seed)) == structure


@pytest.mark.parametrize("name", COMPLETED)
@pytest.mark.parametrize("seed", range(3))
def test_added_arcs_make_room_for_normalisers(make_data, name, seed) -> None:
    data = make_data(seed)
    parents, added = COMPLETED[name]
    structure = Structure(data.names, parents)
    assert "not adjacent" in obstacle(structure)
    whole, arcs, reason = completed(structure, data.n_states)
    assert (sorted(arcs), reason) == (sorted(added), None)
    assert set(whole.arcs) == {*structure.arcs, *added}
    check_agreement(data, structure, random_weights(data, structure, seed))


@pytest.mark.parametrize("seed", range(60))
def test_random_structures_agree_or_are_refused(make_data, make_structure, seed) -> None:
    data = make_data(seed, states=(2, 3, 2, 3, 2, 3))
    structure = make_structure(data.names, seed)
    whole, added, reason = completed(structure, data.n_states)
    if reason is None:
        assert check_agreement(data, structure, random_weights(data, structure, seed)) == whole
    else:
        assert (whole, added) == (structure, [])
        assert obstacle(structure) is not None


def test_random_structures_cover_both_cases(make_data, make_structure) -> None:
    data = make_data(states=(2, 3, 2, 3, 2, 3))
    outcomes = [completed(make_structure(data.names, seed), data.n_states) for seed in range(60)]
    assert sum(reason is None and not added for _, added, reason in outcomes) > 5
    assert sum(reason is None and bool(added) for _, added, reason in outcomes) > 5
    assert sum(reason is not None for *_, reason in outcomes) > 2


def test_an_arc_that_closes_a_cycle_is_refused_with_the_reason() -> None:
    structure = Structure(NAMES, ((), (0,), (0, 4), (4,), (1,)))
    whole, added, reason = completed(structure, [2] * 5)
    assert (whole, added) == (structure, [])
    assert "would close a cycle" in reason


def test_tables_that_would_be_too_large_are_refused_with_their_size() -> None:
    structure = Structure(NAMES, COMPLETED["parents that are not adjacent"][0])
    assert completed(structure, [100, MAX_ENTRIES // 300, 2, 2, 3])[2] is None
    whole, added, reason = completed(structure, [100, MAX_ENTRIES // 300 + 1, 2, 2, 3])
    assert (whole, added) == (structure, [])
    assert f"{300 * (MAX_ENTRIES // 300 + 1):,} entries" in reason


def test_arcs_that_break_a_constraint_are_not_added() -> None:
    structure = Structure(NAMES, ((), (0, 4), (4,), (4,), ()))
    whole, added, reason = completed(structure, [2] * 5, lambda s: "it has the forbidden arc class -> x0")
    assert (whole, added) == (structure, [])
    assert reason.endswith("breaks a constraint: it has the forbidden arc class -> x0")
    asked = []
    naive = Structure.naive_bayes(NAMES)
    assert completed(naive, [2] * 5, lambda s: asked.append(s) or "never") == (naive, [], None)
    assert not asked  # what adds no arc breaks no constraint


@pytest.mark.parametrize("name", [*PERFECT, *COMPLETED])
def test_generative_tables_stay_as_they_are(make_data, name) -> None:
    data = make_data(5)
    structure = Structure(data.names, PERFECT[name] if name in PERFECT else COMPLETED[name][0])
    logs = log_cpts(data, structure, 1.0)
    whole, _, _ = completed(structure, data.n_states)
    given = widened(logs, whole, data.n_states)
    for cpt, log in zip(normalised(whole, given), given, strict=True):
        np.testing.assert_allclose(cpt.table, np.exp(log.table), rtol=1e-12)


def test_probabilities_too_small_for_floats_are_not_returned(make_data) -> None:
    data = make_data()
    structure = Structure.naive_bayes(data.names)
    assert normalised(structure, random_weights(data, structure, 0, spread=1000.0)) is None
