"""Published test errors of closed-form classifiers (Roth & Pernkopf 2020, Table 1), to the digit."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from milpbn.data.dataset import Dataset, Variable
from milpbn.learners.naive_bayes import NaiveBayes
from milpbn.learners.tan import Tan
from milpbn.network.evaluation import accuracy


def folds(name: str) -> list[tuple[Dataset, Dataset]]:
    """Training and test data of every fold; states are numbered from 1 in the files."""
    folder = os.environ.get("MILPBN_IMAGES")
    if not folder:
        pytest.skip("needs the discretised image data (MILPBN_IMAGES)")
    found = []
    with np.load(Path(folder) / f"{name}-discretised.npz", allow_pickle=False) as arrays:
        for fold in range(1, int(arrays["n_folds"]) + 1):
            parts = [
                np.column_stack(
                    [arrays[f"x_{part}_fold{fold}"].astype(np.int32) - 1, arrays[f"t_{part}_fold{fold}"]]
                ).astype(np.int32)
                for part in ("tr", "te")
            ]
            sizes = np.vstack(parts).max(axis=0) + 1
            variables = tuple(
                Variable(f"x{i + 1}", tuple(str(state) for state in range(size)))
                for i, size in enumerate(sizes)
            )
            train, test = (Dataset(name, variables, codes, np.ones(len(codes))) for codes in parts)
            found.append((train, test))
    return found


@pytest.mark.parametrize(
    ("name", "naive_bayes", "tan"),
    [("letter", 25.89, 15.23), ("satimage", 17.95, 11.90), ("usps", 13.11, 8.74)],
)
def test_published_test_errors(name: str, naive_bayes: float, tan: float) -> None:
    errors = [
        [100 * (1 - accuracy(learner.fit(train).predictor, test)) for learner in (NaiveBayes(), Tan())]
        for train, test in folds(name)
    ]
    mean = np.mean(errors, axis=0)
    assert (round(mean[0], 2), round(mean[1], 2)) == (naive_bayes, tan)
