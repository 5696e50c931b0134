"""What notebooks show of classifiers."""

from __future__ import annotations

import numpy as np
import pytest
from pictures import Page

from milpbn.data import Dataset, Variable
from milpbn.network import Classifier, Structure
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.cpt import Cpt
from milpbn.network.pseudo import PseudoClassifier


def data(n: int) -> Dataset:
    rng = np.random.default_rng(n)
    features = tuple(Variable(f"特徴 <{i}> {'long ' * (i % 5)}", ("x", "y")) for i in range(n))
    variables = (*features, Variable("class", ("no", "yes")))
    return Dataset("toy", variables, rng.integers(0, 2, (30, n + 1)).astype(np.int32), np.ones(30))


def member(n: int, seed: int) -> Classifier:
    rows, rng = data(n), np.random.default_rng(seed)
    parents = [(n,), *((int(rng.integers(0, i)), n) for i in range(1, n)), ()]
    provenance = {"score": {"name": "sm", "gamma": 2.0 + seed}}
    return Classifier.fit(rows, Structure(rows.names, parents), provenance=provenance)


@pytest.mark.parametrize(("n", "members", "drawn"), [(4, 3, 3), (57, 9, 6), (196, 3, 2), (500, 2, 1)])
def test_an_average_shows_its_first_networks_and_says_how_many_are_not_drawn(n, members, drawn):
    average = AveragedClassifier(tuple(member(n, seed) for seed in range(members)))
    html = average._repr_html_()
    seen = Page(html)
    assert seen.count("svg") == seen.count("details") == drawn
    assert html.count("<details open>") == 1
    assert f"Network 1 of {members}: {2 * n - 1} arcs; sm, gamma = 2" in seen.text
    assert f"each with weight 1/{members}" in seen.text
    assert ("not drawn" in seen.text) == (drawn < members)
    if drawn > 1:
        new = len(set(average.members[1].structure.arcs) - set(average.members[0].structure.arcs))
        assert (
            f"Network 2 of {members}: {2 * n - 1} arcs, {new} of them not in the first network" in seen.text
        )
    assert len(html) < 400_000
    assert len(repr(average)) < 500


@pytest.mark.parametrize("n", [4, 196])
def test_a_network_shows_its_numbers_and_its_picture(n):
    classifier = member(n, 0)
    seen = Page(classifier._repr_html_())
    assert seen.count("svg") == 1
    for words in ("class: no, yes", str(classifier.n_parameters), "特徴 <0>"):
        assert words in seen.text
    assert len(repr(classifier)) < 500


def test_a_provenance_from_elsewhere_does_no_harm():
    first = member(4, 0)
    for provenance in (
        {},
        {"score": None},
        {"score": {"name": 3}},
        {"score": {"name": "x" * 999, "gamma": "y"}},
    ):
        strange = Classifier(first.variables, first.structure, first.cpts, provenance=provenance)
        assert len(Page(AveragedClassifier((strange, first))._repr_html_()).text) < 1500


def test_a_pseudo_tan_says_why_it_has_no_picture():
    variables = data(2).variables
    table = np.full((2, 2, 2), 0.5)
    cpts = (Cpt(0, (1, 2), table), Cpt(1, (0, 2), table), Cpt(2, (), np.array([0.5, 0.5])))
    seen = Page(PseudoClassifier(variables, cpts)._repr_html_())
    assert "cycles" in seen.text
    assert not seen.count("svg")
