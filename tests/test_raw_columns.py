"""The benchmark on raw columns: rows, methods, figures, order of its cells, and its tables."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from milpbn.data import read_table
from milpbn.experiments.base import MethodInput
from milpbn.experiments.protocol import Part

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("benchmarks are not there", allow_module_level=True)
sys.path.insert(1, str(BENCHMARKS))

import raw  # noqa: E402
import raw_methods  # noqa: E402
import raw_study  # noqa: E402


@pytest.fixture(scope="module")
def part() -> Part:
    """Return rows whose class is a threshold of a number, turned round by a text; one test row is wholly new."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.normal(size=240), "noise": rng.normal(size=240), "t": rng.choice(["a", "b", "c"], 240)}
    )
    frame["class"] = np.where((frame["x"] > 0) ^ (frame["t"] == "a"), "yes", "no")
    frame.loc[239, ["t", "class"]] = "new"
    table = read_table(frame, target="class", continuous=["x", "noise"])
    return Part("split-1", table, np.arange(160), np.arange(160, 240))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        *(("readable", 0.4), ("boosting", 0.9), ("forest", 0.9), ("svm", 0.9)),
        *(("logistic", 0.5), ("splines", 0.5), ("naive-bayes", 0.5)),  # additive
    ],
)
def test_methods_learn_from_raw_columns(part: Part, name: str, least: float) -> None:
    found = raw_methods.methods(60.0)[name].run(MethodInput(part, 0, 1, {}))
    figures = found["figures"]
    assert figures["accuracy"] > least
    assert figures["rows"] == 80
    assert figures["unknown_class"] == 1
    assert found["auc"] is None  # a test row has no known class
    assert isinstance(found["choice"], dict)


def test_figures_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    classes, one = rng.integers(0, 2, 50), rng.random(50)
    probabilities = np.column_stack([1 - one, one])
    found = raw_methods.judged(probabilities, probabilities.argmax(axis=1), classes)
    assert found["figures"]["log_loss"] == pytest.approx(log_loss(classes, probabilities))
    assert found["auc"] == pytest.approx(roc_auc_score(classes, one))
    # The mean over rows of confidence minus correctness bounds the error of its bins from below.
    assert found["ece"] >= abs(probabilities.max(axis=1).mean() - found["figures"]["accuracy"]) - 1e-12


@pytest.mark.filterwarnings("ignore::milpbn.errors.DataWarning")
def test_small_sets_come_first_and_splits_are_stratified() -> None:
    study = raw_study.RawStudy(
        data=("digits", "wine", "balance-scale"), methods=("svm", "logistic"), seconds=1.0, repeats=2
    )
    order = [(task.data, task.part, task.cell.method) for task in study.tasks()]
    assert order[:4] == [(d, "split-1", m) for m in ("logistic", "svm") for d in ("wine", "balance-scale")]
    assert order[8:] == [("digits", p, m) for m in ("logistic", "svm") for p in ("split-1", "split-2")]
    part = study.part(study.tasks()[0])
    whole, held = (Counter(part.table.frame["class"].iloc[rows]) for rows in (np.arange(178), part.test_rows))
    assert len(part.test_rows) == round(0.3 * 178)
    assert all(abs(held[label] - 0.3 * count) < 1 for label, count in whole.items())
    assert set(raw_study.with_numbers(read_table("balance-scale")).kinds.values()) == {
        "continuous",
        "nominal",
    }


def test_a_pair_of_methods_is_compared_on_the_splits_of_both() -> None:
    def cells(method: str, data: str, right: list[int], losses: list[float]) -> list[dict]:
        return [
            {
                **{"data": data, "method": method, "part": f"split-{k}", "correct": np.arange(10) < count},
                **{
                    "accuracy": 10.0 * count,
                    "log-loss": loss,
                    "Brier": 0.1,
                    "ECE": 1.0,
                    "AUC": np.nan,
                    "seconds": 1.0,
                },
            }
            for k, (count, loss) in enumerate(zip(right, losses, strict=True))
        ]

    rows = [
        *cells("readable", "one", [9, 8, 9], [0.1, 0.2, 0.1]),
        *cells("ebm", "one", [7, 6, 8], [0.3, 0.5, 0.4]),
        *cells("readable", "two", [5, 5, 5], [0.6, 0.6, 0.6]),
        *cells("ebm", "two", [9], [0.5]),
    ]
    frame = pd.DataFrame(rows).set_index(["data", "method", "part"])
    one, two = raw.pair(frame, "readable", "ebm")
    assert len(one) == len(two) == 4
    assert raw.wins(one, two, "accuracy") == (1, 1)
    assert raw.wins(one, two, "log-loss") == (1, 0)  # one split of the second has no test
    (table,) = raw.beside(frame, "readable")
    assert "| ebm | 2 | 68.33 | 80.00 | 0.367 | 0.450 | 18.5% | 1.00 | 1.00 | 1 | 1 | 1 | 0 |" in table


def test_sources_of_interactions_are_compared_with_the_forest_of_the_same_cell() -> None:
    def kept(chosen: int, **losses: float) -> SimpleNamespace:
        trials = [{"structure": name, "log_loss": value} for name, value in losses.items()]
        trials.append({"structure": "forest", "log_loss": 0.0})  # with another kappa
        found = {"choice": {"parameters": {"additive": {"trials": trials, "chosen": chosen}}}}
        return SimpleNamespace(failure=None, found=found)

    cells = {"a": kept(1, forest=0.5, grown=0.3), "b": kept(0, forest=0.2, grown=0.2, exact=0.4)}
    cells["c"] = SimpleNamespace(failure="late")
    methods = dict.fromkeys(["a", "b", "c"], "accurate") | {"d": "ebm"}
    tasks = [SimpleNamespace(cell=SimpleNamespace(name=n, method=m)) for n, m in methods.items()]
    store = SimpleNamespace(read=lambda cell: cells[cell.name])
    lines = raw.sources(SimpleNamespace(tasks=lambda: tasks), store)[0].splitlines()[-3:]
    assert [line.split(" | ")[1:] for line in lines] == [
        ["2", "1", "+0.0000 ± 0.0000", "0", "0 |"],
        ["2", "1", "-0.1000 ± 0.0707", "1", "0 |"],
        ["1", "0", "+0.2000 ± 0.0000", "0", "1 |"],
    ]
    assert raw.sources(SimpleNamespace(tasks=lambda: tasks[2:]), store) == []
