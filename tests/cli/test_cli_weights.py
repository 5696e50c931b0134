"""What weights and classes that training never saw do to figures on the command line, and leave-one-out with them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_common import load, run, says, succeed
from sklearn.metrics import accuracy_score

from milpbn.network.discrimination import LEADING, NAMES


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    """Return a folder with a table of a rare class, test rows of which half have a new class, and a classifier."""
    folder = tmp_path_factory.mktemp("clinic")
    rng = np.random.default_rng(1)
    sick = np.arange(300) % 15 == 0
    frame = pd.DataFrame(
        {
            "fever": np.where(rng.random(300) < 0.85, sick, ~sick),
            "cough": rng.integers(0, 3, 300),
            "w": np.where(sick, 14.0, 1.0),
            "state": np.where(sick, "sick", "well"),
        }
    )
    frame.to_csv(folder / "t.csv", index=False)
    new = frame.copy()
    new.loc[150:, "state"] = "elsewhere"
    new.loc[298:, "state"] = ""
    new.loc[0, "w"] = 0.0
    new.to_csv(folder / "new.csv", index=False)
    succeed("solve --drop w --score cll --threads 1", folder / "t.csv", "--classifier", folder / "c.json")
    return folder


def predicted(clinic: Path, name: str) -> pd.Series:
    run("predict", clinic / "c.json", clinic / name, "--output", clinic / "p.csv")
    return pd.read_csv(clinic / "p.csv")["state"]


def test_a_class_that_training_never_saw_is_an_error(clinic):
    done = run("evaluate", clinic / "c.json", clinic / "new.csv", "--output", clinic / "f.json")
    found, new = load(clinic / "f.json"), pd.read_csv(clinic / "new.csv")
    labelled = new.state.notna()
    right = accuracy_score(new.state[labelled], predicted(clinic, "new.csv")[labelled])
    known = new.state.isin(["sick", "well"])
    assert found["accuracy"] == pytest.approx(right)
    assert (found["samples"], found["unknown_class"], found["unlabelled"]) == (298, 148, 2)
    assert found["known"]["samples"] == 150
    of_known = accuracy_score(new.state[known], predicted(clinic, "new.csv")[known])
    assert found["known"]["accuracy"] == pytest.approx(of_known)
    assert f"accuracy     {100 * right:.2f} %  (95 %" in done.stdout
    assert (
        "unseen       148 samples of a class that training never saw: errors, with the probability 0;"
        in done.stdout
    )
    assert f"the other 150: accuracy {100 * of_known:.2f} %" in done.stdout
    assert "left out     2 rows without a class label" in done.stdout
    assert "\n  (unseen) " in done.stdout
    assert "Rows with a class label that training never saw: 148." in done.stderr


def test_weighted_figures_say_so_and_the_others_stand_beside_them(clinic):
    done = run(
        "evaluate", clinic / "c.json", clinic / "t.csv", "--weights", "w", "--output", clinic / "f.json"
    )
    found, table = load(clinic / "f.json"), pd.read_csv(clinic / "t.csv")
    hits = predicted(clinic, "t.csv") == table.state
    assert found["accuracy"] == pytest.approx(np.average(hits, weights=table.w))
    assert found["unweighted"]["accuracy"] == pytest.approx(hits.mean())
    assert found["effective_size"] == pytest.approx(table.w.sum() ** 2 / (table.w**2).sum())
    low, high = found["interval"]
    assert high - low > 0.15  # 20 positives decide half of it; as 560 rows they would leave .05
    assert f"{100 * found['accuracy']:.2f} % of the weight" in done.stdout
    assert (
        f"total weight 560; they say as much as {found['effective_size']:.4g} of equal weight" in done.stdout
    )
    assert f"unweighted   {100 * hits.mean():.2f} %" in done.stdout
    assert "weight" not in run("evaluate", clinic / "c.json", clinic / "t.csv").stdout
    zero = run("evaluate", clinic / "c.json", clinic / "new.csv", "--weights", "w", "--json")
    assert json.loads(zero.stdout)["samples"] == 297


def test_comparisons_with_class_weights_say_what_is_weighted(clinic):
    command = [
        "compare",
        clinic / "t.csv",
        "--drop",
        "w",
        "--learners",
        "naive-bayes,tan",
        "--output",
        clinic / "f.json",
    ]
    for split in ([], ["--folds", "3"]):
        done = succeed(*command, "--class-weights", "balanced", *split)
        assert "weighted: test %, log-loss, Brier, training %; the test rows say as much as" in done.stdout
        assert "rows %  log-loss" in done.stdout
        assert "difference to naive-bayes in weighted test accuracy, in points" in done.stdout
        assert "difference to naive-bayes in test accuracy of rows that count once" in done.stdout
        found = load(clinic / "f.json")
        assert found["effective_rows"] < 0.5 * found["test_samples"]
        row = found["rows"][1]
        for figures in (row["intervals"], row["differences"]):
            assert set(figures) - set(NAMES) == {"test", "unweighted", "log_loss", "brier"}
            assert set(figures) >= set(LEADING)
        (low, high), (inner, outer) = row["intervals"]["test"], row["intervals"]["unweighted"]
        assert high - low > 1.5 * (outer - inner)
        assert row["differences"]["test"]["effective_rows"] == pytest.approx(found["effective_rows"])
        plain = run(*command, *split)
        assert "weighted" not in plain.stdout
        assert "rows %" not in plain.stdout
        assert load(clinic / "f.json")["effective_rows"] is None


def test_learners_state_both_accuracies(clinic):
    done = run("learn", "tan", clinic / "t.csv", "--weights", "w", "--output", clinic / "l.json")
    found = load(clinic / "l.json")
    once = found["unweighted_accuracy"]["training"]
    weighted = found["accuracy"]["training"]
    assert f"{100 * weighted:.2f} % weighted accuracy, {100 * once:.2f} % of the rows" in done.stdout


@pytest.mark.parametrize(
    "options",
    [
        ["--leave-one-out", "--score", "cll", "--drop", "w", "--class-weights", "balanced"],
        ["--leave-one-out", "--weights", "w", "--class-weights", "sick=.1,well=.5"],
        ["--recipe", "readable", "--select-by", "accuracy", "--drop", "w", "--class-weights", "balanced"],
    ],
    ids=["score", "weights", "recipe"],
)
def test_leave_one_out_takes_class_weights_and_the_result_is_verified(clinic, options):
    files = ["--output", clinic / "r.json", "--certificate", clinic / "p.npz"]
    done = succeed("solve --threads 1 --time-limit 60 --max-parents 1", clinic / "t.csv", *options, *files)
    assert "so all weights are multiplied by" in done.stderr
    if "--recipe" in options:
        says(done.stdout, "by accuracy among", "held-out: weighted accuracy")
    drop = options.index("--drop") if "--drop" in options else options.index("--weights")
    same = [*options[drop : drop + 2], *options[options.index("--class-weights") :]]
    for claim in (["r.json", "--certificate", clinic / "p.npz"], ["p.npz"]):
        checked = succeed("verify", clinic / claim[0], clinic / "t.csv", *same, *claim[1:])
        assert checked.stdout.startswith("verified")
    result = load(clinic / "r.json")
    (clinic / "s.txt").write_text(
        "".join(f"{a} -> {b}\n" for b, above in result["structure"].items() for a in above)
    )
    scored = run("score", clinic / "s.txt", clinic / "t.csv", "--bound", clinic / "r.json", *same)
    assert f"{result['objective']:.6f}" in scored.stdout
    assert "gap    0.000000 nats" in scored.stdout.replace("gap        ", "gap    ")


def test_balanced_weights_are_those_of_the_rows_that_a_choice_keeps(tmp_path):
    """A result of a selection that dropped incomplete rows is verified on the table, read without them."""
    rng = np.random.default_rng(2)
    y = np.arange(120) % 4 == 0
    frame = pd.DataFrame(
        {"a": np.where(rng.random(120) < 0.9, y, ~y).astype(int), "b": rng.integers(0, 2, 120), "y": y}
    )
    frame["b"] = frame["b"].astype(object).where(rng.random(120) < 0.8)
    frame.to_csv(tmp_path / "t.csv", index=False)
    weights = ["--class-weights", "balanced"]
    files = ["--output", tmp_path / "r.json", "--certificate", tmp_path / "p.npz"]
    select = ["--select", "missing=drop max-parents=1", "--leave-one-out", "--score", "cll", "--threads", "1"]
    succeed("solve", tmp_path / "t.csv", *weights, *select, *files)
    succeed("verify", tmp_path / "r.json", tmp_path / "t.csv", "--certificate", tmp_path / "p.npz", *weights)
