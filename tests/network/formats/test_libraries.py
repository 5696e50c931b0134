"""Networks as objects of networkx, pgmpy and pyAgrum."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from format_cases import queries, random_classifier

from milpbn.data.dataset import UNKNOWN
from milpbn.errors import InputError
from milpbn.network.formats.libraries import (
    from_networkx,
    from_pgmpy,
    from_pyagrum,
    structure_from_networkx,
    to_networkx,
    to_pgmpy,
    to_pyagrum,
)


def test_a_graph_has_the_nodes_in_order():
    classifier = random_classifier(0)
    assert tuple(to_networkx(classifier).nodes) == classifier.structure.names


def test_structures_come_back():
    structure = random_classifier(1).structure
    graph = to_networkx(structure)
    assert structure_from_networkx(graph, structure.names[-1]) == structure
    with pytest.raises(InputError, match="no node 'k'"):
        structure_from_networkx(graph, "k")


def test_incomplete_graphs_are_refused():
    with pytest.raises(InputError, match="'a' of the graph lacks the attribute 'states'"):
        from_networkx(nx.DiGraph([("a", "b")]), "b")
    graph = to_networkx(random_classifier(2))
    graph.remove_edge(*next(iter(graph.edges)))
    with pytest.raises(InputError, match="does not list the parents"):
        from_networkx(graph)


@pytest.mark.parametrize("read", [from_networkx, from_pgmpy, from_pyagrum, structure_from_networkx])
def test_objects_of_another_kind_are_refused(read):
    with pytest.raises(InputError, match=r"A \w+ of \w+ is expected, not a Graph"):
        read(nx.Graph([("a", "b")]), "b")


def test_a_graph_without_nodes_is_refused():
    with pytest.raises(InputError, match="It has no variables"):
        from_networkx(nx.DiGraph(), "b")


def network_of_pgmpy(arcs):
    return pytest.importorskip("pgmpy.models").DiscreteBayesianNetwork(arcs)


@pytest.mark.parametrize("seed", range(5))
def test_pgmpy_has_the_same_joint_probabilities(seed):
    pytest.importorskip("pgmpy")
    classifier = random_classifier(seed)
    model = to_pgmpy(classifier)
    assert model.check_model()
    for states, probability in queries(classifier, 200):
        named = {classifier.variables[i].name: classifier.variables[i].states[k] for i, k in states.items()}
        assert model.get_state_probability(named) == pytest.approx(probability, rel=1e-12, abs=1e-15)


def test_a_model_without_tables_is_refused():
    with pytest.raises(InputError, match="has no table; fit the model"):
        from_pgmpy(network_of_pgmpy([("a", "b")]), "b")


def test_tables_of_pgmpy_have_orders_of_states_of_their_own():
    """The order of a parent's states in the table of a child may be another one than in its own table."""
    factors = pytest.importorskip("pgmpy.factors.discrete")

    def x(names):
        states = {"x": ["a", "b"], "y": names}
        return factors.TabularCPD("x", 2, [[0.9, 0.2], [0.1, 0.8]], ["y"], [2], state_names=states)

    model = network_of_pgmpy([("y", "x")])
    model.add_cpds(factors.TabularCPD("y", 2, [[0.3], [0.7]], state_names={"y": ["n", "p"]}), x(["p", "n"]))
    found = from_pgmpy(model, "y").predict_proba(pd.DataFrame({"x": ["a"]}))
    assert found[0] == pytest.approx([0.06 / 0.69, 0.63 / 0.69])  # .3 .2 and .7 .9, normalised
    model.add_cpds(x(["p", "q"]))
    with pytest.raises(InputError, match="'x' has other states of 'y'"):
        from_pgmpy(model, "y")
    model.add_node("z")
    model.add_cpds(factors.TabularCPD("z", 1, [[1.0]]), x(["n", "p"]))
    model.add_edge("z", "x")
    with pytest.raises(InputError, match="'x' does not have the parents"):
        from_pgmpy(model, "y")


