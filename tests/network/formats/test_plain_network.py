from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from fine import fine_classifier
from format_cases import assert_same, queries, random_classifier, written

from milpbn.errors import InputError
from milpbn.network.formats.bif import from_bif, to_bif
from milpbn.network.formats.libraries import (
    from_networkx,
    from_pgmpy,
    from_pyagrum,
    to_networkx,
    to_pgmpy,
    to_pyagrum,
)
from milpbn.network.formats.plain_network import (
    PlainNode,
    as_classifier,
    decode_words,
    encode_words,
    plain_nodes,
)
from milpbn.network.formats.registry import READERS, WRITERS, read_network
from milpbn.network.formats.words import in_words
from milpbn.network.formats.xmlbif import from_xmlbif, to_xmlbif

#: What holds a network, with the number of random networks to try.
HOLDERS = {
    "bif": (to_bif, from_bif, 20),
    "xmlbif": (to_xmlbif, from_xmlbif, 20),
    "xdsl": (WRITERS[".xdsl"], READERS[".xdsl"], 10),
    "net": (WRITERS[".net"], READERS[".net"], 10),
    "networkx": (to_networkx, from_networkx, 20),
    "copied graph": (to_networkx, lambda graph, _=None: from_networkx(nx.DiGraph(graph)), 20),
    "pyagrum": (to_pyagrum, from_pyagrum, 10),
    "pgmpy": (to_pgmpy, from_pgmpy, 5),
}


@pytest.mark.parametrize(
    ("holder", "seed"), [(name, seed) for name, (*_, count) in HOLDERS.items() for seed in range(count)]
)
def test_a_network_comes_back_to_the_last_bit(holder, seed):
    if holder in ("pyagrum", "pgmpy"):
        pytest.importorskip(holder)
    to, back, _ = HOLDERS[holder]
    classifier = random_classifier(seed)
    assert_same(back(to(classifier), None), classifier)
    if not seed:
        two = fine_classifier(0, missing=True)
        assert_same(back(to(two), None), two)


@pytest.mark.parametrize(
    ("ending", "seed"),
    [*itertools.product(["bif", "bifxml"], range(12)), *itertools.product(["net"], range(4))],
)
def test_pyagrum_reads_the_same_probabilities(ending, seed, tmp_path):
    """In BIF and Hugin files in single precision, and by the words that names and labels are mapped to."""
    gum = pytest.importorskip("pyagrum")
    classifier = random_classifier(seed)
    text = WRITERS[f".{ending}"](classifier)
    engine = gum.LazyPropagation(gum.loadBN(written(text, tmp_path / f"n.{ending}")))
    single = ending in ("bif", "net")
    accuracy = {"rel": 1e-5, "abs": 1e-7} if single else {"rel": 1e-12, "abs": 1e-15}
    words = in_words(plain_nodes(classifier, ""))
    for states, probability in queries(classifier, 85):
        named = {classifier.variables[i].name: classifier.variables[i].states[k] for i, k in states.items()}
        if ending == "net":
            named = {words[i].name: k for i, k in states.items()}
        engine.setEvidence(states if ending == "bif" else named)
        assert engine.evidenceProbability() == pytest.approx(probability, **accuracy)


