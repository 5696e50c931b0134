"""Additive models: gradients, optima against scikit-learn's, penalties, naive Bayes, gains, and probability tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from milpbn.data import Dataset, Table, read_table
from milpbn.data.dataset import MISSING, Variable
from milpbn.data.resolutions import with_fine
from milpbn.network import convex
from milpbn.network.additive.choice import Sources, _changes, additive
from milpbn.network.additive.fitting import CellRows, Objective, row_losses
from milpbn.network.additive.interactions import Residuals, Room, grown, network_of_blocks, residual_forest
from milpbn.network.additive.learning import choose_model
from milpbn.network.additive.model import Additive, BayesOffset, Penalty
from milpbn.network.additive.newton import BandSolver, minimum
from milpbn.network.additive.tables import interactions_of, network_of, tables_of
from milpbn.network.additive.terms import AdditiveTerms, Strengths
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import log_cpts
from milpbn.network.margins import log_posterior
from milpbn.network.parameters.normalised import completed
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget

TIGHT = 1e-9


def table_of(seed: int, classes: int, n: int = 160, missing: float = 0.0) -> Table:
    """Two continuous columns that matter together only, one of few values, and two nominal ones; with weights."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    few = rng.integers(0, 3, n) * 0.5
    word = rng.choice(["u", "v", "w"], n)
    score = 2.0 * np.sign(a * b) + few + (word == "u") + rng.normal(size=n)
    kind = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
    a[rng.random(n) < missing] = np.nan
    frame = pd.DataFrame({"a": a, "b": b, "few": few, "word": word, "kind": [f"k{c}" for c in kind]})
    frame["times"] = rng.integers(1, 4, n)
    return read_table(
        frame, target="kind", weights="times", missing="state", discretise="boosted:4", continuous=["few"]
    )


def data_of(table: Table) -> tuple[Dataset, Dataset]:
    coarse = table.dataset("train")
    return coarse, with_fine(coarse, table, table.train_indices, bins=16)


@pytest.mark.parametrize("classes", [2, 3, 4, 6])
def test_the_gradient_is_that_of_finite_differences(classes: int) -> None:
    data = data_of(table_of(0, classes))[1]
    model = Additive(data, [(0, 1), (1, 3)])
    terms, objective = model.terms, Objective(model.rows, model.terms.n_cells, 0.7)
    rng = np.random.default_rng(1)
    penalty = terms.penalty(Strengths(0.3, 0.7, 2.0, 1.5))
    weights = rng.normal(size=(terms.n_cells, 1 if classes == 2 else classes))
    gradient = objective.evaluate(weights, penalty)[1]
    for cell in rng.integers(0, terms.n_cells, 12):
        for column in range(weights.shape[1]):
            step = np.zeros_like(weights)
            step[cell, column] = 1e-5
            values = [objective.evaluate(weights + sign * step, penalty)[0] for sign in (1, -1)]
            assert gradient[cell, column] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3, 4, 6])
def test_products_with_second_derivatives_are_differences_of_gradients(classes: int) -> None:
    model = Additive(data_of(table_of(5, classes))[1], [(0, 1), (1, 3)])
    terms, objective = model.terms, Objective(model.rows, model.terms.n_cells, 0.7)
    rng = np.random.default_rng(2)
    penalty = terms.penalty(Strengths(0.3, 0.7, 2.0, 1.5))
    weights, direction = rng.normal(size=(2, terms.n_cells, objective.columns))
    posterior = objective.with_posterior(weights, penalty)[2]
    ends = [objective.evaluate(weights + sign * 1e-5 * direction, penalty)[1] for sign in (1, -1)]
    found = objective.hessian_product(direction, posterior, penalty)
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / 2e-5, atol=1e-6)
    # The diagonal of the likelihood's part, in the mean over the classes.
    none = csr_array(penalty.shape)
    for cell in rng.integers(0, terms.n_cells, 8):
        own = []
        for column in range(objective.columns):
            one = np.zeros_like(weights)
            one[cell, column] = 1.0
            own.append(objective.hessian_product(one, posterior, none)[cell, column])
        assert objective.mean_hessian_diagonal(posterior)[cell] == pytest.approx(np.mean(own))


