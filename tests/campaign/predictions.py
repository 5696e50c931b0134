"""The correct answers of a classifier: the log-joint of its structure in exact arithmetic, also for unseen values."""

from __future__ import annotations

import csv
import io
import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from campaign.case import MISSING, Case
from campaign.claims import Failure, graph_of, near
from campaign.driver import Answer, command
from campaign.exact import ONE, Scores, log
from campaign.space import Graph

#: A label that no table has, and the number of training rows that are predicted.
STRANGE = "zzz"
ASKED = 6
UNKNOWN = -1


def samples(case: Case) -> list[list[str | None]]:
    """Return labels of features: of training rows, and the same with an unseen or missing value in each."""
    out: list[list[str | None]] = []
    for k, row in enumerate(case.rows[:ASKED]):
        labels = [None if c == MISSING else case.labels[i][c] for i, c in enumerate(row[:-1])]
        out.append(labels)
        changed = list(labels)
        changed[k % len(changed)] = None if k % 3 == 2 else STRANGE
        out.append(changed)
    return [row for row in out if any(row)]  # a row without any value is an empty line


def log_joints(case: Case, graph: Graph, sample: list[str | None]) -> list[float]:
    """Return log P(c, z) of every class; missing values without a state of their own are summed over."""
    data = case.training
    codes, missing = [], []
    for i, label in enumerate(sample):
        states = data.states[i]
        known = label if label is not None else "?"
        codes.append(states.index(known) if known in states else UNKNOWN)
        if label is None and "?" not in states:
            missing.append(i)
    out = []
    for c in range(len(data.states[-1])):
        joints = []
        for found in product(*(range(len(data.states[i])) for i in missing)):
            row = [*codes, c]
            for i, code in zip(missing, found, strict=True):
                row[i] = code
            joints.append(_log_joint(case, graph, tuple(row)))
        most = max(joints)
        out.append(most + math.log(math.fsum(math.exp(joint - most) for joint in joints)))
    return out


@lru_cache(maxsize=4)
def _plain(problem: str) -> Scores:
    """Return the scores of a case (`Case.problem`), whose parameters count every row."""
    scores = Scores(Case.from_json(problem))
    scores.unit = 0
    scores.counts = cache(scores.counts)  # type: ignore[method-assign]
    return scores


def _log_joint(case: Case, graph: Graph, row: tuple[int, ...]) -> float:
    data, scores, total = case.training, _plain(case.problem), 0
    for i, parents in enumerate(graph):
        size = len(data.states[i])
        if row[i] == UNKNOWN:
            continue
        h = tuple(row[j] for j in parents)
        if UNKNOWN in h:
            total += log(Fraction(1, size))
            continue
        cells, above = scores.counts(i, parents, data.rows)
        prior = scores.prior(i, parents, data.rows, scores.sizes)
        total += scores.log_theta(cells, above, i, parents, row, row, size, prior)
    return total / ONE


def check_predictions(case: Case, mapping: Any, answer: Answer, folder: Path) -> Iterator[Failure]:
    """Compare labels and log-joints of the saved classifier with those of the definitions."""
    asked = samples(case)
    if not asked:
        return
    frame = pd.DataFrame(asked, columns=case.names[:-1], dtype=object)
    classes = case.training.states[-1]
    if answer.python is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = list(answer.python.classifier.predict(frame))
            joints = answer.python.classifier.predict_log_joint(frame).tolist()
    else:
        frame.to_csv(folder / "asked.csv", index=False)
        told = command("predict", folder / "classifier.json", folder / "asked.csv", "--joint", "-q")
        table = list(csv.reader(io.StringIO(told.printed)))[1:]
        labels = [row[0] for row in table]
        joints = [[float(cell) for cell in row[1:]] for row in table]
    if len(labels) != len(asked):
        yield Failure("wrong prediction", f"{len(labels)} answers to {len(asked)} samples")
        return
    graph = graph_of(case, mapping)
    for sample, label, joint in zip(asked, labels, joints, strict=True):
        exact = log_joints(case, graph, sample)
        if len(joint) != len(exact) or not all(map(near, joint, exact)):
            yield Failure("wrong log-joint", f"{sample}: {joint}, exactly {exact}")
        elif label not in classes or not near(exact[classes.index(label)], max(exact)):
            yield Failure("wrong prediction", f"{sample}: {label}, log-joints {exact}")
