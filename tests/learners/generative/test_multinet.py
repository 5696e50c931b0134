"""Multinets against one hand-made tree a class."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from learner_cases import log_joint
from running import dataset, random_data

from milpbn.learners.base import Control
from milpbn.learners.generative.forests import ChowLiu
from milpbn.learners.generative.multinet import Multinet, MultinetLearner


@pytest.mark.parametrize("weights", [False, True])
def test_every_class_has_its_own_tree(weights: bool) -> None:
    from sklearn.metrics import mutual_info_score

    data = random_data(1, n_features=5, n_samples=90, weights=weights)
    learned = MultinetLearner().fit(data)
    assert learned.structure is None
    assert isinstance(learned.predictor, Multinet)
    for c, network in enumerate(learned.predictor.networks):
        own = data.take(np.flatnonzero(data.y == c))
        tree = nx.Graph(network.structure.arcs)
        assert nx.is_tree(tree)
        assert set(tree.nodes) == set(range(5))
        if weights:
            continue
        graph = nx.Graph()
        pairs = [(i, j) for i in range(5) for j in range(i)]
        values = {(i, j): mutual_info_score(own.codes[:, i], own.codes[:, j]) for i, j in pairs}
        graph.add_weighted_edges_from((i, j, v) for (i, j), v in values.items())
        expected = nx.maximum_spanning_tree(graph).size(weight="weight")
        found = sum(values[max(e), min(e)] for e in tree.edges)
        assert found == pytest.approx(expected, abs=1e-12)


def test_log_joint_is_the_product_of_conditional_probabilities() -> None:
    data = random_data(2, n_features=4, n_samples=50, weights=True)
    learned = MultinetLearner(smoothing=0.7).fit(data)
    joint = log_joint(learned, data)
    counts = np.bincount(data.y, weights=data.weights, minlength=3)
    for m in range(10):
        for c, network in enumerate(learned.predictor.networks):
            value = np.log((counts[c] + 0.7) / (counts.sum() + 2.1))
            for i in range(4):
                same = data.y == c
                for j in network.structure.parents[i]:
                    same &= data.codes[:, j] == data.codes[m, j]
                both = data.weights[same & (data.codes[:, i] == data.codes[m, i])].sum()
                value += np.log((both + 0.7) / (data.weights[same].sum() + 0.7 * data.n_states[i]))
            assert joint[m, c] == pytest.approx(value)
    predictor = learned.predictor
    np.testing.assert_allclose(predictor.predict_proba(data).sum(axis=1), 1.0)
    labels = np.array(predictor.classes, dtype=object)
    assert (predictor.predict(data) == labels[joint.argmax(axis=1)]).all()


@pytest.mark.parametrize("penalty", ["bic", "aic", "aicc"])
def test_forests_are_those_of_the_class_alone(penalty: str) -> None:
    data = random_data(3, n_features=4, n_samples=150)
    learned = MultinetLearner(penalty=penalty).fit(data)
    for c, network in enumerate(learned.predictor.networks):
        own = data.take(np.flatnonzero(data.y == c))
        features = replace(own, variables=own.variables[:-1], codes=own.X)
        alone = ChowLiu(penalty=penalty, root="X1").fit(features)
        assert network.structure.parents[:-1] == alone.structure.parents
        assert learned.details["edges"][data.variables[-1].states[c]] == len(alone.structure.arcs)


def test_every_class_gets_the_edges_of_its_own_rows() -> None:
    # X3 copies X1 in one class and X2 in the other.
    rng = np.random.default_rng(0)
    rows = [(a, b, (a, b)[c], c) for a, b, c in rng.integers(0, 2, (200, 3))]
    learned = MultinetLearner(penalty="bic").fit(dataset(rows))
    edges = [{frozenset(e) for e in n.structure.arcs} for n in learned.predictor.networks]
    assert edges == [{frozenset((0, 2))}, {frozenset((1, 2))}]


def test_a_class_without_rows_has_a_network() -> None:
    data = dataset([(0, 0, 0), (1, 1, 0), (0, 1, 2), (1, 0, 2)], [2, 2, 3])
    for penalty in ("none", "bic"):
        learned = MultinetLearner(penalty=penalty).fit(data)
        assert np.isfinite(log_joint(learned, data)).all()
        assert learned.predictor.networks[1].structure.arcs == []


def test_unknown_values_contribute_nothing() -> None:
    data = random_data(4, n_features=3, n_samples=40)
    learned = MultinetLearner().fit(data)
    blank = replace(data, codes=np.where([True, True, True, False], -1, data.codes).astype(np.int32))
    joint = log_joint(learned, blank)
    np.testing.assert_allclose(joint, np.broadcast_to(learned.predictor.log_prior, joint.shape))


def test_all_classes_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    grow = MultinetLearner.grow

    def watched(self, data, smoothing, control, budget, **options):
        limits.append(budget.left())
        return grow(self, data, smoothing, control, budget, **options)

    monkeypatch.setattr(MultinetLearner, "grow", watched)
    data = random_data(6, n_features=3, n_samples=60, n_classes=3)
    MultinetLearner().fit(data, Control(time_limit=3000.0))
    assert len(limits) == 3
    # The last one gets all that the others left.
    assert limits == pytest.approx([1000.0, 1500.0, 3000.0], rel=0.05)