@pytest.mark.parametrize("ending", ["xdsl", "net"])
def test_what_pyagrum_writes_has_its_posteriors(ending, tmp_path):
    """Its .xdsl files have six digits, which are enough for multiples of 1/64; .net files have all."""
    gum = pytest.importorskip("pyagrum")
    rng = np.random.default_rng(0)
    network = gum.fastBN("a[3]->c{no|yes}<-b{x|y|z};c->d{u|v}<-a")
    for name in network.names():
        tensor = network.cpt(name)
        size = network.variable(name).domainSize()
        rows = [rng.multinomial(64, [1 / size] * size) / 64 for _ in range(tensor.domainSize() // size)]
        tensor.fillWith(np.concatenate(rows).tolist())
    gum.saveBN(network, str(tmp_path / f"n.{ending}"))
    found = read_network(tmp_path / f"n.{ending}", "c")
    engine = gum.LazyPropagation(network)
    for a, b, d in itertools.product("012", "xyz", "uv"):
        engine.setEvidence({"a": a, "b": b, "d": d})
        row = found.predict_proba(pd.DataFrame({"a": [a], "b": [b], "d": [d]}))[0]
        assert row == pytest.approx(engine.posterior("c").toarray(), abs=1e-9)


def nodes(**changes) -> list[PlainNode]:
    given = {
        "a": (("x", "y"), ("c",), np.array([[0.3, 0.7], [1.0, 0.0]])),
        "c": (("n", "p"), (), np.array([0.4, 0.6])),
    }
    given.update(changes)
    return [PlainNode(name, *value) for name, value in given.items()]


def test_a_foreign_network_over_intervals_predicts_on_raw_numbers():
    table = np.array([[0.9, 0.1], [0.2, 0.8]])
    found = as_classifier(nodes(a=(("(-inf, 48.5]", "(48.5, inf)"), ("c",), table)), "c", "a test")
    frame = pd.DataFrame({"a": [48.5, 48.6, -1e9]})
    assert list(found.predict(frame)) == ["n", "p", "n"]
    assert found.predict_proba(frame)[0] == pytest.approx([0.36 / 0.48, 0.12 / 0.48])


def test_the_class_becomes_the_last_variable_and_axes_follow():
    table = np.random.default_rng(0).dirichlet([1, 1], size=(3, 2))
    given = [
        PlainNode("c", ("n", "p"), (), np.array([0.5, 0.5])),
        PlainNode("b", ("1", "2"), ("a", "c"), table),
        PlainNode("a", ("x", "y", "z"), (), np.array([0.2, 0.3, 0.5])),
    ]
    found = as_classifier(given, "c", "a test")
    assert [v.name for v in found.variables] == ["b", "a", "c"]
    assert found.structure.parents == ((1, 2), (), ())
    assert np.array_equal(found.cpts[0].table, table)
    assert found.variables[0].numeric
    other = as_classifier(given, "a", "a test")
    assert np.array_equal(other.cpts[1].table, table.transpose(1, 0, 2))


def test_rows_with_few_digits_are_normalised_and_full_ones_kept():
    rough, full = np.array([[0.333, 0.333, 0.333]] * 2), np.array([0.1, 0.2, 0.7])
    found = as_classifier(nodes(a=(("x", "y", "z"), ("c",), rough)), "c", "a test")
    assert found.cpts[0].table.sum(axis=-1) == pytest.approx(1, abs=1e-15)
    assert np.array_equal(
        as_classifier(nodes(a=(("x", "y", "z"), (), full)), "c", "a test").cpts[0].table, full
    )


@pytest.mark.parametrize(
    ("changes", "target", "said"),
    [
        ({}, None, "does not say which variable is the class; name it with --target .*'a', 'c'"),
        ({}, "d", "has no variable 'd'"),
        ({"a": (("x", "y"), ("d",), np.array([[1, 0], [1, 0]]))}, "c", "'d'"),
        ({"a": (("x", "y"), ("c", "c"), np.ones((2, 2, 2)) / 2)}, "c", "parent twice"),
        ({"a": (("x", "y"), ("c",), np.array([1.0, 0.0]))}, "c", "shape"),
        ({"a": (("x", "y"), (), np.array([1.5, -0.5]))}, "c", "no probability"),
        ({"a": (("x", "y"), (), np.array([0.5, 0.4]))}, "c", "the sum 0.9"),
        ({"c": (("n", "p"), ("a",), np.ones((2, 2)) / 2)}, "c", "cycle"),
        ({"a": (("x", "x"), (), np.array([0.5, 0.5]))}, "c", "'x' of 'a' occurs twice"),
    ],
)
def test_what_is_no_network_is_refused(changes, target, said):
    with pytest.raises(InputError, match=said):
        as_classifier(nodes(**changes), target, "a test")


def test_words_hold_any_text():
    texts = ("a,b", "", "é = %;", "\n")
    assert decode_words(encode_words(texts)) == texts
    assert not set(encode_words(texts)) & set(' =;\n"{}()/')
