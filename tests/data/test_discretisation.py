"""Methods of discretisation: their intervals against scikit-learn's, weights, edge cases, and how to choose one."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.preprocessing import KBinsDiscretizer

import milpbn
from milpbn.cli.app import app
from milpbn.data.api import read_table
from milpbn.data.discretisation import BINNING, Discretisation
from milpbn.data.mdlp import mdlp_cuts
from milpbn.data.request import DataRequest
from milpbn.errors import InputError


def codes_by_cuts(method: str, values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    weights = np.ones(len(values)) if weights is None else weights
    cuts = Discretisation.parse(method).cuts(values, np.zeros(len(values), dtype=int), 2, weights)
    assert (np.diff(cuts) > 0).all()
    return np.searchsorted(cuts, values, side="left")


@pytest.mark.parametrize("strategy", BINNING)
@pytest.mark.parametrize("bins", [2, 3, 7])
def test_training_rows_fall_into_scikit_learns_intervals(strategy: str, bins: int) -> None:
    """Those of its k-means on distinct values with their numbers; on the rows it stops by another variance."""
    options = {"quantile_method": "averaged_inverted_cdf"} if strategy == "quantile" else {}
    for seed in range(8):
        rng = np.random.default_rng([seed, bins])
        values = rng.normal(size=60).round(1 if seed % 2 else 6)
        binning = KBinsDiscretizer(
            bins, encode="ordinal", strategy=strategy, subsample=None, dtype=np.float64, **options
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            distinct, copies = np.unique(values, return_counts=True)
            merged = strategy == "kmeans"
            binning.fit((distinct if merged else values)[:, None], sample_weight=copies if merged else None)
            theirs = binning.transform(values[:, None])[:, 0]
        # Empty intervals have no number of their own here.
        assert (
            np.unique(theirs, return_inverse=True)[1] == codes_by_cuts(f"{strategy}:{bins}", values)
        ).all()


@pytest.mark.parametrize("strategy", BINNING)
def test_weights_are_copies_and_rows_without_weight_are_absent(strategy: str) -> None:
    for seed in range(20):
        rng = np.random.default_rng([seed, 3])
        values, copies = rng.gamma(0.5, size=60).round(1), rng.integers(0, 4, 60)
        copies[values == values.max()] = 0
        whole = Discretisation(strategy, 11)
        weighted = whole.cuts(values, np.zeros(60, dtype=int), 2, copies.astype(float))
        many = rng.permutation(np.repeat(values, copies))
        repeated = whole.cuts(many, np.zeros(len(many), dtype=int), 2, np.ones(len(many)))
        np.testing.assert_array_equal(weighted, repeated)


@pytest.mark.parametrize("method", ["quantile:5", "uniform:5", "kmeans:5"])
def test_few_values_give_few_intervals(method: str) -> None:
    assert codes_by_cuts(method, np.array([2.0, 2.0, 2.0])).tolist() == [0, 0, 0]
    # scikit-learn merges the quantiles' intervals where the lowest value is also the median.
    assert codes_by_cuts(method, np.array([1.0, 2.0, 1.0]))[1] == (method != "quantile:5")
    assert codes_by_cuts(method, np.array([np.nextafter(1.0, 2.0), 1.0])).max() <= 1
    assert codes_by_cuts(method, np.array([-1e300, 1e300, 0.0])).max() >= 1


def test_mdl_is_the_default() -> None:
    rng = np.random.default_rng(5)
    values, classes = rng.normal(size=80), rng.integers(0, 2, 80)
    values += 2 * classes
    cuts = Discretisation().cuts(values, classes, 2, np.ones(80))
    assert len(cuts) >= 1
    np.testing.assert_array_equal(cuts, mdlp_cuts(values, classes, 2))


@pytest.mark.parametrize(
    "text", ["mdl:3", "quantile", "quantile:1", "uniform:256", "kmeans:x", "other:3", ""]
)
def test_other_methods_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="must be mdl, quantile:K, uniform:K or kmeans:K"):
        Discretisation.parse(text)


def test_every_method_reads_back() -> None:
    for text in ("mdl", "quantile:5", "uniform:12", "kmeans:3"):
        assert str(Discretisation.parse(text)) == text
        assert Discretisation.parse(Discretisation.parse(text)) == Discretisation.parse(text)


def toy(folder: Path) -> Path:
    rng = np.random.default_rng(1)
    classes = rng.integers(0, 2, 90)
    frame = pd.DataFrame(
        {"a": rng.normal(size=90) + 2 * classes, "noise": rng.normal(size=90), "class": classes}
    )
    frame.to_csv(folder / "toy.csv", index=False)
    return folder / "toy.csv"


def test_cuts_come_from_training_rows_only(tmp_path: Path) -> None:
    table = milpbn.read_table(toy(tmp_path), discretise="quantile:3")
    rows = np.arange(60)
    changed = table.frame.copy()
    changed.loc[60:, "a"] = 1000.0
    other = milpbn.read_table(changed, discretise="quantile:3")
    assert table.dataset(rows).variables == other.dataset(rows).variables
    assert table.dataset(rows).variables[0].n_states == 3
    assert table.dataset().sha256 != milpbn.read_table(toy(tmp_path)).dataset().sha256


def test_a_feature_without_a_cut_is_named_and_has_no_arcs(tmp_path: Path) -> None:
    result = milpbn.solve(toy(tmp_path), time_limit=60, threads=1, verbose=False)
    assert "Features with one state only, not used: noise." in result.notes
    assert result.structure.to_mapping()["noise"] == []
    assert "noise" not in {p for parents in result.structure.to_mapping().values() for p in parents}
    used = milpbn.solve(
        milpbn.read_table(toy(tmp_path), discretise="uniform:3"), time_limit=60, threads=1, verbose=False
    )
    assert not any("not used" in note for note in used.notes)


def test_the_command_line_takes_a_method(tmp_path: Path) -> None:
    path = str(toy(tmp_path))
    run = CliRunner().invoke
    plain = run(app, ["info", path])
    assert "noise: 1 states, 0 cuts, not used" in plain.output
    binned = run(app, ["info", path, "--discretise", "kmeans:4"])
    assert "noise: 4 states, 3 cuts" in binned.output
    bad = run(app, ["info", path, "--discretize", "kmeans"])
    assert (bad.exit_code, bad.stderr.count("\n")) == (2, 1)
    files = ["--output", str(tmp_path / "r.json"), "--certificate", str(tmp_path / "c.npz")]
    solved = run(app, ["solve", path, "--discretise", "quantile:3", "--threads", "1", "-q", *files])
    assert solved.exit_code == 0, solved.output
    verify = ["verify", str(tmp_path / "r.json"), path, "--certificate", str(tmp_path / "c.npz")]
    assert run(app, [*verify, "--discretise", "quantile:3"]).exit_code == 0
    assert "not used: noise" in run(app, ["solve", path, "--threads", "1"]).stderr
    other = run(app, verify)
    assert other.exit_code == 2
    assert "data" in other.stderr
    assert json.loads((tmp_path / "r.json").read_text())["notes"] == []


def test_requests_keep_the_method(tmp_path: Path) -> None:
    request = DataRequest(str(toy(tmp_path)), "all", {"discretise": "quantile:4"})
    again = DataRequest.from_dict(request.to_dict())
    read = read_table(again.source, **again.options).dataset(again.rows)
    assert read.variables[0].n_states == 4