def test_a_band_is_narrow_whatever_the_order_of_cells() -> None:
    sizes = {"wide": 40, "line": 6, "other": 5}
    cuts = {"wide": None, "line": tuple(range(5)), "other": tuple(range(4))}
    variables = [Variable(name, tuple(map(str, range(n))), cuts[name]) for name, n in sizes.items()]
    terms = AdditiveTerms(variables, [(0,), (1,), (1, 0), (1, 2)])
    penalty = terms.penalty(Strengths())
    diagonal, values = np.random.default_rng(0).random((2, terms.n_cells))
    solver = BandSolver(penalty)
    assert solver.width < 10  # in the order of cells it is 40
    found = solver.factor(diagonal)(values[:, np.newaxis])[:, 0]
    np.testing.assert_allclose(penalty @ found + diagonal * found, values, atol=1e-10)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("strengths", [Strengths(), Strengths(0.003, 30.0, 0.01, 0.3)])
def test_a_fit_ends_near_the_minimum(classes: int, strengths: Strengths) -> None:
    model = Additive(data_of(table_of(6, classes))[1], [(0, 1), (1, 3)])
    objective = Objective(model.rows, model.terms.n_cells, 0.0)
    penalty = model.terms.penalty(strengths)
    scale = 1.0 / np.sqrt(objective.curvature(penalty))
    start = np.zeros((objective.n_cells, objective.columns))
    best = convex.minimum(
        lambda point: objective.evaluate(point, penalty), start, scale, tolerance=1e-8, iterations=100_000
    )
    least = objective.evaluate(best, penalty)[0]
    for tolerance in (1e-2, 1e-4):
        found = minimum(objective, penalty, tolerance=tolerance)
        assert objective.evaluate(found, penalty)[0] <= least + tolerance * np.sqrt(objective.size)
        again = minimum(objective, penalty, found, tolerance=tolerance)
        assert objective.evaluate(again, penalty)[0] <= objective.evaluate(found, penalty)[0]


@pytest.mark.parametrize("classes", [2, 4])
def test_with_a_ridge_only_it_is_logistic_regression(classes: int) -> None:
    data = data_of(table_of(2, classes))[0]
    model = Additive(data)
    terms, ridge = model.terms, 0.8
    ones = np.concatenate([[0.0], np.ones(terms.n_cells - 1)])
    objective = Objective(model.rows, terms.n_cells, 0.0)
    own = minimum(objective, csr_array(np.diag(ridge * ones)), tolerance=TIGHT)
    indicators = np.zeros((data.n_samples, terms.n_cells))
    np.put_along_axis(indicators, terms.cells(data.codes), 1.0, axis=1)
    # One logit has half the penalty, as scikit-learn's two symmetric columns have.
    theirs = LogisticRegression(C=2 / ridge if classes == 2 else 1 / ridge, tol=1e-10, max_iter=10_000)
    theirs.fit(indicators[:, 1:], data.y, sample_weight=data.weights)
    posterior = np.exp(log_posterior(model.rows.scores(own, 0.0)))
    np.testing.assert_allclose(posterior, theirs.predict_proba(indicators[:, 1:]), atol=2e-6)


def test_the_penalty_is_the_formula() -> None:
    def of(n: int, cuts: bool, missing: bool = False) -> Variable:
        states = tuple(map(str, range(n)))
        own = tuple(map(float, range(n - 1 - missing))) if cuts else None
        return Variable(f"{n}{cuts}{missing}", states, own, missing_state=missing)

    variables = [of(5, True), of(3, False), of(4, True, True)]
    terms = AdditiveTerms(variables, [(0,), (1,), (2,), (0, 1), (0, 2)], [variables[1].name])
    strengths = Strengths(0.4, 0.8, 1.6, 3.2)
    rng = np.random.default_rng(0)
    w = rng.normal(size=(terms.n_cells, 1))
    expected = [0.0]
    line, plain, gapped = (w[terms.slice(k), 0] for k in (1, 2, 3))
    expected.append(0.04 * line @ line + 0.8 * 5 / 8 * (np.diff(line) ** 2).sum())
    expected.append(0.4 * plain @ plain)
    expected.append(0.04 * gapped @ gapped + 0.8 * 4 / 8 * (np.diff(gapped[:3]) ** 2).sum())
    one, both = w[terms.slice(4), 0].reshape(5, 3), w[terms.slice(5), 0].reshape(5, 4)
    expected.append(1.6 * (one**2).sum() + 3.2 * (np.diff(one, axis=0) ** 2).sum())
    steps = (np.diff(both, axis=0) ** 2).sum() + (np.diff(both[:, :3], axis=1) ** 2).sum()
    expected.append(1.6 * (both**2).sum() + 3.2 * steps)
    products = (w * (terms.penalty(strengths) @ w))[:, 0]
    np.testing.assert_allclose(np.add.reduceat(products, terms.first[:-1]), expected)
    expected[2] = 0.04 * plain @ plain + 0.8 * 3 / 8 * (np.diff(plain) ** 2).sum()
    expected[4] += 3.2 * (np.diff(one, axis=1) ** 2).sum()
    products = (w * (terms.penalty(strengths, ordered=True) @ w))[:, 0]
    np.testing.assert_allclose(np.add.reduceat(products, terms.first[:-1]), expected)


