"""Export to files: what is checked before anything is written, and what the files hold."""

from __future__ import annotations

import math
from dataclasses import replace

import highspy
import numpy as np
import pytest
from running import optimum, random_data

import milpbn
from milpbn.errors import InputError
from milpbn.milp.files.sidecar import Sidecar
from milpbn.problem.problem import build_problem
from milpbn.solving.exporting import export_model
from milpbn.solving.importing import import_solution

SCORE = milpbn.Score(p=0.9)
OPTIMUM = 261.134799740  # corral with class parents: the known optimum, which test_oracle enumerates


@pytest.fixture
def exported(tmp_path):
    return export_model("corral", SCORE, path=tmp_path / "m.lp")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"subset": 2.5}, "subset must be a whole number"),
        ({"subset": 0}, "at least 1 sample"),
        ({"time_limit": -1.0}, "time limit"),
        ({"threads": 0}, "threads"),
        ({"random_state": -1}, "seed"),
        ({"name": "m.txt"}, "ends in"),
        ({"score": "cll"}, "only be a relaxation"),
        ({"score": "mdl", "reduced": True}, "--reduced"),
        ({"scripts": ["scipy"]}, "no script for 'scipy'; choose from highspy"),
    ],
    ids=str,
)
def test_what_cannot_be_exported_is_refused_before_anything_is_written(tmp_path, option, words):
    option = dict(option)
    path = tmp_path / option.pop("name", "m.lp")
    with pytest.raises(InputError, match=words):
        export_model("corral", path=path, **{"score": SCORE, **option})
    assert not list(tmp_path.iterdir())


def test_a_sidecar_of_another_model_is_not_overwritten(exported, tmp_path):
    with pytest.raises(InputError, match=r"belongs to 'm\.lp'"):
        export_model("corral", SCORE, path=tmp_path / "m.mps")
    export_model("corral", milpbn.Score(p=0.99), path=tmp_path / "m.lp")


def test_the_exported_model_has_the_papers_rows(exported):
    import highspy

    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.readModel(str(exported.model))
    names = [h.getRowName(r)[1] for r in range(h.getNumRow())]
    V = 7
    assert sum(n.startswith("a_") for n in names) == V * V - V
    assert sum(n.startswith("s_") for n in names) == V
    assert np.isclose(exported.start_objective, OPTIMUM, atol=60)


@pytest.mark.parametrize(("name", "is_lp"), [("m.LP", True), ("m.lp.mps", False), ("m.MPS", False)])
def test_the_last_suffix_is_the_format(tmp_path, name: str, is_lp: bool) -> None:
    export_model("instance:corral", path=tmp_path / name)
    text = (tmp_path / name).read_text()
    assert ("Maximize" in text) == is_lp
    assert ("ROWS" in text) == (not is_lp)


def test_scripts_solve_the_model_and_name_the_import(tmp_path):
    import shlex
    import subprocess
    import sys

    from milpbn.solving.importing import import_solution

    folder = tmp_path / "it's here"
    folder.mkdir()
    export = export_model("corral", SCORE, path=folder / "m.mps", scripts=["highspy", "cplex"], threads=1)
    assert sorted(export.scripts) == ["cplex", "highspy"]
    assert export.scripts["highspy"].name == "m_highspy.py"
    command = [sys.executable, str(export.scripts["highspy"])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    line = done.stdout.splitlines()[-1]
    program, verb, solution, bound = shlex.split(line)
    assert (program, verb, bound.partition("=")[0]) == ("milpbn", "import", "--bound")
    result = import_solution(solution, bound=float(bound.partition("=")[2]))
    assert result.reason == "optimal"
    assert result.objective == pytest.approx(OPTIMUM)


def test_scores_without_a_root_bound_are_exported_without_one(tmp_path):
    assert export_model("corral", "hard-margin", path=tmp_path / "m.lp").root_bound is None
    assert export_model("corral", "mdl", path=tmp_path / "n.lp").root_bound is not None


def test_a_model_has_scores_relative_to_the_best_ones(tmp_path) -> None:
    """The constant that the file leaves out is what all structures share."""
    data = random_data(3, n_samples=20, weights=True)
    heavy = replace(data, weights=data.weights * 1e6)
    for name in ("mdl", "bdeu"):
        export = export_model(heavy, milpbn.Score(name=name), path=tmp_path / f"{name}.mps")
        sidecar = Sidecar.load(export.sidecar)
        problem = build_problem(heavy, milpbn.Score(name=name))
        largest = np.maximum.reduceat(problem.linear, problem.candidates.offsets[:-1])
        assert sidecar.constant == pytest.approx(math.fsum(largest), rel=1e-12)
        assert sidecar.span == 0.0
        h = highspy.Highs()
        h.setOptionValue("output_flag", False)
        h.readModel(str(export.model))
        h.run()
        h.writeSolution(str(tmp_path / f"{name}.sol"), 1)
        result = import_solution(tmp_path / f"{name}.sol", data=heavy, bound=h.getInfo().mip_dual_bound)
        best = optimum(heavy, milpbn.Score(name=name)).objective
        assert result.optimal
        assert result.objective == pytest.approx(best, rel=1e-12)
        assert result.tolerance <= 1e-10 * abs(best)
