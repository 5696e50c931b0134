"""Watching a classifier: false alarms, alarms, and strange rows."""

from dataclasses import replace

import numpy as np
import pytest

from milpbn.data.dataset import MISSING, UNKNOWN, Variable
from milpbn.errors import InputError
from milpbn.network import AveragedClassifier, Classifier, Structure
from milpbn.network.cpt import Cpt
from milpbn.network.monitoring import CLASS, DECISION, LIKELIHOOD, monitor, strangeness

COSTS = {"missed": 5, "false_alarm": 1, "positive": "1"}


def world(rng: np.random.Generator, n_features: int = 8) -> Classifier:
    """Return a random tree-augmented network of features with 2 to 6 states, some of them rare."""
    states = [*map(int, rng.integers(2, 7, n_features)), 2]
    names = [*(f"x{i}" for i in range(n_features)), "y"]
    parents = [(int(rng.integers(i)), n_features) if i else (n_features,) for i in range(n_features)]
    structure = Structure(tuple(names), (*map(tuple, parents), ()))
    cpts = tuple(
        Cpt(i, own, rng.dirichlet(np.full(states[i], 0.7), size=tuple(states[j] for j in own)))
        for i, own in enumerate(structure.parents)
    )
    return Classifier(
        tuple(Variable(name, tuple(map(str, range(k)))) for name, k in zip(names, states, strict=True)),
        structure,
        cpts,
    )


def drawn(seed: int, train_rows: int = 300, new_rows: int = 150):
    """Return a classifier that is fitted to rows of a world, these rows, and new ones."""
    rng = np.random.default_rng(seed)
    truth = world(rng)
    train = truth.sample(train_rows, random_state=rng)
    return (
        Classifier.fit(train, truth.structure).deciding(COSTS),
        train,
        truth.sample(new_rows, random_state=rng),
    )


@pytest.mark.parametrize("with_reference", [False, True])
def test_false_alarms_are_as_rare_as_promised(with_reference):
    """With limits of 0 only the p-values are between 13 comparisons a run and a false alarm."""
    runs, alarms, small = 35, 0, 0
    for seed in range(runs):
        classifier, train, new = drawn(seed)
        found = monitor(classifier, new, train if with_reference else None, psi=0, loss=0, alpha=0.1)
        alarms += bool(found.alarms)
        small += any(shift.p_value <= 0.1 for shift in found.shifts)
    assert alarms <= runs * 0.1 + 2.6 * np.sqrt(runs * 0.1 * 0.9)
    assert small > runs / 2  # as many alarms there would be without sharing alpha


def test_changes_raise_alarms():
    classifier, train, new = drawn(3, 600, 400)
    rng = np.random.default_rng(0)
    codes = new.codes.copy()
    codes[:, 0] = 0  # a column that is stuck
    codes[rng.random(400) < 0.3, 1] = UNKNOWN
    codes[rng.random(400) < 0.3, 2] = MISSING
    codes[:, -1] = 1 - codes[:, -1]
    changed = monitor(classifier, replace(new, codes=codes), train)
    assert {"x0", "x1", "x2", "log-loss", "cost"} <= set(changed.alarms)
    shifts = {shift.name: shift for shift in changed.shifts}
    assert (shifts["x1"].state, shifts["x2"].state) == ("(unseen)", "(missing)")
    assert shifts["x1"].unseen == pytest.approx(0.3, abs=0.06)
    assert monitor(classifier, new, train).alarms == []
    unknown = monitor(classifier, replace(new, codes=codes))
    assert {"x0", "x1", "log-loss", "cost"} <= set(unknown.alarms)
    assert "x2" not in unknown.alarms  # the file does not say how many values were missing
    assert not {shift.name for shift in unknown.shifts} & {DECISION, LIKELIHOOD}


def test_columns_that_no_longer_go_together_are_seen_in_the_likelihood():
    """Every column keeps its frequencies, and is shuffled by itself."""
    names, rng = ("x0", "x1", "x2", "y"), np.random.default_rng(0)
    structure = Structure(names, ((3,), (0, 3), (1, 3), ()))
    sharp = np.array([[0.95, 0.05], [0.05, 0.95]])
    tables = [
        Cpt(0, (3,), np.full((2, 2), 0.5)),
        *(Cpt(k, (k - 1, 3), np.stack([sharp] * 2, axis=1)) for k in (1, 2)),
    ]
    truth = Classifier(
        tuple(Variable(n, ("0", "1")) for n in names), structure, (*tables, Cpt(3, (), np.array([0.5, 0.5])))
    )
    train, new = (truth.sample(rows, random_state=rng) for rows in (500, 300))
    classifier = Classifier.fit(train, structure)
    shuffled = replace(new, codes=np.column_stack([rng.permutation(column) for column in new.codes.T]))
    assert monitor(classifier, shuffled, train).alarms == [LIKELIHOOD]


def test_without_labels_and_of_averages(monkeypatch):
    classifier, train, new = drawn(5)
    unlabelled = replace(
        new, codes=np.column_stack([new.X, np.full(new.n_samples, MISSING)]).astype(np.int32)
    )
    found = monitor(classifier, unlabelled, train)
    assert found.losses == ()
    assert found.figures is None
    assert CLASS not in {shift.name for shift in found.shifts}
    monkeypatch.setattr(
        "milpbn.network.parameters.thresholds.SAME", -1.0
    )  # as if tables could not be fitted again
    names = [shift.name for shift in monitor(classifier, new, train).shifts]
    assert LIKELIHOOD not in names  # training rows look more probable than new ones
    assert LIKELIHOOD in [shift.name for shift in monitor(classifier, new, train.take(np.arange(100))).shifts]
    average = AveragedClassifier((classifier,))
    names = {shift.name for shift in monitor(average, new, train).shifts}
    assert DECISION in names
    assert LIKELIHOOD not in names
    assert monitor(average, new).reference_rows == 300
    with pytest.raises(InputError, match="--reference"):
        monitor(replace(classifier, provenance={}), new)
    for settings in ({"psi": -1}, {"loss": -1}, {"alpha": 0}):
        with pytest.raises(InputError, match="--psi and --loss"):
            monitor(classifier, new, train, **settings)
    with pytest.raises(InputError, match="no rows"):
        monitor(classifier, replace(new, weights=np.zeros(new.n_samples)))


def test_strangeness_is_the_share_of_more_probable_rows():
    """It is checked by enumeration of all rows of a network of three features."""
    rng = np.random.default_rng(1)
    classifier = world(rng, 3)
    sizes = [v.n_states for v in classifier.variables[:-1]]
    rows = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1).reshape(-1, 3)
    data = replace(
        classifier.sample(1),
        codes=np.column_stack([rows, np.full(len(rows), MISSING)]).astype(np.int32),
        weights=np.ones(len(rows)),
    )
    logs = classifier.log_likelihood(data)
    exact = [float(np.exp(logs[logs > own + 1e-9]).sum()) for own in logs]
    assert np.abs(strangeness(classifier, data) - exact).max() < 0.06  # 1,000 rows of the network
    gaps = replace(data, codes=np.where(np.arange(4) == 0, UNKNOWN, data.codes).astype(np.int32))
    assert len(np.unique(strangeness(classifier, gaps))) <= sizes[1] * sizes[2]
