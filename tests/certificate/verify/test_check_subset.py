"""Certificates of searches over representative samples: they prove a bound over these, and one over all samples."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from running import best_of_all, heavy_enough, random_data

from milpbn import solve
from milpbn.certificate.format import certificate_header, load_proof, save_certificate
from milpbn.certificate.verify.check import verify
from milpbn.claims.gap import Gap
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.problem.subset import Subset

SCORES = [
    Score(p=0.95),
    Score(name="sbm", p=0.95, max_parents=3),
    Score(name="cll", class_parents=False),
    Score(p=0.9, leave_one_out=True),
]
SAMPLES = 12


def searched(data: Dataset, score: Score, path, **options):
    given = {"threads": 1, "verbose": False, "certificate": path, "subset": SAMPLES, **options}
    return solve(data, score, **given)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A subset's result, and its certificate's header and arrays."""
    path = tmp_path_factory.mktemp("subset") / "proof.npz"
    data = random_data(7, n_features=5, n_samples=80)
    result = searched(data, Score(p=0.99), path, root_only=True)
    return data, result, *load_proof(path)


def refused(tmp_path, header, arrays, result, data, words):
    save_certificate(tmp_path / "c.npz", header, arrays)
    with pytest.raises(InputError, match=words):
        verify(result, tmp_path / "c.npz", data)


RULES = Constraints(arc_weights={("X2", "X3"): 0.5})


def weighted(score: Score, seed: int) -> Dataset:
    return heavy_enough(random_data(seed, n_samples=60, weights=True), score)


@cache
def best_over_the_subset(score: Score, seed: int, merge: bool) -> float:
    """The best of all structures over the samples that stand for all; options of the search change neither."""
    return best_of_all(
        build_problem(weighted(score, seed), score, RULES, merge=merge, subset=Subset(SAMPLES))
    )


@cache
def best_over_all(score: Score, seed: int) -> float:
    """The best of all structures over all samples."""
    return best_of_all(build_problem(weighted(score, seed), score, RULES))


@pytest.mark.parametrize("score", SCORES, ids=str)
@pytest.mark.parametrize(
    ("options", "merge"),
    [
        ({}, True),
        ({}, False),
        ({"root_only": True}, True),
        ({"threads": 2}, False),
        ({"time_limit": 600}, True),
    ],
    ids=str,
)
def test_what_is_proved_holds_for_every_structure(tmp_path, score, merge, options):
    seed, path = int(merge), tmp_path / "c.npz"
    data = weighted(score, seed)
    result = searched(data, score, path, constraints=RULES, merge=merge, **options)
    best = best_over_the_subset(score, seed, merge)
    for claim in (result, None):
        shown = verify(claim, path, data)
        assert shown.samples == result.subset.samples
        assert shown.objective == pytest.approx(result.subset.objective)
        assert best - 1e-9 <= shown.bound <= result.subset.bound + 1e-9 * abs(best)
        whole, (objective, bound) = best_over_all(score, seed), shown.on_all
        assert objective == pytest.approx(result.objective)
        assert whole - 1e-9 <= bound <= result.bound
        if "time_limit" in options:  # a tree
            assert result.bound == pytest.approx(whole, rel=1e-6, abs=1e-6)
    if not options:
        assert result.subset.optimal
        assert shown.bound == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_the_bound_is_not_that_of_all_rows(case, tmp_path):
    data, result, header, arrays = case
    z, b = result.objective, result.subset.bound
    assert z < b
    whole = {**header, "subset": None, "bound": b, "gap": vars(Gap.between(z, b))}
    below = (z + min(b, result.bound)) / 2
    forged = {"bound": below, "gap": vars(Gap.between(z, below))}
    refused(tmp_path, {**header, **forged}, arrays, None, data, "only proves|removes")
    lacking = {name: values for name, values in arrays.items() if not name.startswith("all_")}
    refused(tmp_path, header, lacking, None, data, "damaged")
    refused(tmp_path, whole, arrays, None, data, "prove|below the score|scores")
    of_all = solve(data, Score(p=0.99), threads=1, verbose=False, root_only=True)
    refused(tmp_path, header, arrays, of_all, data, "another subset")
    refused(tmp_path, certificate_header(of_all), arrays, result, data, "another subset")


def test_other_numbers_are_refused(case, tmp_path):
    data, result, header, arrays = case
    save_certificate(tmp_path / "c.npz", header, arrays)
    assert verify(result, tmp_path / "c.npz", data)
    subset = result.subset.to_dict()
    for key, value, words in (
        ("bound", (subset["bound"] + subset["objective"]) / 2, "proves the bound|contradicts itself"),
        ("bound", np.nextafter(subset["bound"], 0.0), "certificate claims less|below the score"),
        ("objective", subset["objective"] - 1e-3, "scores"),
        ("samples", SAMPLES - 1, "another subset"),
        ("optimal", True, "do not prove it"),
        ("gap", {**subset["gap"], "absolute": 0.0}, "gap"),
    ):
        own = {**subset, key: value}
        if key != "gap":
            own["gap"] = vars(Gap.between(own["objective"], own["bound"]))
        trace = ((result.trace[-1][0], own["objective"], own["bound"]),)
        with pytest.raises(InputError, match=words):
            verify({**result.to_dict(), "subset": own, "trace": trace}, tmp_path / "c.npz", data)
    with pytest.raises(InputError, match="scores"):
        verify(replace(result, objective=result.objective + 1e-3), tmp_path / "c.npz", data)


def test_samples_that_do_not_represent_their_class_are_refused(case, tmp_path):
    data, result, header, arrays = case
    row, weight = arrays["subset_row"], arrays["subset_weight"]
    more = weight.copy()
    more[0] += 1.0
    negative = weight.copy()
    negative[0] *= -1
    nan = weight.copy()
    nan[0] = np.nan
    twice = row.copy()
    twice[1] = twice[0]
    for changes, words in (
        ({"subset_weight": more}, "do not represent all"),
        ({"subset_weight": negative}, "damaged"),
        ({"subset_weight": nan}, "damaged"),
        ({"subset_weight": weight[:-1]}, "damaged"),
        ({"subset_weight": weight.astype(int)}, "damaged"),
        ({"subset_row": twice}, "damaged"),
        ({"subset_row": row + data.n_samples}, "damaged"),
        ({"subset_row": row - 10**6}, "damaged"),
        ({"subset_row": row[:0], "subset_weight": weight[:0]}, "do not represent all"),
    ):
        refused(tmp_path, header, {**arrays, **changes}, result, data, words)
    lacking = {name: values for name, values in arrays.items() if not name.startswith("subset")}
    refused(tmp_path, header, lacking, result, data, "damaged")
    fewer = {**header, "subset": {**header["subset"], "samples": SAMPLES - 2}}
    refused(tmp_path, fewer, arrays, None, data, "do not represent all")


def test_other_samples_are_refused(case, tmp_path):
    """The structure has another score over other samples of the same class and weight."""
    data, result, header, arrays = case
    merged = data.merged
    row = arrays["subset_row"].copy()
    other = np.setdiff1d(np.flatnonzero(merged.y == merged.y[row[0]]), row)
    row[0] = other[0]
    refused(tmp_path, header, {**arrays, "subset_row": row}, result, data, "scores|proves")
