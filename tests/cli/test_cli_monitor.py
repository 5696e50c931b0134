"""``milpbn monitor`` and ``milpbn predict --strangeness``."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from cli_common import refused, run, says, succeed


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """Training rows, rows like them, rows of which one column changed, and a classifier."""
    folder = tmp_path_factory.mktemp("ward")
    for name, seed in (("train.csv", 0), ("same.csv", 1), ("changed.csv", 2)):
        rng = np.random.default_rng(seed)
        sick = rng.random(700) < 0.2
        columns = {
            f"x{i}": np.where(rng.random(700) < np.where(sick, 0.8, 0.3), "high", "low") for i in range(3)
        }
        frame = pd.DataFrame({**columns, "state": np.where(sick, "sick", "well")})
        if name == "changed.csv":
            frame["x1"] = np.where(rng.random(700) < 0.5, "extreme", frame["x1"])
            frame["x2"] = "extreme"
        frame.to_csv(folder / name, index=False)
    succeed("learn", "tan", folder / "train.csv", "--classifier", folder / "c.json", "-q")
    return folder


def test_the_exit_code_says_whether_there_is_an_alarm(ward, tmp_path):
    c, train, picture = ward / "c.json", ward / "train.csv", tmp_path / "p.svg"
    for reference in ((), ("--reference", train)):
        quiet = run("monitor", c, ward / "same.csv", *reference)
        assert (quiet.exit_code, "alarms       none" in quiet.stdout) == (0, True)
        found = run("monitor", c, ward / "changed.csv", *reference, "--json", "--plot", picture, "-q")
        document = json.loads(found.stdout)
        assert found.exit_code == 1
        assert {"x1", "x2"} <= set(document["alarms"])
        assert "x0" not in document["alarms"]
        assert document["figures"]["samples"] == 700
    says(picture.read_text(), ">x0<", ">x2<", ">alarm<")
    assert run("monitor", c, ward / "changed.csv", "--psi", "50").exit_code == 0
    text = run(
        "monitor", c, ward / "same.csv", "--reference", train, "--cost", "missed=9", "false-alarm=1"
    ).stdout
    assert "cost  " in text
    assert "is expected by the probabilities; the reference is" in text
    assert "--alpha is above 0" in refused("monitor", c, train, "--alpha", "2").stderr


def test_an_absent_column_is_compared_only_with_rows(ward, tmp_path):
    """Without a reference nothing is known of missing values; JSON has null for the shares of no values."""
    pd.read_csv(ward / "same.csv").drop(columns="x1")[:1].to_csv(tmp_path / "lack.csv", index=False)
    found = run("monitor", ward / "c.json", tmp_path / "lack.csv", "--output", tmp_path / "found.json")
    assert found.exit_code == 0
    says(found.stdout, "lack: 1 row\n", "(no values)")
    text = (tmp_path / "found.json").read_text()
    assert not {"NaN", "Infinity"} & set(text.replace(",", " ").split())
    [shift] = [one for one in json.loads(text)["shifts"] if one["name"] == "x1"]
    assert (shift["before"] > 0, shift["now"], shift["missing"], shift["psi"]) == (True, None, 1, 0)
    pd.read_csv(ward / "same.csv").drop(columns="x1").to_csv(tmp_path / "lack.csv", index=False)
    found = run("monitor", ward / "c.json", tmp_path / "lack.csv", "--reference", ward / "train.csv")
    assert found.exit_code == 1
    assert "alarms       x1" in found.stdout


def test_strangeness_is_a_column_of_the_predictions(ward):
    frame = pd.read_csv(
        io.StringIO(run("predict", ward / "c.json", ward / "same.csv", "--strangeness", "-q").stdout)
    )
    assert list(frame) == ["state", "strangeness"]
    assert frame["strangeness"].between(0, 1).all()
    assert frame["strangeness"].nunique() > 4
