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


@pytest.mark.parametrize("reference", [(), ("--reference", "train.csv")])
def test_an_absent_column_raises_an_alarm(ward, tmp_path, reference, monkeypatch):
    """A part of missing values raises none without a reference, which does not say how many there were."""
    monkeypatch.chdir(ward)
    lack, out = tmp_path / "lack.csv", tmp_path / "found.json"
    frame = pd.read_csv("same.csv")
    frame.drop(columns="x1").to_csv(lack, index=False)
    found = run("monitor", "c.json", lack, *reference, "--output", out)
    assert found.exit_code == 1
    says(found.stdout, "alarms       x1", "(missing)", "0.0 to 100.0 %")
    text = out.read_text()
    assert not {"NaN", "Infinity"} & set(text.replace(",", " ").split())
    [shift] = [one for one in json.loads(text)["shifts"] if one["name"] == "x1"]
    assert (shift["state"], shift["now"], shift["missing"], shift["alarm"]) == ("(missing)", 1, 1, True)
    frame["x1"] = frame["x1"].where(np.arange(700) % 2 == 0)
    frame.to_csv(lack, index=False)
    assert run("monitor", "c.json", lack, *reference).exit_code == bool(reference)


def test_strangeness_is_a_column_of_the_predictions(ward):
    frame = pd.read_csv(
        io.StringIO(run("predict", ward / "c.json", ward / "same.csv", "--strangeness", "-q").stdout)
    )
    assert list(frame) == ["state", "strangeness"]
    assert frame["strangeness"].between(0, 1).all()
    assert frame["strangeness"].nunique() > 4


def test_predictions_do_not_take_the_names_of_kept_columns(ward, tmp_path):
    rows = pd.read_csv(ward / "same.csv")[:9].assign(strangeness="odd", **{"P(sick)": "p"})
    rows.to_csv(tmp_path / "new.csv", index=False)
    words = ("--keep", "state,strangeness,P(sick)", "--proba", "--strangeness", "-q")
    frame = pd.read_csv(io.StringIO(run("predict", ward / "c.json", tmp_path / "new.csv", *words).stdout))
    kept, added = ["state", "strangeness", "P(sick)"], ["predicted state", "predicted P(sick)", "P(well)"]
    assert list(frame) == [*kept, *added, "predicted strangeness"]
    assert (frame[kept] == rows[kept].to_numpy()).all(axis=None)