@pytest.mark.parametrize("kind", ["int", "float", "bool", "str", "interval", "interval as text"])
def test_a_model_that_pgmpy_fitted_predicts_as_in_pgmpy(kind):
    """Names of states are numbers, truth values and intervals of pandas, some in the order of their texts."""
    rng = np.random.default_rng(0)
    number = rng.normal(size=200)
    values = {
        "int": rng.integers(0, 3, 200),
        "float": rng.choice([0.0, 1.0, 2.5], 200),
        "bool": rng.random(200) < 0.5,
        "str": rng.choice(["a b", "c"], 200),
        "interval": pd.cut(number, [-9, -1, 0, 0.5, 9]),
        "interval as text": pd.cut(number, [-9, -1, 0, 0.5, 9]).astype(str),
    }[kind]
    frame = pd.DataFrame({"v": values})
    y = np.where(rng.random(200) < 0.2, rng.random(200) < 0.5, frame["v"] == frame["v"][0])
    frame["y"] = pd.Series(y).astype({"int": int, "float": float, "bool": bool}.get(kind, str))
    model = network_of_pgmpy([("y", "v")])
    model.fit(frame)
    classifier = from_pgmpy(model, target="y")
    expected = model.predict(frame[["v"]])["y"]
    assert (classifier.predict(frame) == expected).all()
    if kind.startswith("interval"):
        assert (classifier.predict(pd.DataFrame({"v": number})) == expected).all()
    back = from_pgmpy(to_pgmpy(classifier))
    assert back.variables == classifier.variables
    assert back.labels.dtype == classifier.labels.dtype


def test_labels_of_real_numbers_match_numbers():
    """pgmpy's states of a column of floats are 0.0, 1.0, whose texts are not those of the numbers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"flag": rng.choice([0.0, 1.0], 200), "dose": rng.choice([0.5, 1.0, 2.0], 200)})
    frame["y"] = np.where(rng.random(200) < 0.2 + 0.6 * frame.flag * (frame.dose > 0.7), "sick", "ok")
    model = network_of_pgmpy([("y", "flag"), ("y", "dose")])
    model.fit(frame)
    classifier = from_pgmpy(model, target="y")
    expected = model.predict(frame[["flag", "dose"]])["y"]
    for form in (frame, frame.astype({"flag": int}), frame.astype({"flag": bool}), frame.astype(str)):
        assert (classifier.predict(form) == expected).all()


@pytest.mark.parametrize("seed", range(10))
def test_pyagrum_has_the_same_joint_probabilities(seed):
    gum = pytest.importorskip("pyagrum")
    classifier = random_classifier(seed)
    network = to_pyagrum(classifier)
    engine = gum.LazyPropagation(network)
    for states, probability in queries(classifier, 100):
        engine.setEvidence(
            {classifier.variables[i].name: classifier.variables[i].states[k] for i, k in states.items()}
        )
        assert engine.evidenceProbability() == pytest.approx(probability, rel=1e-12, abs=1e-15)


def test_a_network_of_its_own_is_read():
    gum = pytest.importorskip("pyagrum")
    network = gum.fastBN("a[3]->c{no|yes}<-b->a")
    found = from_pyagrum(network, "c")
    assert found.classes == ("no", "yes")
    assert found.variables[0].numeric
    codes = {"a": 2, "b": 1, "c": 0}
    own = 1.0
    for cpt in found.cpts:
        names = [found.variables[j].name for j in (*cpt.parents, cpt.variable)]
        own *= cpt.table[tuple(codes[name] for name in names)]
    whole = gum.Instantiation(network.completeInstantiation())
    for name, code in codes.items():
        whole.chgVal(name, code)
    assert own == pytest.approx(network.jointProbability(whole))
    assert np.isfinite(own)


@pytest.mark.parametrize("empirical", [False, True])
def test_intervals_of_pyagrum_take_the_numbers_that_pyagrum_puts_into_them(empirical):
    """They are closed on the left. Values outside are in no interval, or in the outer ones if these are empirical."""
    gum = pytest.importorskip("pyagrum")
    ticks = [-1e-5, 1 / 3, 0.5, 2.5]
    network = gum.BayesNet()
    variable = gum.DiscretizedVariable("x", "x", ticks, empirical)
    network.add(variable)
    network.add(gum.LabelizedVariable("c", "c", ["u", "v"]))
    network.addArc("c", "x")
    network.cpt("c").fillWith([0.5, 0.5])
    network.cpt("x").fillWith([0.1, 0.2, 0.7, 0.5, 0.4, 0.1])
    found = from_pyagrum(network, "c")
    values = [*ticks, *np.nextafter(ticks, -9), *np.nextafter(ticks, 9), -7.0, 7.0]
    codes = found.encode(pd.DataFrame({"x": values})).codes[:, 0]
    for value, code in zip(values, codes, strict=True):
        if empirical or ticks[0] <= value <= ticks[-1]:
            assert code == variable.index(repr(float(value))), value
        else:
            assert code == UNKNOWN, value
