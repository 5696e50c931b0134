"""Figures of accuracy against scikit-learn and plain loops, and their intervals against simulation.

Rows have weights of every sort, classes that training lacks, no class at all, or the weight 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, precision_score, recall_score

import milpbn
from campaign.share import Share
from milpbn.data import read_encodings, read_table
from milpbn.errors import DataWarning
from milpbn.learners.registry import get_learner
from milpbn.network.evaluation import Evaluation, accuracies
from milpbn.network.intervals import score_interval
from milpbn.trials.differences import paired_shares
from milpbn.trials.judged import Judged

#: Draws of one case in the simulations.
DRAWS = 40


def weights_of(rng: np.random.Generator, rare: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return weights: equal, whole, unequal, of classes, and with zeros."""
    n = len(rare)
    drawn: NDArray[np.float64] = [
        lambda: np.ones(n),
        lambda: np.full(n, rng.choice([0.1, 7.0])),
        lambda: rng.integers(1, 5, n).astype(float),
        lambda: rng.exponential(size=n) + 1e-3,
        lambda: np.exp(rng.uniform(-5, 5, n)),
        lambda: np.where(rare, n / max(1, rare.sum()), n / max(1, (~rare).sum())),
    ][rng.integers(6)]()
    if rng.random() < 0.3:
        drawn = np.where(rng.random(n) < 0.2, 0.0, drawn)
    return drawn


def differences_to(found: Evaluation, table: pd.DataFrame, proba: NDArray[np.float64]) -> Iterator[str]:
    """Yield what differs from scikit-learn; the table has columns y (None without a class) and w."""
    rows = (table.y.notna() & (table.w > 0)).to_numpy()
    names = [*found.classes, "other"]
    truth = np.array([names.index(y) if y in found.classes else len(found.classes) for y in table.y[rows]])
    w, p = table.w[rows].to_numpy(), np.column_stack([proba[rows], np.zeros(rows.sum())])
    predicted, labels = p.argmax(axis=1), range(len(names))
    expected = {
        "accuracy": accuracy_score(truth, predicted, sample_weight=w),
        "log_loss": log_loss(truth, p, sample_weight=w, labels=labels),
        "brier": np.average(((p - np.eye(len(names))[truth]) ** 2).sum(axis=1), weights=w),
        "effective_size": sum(w) ** 2 / sum(x * x for x in w),
        "weight": sum(w),
    }
    for name, value in expected.items():
        if not np.isclose(getattr(found, name), value, rtol=1e-9, atol=1e-12):
            yield f"{name} {getattr(found, name)!r}, expected {value!r}"
    if (found.samples, found.unknown_class) != (rows.sum(), (truth == len(found.classes)).sum()):
        yield f"{found.samples} samples, {found.unknown_class} unseen"
    matrix = confusion_matrix(truth, predicted, sample_weight=w, labels=labels)[:, :-1]
    if not np.allclose(np.vstack([found.confusion, found.unseen]), matrix):
        yield "confusion matrix"
    for values, metric in ((found.recall, recall_score), (found.precision, precision_score)):
        scores = metric(truth, predicted, sample_weight=w, labels=labels, average=None, zero_division=np.nan)
        if not np.allclose(values, scores[:-1], equal_nan=True):
            yield metric.__name__
    low, high = found.interval
    if not -1e-12 <= low <= found.accuracy + 1e-12 <= high + 2e-12 <= 1 + 3e-12 or high - low < 1e-6:
        yield f"interval {found.interval} of {found.accuracy}"
    if w.min() == w.max():
        interval = binomtest(int((truth == predicted).sum()), len(w)).proportion_ci(method="wilson")
        if not np.allclose(found.interval, interval, atol=1e-9) or found.unweighted is not None:
            yield f"equal weights: {found.interval}, expected {interval}"
    elif found.unweighted is None:
        yield "no figures without weights"


