"""Leave-one-out scores against classifiers that are fitted anew for every sample, without one unit of its weight.

The classifiers have the variables of the whole data: their states, classes and cut points.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pandas as pd
import pytest
from running import dataset, heavy_enough, random_data
from scipy.special import log_softmax

import milpbn
from milpbn.data.dataset import Dataset, Variable
from milpbn.network.cpt import class_log_joint, fit_cpts
from milpbn.network.prior import TOWARDS, UNIFORM
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.counts import n_parameters, require_units
from milpbn.problem.problem import build_problem
from milpbn.problem.rescore import rescore, rescored
from milpbn.problem.scores.spec import Score
from milpbn.problem.subset import Subset

NAMES = ("sm", "sbm", "cll", "hard-margin", "ll")
#: What `log_joints` has computed, with the data, so that no other data get their id.
_JOINTS: dict[tuple, tuple[Dataset, np.ndarray]] = {}


def log_joints(data: Dataset, structure: Structure, score: Score) -> np.ndarray:
    """log P(c, z_m) of the true class, first, and of its rivals, with parameters fitted anew for every sample.

    Under SBM the class is re-read as the sample's own class or another one. Scores with the same parameters share them.
    """
    key = id(data), structure, score.kind.binary, score.prior
    if key in _JOINTS:
        return _JOINTS[key][1]
    rows = []
    for m, y in enumerate(data.y.tolist()):
        codes, variables = data.codes, data.variables
        if score.kind.binary:
            codes = np.column_stack([data.X, data.y != y]).astype(np.int32)
            variables = (*variables[:-1], Variable(variables[-1].name, ("own", "other")))
        weights = data.weights.copy()
        weights[m] -= 1.0
        others = Dataset("others", variables, codes, weights)
        tables = fit_cpts(others, structure, *score.prior)
        joint = class_log_joint(codes[[m]], structure, tables, others.n_classes)[0]
        own = int(codes[m, -1])
        rows.append([joint[own], *np.delete(joint, own)])
    _JOINTS[key] = data, np.array(rows)
    return _JOINTS[key][1]


def values(joint: np.ndarray, score: Score) -> np.ndarray:
    """What samples with these joint log-probabilities add for a unit of weight."""
    if score.name == "cll":
        return log_softmax(joint, axis=1)[:, 0]
    return np.minimum(joint[:, 0] - joint[:, 1:].max(axis=1), score.kind.cap)


def fitted_anew(data: Dataset, structure: Structure, score: Score) -> float:
    """The score by its definition over the rows of the data."""
    joint = log_joints(data, structure, score)
    plain = Score(name="cll", smoothing=score.smoothing, smoothing_towards=score.smoothing_towards)
    likelihood = data.weights @ log_joints(data, structure, plain)[:, 0]
    if score.name == "ll":
        return float(likelihood)
    parts = values(joint, score)
    if score.name == "hard-margin":
        return float(parts.min() + score.hybrid * likelihood)
    return float(data.weights @ parts + score.hybrid * likelihood)


def few_structures(data: Dataset, max_parents: int, number: int = 12) -> list[Structure]:
    """Some structures over the candidate parent sets of margin scores, class parents included."""
    sets = oracle.candidate_sets(data.n_variables, max_parents)
    found = oracle.acyclic_structures(tuple(map(tuple, sets)))
    chosen = np.random.default_rng(number).choice(len(found), min(number, len(found)), replace=False)
    return [Structure(data.names, found[k]) for k in chosen]


def cut_data() -> Dataset:
    """Numbers that are discretised with the class, and a state that a single row has."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], [14, 14, 4])
    frame = pd.DataFrame(
        {
            "length": y + rng.normal(0, 0.4, 32),
            "width": (y > 0) * 2.0 + rng.normal(0, 0.5, 32),
            "kind": np.where(np.arange(32) == 3, "rare", rng.choice(["a", "b"], 32)),
            "class": [f"c{k}" for k in y],
        }
    )
    data = milpbn.read_table(frame, target="class").dataset()
    assert data.variables[0].cuts
    return data


#: Unit weights, weights, two classes, a class and a state of one row, many joint states, cut points.
DATA = {
    "unit": random_data(1, n_samples=30),
    "weights": heavy_enough(random_data(2, n_samples=24, weights=True), Score(leave_one_out=True)),
    "two classes": random_data(3, n_samples=30, n_classes=2),
    "singles": dataset([[0, 0, 0], [1, 0, 0], [1, 1, 1], [0, 2, 1], [1, 1, 1], [0, 1, 2]], [2, 3, 3]),
    "copies": random_data(4, n_features=2, n_samples=40, max_states=2),
    "cuts": cut_data(),
    "constant feature": dataset([[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 0, 1], [1, 0, 2]], [2, 1, 3]),
}


