"""``milpbn solve`` in this process: options reach the library, and files and exit codes are as documented."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_common import QUICK, load, refused, run, succeed, toy_rows, write_csv

import milpbn
from milpbn.claims.result import Result
from milpbn.errors import MilpbnWarning


def solved(tmp_path: Path, *arguments: object) -> dict[str, Any]:
    output = tmp_path / "result.json"
    succeed("solve", *QUICK, *arguments, "--output", output)
    return load(output)


def test_the_result_goes_to_stdout_and_progress_to_stderr(shop):
    done = succeed("solve toy.csv", *QUICK)
    assert done.stdout.startswith("data       toy: 40 samples")
    assert "status     optimal" in done.stdout
    assert "Numeric, taken as nominal: c." in done.stderr
    assert "incumbent" in done.stderr.splitlines()[1]


def test_quiet_keeps_only_the_answer(shop):
    done = run("solve toy.csv", *QUICK, "--quiet")
    assert done.stderr == ""
    assert "incumbent" in done.stdout


def test_verbose_shows_the_states(shop):
    assert "a: x, y, z" in run("solve toy.csv", *QUICK, "-v").stderr


def test_same_answer_as_the_library(shop, tmp_path):
    result = solved(tmp_path, shop / "toy.csv", "--p", "0.9", "--max-parents", "3", "--no-class-parents")
    score = milpbn.Score(p=0.9, max_parents=3, class_parents=False)
    expected = milpbn.solve(str(shop / "toy.csv"), score, backend="highs", threads=1)
    assert result["objective"] == expected.objective
    assert result["score"] == expected.score.to_dict()
    assert result["status"]["reason"] == "optimal"


def test_corral_reaches_its_known_optimum(tmp_path):
    result = solved(tmp_path, "corral", "--score", "sbm", "--p", "0.9", "--no-class-parents")
    assert result["objective"] == pytest.approx(261.127228, abs=1e-6)


def test_score_options_reach_the_result(shop, tmp_path):
    options = ["--gamma", "1.5", "--smoothing", "0.5", "--penalty", "bic", "--hybrid", "0.25"]
    assert solved(tmp_path, shop / "toy.csv", *options)["score"] == {
        "name": "sm",
        "gamma": 1.5,
        "max_parents": 2,
        "smoothing": 0.5,
        "smoothing_towards": "uniform",
        "class_parents": True,
        "parent_sets": "auto",
        "equivalent_sample_size": 1.0,
        "penalty": "bic",
        "hybrid": 0.25,
        "leave_one_out": False,
    }
    options = ["--score", "bdeu", "--ess", "3", "--parent-sets", "all", "--max-parents", "1"]
    score = solved(tmp_path, shop / "toy.csv", *options)["score"]
    assert (score["name"], score["equivalent_sample_size"], score["parent_sets"]) == ("bdeu", 3.0, "all")
    score = solved(tmp_path, shop / "toy.csv", "--score", "cll", "--leave-one-out", "--hybrid", "2")["score"]
    assert (score["name"], score["leave_one_out"], score["hybrid"]) == ("cll", True, 2.0)
    score = solved(tmp_path, shop / "toy.csv", "--smoothing-towards", "class")["score"]
    assert score["smoothing_towards"] == "class"


def test_constraints_reach_the_result_and_hold(shop, tmp_path):
    file = tmp_path / "constraints.json"
    file.write_text(json.dumps({"forbidden": [["a", "c"]], "max_children": {"b": 1}}))
    options = ["--constraints", file, "--require", "b,a", "--forbid", "class,c", "--max-children", "2"]
    options += ["--fix", "c=", "--allow", "class=", "--tiers", "class,b;a,c", "--arc-weight", "b,a=0.5"]
    result = solved(tmp_path, shop / "toy.csv", *options)
    assert result["constraints"] == {
        "required": [["b", "a"]],
        "forbidden": [["a", "c"], ["class", "c"]],
        "tiers": [["class", "b"], ["a", "c"]],
        "max_children": {"b": 1, "*": 2},
        "fixed": {"c": []},
        "allowed": {"class": []},
        "arc_weights": [["b", "a", 0.5]],
        "ancestors": [],
        "no_ancestors": [],
        "independences": [],
    }
    assert "b" in result["structure"]["a"]
    assert result["structure"]["c"] == result["structure"]["class"] == []


def test_names_with_separators_are_quoted(tmp_path):
    header = '"income, yearly","x=y;z","5"" pipe",class'
    table = write_csv(tmp_path / "odd.csv", toy_rows(), header)
    options = ["--require", '"income, yearly","5"" pipe"', "--fix", '"x=y;z"="income, yearly",class']
    structure = solved(tmp_path, table, *options)["structure"]
    assert "income, yearly" in structure['5" pipe']
    assert structure["x=y;z"] == ["income, yearly", "class"]


def test_table_options_reach_the_data(tmp_path):
    rows = [
        [a, str(i * 1.5), "?" if i == 0 else b, label, "2"] for i, (a, b, _, label) in enumerate(toy_rows())
    ]
    table = write_csv(tmp_path / "t.csv", rows, "a,b,c,label,w")
    options = ["--target", "label", "--weights", "w", "--nominal", "b", "--missing", "state"]
    result = solved(tmp_path, table, *options, "--class-weights", "good=2,bad=0.5", "--max-parents", "1")
    assert result["data"]["samples"] == 40
    assert result["class"] == "label"
    assert sorted(result["structure"]) == ["a", "b", "c", "label"]
    assert solved(tmp_path, table, "--target", "label", "--max-parents", "1")["data"]["samples"] == 39


def test_split_all_trains_on_every_row(tmp_path):
    write_csv(tmp_path / "toy.csv", toy_rows())
    (tmp_path / "toy.csv.gz").write_bytes(__import__("gzip").compress((tmp_path / "toy.csv").read_bytes()))
    (tmp_path / "catalog.json").write_text(json.dumps({"toy": {"train_rows": 30}}))
    (tmp_path / "toy.csv").unlink()
    catalog = ["toy", "--data-dir", tmp_path]
    assert solved(tmp_path, *catalog)["data"]["samples"] == 30
    assert solved(tmp_path, *catalog, "--split", "all")["data"]["samples"] == 40


def test_start_from_each_kind_of_file(shop, tmp_path):
    arcs = tmp_path / "arcs.txt"
    arcs.write_text("class -> a\nclass -> b\na -> b\n")
    for start in (arcs, shop / "result.json", shop / "classifier.json"):
        assert solved(tmp_path, shop / "toy.csv", "--start", start)["status"]["reason"] == "optimal"


SOLVERS_OWN = ["--no-warm-start", "--no-root-bound", "--acyclicity=cluster"]


@pytest.mark.parametrize("switch", [*SOLVERS_OWN, "--no-merge", "--no-reduce"])
def test_switches_leave_the_optimum_unchanged(shop, tmp_path, switch):
    known = load(shop / "result.json")["objective"]
    assert solved(tmp_path, shop / "toy.csv", switch)["objective"] == pytest.approx(known, abs=1e-6)


@pytest.mark.parametrize("switch", [*SOLVERS_OWN, "--log=solver.log"])
@pytest.mark.parametrize("backend", ["auto", "native"])
def test_options_of_solvers_are_refused_without_one(shop, tmp_path, monkeypatch, switch, backend):
    monkeypatch.chdir(tmp_path)
    done = refused("solve", shop / "toy.csv", "--backend", backend, "--output", "result.json", switch)
    assert f"no use for {switch.split('=')[0]}" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("seed", "threads"), [("--seed", "--threads"), ("--random-state", "--n-jobs")])
def test_search_options_reach_the_search(shop, tmp_path, seed, threads):
    options = [
        "--gap",
        "0.99",
        seed,
        "7",
        threads,
        "2",
        "--trace",
        tmp_path / "t.jsonl",
        "--log",
        tmp_path / "solver.log",
    ]
    result = solved(tmp_path, shop / "toy.csv", *options)
    assert result["seed"] == 7
    assert result["backend"]["threads"] == 2
    lines = (tmp_path / "t.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["incumbent"] == result["objective"]


def test_the_solver_gets_its_options_and_log(shop, tmp_path):
    log = tmp_path / "solver.log"
    options = ["--no-warm-start", "--no-root-bound", "--solver-option", "presolve=off", "--log", log]
    solved(tmp_path, "corral", *options)
    assert "HiGHS" in log.read_text()


def test_p_and_max_parents_by_validation(shop, tmp_path, monkeypatch):
    monkeypatch.setattr("milpbn.solving.recipes.P_GRID", (0.6, 0.9))
    result = solved(tmp_path, shop / "toy.csv", "--p", "cv", "--max-parents", "cv")
    assert result["score"]["max_parents"] in (1, 2)
    assert result["score"]["gamma"] in (milpbn.Score(p=0.6).gamma, milpbn.Score(p=0.9).gamma)
    result = solved(tmp_path, shop / "toy.csv", "--p", "0.9", "--max-parents", "cv")
    assert result["score"]["gamma"] == milpbn.Score(p=0.9).gamma


def test_no_file_is_written_without_an_option(shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    succeed("solve", shop / "toy.csv", *QUICK)
    assert list(tmp_path.iterdir()) == []


def test_the_output_is_updated_while_the_search_runs(tmp_path, monkeypatch):
    saved: list[float | None] = []
    ends: list[tuple[str, str | None]] = []
    save = Result.save

    def record(self: Result, path: Any) -> None:
        saved.append(self.bound)
        ends.append((str(self.reason), self.limit))
        save(self, path)

    monkeypatch.setattr(Result, "save", record)
    monkeypatch.setattr("milpbn.solving.files.SAVE_EVERY", 0.0)
    options = ["--backend", "highs", "--threads", "1", "--time-limit", "4"]
    succeed("solve", "waveform-21", *options, "--output", tmp_path / "r.json")
    assert len(saved) > 2
    assert load(tmp_path / "r.json")["bound"] == saved[-1]
    assert set(ends[:-1]) == {("running", None)}
    assert ends[-1] == ("feasible", "time")


@pytest.mark.parametrize(
    ("reason", "limit", "code"),
    [("no_solution", "time", 3), ("no_solution", "user", 130), ("infeasible", None, 2), ("error", None, 4)],
)
def test_exit_codes_without_a_structure(shop, tmp_path, monkeypatch, reason, limit, code):
    known = load(shop / "result.json")
    known |= {"structure": None, "objective": None, "status": {"reason": reason, "limit": limit}}
    known |= {"class": None, "bound": None, "gap": dict.fromkeys(known["gap"]), "trace": [], "proved": None}
    monkeypatch.setattr("milpbn.solving.selection.maximise", lambda *args, **options: Result.from_dict(known))
    done = run("solve toy.csv -q --classifier", tmp_path / "c.json")
    assert done.exit_code == code, done.output
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "c.json").exists()


def test_a_file_that_cannot_be_written_leaves_the_other_files(shop, tmp_path, monkeypatch):
    """The folder of the output disappears while the search runs: all else is written, and the answer is shown."""
    monkeypatch.setattr("milpbn.solving.files.SAVE_EVERY", 0.0)
    folder = tmp_path / "gone"
    folder.mkdir()
    save = Result.save

    def remove_then_save(self: Result, path: Any) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        save(self, path)

    monkeypatch.setattr(Result, "save", remove_then_save)
    files = ["--output", folder / "r.json", "--classifier", tmp_path / "c.json", "--trace", tmp_path / "t"]
    with pytest.warns(MilpbnWarning, match="The search goes on"):
        done = run("solve toy.csv --time-limit 300", *files)
    assert done.exit_code == 2
    assert "r.json" in done.stderr
    assert "optimal" in done.stdout
    assert (tmp_path / "c.json").exists()
    assert (tmp_path / "t").read_text()


def test_out_of_memory_keeps_the_incumbent(shop, tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("milpbn.engine.root.Root.run", fail)
    done = succeed("solve toy.csv --output", tmp_path / "r.json")
    assert "feasible (stopped: out of memory)" in done.stdout
    assert load(tmp_path / "r.json")["structure"]