def test_a_penalty_on_curvature_is_the_integral_of_the_squared_second_derivative() -> None:
    def penalty_of(cuts: tuple[float, ...], missing: bool = False) -> np.ndarray:
        n = len(cuts) + 1 + missing
        variable = Variable("v", tuple(map(str, range(n))), cuts, missing_state=missing)
        return (
            AdditiveTerms([variable], [(0,)]).penalty(Strengths(0.0, 2.0), curvature=True).toarray()[1:, 1:]
        )

    cuts = tuple(np.linspace(-1.0, 1.0, 39))  # forty intervals that are equally long on both scales
    found = penalty_of(cuts, missing=True)
    place = 8 * np.arange(40) / 40
    for weights, integral in ((0.7 * place - 2, 0.0), (0.5 * place**2, 8.0), (place**3 / 6, 8.0**3 / 3)):
        w = np.append(weights, 5.0)  # the state of missing values has no neighbours
        assert w @ found @ w == pytest.approx(2 * integral, rel=0.15, abs=1e-9)
    # A step of the same height costs less far out, where values are far from each other.
    tails = penalty_of((-9.0, -1.0, -0.5, 0.0, 0.5, 1.0, 9.0))
    inner, outer = np.diag(tails)[[3, 0]]
    assert outer < inner / 20
    for extreme in ((-1.7e308, 0.0, 1.0, 1.7e308), (5e-324, 1e-323, 1.0), (0.0, 1e-300, 2e-300, 1.0)):
        assert np.isfinite(penalty_of(extreme)).all()


def test_folds_prefer_curvature_for_smooth_curves() -> None:
    """Two normal distributions whose spreads differ: log-odds are sums of parabolas."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 4)) * np.where(y, 1.0, 2.5)[:, None]
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(y=y)
    table = read_table(frame, target="y", continuous=[*"abcd"])
    chosen = choose_model(table, sources=Sources(room=Room(2)), budget=Budget(), cuts="quantile:8")
    assert not isinstance(chosen, str)
    assert chosen.setup.penalty.curvature
    first, other = chosen.record.trials[:2]
    assert other.curvature
    assert not first.curvature
    assert other.difference < first.difference - 2 * first.standard_error


@pytest.mark.parametrize("parents", [dict.fromkeys(range(4), ()), {0: (1,), 1: (), 2: (0,), 3: (0,)}])
def test_the_generative_network_leaves_each_training_row_out(parents: dict[int, tuple[int, ...]]) -> None:
    data = data_of(table_of(3, 3, n=40))[0]
    found = BayesOffset(data, parents).left_out_scores(data)
    for m in range(0, 40, 7):
        others = BayesOffset(data.take(np.delete(np.arange(40), m)), parents)
        own = others.scores(data.take([m]))[0]
        # Only the counts of the row's own class lack it; those of the others do not have it.
        np.testing.assert_allclose(found[m] - found[m].mean(), own - own.mean(), atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_terms_are_penalised_by_groups(classes: int) -> None:
    """By the formula; and of columns of chance less is left than with the plain penalty of the same strengths."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, (300, 16))
    codes[:, 15] = np.minimum(codes[:, 0], classes - 1) ^ (rng.random(300) < 0.2)
    variables = [Variable(f"x{i}", ("0", "1", "2")) for i in range(15)]
    variables.append(Variable("y", tuple(map(str, range(codes[:, 15].max() + 1)))))
    model = Additive(Dataset("noise", tuple(variables), codes.astype(np.int32), np.ones(300)), [(0, 1)])
    penalty = Penalty(Strengths(2.0, 1.0, 2.0, 1.0))
    plain, grouped = model.fit(penalty), model.fit(replace(penalty, grouped=True))
    matrix = model.terms.penalty(penalty.strengths)
    found = model.terms.by_groups(matrix, plain).toarray()
    for number in range(1, len(model.terms.blocks)):
        own = model.terms.slice(number)
        pull = float((plain[own] * (matrix[own, own] @ plain[own])).sum())
        factor = np.sqrt((own.stop - own.start - 1) * plain.shape[1]) / (np.sqrt(pull) + 0.1)
        np.testing.assert_allclose(found[own, own], factor * matrix[own, own].toarray())
    chance = slice(model.terms.first[2], None)
    assert (grouped[chance] ** 2).sum() < 0.5 * (plain[chance] ** 2).sum()
    assert np.abs(grouped[model.terms.slice(1)]).max() > 0.8 * np.abs(plain[model.terms.slice(1)]).max()


