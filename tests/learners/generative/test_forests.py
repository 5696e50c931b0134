"""Trees and forests against networkx, scikit-learn and the enumeration of all forests."""

from __future__ import annotations

import networkx as nx
import numpy as np
import oracle
import pytest
from learner_cases import rooted_forests
from running import dataset, random_data

from milpbn.errors import InputError
from milpbn.heuristics.information import mutual_information
from milpbn.heuristics.spanning import edge_terms, spanning_tree
from milpbn.learners.base import Control
from milpbn.learners.generative import aicc_forest as aicc_module
from milpbn.learners.generative.forests import ChowLiu, Tan
from milpbn.network.classifier import Classifier
from milpbn.network.structure import Structure


def test_information_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import mutual_info_score

    data = random_data(1, n_features=4, n_samples=50)
    information = mutual_information(data)
    for i in range(5):
        for j in range(5):
            expected = mutual_info_score(data.codes[:, i], data.codes[:, j])
            assert information[i, j] == pytest.approx(expected, abs=1e-12)


def test_the_number_of_forests_is_the_known_one() -> None:
    # The number of labelled forests, sequence A001858.
    assert [len(rooted_forests(n)) for n in range(1, 6)] == [1, 2, 7, 38, 291]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("root", [None, "X2"])
def test_chow_liu_is_a_maximum_spanning_tree(seed: int, root: str | None) -> None:
    data = random_data([2, seed], n_features=6, n_samples=50, weights=bool(seed % 2))
    structure = ChowLiu(root=root).fit(data).structure
    assert structure is not None
    information = mutual_information(data)
    graph = nx.Graph()
    graph.add_weighted_edges_from((i, j, information[i, j]) for i in range(7) for j in range(i))
    tree = nx.Graph(structure.arcs)
    assert nx.is_tree(tree)
    assert tree.number_of_nodes() == 7
    assert structure.parents[data.names.index(root or "C")] == ()
    expected = nx.maximum_spanning_tree(graph).size(weight="weight")
    assert sum(information[j, i] for j, i in structure.arcs) == pytest.approx(expected, abs=1e-12)


def all_scores(data, score: str, conditional: bool) -> list[float]:
    """The score of every forest, by the oracle."""
    c = data.n_features
    values = []
    for parents in rooted_forests(c if conditional else c + 1):
        full = (*((*s, c) for s in parents), ()) if conditional else parents
        values.append(oracle.score_structure(data, full, score))
    return values


@pytest.mark.parametrize("penalty", ["bic", "aic", "aicc"])
@pytest.mark.parametrize("learner", [ChowLiu, Tan])
@pytest.mark.parametrize("seed", range(6))
def test_penalised_forests_are_the_best_of_all(penalty: str, learner, seed: int) -> None:
    data = random_data([3, seed], n_features=4, max_states=3, n_samples=60, weights=bool(seed % 2))
    name = {"bic": "mdl"}.get(penalty, penalty)
    values = all_scores(data, name, learner is Tan)
    structure = learner(penalty=penalty, root="X1").fit(data).structure
    assert structure is not None
    assert oracle.score_structure(data, structure.parents, name) == pytest.approx(max(values), abs=1e-8)
    assert max(values) > min(values) + 1.0


