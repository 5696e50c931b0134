from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from format_cases import assert_same, queries, random_classifier

from milpbn.data.dataset import UNKNOWN
from milpbn.network.formats.pyagrum_networks import from_pyagrum, to_pyagrum

gum = pytest.importorskip("pyagrum")


@pytest.mark.parametrize("seed", range(10))
def test_pyagrum_has_the_same_joint_probabilities(seed):
    classifier = random_classifier(seed)
    network = to_pyagrum(classifier)
    assert_same(from_pyagrum(network), classifier)
    engine = gum.LazyPropagation(network)
    for states, probability in queries(classifier, 100):
        engine.setEvidence(
            {classifier.variables[i].name: classifier.variables[i].states[k] for i, k in states.items()}
        )
        assert engine.evidenceProbability() == pytest.approx(probability, rel=1e-12, abs=1e-15)


def test_a_network_of_its_own_is_read():
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
