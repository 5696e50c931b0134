"""The estimator of networks without a class."""

import numpy as np
import pandas as pd
import pytest
from oracle import enumerate_best, random_dataset

from milpbn import Constraints, InputError, Result
from milpbn.errors import DataWarning, MilpbnWarning
from milpbn.sklearn import BayesianNetworkStructure


def drawn(seed: int):
    """Return a frame of four columns, and the same as data whose structures can be enumerated."""
    data = random_dataset(np.random.default_rng(seed), 3, 2, 3, 40)
    return pd.DataFrame(data.labels, columns=list(data.names)), data


@pytest.mark.parametrize("objective", ["bdeu", "bic"])
def test_a_fit_proves_the_best_structure(objective, tmp_path):
    X, data = drawn(3)
    best = enumerate_best(data, {"bic": "mdl"}.get(objective, objective), max_parents=3, parent_sets="all")
    model = BayesianNetworkStructure(objective=objective, output=tmp_path / "result.json").fit(X)
    assert model.optimal_
    assert model.stop_reason_ == "optimal"
    assert model.objective_ == pytest.approx(best.objective)
    assert model.bound_ == pytest.approx(best.objective)
    assert model.gap_ <= 1e-6
    assert Result.load(tmp_path / "result.json").data.classes == 0
    assert list(model.graph_) == list(X.columns)
    parents = {name: sorted(model.causal_graph_.predecessors(name)) for name in X}
    assert parents == {name: sorted(found) for name, found in model.structure_.items()}
    assert tuple(tuple(sorted(X.columns.get_loc(a) for a in parents[b])) for b in X) in best.structures


def test_rows_are_scored_and_weighed():
    X, _ = drawn(5)
    model = BayesianNetworkStructure().fit(X)
    rows = X.iloc[:7].copy()
    tables = {cpt.variable: cpt for cpt in model.classifier_.cpts}
    codes = model.classifier_.encode(rows).codes
    by_hand = [
        sum(np.log(tables[i].table[(*codes[m, list(tables[i].parents)], codes[m, i])]) for i in tables)
        for m in range(7)
    ]
    assert model.score_samples(rows) == pytest.approx(by_hand)
    assert model.score(rows) == pytest.approx(np.mean(by_hand))
    twice = BayesianNetworkStructure().fit(pd.concat([X, X.iloc[:9]]))
    weighed = BayesianNetworkStructure().fit(X, sample_weight=[2] * 9 + [1] * (len(X) - 9))
    assert weighed.objective_ == pytest.approx(twice.objective_)
    rows.iloc[0, 1] = None
    assert model.score_samples(rows)[0] > by_hand[0]
    rows.iloc[0, 1] = "new"
    with pytest.warns(DataWarning, match="1 value was never seen in training"):
        model.score(rows)


def test_constraints_hold_and_a_wrong_use_is_refused():
    X, _ = drawn(6)
    asked = Constraints(required=(("C", "X1"),), max_children={"*": 1})
    model = BayesianNetworkStructure(constraints=asked).fit(X)
    assert "C" in model.structure_["X1"]
    assert max(dict(model.graph_.out_degree).values()) == 1
    for changed, said in (
        ({"objective": "sm"}, "needs a class"),
        ({"discretise": "mdl"}, "the cuts of mdl need a class"),
        ({"time_limit": -1}, "time limit"),
    ):
        with pytest.raises(InputError, match=said):
            BayesianNetworkStructure(**changed).fit(X.assign(x=np.arange(len(X)) / 7))
    with pytest.raises(ValueError, match="1 feature"):
        BayesianNetworkStructure().fit(X[["X1"]])


def test_pgmpy_gets_the_same_network():
    inference = pytest.importorskip("pgmpy.inference")
    X, _ = drawn(8)
    model = BayesianNetworkStructure().fit(X)
    other = model.to_pgmpy()
    assert other.check_model()
    assert set(other.edges) == set(model.graph_.edges)
    found = inference.VariableElimination(other).query(["C"], show_progress=False)
    own = model.classifier_.posterior("C")
    assert dict(zip(found.state_names["C"], found.values, strict=True)) == pytest.approx(own)


def test_the_last_column_is_checked_like_the_others_and_names_must_differ():
    X, _ = drawn(5)
    model = BayesianNetworkStructure(absent_columns="marginalise").fit(X)
    for name in (X.columns[0], X.columns[-1]):
        with pytest.warns(MilpbnWarning, match=f"No value of the column '{name}'"):
            model.score_samples(X.assign(**{name: [f"new {k % 2}" for k in range(len(X))]}))
        with pytest.warns(DataWarning, match=f"^1 of 4 columns is absent \\('{name}'\\)"):
            model.score_samples(X.drop(columns=name))
    with pytest.raises(InputError, match="The column name 'b' occurs more than once in X"):
        BayesianNetworkStructure().fit(X.set_axis(["a", "b", "b", "c"], axis=1))