@pytest.mark.parametrize("classes", [2, 3])
def test_the_tables_of_a_tree_are_beside_its_terms(classes: int) -> None:
    coarse, data = data_of(table_of(7, classes))
    structure = network_of_blocks(data, range(4), [(0, 1), (0, 3), (2, 3)])[0]
    model = additive(data, "tan", interactions_of(structure))
    nothing = np.zeros((model.terms.n_cells, 1 if classes == 2 else classes))
    expected = np.zeros((data.n_samples, classes))
    for cpt in log_cpts(coarse, structure, 1.0)[:-1]:
        of_features = tuple(coarse.codes[:, [j for j in (*cpt.parents, cpt.variable) if j != 4]].T)
        expected += np.moveaxis(cpt.table, (*cpt.parents, cpt.variable).index(4), -1)[of_features]
    scores = model.held_out(data).scores(nothing, 1.0)
    np.testing.assert_allclose(log_posterior(scores), log_posterior(expected), atol=1e-12)
    penalty = Penalty(kappa=1.0, grouped=True)
    weights = model.fit(penalty)
    found = tables_of(model, weights, penalty.kappa, structure)
    assert not isinstance(found, str)
    posterior = np.exp(log_posterior(model.held_out(data).scores(weights, penalty.kappa)))
    classifier = Classifier(data.variables, found[0], found[1])
    np.testing.assert_allclose(classifier.predict_proba(data), posterior, atol=1e-12)


def test_gains_of_pairs_are_those_of_their_tables() -> None:
    model = Additive(data_of(table_of(5, 3))[1])
    residuals = Residuals(model, model.fit(Penalty()))
    for pair, found in residuals.pairs().items():
        assert found == pytest.approx(residuals.gain(pair), rel=1e-9)
    assert [*residuals.pairs()] == [*combinations(residuals.features, 2)]


def test_the_forest_has_the_pair_that_matters_together_only() -> None:
    data = data_of(table_of(4, 2, n=600))[1]
    assert (0, 1) in residual_forest(Additive(data))


