"""Methods of discretisation: their intervals against scikit-learn's, weights, edge cases, and how to choose one."""

from __future__ import annotations

import json
import subprocess
import sys
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
from milpbn.errors import DataWarning, InputError


def codes_by_cuts(method: str, values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    weights = np.ones(len(values)) if weights is None else weights
    cuts = Discretisation.parse(method).cuts(values, np.zeros(len(values), dtype=int), 2, weights)
    assert (np.diff(cuts) > 0).all()
    return np.searchsorted(cuts, values, side="left")


@pytest.mark.parametrize("strategy", ["uniform", "kmeans"])
@pytest.mark.parametrize("bins", [2, 3, 7])
def test_training_rows_fall_between_scikit_learns_edges(strategy: str, bins: int) -> None:
    """Those of its k-means on distinct values with their numbers; on the rows it stops by another variance."""
    for seed in range(4):
        rng = np.random.default_rng([seed, bins])
        values = rng.normal(size=60).round(1 if seed % 2 else 6)
        binning = KBinsDiscretizer(
            bins, encode="ordinal", strategy=strategy, subsample=None, dtype=np.float64
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            distinct, copies = np.unique(values, return_counts=True)
            merged = strategy == "kmeans"
            binning.fit((distinct if merged else values)[:, None], sample_weight=copies if merged else None)
        # scikit-learn's intervals contain their lower end; the ones here contain their upper end.
        theirs = np.searchsorted(binning.bin_edges_[0][1:-1] + 1e-12, values)
        # Empty intervals have no number of their own here.
        assert (
            np.unique(theirs, return_inverse=True)[1] == codes_by_cuts(f"{strategy}:{bins}", values)
        ).all()


@pytest.mark.parametrize("strategy", BINNING)
def test_weights_are_copies_and_rows_without_weight_are_absent(strategy: str) -> None:
    for seed in range(8):
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
    assert codes_by_cuts(method, np.array([1.0, 2.0, 1.0])).tolist() == [0, 1, 0]
    assert codes_by_cuts(method, np.array([np.nextafter(1.0, 2.0), 1.0])).tolist() == [1, 0]
    assert codes_by_cuts(method, np.array([-1e300, 1e300, 0.0])).tolist() == [0, 2, 1]


@pytest.mark.parametrize("method", ["quantile:3", "uniform:3", "kmeans:3"])
@pytest.mark.parametrize("unit", [5e-324, 1e-300, 1e-9, 1.0, 2.0**53, 1e300, 2.0**1021])
def test_units_do_not_matter(method: str, unit: float) -> None:
    values = np.array([-4.0, -4, -3, 0, 1, 1, 6, 7, 7])
    expected = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert codes_by_cuts(method, values * unit).tolist() == expected
        assert codes_by_cuts(method, values[::-1] * unit).tolist() == expected[::-1]


@pytest.mark.parametrize(
    ("values", "bins", "cuts"),
    [
        ([0] * 8 + [1, 2], 3, [0.5]),
        ([-2, -1] + [0] * 8, 3, [-0.5]),
        ([-1] * 3 + [0] * 14 + [1] * 3, 3, [-0.5, 0.5]),
        ([0] * 4 + [1] * 3 + [2] * 3, 2, [0.5]),  # 4 of 10 below, not 7
        ([0] * 3 + [1] * 4 + [2] * 3, 2, [1.5]),  # 3 and 7 are equally near to 5
        ([1, 2, 3], 2, [2.5]),
        ([0] * 99 + [1], 2, [0.5]),
    ],
)
def test_quantiles_cut_where_the_weight_is_nearest(values: list[int], bins: int, cuts: list[float]) -> None:
    def found(weights: np.ndarray) -> list[float]:
        classes = np.zeros(len(values), dtype=int)
        return Discretisation("quantile", bins).cuts(np.array(values, float), classes, 2, weights).tolist()

    assert found(np.ones(len(values))) == cuts
    assert found(np.full(len(values), 0.1)) == cuts  # .1 + .1 + .1 is not .3


@pytest.mark.parametrize("end", [1, -1])
def test_a_value_in_most_rows_does_not_cost_the_column(end: int) -> None:
    """A column of zeros in 70 % of the rows, and another class where it is not zero."""
    rng = np.random.default_rng(3)
    gain = end * np.where(rng.random(200) < 0.7, 0.0, rng.uniform(1, 9, 200).round(2))
    frame = pd.DataFrame({"gain": gain, "y": np.where((gain != 0) ^ (rng.random(200) < 0.1), "hi", "lo")})
    for method in ("quantile:2", "quantile:3", "quantile:5"):
        cuts = read_table(frame, discretise=method).dataset().variables[0].cuts
        assert cuts is not None
        assert any(0 < end * cut < 1.1 for cut in cuts), method


def test_equal_widths_are_those_of_the_decimals() -> None:
    assert codes_by_cuts("uniform:3", np.array([0.0, 0.1, 0.2, 0.3])).tolist() == [0, 0, 1, 2]
    assert codes_by_cuts("uniform:7", np.arange(8) / 10 + 1e6).tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    large = 2.0**53 + np.array([0, 2, 4, 6, 8, 10, 12])
    assert codes_by_cuts("uniform:3", large).tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert codes_by_cuts("kmeans:3", large).tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert codes_by_cuts("uniform:3", np.array([-1.7e308, 1.7e308, 0.0, -1e308])).tolist() == [0, 2, 1, 0]


def test_infinite_values_are_refused_with_their_row(tmp_path: Path) -> None:
    for text in ("inf", "-Infinity"):
        path = toy(tmp_path)
        trained = tmp_path / "c.json"
        run = CliRunner().invoke
        assert run(app, ["solve", str(path), "--classifier", str(trained), "-q"]).exit_code == 0
        lines = path.read_text().splitlines()
        lines[7] = f"{text},0.5,1"
        path.write_text("\n".join(lines) + "\n")
        for verb in (["solve", str(path)], ["predict", str(trained), str(path)]):
            refused = run(app, verb)
            assert refused.exit_code == 2
            assert f"holds '{text}' in row 7, not a finite number" in refused.stderr
    with pytest.raises(InputError, match="finite numbers"):
        mdlp_cuts([1.0, np.inf], [0, 1], 2)


def test_class_weights_are_no_rows_for_the_mdl_criterion() -> None:
    """Noise gets no cut from weights; multiplying all class weights changes nothing; sample weights are rows."""
    made = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({"x": rng.normal(size=600), "n": rng.integers(1, 4, 600)})
        frame["y"] = np.where(rng.permutation(600) < 12, "rare", "usual")

        def cuts(table: pd.DataFrame, factors: object, weights: str | None = "n") -> tuple[float, ...] | None:
            read = read_table(
                table, target="y", nominal=["y"], class_weights=factors, weights=weights
            ).dataset()
            return read.variables[0].cuts

        alike = [cuts(frame, {"rare": 99 * k, "usual": k}) for k in (1.0, 10.0, 1e-6)]
        assert alike[0] == alike[1] == alike[2]
        assert cuts(frame, {"rare": 10.0, "usual": 10.0}) == cuts(frame, None)
        copies = frame.loc[frame.index.repeat(frame.n)].drop(columns="n")
        for factors in ("balanced", {"rare": 5.0}, None):
            assert cuts(frame, factors) == cuts(copies, factors, None)
        made += bool(alike[0])
    assert made <= 1  # with the weights as rows, all 10


def test_class_weights_change_the_shares() -> None:
    """A cut that 12 rare rows among 600 do not show without weights."""
    x = np.r_[np.linspace(0, 1, 588), np.linspace(0.8, 1.8, 12)]
    frame = pd.DataFrame({"x": x, "y": ["usual"] * 588 + ["rare"] * 12})
    weighted = read_table(frame, class_weights="balanced").dataset().variables[0].cuts
    assert weighted is not None
    assert len(weighted) >= 1


def test_weights_that_are_shares_are_remarked_on() -> None:
    frame = pd.DataFrame({"x": np.arange(40) + 0.5, "y": list("ab") * 20, "w": 1 / 40})
    with pytest.warns(DataWarning, match="sum to 1, which counts as so many rows"):
        assert any("multiply them by 40" in note for note in read_table(frame, target="y", weights="w").notes)


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
    with pytest.raises(InputError, match="must be mdl, quantile:K, uniform:K, kmeans:K or boosted:K"):
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


def test_only_methods_that_need_them_import_numba_and_scikit_learn(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    pd.DataFrame({"x": np.arange(40.0) ** 1.5, "c": np.repeat(["a", "b"], 20)}).to_csv(table, index=False)
    code = (
        "import sys, milpbn; milpbn.read_table(sys.argv[1], discretise='quantile:4').dataset(); "
        "print([m for m in ('numba', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code, str(table)], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