@pytest.mark.parametrize("learner", [ChowLiu, Tan])
def test_aicc_forests_of_small_data_equal_enumeration(learner, monkeypatch: pytest.MonkeyPatch) -> None:
    # With few rows for the number of parameters, the penalty per parameter is far from constant.
    by_milp = []
    original = aicc_module._by_milp
    monkeypatch.setattr(
        aicc_module, "_by_milp", lambda *a, **k: by_milp.append(int(a[2].sum()) // 2) or original(*a, **k)
    )
    fewer = 0
    for seed in range(15):
        data = random_data([4, seed], n_features=4, n_classes=2, max_states=4, n_samples=45)
        values = all_scores(data, "aicc", learner is Tan)
        learned = learner(penalty="aicc").fit(data)
        value = oracle.score_structure(data, learned.structure.parents, "aicc")
        assert value == pytest.approx(max(values), abs=1e-7)
        assert learned.details["aicc"] == pytest.approx(value)
        assert learned.details["optimal"]
        aic = learner(penalty="aic").fit(data).structure
        fewer += len(learned.structure.arcs) < len(aic.arcs)
    assert by_milp, "no problem came to the MILP"
    assert min(by_milp) < 10
    assert fewer


def test_aicc_bound_holds_for_every_forest() -> None:
    seen = 0
    for seed in range(10):
        data = random_data([5, seed], n_features=4, n_classes=2, max_states=4, n_samples=40)
        terms = edge_terms(data, conditional=False)
        base = int((data.n_states - 1).sum())
        curve = aicc_module.AiccCurve(terms.parameters, float(data.n_samples))
        relaxed = aicc_module.solve_relaxation(terms, base, curve, 0)
        values = all_scores(data, "aicc", conditional=False)
        empty = oracle.score_structure(data, [()] * 5, "ll")
        assert max(values) <= relaxed.bound + empty + 1e-8
        assert relaxed.value + empty <= max(values) + 1e-8
        allowed = aicc_module.open_edges(terms, relaxed, 1e-9)
        np.testing.assert_array_equal(allowed, allowed.T)
        forests = rooted_forests(5)
        for k in np.flatnonzero(np.array(values) >= max(values) - 1e-9):
            assert all(allowed[i, j] for i, s in enumerate(forests[k]) for j in s)
        seen += not allowed[np.triu_indices(5, 1)].all()
    assert seen


def test_aicc_without_a_value_is_refused() -> None:
    data = random_data(6, n_features=5, n_samples=12)
    with pytest.raises(InputError, match="AICc is defined for fewer"):
        Tan(penalty="aicc").fit(data)


@pytest.mark.parametrize("learner", [ChowLiu, Tan])
@pytest.mark.parametrize("seed", range(4))
def test_held_out_rows_choose_the_number_of_edges(
    learner, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from milpbn.learners.generative import closed_form

    data = random_data([7, seed], n_features=6, n_samples=120, weights=bool(seed % 2))
    parts = []
    original = closed_form.hold_out
    monkeypatch.setattr(
        "milpbn.learners.generative.forests.hold_out", lambda *a: parts.append(original(*a)) or parts[-1]
    )
    structure = learner(penalty="holdout", holdout=0.3).fit(data, Control(random_state=seed)).structure
    (fit, held), c, conditional = parts[0], data.n_features, learner is Tan
    assert fit.n_samples + held.n_samples == data.n_samples
    # By definition: fit the classifier of every prefix of the heaviest edges, and score the held-out rows.
    terms = edge_terms(fit, conditional=conditional)
    above = spanning_tree(terms.gain, 0 if conditional else c)
    heaviest = sorted((i for i in range(len(above)) if above[i] >= 0), key=lambda i: -terms.gain[i, above[i]])
    values = []
    for count in range(len(heaviest) + 1):
        sets = [(int(above[i]),) if i in heaviest[:count] else () for i in range(len(above))]
        parents = (*((*s, c) for s in sets), ()) if conditional else tuple(sets)
        classifier = Classifier.fit(fit, Structure(data.names, parents))
        values.append(held.weights @ classifier.predict_log_joint(held)[np.arange(held.n_samples), held.y])
    edges = len(structure.arcs) - (c if conditional else 0)
    assert edges == int(np.argmax(values))


def test_hold_out_needs_smoothing() -> None:
    with pytest.raises(InputError, match="smoothing"):
        Tan(penalty="holdout", smoothing=0.0).fit(random_data(8))
    with pytest.raises(InputError, match="share of rows held out"):
        Tan(penalty="holdout", holdout=1.5).fit(random_data(8))


def test_constant_features_have_no_arcs_and_single_features_only_the_class() -> None:
    one = random_data(11, n_features=1, n_samples=30)
    assert Tan().fit(one).structure == Structure.naive_bayes(one.names)
    assert Tan(penalty="bic").fit(one).structure == Structure.naive_bayes(one.names)
    codes = [(0, 0, 0), (0, 1, 1), (0, 0, 0), (0, 1, 1), (0, 1, 1), (0, 0, 1)] * 5
    constant = dataset(codes, [1, 2, 2])
    for penalty in ("bic", "aic", "aicc"):
        structure = ChowLiu(penalty=penalty).fit(constant).structure
        assert structure is not None
        assert structure.to_mapping() == {"X1": [], "X2": ["C"], "C": []}


def test_unknown_words_are_refused() -> None:
    data = random_data(12)
    with pytest.raises(InputError, match="penalty"):
        Tan(penalty="mdl").fit(data)
    with pytest.raises(InputError, match="root"):
        Tan(root="C").fit(data)
    with pytest.raises(InputError, match="root"):
        ChowLiu(root="no").fit(data)
