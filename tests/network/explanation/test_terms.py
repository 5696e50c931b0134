"""The terms of log P(c, z): their sum is the classifier's own log-joint, and each is read from its table."""

from __future__ import annotations

import numpy as np
import pytest

from milpbn.data.dataset import MISSING, UNKNOWN
from milpbn.network.cpt import fit_cpts
from milpbn.network.explanation.terms import log_ratio, terms
from milpbn.network.inference.rows import log_joint_of_rows
from milpbn.network.structure import Structure


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(8))
def test_terms_add_up_and_missing_values_join_families(make_data, make_structure, seed, missing):
    """Random structures: also features without the class, and a class with parents."""
    data = make_data(seed, samples=40, states=(2, 3, 2, 2, 3, 3))
    structure = make_structure(data.names, seed)
    cpts = fit_cpts(data, structure)
    codes = data.codes.copy()
    rng = np.random.default_rng(seed)
    codes[:, :-1][rng.random(codes[:, :-1].shape) < missing] = MISSING
    codes[:, :-1][rng.random(codes[:, :-1].shape) < 0.1] = UNKNOWN
    joint = log_joint_of_rows(codes, data.names, cpts, data.n_classes)
    seen = []
    for part in terms(codes, data.names, cpts, data.n_classes):
        np.testing.assert_allclose(part.log_probabilities.sum(axis=1), joint[part.rows], rtol=0, atol=1e-11)
        assert sorted(i for group in part.groups for i in group) == list(range(data.n_variables))
        hidden = codes[part.rows[0]] == MISSING
        assert (codes[part.rows][:, hidden] == MISSING).all()
        for group in part.groups:
            assert len(group) == 1 or hidden[list(group)].any()
        seen += part.rows.tolist()
    assert sorted(seen) == list(range(data.n_samples))


def test_a_missing_leaf_contributes_nothing_and_a_missing_parent_joins_its_children(make_data):
    data = make_data(0)
    last = len(data.names) - 1
    cpts = fit_cpts(data, Structure(data.names, ((last,), (0, last), (1, last), (last,), ())))
    codes = data.codes[:2].copy()
    codes[0, 2], codes[1, 1] = MISSING, MISSING
    leaf, parent = terms(codes, data.names, cpts, data.n_classes)
    assert leaf.rows.tolist() == [0]
    assert leaf.groups == ((0,), (1,), (2,), (3,), (4,))
    assert (leaf.log_probabilities[0, 2] == 0).all()
    assert parent.groups == ((0,), (1, 2), (3,), (4,))


def test_a_term_is_the_entry_of_the_table(make_data, make_structure):
    data = make_data(3)
    structure = make_structure(data.names, 3)
    cpts = fit_cpts(data, structure)
    (part,) = terms(data.codes, data.names, cpts, data.n_classes)
    for m in range(5):
        for c in range(data.n_classes):
            codes = [*data.codes[m, :-1], c]
            for g, group in enumerate(part.groups):
                (i,) = group
                entry = cpts[i].table[tuple(codes[j] for j in (*cpts[i].parents, i))]
                assert part.log_probabilities[m, g, c] == pytest.approx(np.log(entry), abs=1e-14)


def test_the_log_ratio_of_two_impossible_values_is_0():
    own, other = np.array([-np.inf, -np.inf, 1.0, -1.0]), np.array([-np.inf, 0.0, -np.inf, -3.0])
    assert log_ratio(own, other).tolist() == [0.0, -np.inf, np.inf, 2.0]
