"""joblib spreads fits over the workers of a cluster, each with one thread."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("distributed")

import joblib
from distributed import Client
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

from milpbn.estimators.inputs import threads
from milpbn.sklearn import MaxMarginBNClassifier
from milpbn.util.threads import all_cores

RNG = np.random.default_rng(0)
X = RNG.integers(0, 3, (90, 3))
Y = (X[:, 0] + RNG.integers(0, 2, 90) > 1).astype(int)


@pytest.fixture
def active(client: Client) -> Iterator[None]:
    """Make the cluster the one that joblib finds, as `dask.distributed.Client()` does."""
    with Client(client.scheduler.address):
        yield


@pytest.mark.usefixtures("active")
def test_fits_are_those_of_this_process_and_have_one_thread() -> None:
    plain = GridSearchCV(MaxMarginBNClassifier(), {"p": [0.6, 0.9]}, cv=2).fit(X, Y)
    scores = cross_val_score(MaxMarginBNClassifier(p=0.9), X, Y, cv=2)
    with joblib.parallel_config("dask"):
        spread = GridSearchCV(MaxMarginBNClassifier(), {"p": [0.6, 0.9]}, cv=2).fit(X, Y)
        again = cross_val_score(MaxMarginBNClassifier(p=0.9), X, Y, cv=2)
        many = MaxMarginBNClassifier(p=0.9, n_jobs=-1)
        fitted = cross_validate(many, X, Y, cv=2, return_estimator=True)["estimator"]
    assert spread.best_params_ == plain.best_params_
    assert np.array_equal(spread.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    assert np.array_equal(again, scores)
    assert [one.result_.backend.threads for one in fitted] == [1, 1]


def where(n_jobs: int | None) -> tuple[int, int]:
    time.sleep(0.2)
    return os.getpid(), threads(n_jobs)


@pytest.mark.usefixtures("active")
def test_joblib_does_not_give_a_fit_the_threads_of_the_cluster(client: Client) -> None:
    client.upload_file(__file__)
    with joblib.parallel_config("dask"):
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(where)(n) for n in (None, 1, 2, -1) * 2)
        assert [threads(n) for n in (None, 2, -1)] == [
            1,
            2,
            all_cores(),
        ]  # the fit to all rows, in this process
    assert len({process for process, _ in found}) == 2
    assert os.getpid() not in {process for process, _ in found}
    assert {count for _, count in found} == {1}
