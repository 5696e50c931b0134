"""Every answer beside the enumeration of the joint distribution."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import milpbn
from milpbn.data.dataset import UNKNOWN, Variable
from milpbn.errors import InputError, MilpbnWarning
from milpbn.network import AveragedClassifier, Classifier, Cpt, PseudoClassifier, Structure
from milpbn.network.fixed_point import FixedPointClassifier

EXACT = {"rel": 1e-12, "abs": 1e-13}


def evidence_of(classifier: Classifier, seed: int) -> tuple[dict[str, str], dict[int, int]]:
    """Return random evidence as labels by name, and as codes by index; a few features have unseen values."""
    rng = np.random.default_rng(1000 + seed)
    labels, codes = {}, {}
    for i, variable in enumerate(classifier.variables):
        draw = rng.random()
        if draw < 0.3:
            codes[i] = int(rng.integers(variable.n_states))
            labels[variable.name] = variable.states[codes[i]]
        elif draw < 0.4 and variable.name != "class":
            codes[i], labels[variable.name] = UNKNOWN, "new"
    return labels, codes


def shares(joint, index: int, n_states: int) -> list[float]:
    total = math.fsum(joint.values())
    return [math.fsum(p for row, p in joint.items() if row[index] == k) / total for k in range(n_states)]


@pytest.mark.filterwarnings("ignore:Training never saw")
@pytest.mark.parametrize("seed", range(40))
def test_answers_are_those_of_the_whole_joint_distribution(random_network, enumerate_joint, seed) -> None:
    classifier = random_network(seed)
    labels, codes = evidence_of(classifier, seed)
    joint = enumerate_joint(classifier, codes)
    probability = math.fsum(joint.values())
    assert classifier.log_probability(labels) == pytest.approx(math.log(probability), abs=1e-12)

    marginals = classifier.marginals(labels)
    assert marginals.keys() == {v.name for i, v in enumerate(classifier.variables) if i not in codes}
    for i, variable in enumerate(classifier.variables):
        if i not in codes:
            expected = pytest.approx(shares(joint, i, variable.n_states), **EXACT)
            assert list(marginals[variable.name].values()) == expected
            assert list(classifier.posterior(variable.name, labels).values()) == expected

    best = classifier.most_probable_explanation(labels)
    states = [best.states[v.name] for v in classifier.variables]
    row = tuple(
        UNKNOWN if label == "(unseen)" else v.states.index(label)
        for v, label in zip(classifier.variables, states, strict=True)
    )
    assert joint[row] == pytest.approx(max(joint.values()), **EXACT)
    assert best.log_joint == pytest.approx(math.log(joint[row]), abs=1e-12)
    assert best.log_posterior == pytest.approx(math.log(joint[row] / probability), abs=1e-12)


@pytest.mark.parametrize("seed", [4, 7, 9])
def test_samples_have_the_joint_distribution(random_network, enumerate_joint, seed) -> None:
    classifier = random_network(seed, n_variables=5)
    evidence = {"x1": classifier.variables[1].states[-1]}
    joint = enumerate_joint(classifier, {1: classifier.variables[1].n_states - 1})
    total = math.fsum(joint.values())
    data = classifier.sample(50_000, evidence, random_state=3)
    counts = Counter(map(tuple, data.codes.tolist()))
    assert counts.keys() <= joint.keys()
    deviation = sum(
        (counts[row] - 50_000 * p / total) ** 2 / (50_000 * p / total) for row, p in joint.items()
    )
    degrees = len(joint) - 1
    assert degrees > 5
    assert deviation < degrees + 5 * math.sqrt(2 * degrees)  # five standard deviations of chi-squared
    assert np.array_equal(data.codes, classifier.sample(50_000, evidence, random_state=3).codes)
    assert set(data.labels[:, 1]) == {evidence["x1"]}


def test_likelihoods_of_rows_sum_over_what_is_missing(random_network, enumerate_joint) -> None:
    classifier = random_network(7)
    variables = classifier.variables
    frame = pd.DataFrame({v.name: [v.states[0], None, v.states[-1]] for v in variables})
    frame.loc[1, "x2"] = variables[2].states[0]
    frame.loc[2, "class"] = None
    known = [dict.fromkeys(range(6), 0), {2: 0}, {i: variables[i].n_states - 1 for i in range(5)}]
    expected = [math.log(math.fsum(enumerate_joint(classifier, codes).values())) for codes in known]
    assert classifier.log_likelihood(frame).tolist() == pytest.approx(expected, abs=1e-12)
    assert classifier.log_probability({"x2": variables[2].states[0]}) == pytest.approx(expected[1], abs=1e-12)


def test_no_product_underflows() -> None:
    """A chain of 400 variables: the likelihood is far below the smallest float."""
    n = 400
    names = (*(f"x{i}" for i in range(n)), "class")
    table = np.array([[0.1, 0.9], [0.6, 0.4]])
    cpts = [Cpt(i, (i - 1,) if i else (), table if i else table[0]) for i in range(n)]
    cpts.append(Cpt(n, (0,), table))
    structure = Structure(names, tuple(cpt.parents for cpt in cpts))
    classifier = Classifier(tuple(Variable(name, ("a", "b")) for name in names), structure, tuple(cpts))
    known = dict.fromkeys(names[:-1], "a")
    assert classifier.log_probability(known) == pytest.approx(n * math.log(0.1), rel=1e-12)
    assert classifier.posterior("class", known)["b"] == pytest.approx(0.9, rel=1e-12)
    best = classifier.most_probable_explanation({"x0": "a", f"x{n - 1}": "a"})
    assert best.log_posterior < 0
    # The stationary distribution of the chain.
    assert classifier.marginals({"x0": "a"})["x200"]["a"] == pytest.approx(0.4, rel=1e-12)


def test_evidence_is_written_as_in_a_table() -> None:
    frame = pd.DataFrame(
        {"size": [1.0, 2.0, 3.5, 4.5] * 10, "code": [1, 2, 2, 1] * 10, "kind": ["p", "p", "q", "q"] * 10}
    )
    frame.loc[2::8, "code"] = np.nan
    data = milpbn.read_table(frame, target="kind", continuous=["size"], missing="state").dataset()
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names))
    size = classifier.variables[0]
    low = classifier.posterior("kind", {"size": 1.25})
    assert (
        low
        == classifier.posterior("kind", {"size": " 1.25 "})
        == classifier.posterior("kind", {"size": size.states[0]})
    )
    assert classifier.posterior("kind", {"code": 2}) == classifier.posterior("kind", {"code": "02.0"})
    assert classifier.posterior("kind", {"size": None}) == classifier.posterior("kind")
    # The column `code` has a state for missing values.
    assert classifier.posterior("kind", {"code": None}) == classifier.posterior("kind", {"code": "?"})
    assert classifier.posterior("kind", {"code": None}) != classifier.posterior("kind")
    with pytest.raises(
        InputError, match=r"'big' of 'size' in the evidence is neither a finite number nor one of"
    ):
        classifier.posterior("kind", {"size": "big"})


def test_unusable_questions_are_refused(random_network) -> None:
    classifier = random_network(0)
    for question, sentence in (
        (lambda: classifier.posterior("nope"), "no variable 'nope' in the classifier; it has 'x0'"),
        (lambda: classifier.posterior("x0", {"y": "a"}), "no variable 'y'"),
        (lambda: classifier.posterior("x0", {"x0": "a"}), "already gives 'x0' a value"),
        (lambda: classifier.posterior("x0", {"class": "new"}), "'class' has no state 'new'; it has 'a'"),
        (lambda: classifier.sample(0), "n_samples must be at least 1, got 0"),
        (lambda: classifier.sample(2.5), "n_samples must be a whole number"),
        (lambda: classifier.sample(1, random_state="x"), "random_state is a whole number"),
        (lambda: classifier.posterior("x0", {"x1": [1]}), "holds containers"),
    ):
        with pytest.raises(InputError, match=sentence):
            question()
    with pytest.warns(MilpbnWarning, match="never saw the value 'new' of 'x1'"):
        classifier.posterior("x0", {"x1": "new"})


def test_impossible_evidence_is_refused(random_network) -> None:
    classifier = random_network(3, zeros=True)
    name = next(v.name for v in classifier.variables if v.n_states > 1)
    evidence = {name: "a"}
    assert classifier.log_probability(evidence) == -math.inf
    other = next(v.name for v in classifier.variables if v.name != name)
    for question in (
        lambda: classifier.posterior(other, evidence),
        lambda: classifier.marginals(evidence),
        lambda: classifier.most_probable_explanation(evidence),
        lambda: classifier.sample(1, evidence),
    ):
        with pytest.raises(InputError, match="has the probability 0"):
            question()


def test_models_without_one_graph_are_refused(random_network) -> None:
    classifier = random_network(1)
    pseudo = PseudoClassifier(classifier.variables, classifier.cpts)
    for model in (pseudo, FixedPointClassifier(classifier, 4, 4)):
        for question in (
            lambda m: m.posterior("x0"),
            lambda m: m.sample(2),
            lambda m: m.most_probable_explanation(),
        ):
            words = rf"\({type(model).__name__}\) is not one directed acyclic graph"
            with pytest.raises(InputError, match=words):
                question(model)


def test_an_average_has_the_mean_of_the_posteriors(random_network) -> None:
    first = random_network(4, n_variables=4)
    second = random_network(9, n_variables=4)
    # The same names and classes, but other states of x0.
    sizes = [(len(a.states), len(b.states)) for a, b in zip(first.variables, second.variables, strict=True)]
    assert sizes[-1][0] == sizes[-1][1]
    average = AveragedClassifier((first, second))
    found = average.posterior("class")
    for label, probability in found.items():
        both = [member.posterior("class")[label] for member in average.members]
        assert probability == pytest.approx(sum(both) / 2, rel=1e-14)
    different = [v.name for v, (a, b) in zip(first.variables, sizes, strict=True) if a != b]
    assert different
    assert average.marginals().keys() == {v.name for v in first.variables} - set(different)
    with pytest.raises(InputError, match=f"different states of '{different[0]}'"):
        average.posterior(different[0])
    with pytest.raises(InputError, match="not one directed acyclic graph"):
        average.most_probable_explanation()


def test_answers_agree_with_pyagrum(random_network) -> None:
    gum = pytest.importorskip("pyagrum")
    classifier = random_network(11, n_variables=9)
    network = gum.BayesNet()
    for v in classifier.variables:
        network.add(gum.LabelizedVariable(v.name, "", list(v.states)))
    for parent, child in classifier.structure.arcs:
        network.addArc(parent, child)
    names = [v.name for v in classifier.variables]
    for cpt in classifier.cpts:
        table = network.cpt(cpt.variable)
        for index in np.ndindex(cpt.table.shape):
            table[dict(zip((names[j] for j in (*cpt.parents, cpt.variable)), index, strict=True))] = (
                cpt.table[index]
            )
    evidence = {"x0": "a", "x4": classifier.variables[4].states[-1]}
    engine = gum.LazyPropagation(network)
    engine.setEvidence(evidence)
    engine.makeInference()
    assert classifier.log_probability(evidence) == pytest.approx(
        math.log(engine.evidenceProbability()), abs=1e-10
    )
    for name, found in classifier.marginals(evidence).items():
        assert list(found.values()) == pytest.approx(np.ravel(engine.posterior(name).tolist()), abs=1e-10)


def test_a_wide_network_is_refused_before_it_takes_memory() -> None:
    """Pairs of 40 causes have a common child each: with all children known, the causes depend on each other."""
    n = 40
    names = (*(f"x{i}" for i in range(n)), *(f"y{i}_{j}" for i in range(n) for j in range(i)), "class")
    index = {name: k for k, name in enumerate(names)}
    parents = {f"y{i}_{j}": [f"x{i}", f"x{j}"] for i in range(n) for j in range(i)}
    structure = Structure.from_mapping(names, parents)
    cpts = tuple(Cpt(k, p, np.full((2,) * (len(p) + 1), 0.5)) for k, p in enumerate(structure.parents))
    classifier = Classifier(tuple(Variable(name, ("a", "b")) for name in names), structure, cpts)
    children = dict.fromkeys(parents, "a")
    with pytest.raises(
        InputError, match=r"Exact inference over .* would need tables of .*\. Give values of more"
    ):
        classifier.posterior("x0", children)
    # Without the children's values, they play no part.
    assert classifier.posterior("x0") == {"a": 0.5, "b": 0.5}
    assert classifier.posterior("x0", {**children, **{f"x{i}": "b" for i in range(1, n)}})[
        "a"
    ] == pytest.approx(0.5)
    codes = replace(
        classifier.sample(1, random_state=0), codes=np.array([[-2] * n + [0] * (len(index) - n)], np.int32)
    )
    with pytest.raises(InputError, match="Exact inference"):
        classifier.predict(codes)


def test_evidence_knows_the_missing_values_of_the_training_table(recwarn: pytest.WarningsRecorder) -> None:
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.5, 4.5, 999.0] * 8, "side": list("lrxlr") * 8})
    frame["kind"] = ["p", "p", "q", "q", "p", "q", "p", "q", "q", "p"] * 4
    for missing in ("drop", "state"):
        data = milpbn.read_table(
            frame,
            target="kind",
            continuous=["size"],
            missing=missing,
            na_values={"size": ["999"], "side": ["x"]},
        ).dataset()
        classifier = Classifier.fit(data, Structure.naive_bayes(data.names))
        for value in (999, 999.0, "999", " 999.0 "):
            recwarn.clear()
            found = classifier.posterior("kind", {"size": value, "side": "l"})
            (warned,) = [str(one.message) for one in recwarn]
            assert warned.startswith(f"The value {value!r} of 'size' stands for a missing value")
            rows = pd.DataFrame({"size": [999.0], "side": ["l"]})
            assert list(found.values()) == pytest.approx(classifier.predict_proba(rows)[0], abs=1e-12)
            assert found == classifier.posterior("kind", {"size": None, "side": "l"})
        # Of one column only.
        assert classifier.posterior("kind", {"side": "x"}) == classifier.posterior("kind", {"side": None})
        with pytest.warns(MilpbnWarning, match="never saw the value '999' of 'side'"):
            classifier.posterior("kind", {"side": "999"})
