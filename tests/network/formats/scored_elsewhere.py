"""Classifiers and rows for the formats that predict without milpbn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from fine import fine_classifier, raw_rows

from milpbn.data import read_table
from milpbn.data.dataset import Dataset
from milpbn.network import AveragedClassifier, Classifier, PseudoClassifier, Structure, log_posterior

#: Names and labels that need quotes.
TARGET, TEXT = 'a "class"', "it's; text"


def rows(seed: int = 0, count: int = 120) -> pd.DataFrame:
    """Return rows of all kinds of columns, and a class that depends on them."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=count).round(3)
    small = rng.integers(0, 3, count)
    text = rng.choice(["o'neil", 'say "x"', "täglich"], count)
    flag = rng.random(count) < 0.4
    votes = (number > 0.2).astype(int) + (small == 1) + flag + (rng.random(count) < 0.2)
    label = np.array(["low", "mid'dle", 'hi"gh'])[np.minimum(votes, 2)]
    return pd.DataFrame({"x y": number, "n": small, TEXT: text, "flag": flag, TARGET: label})


def new_rows() -> pd.DataFrame:
    """Return rows with cut points, values that training lacks and missing values."""
    frame = rows(1, 40).astype(object)
    frame.loc[:4, "n"] = 7
    frame.loc[3:8, TEXT] = "new"
    frame.loc[7:12, "x y"] = None
    frame.loc[10:15, TEXT] = None
    frame.loc[12:18, "n"] = None
    frame.loc[17:20, "flag"] = None
    return frame.drop(columns=TARGET)


def networks(missing: str = "drop") -> dict[str, Classifier | PseudoClassifier | AveragedClassifier]:
    """Return classifiers of all kinds over the columns of `rows`, by name."""
    frame = rows()
    if missing == "state":
        frame = frame.astype(object)
        frame.loc[:9, TEXT] = None
        frame.loc[5:14, "x y"] = None
        frame.loc[10:19, "n"] = None
    data = read_table(frame, target=TARGET, continuous=["x y"], missing=missing).dataset("train")
    binned = read_table(
        frame, target=TARGET, continuous=["x y"], missing=missing, discretise="quantile:4"
    ).dataset("train")
    chain = ((4,), (0, 4), (1, 4), (2, 4), ())
    above = ((4,), (0, 2, 4), (), (), (2, 3))
    found = {
        "chain": fitted(data, chain),
        "class with parents": fitted(data, above),
        "tables with zeros": fitted(data, ((4,), (0, 4), (1, 4), (4,), ()), 0.0),
        "no feature": fitted(data, ((),) * 5),
        "average": AveragedClassifier(
            (fitted(data, chain), fitted(binned, above), fitted(data, ((4,),) * 4 + ((),)))
        ),
    }
    circle = fitted(data, ((1, 4), (4,), (4,), (4,), ())).cpts[:1] + fitted(data, chain).cpts[1:]
    return {**found, "cycle": PseudoClassifier(data.variables, circle)}


def fitted(data: Dataset, parents: tuple[tuple[int, ...], ...], smoothing: float = 1.0) -> Classifier:
    return Classifier.fit(data, Structure(data.names, parents), smoothing)


def expected(
    classifier: Classifier | PseudoClassifier | AveragedClassifier, frame: pd.DataFrame
) -> np.ndarray:
    """Return the class probabilities of milpbn itself, shape (M, C)."""
    if isinstance(classifier, PseudoClassifier):
        return np.exp(log_posterior(classifier.predict_log_joint(frame)))
    return classifier.predict_proba(frame)


def check_networks(
    scored: Callable[..., tuple[np.ndarray, np.ndarray]], missing: str, frame: pd.DataFrame
) -> None:
    """Check labels and probabilities that a function computes elsewhere for classifiers of all kinds."""
    for name, classifier in networks(missing).items():
        labels, shares = scored(classifier, frame)
        np.testing.assert_allclose(shares, expected(classifier, frame), rtol=0, atol=1e-9, err_msg=name)
        best = np.sort(shares, axis=1)
        clear = best[:, -1] - best[:, -2] > 1e-9
        assert (labels == classifier.predict(frame))[clear].all()
        assert set(labels) <= set(classifier.classes)