@pytest.mark.parametrize(
    ("name", "towards"),
    [
        *((name, UNIFORM) for name in NAMES),
        *((name, towards) for name in NAMES[:-1] for towards in TOWARDS[1:]),
    ],
)
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_scores_are_those_of_classifiers_fitted_without_each_sample(
    name: str, data: Dataset, towards: str
) -> None:
    """Coefficients and scores from the data agree with as many fits as there are samples, merged or not."""
    options = {} if name == "ll" else {"hybrid": 0.2, "smoothing_towards": towards}
    score = Score(name=name, max_parents=3, leave_one_out=True, smoothing=0.7, **options)
    merged, rows = (build_problem(data, score, merge=merge) for merge in (True, False))
    for structure in few_structures(data, 3, 5 if towards == UNIFORM else 2):
        expected = fitted_anew(data, structure, score)
        for problem in (merged, rows):
            choice = problem.choice(structure)
            assert problem.value(problem.indicator(choice)) == pytest.approx(expected, abs=1e-9)
            assert problem.rescore(structure) == pytest.approx(expected, abs=1e-9)
        assert rescored(data, structure, score)[0] == pytest.approx(expected, abs=1e-9)
        if name != "ll":
            joint = log_joints(data, structure, score)
            eta = rows.indicator(rows.choice(structure))[rows.margins.columns]
            # By samples and rivals: the tensor that a MILP takes, and the margins from the tables.
            np.testing.assert_allclose(rows.margins.alpha @ eta, joint[:, :1] - joint[:, 1:], atol=1e-9)
            margins = rows.margins.log_margins(rows.indicator(rows.choice(structure)))
            np.testing.assert_allclose(margins, joint[:, 0] - joint[:, 1:].max(axis=1), atol=1e-9)


@pytest.mark.parametrize("name", ["sm", "sbm", "cll"])
def test_a_subset_leaves_out_of_the_parameters_of_all_rows(name: str) -> None:
    """The samples of a subset have weights of their own; their parameters lack one unit of the weight in the data."""
    data, score = random_data(6, n_samples=40), Score(name=name, leave_one_out=True)
    problem = build_problem(data, score, merge=False, subset=Subset(9))
    weights = problem.sample_weights
    assert weights is not None
    for structure in few_structures(data, 2, 6):
        expected = weights @ values(log_joints(data, structure, score), score)
        choice = problem.choice(structure)
        assert problem.value(problem.indicator(choice)) == pytest.approx(expected, abs=1e-9)
        assert problem.rescore(structure) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("smoothing", [1.0, 0.1])
@pytest.mark.parametrize("towards", TOWARDS)
def test_two_classes_make_both_margins_equal(weights: bool, smoothing: float, towards: str) -> None:
    """SM = SBM, class parents included: what is left out of a class is not left out of the rest."""
    options = {"p": 0.9, "max_parents": 3, "smoothing": smoothing, "leave_one_out": True}
    options["smoothing_towards"] = towards
    sm, sbm = (Score(name=name, **options) for name in ("sm", "sbm"))
    for seed in range(2):
        data = heavy_enough(random_data(seed, n_classes=2, n_samples=25, weights=weights), sm)
        one, other = (build_problem(data, score) for score in (sm, sbm))
        np.testing.assert_allclose(one.margins.alpha, other.margins.alpha, atol=1e-12)
        counted = [build_problem(data, replace(score, leave_one_out=False)) for score in (sm, sbm)]
        np.testing.assert_allclose(counted[0].margins.alpha, counted[1].margins.alpha, atol=1e-12)
        structure = milpbn.solve(data, sm, verbose=False).structure
        assert rescore(data, structure, sm) == pytest.approx(rescore(data, structure, sbm), abs=1e-9)


def test_the_best_score_of_a_cross_validation_is_found() -> None:
    """The optimum is that of the cross-validated score, and another structure is best for resubstitution."""
    differ = 0
    for seed in range(6):
        data = random_data([8, seed], n_samples=24, n_classes=2)
        score = Score(name="cll", max_parents=3, leave_one_out=True)
        result = milpbn.solve(data, score, verbose=False)
        structures = oracle.acyclic_structures(tuple(map(tuple, oracle.candidate_sets(data.n_variables, 3))))
        values = {s: oracle.score_structure(data, s, "cll", leave_one_out=True) for s in structures}
        assert result.objective == pytest.approx(max(values.values()), abs=1e-9)
        plain = milpbn.solve(data, replace(score, leave_one_out=False), verbose=False)
        differ += values[plain.structure.parents] < result.objective - 1e-6
        # The classifier counts all samples.
        tables = zip(result.classifier.cpts, fit_cpts(data, result.structure, 1.0), strict=True)
        assert all(np.array_equal(found.table, fitted.table) for found, fitted in tables)
    assert differ > 0


def test_light_samples_are_refused() -> None:
    data = random_data(9, weights=True)
    light = replace(data, weights=np.full(data.n_samples, 0.75))
    score = Score(leave_one_out=True)
    structure = Structure.empty(data.names)
    for refused in (
        lambda: build_problem(light, score),
        lambda: rescore(light, structure, score),
        lambda: milpbn.solve(light, score, verbose=False),
    ):
        with pytest.raises(milpbn.InputError, match=r"samples of weight 0\.75; multiply all weights"):
            refused()
    # Two copies of .75 are 1.5 in one row, and are refused all the same.
    twice = light.take([*range(data.n_samples), *range(data.n_samples)])
    with pytest.raises(milpbn.InputError, match="one unit of weight out of every sample"):
        build_problem(twice, score)
    assert np.isfinite(rescore(light, structure, Score()))
    require_units(replace(light, weights=light.weights + 0.25), 1.0)


def test_constraints_and_arc_weights_go_with_it() -> None:
    data = random_data(10, n_samples=30)
    rules = Constraints(fixed={"C": ("X1",), "X2": ("X1", "C")}, arc_weights={("X1", "X2"): 2.5})
    score = Score(p=0.9, max_parents=2, penalty=0.3, leave_one_out=True)
    result = milpbn.solve(data, score, constraints=rules, verbose=False)
    k = sum(n_parameters(data, i, s) for i, s in enumerate(result.structure.parents))
    expected = fitted_anew(data, result.structure, score) - 0.3 * k + 2.5
    assert result.reason == "optimal"
    assert result.objective == pytest.approx(expected, abs=1e-9)