def test_figures_are_those_of_scikit_learn(share: Share) -> None:
    for seed in share.seeds():
        rng = np.random.default_rng(seed)
        n, classes = int(rng.integers(12, 120)), [f"c{k}" for k in range(rng.integers(2, 5))]
        y = np.array(classes)[
            rng.choice(len(classes), n, p=rng.dirichlet(np.full(len(classes), 2.0)))
        ].astype(object)
        y[:2] = classes[:2]
        a = np.where(rng.random(n) < 0.7, y, rng.choice(classes, n))
        train = pd.DataFrame({"a": a, "b": rng.integers(0, 3, n).astype(str), "y": y})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            data = read_table(train, target="y", features=["a", "b"]).dataset()
            classifier = (
                get_learner("naive-bayes")(smoothing=float(rng.choice([1e-9, 1.0]))).fit(data).predictor
            )
            test = train.iloc[rng.permutation(n)].reset_index(drop=True)
            test.loc[rng.random(n) < rng.choice([0, 0.3]), "y"] = "new"
            test.loc[rng.random(n) < rng.choice([0, 0.2]), "y"] = None
            test["w"] = weights_of(rng, (test.y == "c1").to_numpy())
            if not (test.y.isin(data.variables[-1].states) & (test.w > 0)).any():
                continue
            samples = read_encodings(test, (data.variables,), weights="w")
            found, proba = milpbn.evaluate(classifier, samples), classifier.predict_proba(test)
        share.tally.tried["tables"] += 1
        wrong = list(differences_to(found, test, proba))
        if found.unweighted is not None:
            alone = test.assign(w=np.where(test.w > 0, 1.0, 0.0))
            wrong += [f"unweighted: {text}" for text in differences_to(found.unweighted, alone, proba)]
        if found.known is not None:
            alone = test.assign(y=test.y.where(test.y != "new"))
            wrong += [f"known: {text}" for text in differences_to(found.known, alone, proba)]
        judged = Judged.of(classifier, samples)
        same, ends = judged.means(), judged.intervals()
        if not np.allclose(
            [same["test"], same["log_loss"], same["brier"]], [found.accuracy, found.log_loss, found.brier]
        ):
            wrong.append(f"comparisons have {same}")
        if not np.allclose(ends["test"], found.interval):
            wrong.append(f"comparisons have the interval {ends['test']}, not {found.interval}")
        if not np.allclose(accuracies(classifier, samples)[0], found.accuracy):
            wrong.append("accuracy")
        if wrong:
            share.note("figures", f"seed {seed}", "; ".join(wrong))
    share.finish()


def test_intervals_cover_and_equal_learners_are_not_told_apart(share: Share) -> None:
    """Cases are drawn; over all of them 92 to 98 % of the intervals hold, and at most 5 % of the verdicts are false."""
    counts = {"shares": [0, 0], "differences": [0, 0], "verdicts": [0, 0]}
    for seed in share.seeds():
        rng = np.random.default_rng(seed)
        rare = int(rng.choice([20, 50, 100]))
        n = int(rng.choice([300, 1000, 2000]))
        positive = np.arange(n) < rare
        kind = rng.integers(4)
        spread = float(rng.uniform(0.3, 1))
        shares = np.where(positive, rng.uniform(0.6, 0.85), rng.uniform(0.75, 0.95))
        apart = np.where(positive, rng.uniform(0.15, 0.4), rng.uniform(0.03, 0.2))
        balance = np.where(positive, n / rare - 1, 1.0) if kind >= 2 else np.ones(n)
        truth = np.average(shares, weights=balance)
        for _ in range(DRAWS):
            w = [
                np.ones(n),
                rng.lognormal(0, spread, n),
                balance,
                balance * rng.uniform(0.7, 1.4, n),
            ][kind]
            # Where weights do not belong to classes, rows are draws from both kinds.
            rows = np.arange(n) if kind >= 2 else rng.integers(0, n, n)
            p, q = shares[rows], apart[rows]
            low, high = score_interval(rng.random(n) < p, w)
            counts["shares"][0] += low <= truth <= high
            u = rng.random(n)
            found = paired_shares(~(u < q / 2), ~((u >= q / 2) & (u < q)), w)
            counts["verdicts"][0] += found.distinguishable
            counts["differences"][0] += found.low <= 0 <= found.high
            for key in counts:
                counts[key][1] += 1
            share.tally.tried["tables"] += 1
    for key, least, most in (("shares", 0.92, 0.98), ("differences", 0.92, 0.985), ("verdicts", 0.0, 0.05)):
        hits, tried = counts[key]
        noise = 3 * (0.05 * 0.95 / tried) ** 0.5
        print(f"{key}: {hits} of {tried}")
        if not least - noise <= hits / tried <= most + noise:
            share.note(key, f"seed {share.seed}", f"{hits} of {tried}")
    share.finish()