def check_fine(shares: Callable[[Classifier, pd.DataFrame], np.ndarray]) -> None:
    """Check probabilities of classifiers with two variables per column, and an average of two of them."""
    for seed in range(4):
        options = {"missing": seed == 3, "most_parents": 1 + seed % 3}
        one, other = (fine_classifier(k, **options) for k in (seed, seed + 20))
        for classifier in (one, AveragedClassifier((one, other))):
            frame = raw_rows(one, 60, seed, missing=0.2 * (seed > 0))
            frame.loc[3:5, "colour"] = "new"
            found = shares(classifier, frame.drop(columns="kind"))
            np.testing.assert_allclose(found, classifier.predict_proba(frame), rtol=0, atol=1e-12)


def decided(count: int = 30) -> Iterator[Classifier | AveragedClassifier]:
    """Yield random networks over the columns of `rows` with random costs, of which some bring ties; some averages."""
    rng = np.random.default_rng(4)
    frame = rows()
    three = read_table(frame, target=TARGET, continuous=["x y"]).dataset("train")
    two = frame.assign(**{TARGET: np.where(frame[TARGET] == "low", "low", "mid'dle")})
    data = three, read_table(two, target=TARGET, continuous=["x y"]).dataset("train")
    for number in range(count):
        own, members = data[number % 2], []
        for _ in range(1 + (number % 5 == 0)):
            order, parents = rng.permutation(5), [()] * 5
            for place, i in enumerate(order):
                size = rng.integers(0, min(place, 2) + 1)
                parents[i] = tuple(sorted(rng.choice(order[:place], size, replace=False).tolist()))
            members.append(fitted(own, tuple(parents)))
        classifier = members[0] if len(members) == 1 else AveragedClassifier(tuple(members))
        costs = rng.integers(0, 4, (own.n_classes, own.n_classes)).astype(float)
        np.fill_diagonal(costs, -1.0)
        if number % 14 == 0:  # of three decisions, two have equal costs everywhere
            costs[:, 1] = costs[:, 0]
        given: dict[str, Any] = dict(zip(own.variables[-1].states, _by_label(own, costs), strict=True))
        yield classifier.deciding(given | ({"abstain": 0.3} if number % 3 == 1 else {}))


def _by_label(data: Dataset, costs: np.ndarray) -> list[dict[str, float]]:
    return [dict(zip(data.variables[-1].states, row, strict=True)) for row in costs.tolist()]


def check_decisions(scored: Callable[..., tuple[np.ndarray, np.ndarray]]) -> None:
    """Check that a function decides on every row as `predict` does, ties and abstention included."""
    frame, changed = pd.concat([rows(2, 60).drop(columns=TARGET), new_rows()], ignore_index=True), 0
    abstained = 0
    for classifier in decided():
        labels, shares = scored(classifier, frame)
        assert (np.asarray(labels) == classifier.predict(frame)).all()
        costs = shares @ classifier.decision.matrix[:, : len(classifier.classes)]
        best = [min(range(len(row)), key=lambda c: (round(row[c], 6), c)) for row in costs.tolist()]
        expected = np.array(classifier.classes, dtype=object)[best]
        if classifier.decision.may_abstain:
            expected[costs.min(axis=1) > 0.3 + 1e-6] = "do not know"
            abstained += (expected == "do not know").sum()
        assert (np.asarray(labels) == expected).all()  # brute force over the decisions
        changed += (labels != classifier.deciding(None).predict(frame)).any()
    assert changed > 15
    assert abstained > 30


def check_cuts(scored: Callable[..., tuple[np.ndarray, np.ndarray]]) -> None:
    """Check that a value at a cut belongs to the interval below."""
    classifier = networks()["chain"]
    cuts = classifier.variables[0].cuts
    assert cuts
    near = [value for cut in cuts for value in (np.nextafter(cut, -9), cut, np.nextafter(cut, 9))]
    frame = pd.concat([rows(2, 1)] * len(near), ignore_index=True).assign(**{"x y": near})
    shares = scored(classifier, frame)[1]
    np.testing.assert_allclose(shares, classifier.predict_proba(frame), rtol=0, atol=1e-12)
    assert not np.allclose(shares[1], shares[2])