def parity(seed: int, n: int = 400) -> Dataset:
    """Six features of two states, of which the first three have the class as their parity in nine rows of ten."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (n, 7))
    codes[:, 6] = codes[:, :3].sum(axis=1) % 2 ^ (rng.random(n) < 0.1)
    variables = [Variable(name, ("0", "1")) for name in "abcdefy"]
    return Dataset("parity", tuple(variables), codes.astype(np.int32), np.ones(n))


def test_a_triple_is_found_that_no_pair_shows_and_nothing_by_chance() -> None:
    room = Room(most_parents=3)
    for seed in range(5):
        data = parity(seed)
        found = grown(data, [], room, Budget())
        assert found[0] == (0, 1, 2)
        assert len(found) < 3
        shuffled = np.random.default_rng(seed).permutation(data.y)[:, None]
        alone = replace(data, codes=np.hstack([data.X, shuffled]).astype(np.int32))
        assert len(grown(alone, [(0, 5)], room, Budget())) < 3


def test_gains_without_an_interaction_are_those_of_chi_square() -> None:
    """Of eight cells the main effects fit four margins: half of the mean that is subtracted, and of the variance."""
    found = []
    for seed in range(60):
        data = parity(seed)
        model = Additive(data)
        gain, deviation = Residuals(model, model.fit(Penalty())).gain((3, 4, 5))
        found.append(gain / deviation)
    assert np.mean(found) == pytest.approx(-1.0, abs=0.3)
    assert np.std(found) == pytest.approx(np.sqrt(0.5), abs=0.25)


def test_a_network_of_tables_has_a_family_for_each_and_needs_no_arcs() -> None:
    data = parity(0)
    rng = np.random.default_rng(1)
    for size in (0, 3, 6, 15):
        pairs = list(combinations(range(6), 2))
        blocks = [pairs[k] for k in rng.permutation(15)[:size]] + [(0, 2, 5)] * (size > 3)
        structure, numbers = network_of_blocks(data, range(6), blocks)
        families = [{i, *own} for i, own in enumerate(structure.parents)]
        assert all(any(own >= {*block} for own in families) for block in blocks)
        assert all(6 in own for own in structure.parents[:-1])
        assert completed(structure, data.n_states) == (structure, [], None)
        assert numbers == sum(2 ** len(own) for own in families[:-1])
        widest = max(map(len, structure.parents))
        assert Room(widest, numbers).holds(data, range(6), blocks)
        assert not Room(widest - 1).holds(data, range(6), blocks)
        assert not Room(widest, numbers - 1).holds(data, range(6), blocks)
    assert grown(data, pairs, Room(3), Budget())[:3] == [(0, 1), (0, 2), (0, 3)]


@pytest.mark.parametrize(
    ("classes", "missing", "kappa", "triple"),
    [  # every pair of values
        (2, 0.0, 0.0, False),
        (3, 0.2, 0.5, False),
        (2, 0.2, 0.0, True),
        (3, 0.0, 0.5, True),
        (2, 0.0, 0.5, None),
        (3, 0.2, 0.0, None),
    ],
)
def test_the_tables_have_the_posteriors_of_the_model(
    classes: int, missing: float, kappa: float, triple: bool | None
) -> None:
    """Also of all pairs of coarse features and a triple, in a network whose families have up to four of them."""
    table = table_of(5, classes, missing=missing)
    coarse, data = data_of(table)
    parents = ((4,), (0, 4), (0, 1, 4) if triple else (0, 4), (1, 2, 4) if triple else (4,), ())
    structure = Structure(coarse.names, parents)
    blocks = interactions_of(structure)
    if triple is None:
        blocks = [*combinations(range(4), 2), (0, 2, 3)]
        structure = network_of_blocks(data, range(4), blocks)[0]
        assert structure.names == coarse.names
    model = Additive(data, blocks)
    weights = model.fit(Penalty(Strengths(0.1, 0.1, 0.1, 0.1), kappa))
    found = tables_of(model, weights, kappa, structure)
    assert not isinstance(found, str)
    classifier = Classifier(data.variables, found[0], found[1])
    expected = np.exp(log_posterior(model.held_out(data).scores(weights, kappa)))
    np.testing.assert_allclose(classifier.predict_proba(data), expected, atol=1e-12)
    assert set(network_of(data, structure).arcs) <= set(found[0].arcs)
    np.testing.assert_array_equal(model.fit(Penalty(Strengths(0.1, 0.1, 0.1, 0.1), kappa)), weights)


def test_missing_features_are_summed_over_a_distribution_near_the_datas() -> None:
    """The intervals have the data's shares, and a coarse interval has no probability for fine ones outside."""
    coarse, data = data_of(table_of(6, 2, n=400))
    structure = Structure(coarse.names, ((4,), (0, 4), (4,), (4,), ()))
    model = Additive(data, interactions_of(structure))
    found = tables_of(model, model.fit(Penalty()), 0.0, structure)
    assert not isinstance(found, str)
    classifier = Classifier(data.variables, found[0], found[1])
    nothing = np.full((1, data.n_variables), MISSING)
    share = np.bincount(data.y, data.weights) / data.weights.sum()
    joint = np.exp(classifier.predict_log_joint(type(data)("x", data.variables, nothing, np.ones(1))))
    np.testing.assert_allclose(joint[0], share, atol=0.03)


def test_values_without_a_state_add_nothing() -> None:
    rows = CellRows(np.array([[0, 2]], dtype=np.int32), np.array([1]), np.ones(1), np.zeros((1, 2)))
    scores = rows.scores(np.array([[0.6], [5.0]]), 0.0)
    np.testing.assert_allclose(scores, [[-0.3, 0.3]])
    assert row_losses(scores, rows.classes)[0] == pytest.approx(np.log1p(np.exp(-0.6)))


def test_fits_of_large_models_are_rough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last fit is not; and the curvature of curves comes late in their choice."""
    data = data_of(table_of(9, 3))[1]
    loss = {}
    for most in (10**9, 10):
        monkeypatch.setattr("milpbn.network.additive.model.LARGE", most)
        model = Additive(data, [(0, 1)])
        assert model.large == (most == 10)
        objective = Objective(model.rows, model.terms.n_cells, 0.0)
        penalty = model.terms.penalty(Strengths())
        found = [
            objective.evaluate(w, penalty)[0]
            for w in (model.fit(Penalty()), model.fit(Penalty(), tolerance=1e-6))
        ]
        loss[model.large] = found
    assert loss[True][0] != loss[False][0]
    assert loss[True][0] == pytest.approx(loss[True][1], abs=0.3 * np.sqrt(objective.size))
    assert loss[True][1] == loss[False][1]
    fixed = {"ordered": False, "curves": True, "exact": False, "tan": False}
    changes = [_changes(["mdl"], ["none"], large=large, **fixed) for large in (False, True)]
    assert [found.index({"curvature": True}) for found in changes] == [0, len(changes[1]) - 1]
