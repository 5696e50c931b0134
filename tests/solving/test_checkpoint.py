"""Searches in parts: the same to the last digit as in one, and what their checkpoints refuse."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from running import branch_early, random_data

import milpbn
from milpbn import Constraints, Score, solve
from milpbn.certificate.format import load_proof
from milpbn.certificate.verify.check import verify
from milpbn.claims.result import NotSavedError, Result
from milpbn.data import Dataset, read_table
from milpbn.errors import InputError, NoIncumbentError
from milpbn.solving import checkpoint as module
from milpbn.solving.checkpoint import load_saved_search
from milpbn.solving.local_scores import export_local_scores, solve_local_scores
from milpbn.util import clock
from milpbn.util.archives import read_sealed, write_sealed
from milpbn.util.saved_arrays import SavedArrays

QUIET = {"threads": 1, "verbose": False}
RULES = Constraints.from_dict({"max_children": {"X1": 2}, "forbidden": [["X2", "X3"]]})


class Case(NamedTuple):
    """A problem, and options that belong to it."""

    score: Score
    n_features: int = 5
    options: dict[str, Any] = {}  # noqa: RUF012  # never changed

    @property
    def data(self) -> Dataset:
        return random_data(3, n_features=self.n_features, n_samples=40)


CASES = {
    "sm": Case(Score(p=0.9), 6),
    "sbm": Case(Score(name="sbm", p=0.9), 6),
    "cll": Case(Score(name="cll"), 6),
    "no class parents": Case(Score(p=0.9, class_parents=False)),
    "three parents": Case(Score(p=0.9, max_parents=3)),
    "leave one out": Case(Score(p=0.9, leave_one_out=True), 6),
    "penalty and hybrid": Case(Score(p=0.9, penalty=0.3, hybrid=0.02)),
    "constraints": Case(Score(p=0.9), options={"constraints": RULES}),
    "the four best": Case(Score(p=0.9), options={"n_best": 4}),
    "subset": Case(Score(p=0.9), options={"subset": 25}),
    "screened": Case(Score(p=0.9, max_parents=3), options={"screen": 12}),
}

Found = tuple[Result, dict[str, Any], dict[str, np.ndarray]]


def search(case: Case, folder: Path, **options: Any) -> Found:
    """Return the result of a search, and header and arrays of its certificate, without the name of the run."""
    path = folder / "certificate.npz"
    result = solve(case.data, case.score, certificate=path, **(QUIET | case.options | options))
    header, arrays = load_proof(path)
    return result, {key: value for key, value in header.items() if key != "run"}, arrays


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory):
    """Return the result of a case's search in one."""
    return cache(lambda name: search(CASES[name], tmp_path_factory.mktemp("whole")))


def stopping_after(questions: int, stage: str = "branch and bound"):
    """Return a function that asks for a stop once the tree search, or another stage, has asked it so often."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += milpbn.util.stages.current() == stage
        return asked > questions

    return stop


def same(one: Found, other: Found) -> None:
    """Check that two searches have the same result and certificate, but for times."""
    assert one[0].structure == other[0].structure
    assert one[0].nodes == other[0].nodes
    assert one[1] == other[1]
    assert one[2].keys() == other[2].keys()
    for name, array in one[2].items():
        assert array.dtype == other[2][name].dtype
        assert np.array_equal(array, other[2][name]), name


# -- the same result ------------------------------------------------------------------------------------------------


def proved(result: Result) -> bool:
    """Whether a search has ended by itself."""
    return result.limit is None and (result.alternatives is None or result.alternatives.optimal)


@pytest.mark.parametrize("name", CASES)
def test_a_search_in_parts_is_the_search_in_one(name: str, whole, tmp_path: Path) -> None:
    case, parts, path = CASES[name], [], tmp_path / "c.npz"
    # Stops within an expansion, which asks up to 200 times, and between two.
    stops = (31, 500, 700, 900, 10**9) if name == "sm" else (60, 10**9)
    for questions in stops:
        parts.append(search(case, tmp_path, checkpoint=path, interrupted=stopping_after(questions)))
        if proved(parts[-1][0]):
            break
    assert len(parts) > 1
    same(parts[-1], whole(name))
    # The clock goes on, and the trace with it.
    first, last = parts[0][0], parts[-1][0]
    assert first.seconds.total < last.seconds.total
    assert last.trace[: len(first.trace)] == first.trace
    assert [t for t, _, _ in last.trace] == sorted(t for t, _, _ in last.trace)


@pytest.mark.parametrize("name", ["sm", "sbm", "cll", "leave one out", "the four best", "screened"])
def test_the_same_search_again_is_the_same(name: str, whole, tmp_path: Path) -> None:
    same(search(CASES[name], tmp_path), whole(name))


def test_a_search_goes_on_with_other_threads_and_limits(whole, tmp_path: Path) -> None:
    case, path = CASES["sm"], tmp_path / "c.npz"
    search(case, tmp_path, threads=2, checkpoint=path, interrupted=stopping_after(400))
    found = search(case, tmp_path, threads=1, checkpoint=path, resume=True, time_limit=60, gap_abs=1e-9)
    assert found[0].optimal
    assert found[0].objective == pytest.approx(whole("sm")[0].objective, rel=1e-12)
    verify(found[0], tmp_path / "certificate.npz", case.data)


def test_a_search_that_has_ended_gives_its_result_again(whole, tmp_path: Path) -> None:
    case, path = CASES["sm"], tmp_path / "c.npz"
    first = search(case, tmp_path, checkpoint=path)
    same(first, whole("sm"))
    again = search(case, tmp_path, checkpoint=path, resume=True, interrupted=lambda: False)
    same(again, first)
    assert again[0].trace[: len(first[0].trace)] == first[0].trace


def test_a_stop_before_the_tree_keeps_the_incumbent(whole, tmp_path: Path) -> None:
    case, path, told = CASES["sm"], tmp_path / "c.npz", []
    first = search(case, tmp_path, checkpoint=path, on_change=lambda r: r.structure is not None)[0]
    assert first.nodes is None
    found = search(case, tmp_path, checkpoint=path, on_change=told.append)
    assert found[0].optimal
    assert found[0].objective == pytest.approx(whole("sm")[0].objective, rel=1e-12)
    assert all(result.objective >= first.objective for result in told)
    assert found[0].seconds.total > first.seconds.total
    verify(found[0], tmp_path / "certificate.npz", case.data)


def test_a_search_without_time_to_go_on_says_what_its_checkpoint_keeps(tmp_path: Path) -> None:
    case, path = CASES["sm"], tmp_path / "c.npz"
    first = search(case, tmp_path, checkpoint=path, on_change=lambda r: r.structure is not None)[0]
    before = path.read_bytes()
    said = rf"allow more time.* The checkpoint '.*c\.npz' stays: written .*; incumbent {first.objective:.6f}"
    with pytest.raises(NoIncumbentError, match=said):
        search(case, tmp_path, checkpoint=path, resume=True, time_limit=1e-6)
    assert path.read_bytes() == before


def test_a_full_certificate_is_left_out_by_the_search_that_goes_on(whole, tmp_path: Path) -> None:
    case, path = CASES["sm"], tmp_path / "c.npz"
    search(case, tmp_path, checkpoint=path, interrupted=stopping_after(400))
    result = solve(case.data, case.score, checkpoint=path, **QUIET)
    assert (result.optimal, result.nodes) == (True, whole("sm")[0].nodes)
    with pytest.raises(InputError, match=r"has no proof, since .* without --certificate .*; leave the"):
        search(case, tmp_path, checkpoint=path)


def test_a_checkpoint_is_written_while_the_search_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "SAVE_FIRST", 0.0)
    monkeypatch.setattr(clock, "PAUSES", 0.0)
    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    path, sizes = tmp_path / "c.npz", []

    def note(result: Result) -> None:
        if path.exists():
            found = read_sealed(path, module.LARGEST)
            assert found.unchanged
            sizes.append("search.children" in SavedArrays(found.arrays))

    result = solve(CASES["sm"].data, Score(p=0.9), checkpoint=path, on_change=note, **QUIET)
    assert result.optimal
    assert sizes.count(True) > 1
    assert sizes == sorted(sizes)  # no poorer state replaces that of a tree


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_long_search_in_parts(threads: int, tmp_path: Path) -> None:
    data, path, proof = (
        read_table("instance:tic-tac-toe").dataset("train"),
        tmp_path / "c.npz",
        tmp_path / "p.npz",
    )
    common = {"verbose": False, "certificate": proof}
    whole = solve(data, Score(p=0.9), threads=1, **common)
    arrays = load_proof(proof)[1]
    for questions in (1500, 3000, 2600, 3589, 10**9):
        result = solve(
            data,
            Score(p=0.9),
            threads=threads,
            checkpoint=path,
            interrupted=stopping_after(questions),
            **common,
        )
        verify(result, proof, data)
    assert result.optimal
    assert result.objective == pytest.approx(whole.objective, rel=1e-12)
    if threads == 1:
        assert (result.nodes, result.bound) == (whole.nodes, whole.bound)
        assert all(np.array_equal(array, arrays[name]) for name, array in load_proof(proof)[1].items())


# -- branch and cut -------------------------------------------------------------------------------------------------

LOCAL = read_table("instance:corral").dataset("train")
BDEU = {"score": Score(name="bdeu", max_parents=2, parent_sets="all")}


def local_scores(folder: Path) -> Path:
    path = folder / "s.jkl"
    if not path.exists():
        export_local_scores(LOCAL, BDEU["score"], path=path, dominated=True)
    return path


def by_branch_and_cut(folder: Path, *, from_scores: bool, **options: Any) -> Any:
    """Return the result of a search of a table, or of the file of its scores."""
    if from_scores:
        return solve_local_scores(local_scores(folder), verbose=False, **options)
    return solve(LOCAL, **BDEU, **QUIET, **options)


@pytest.mark.parametrize(
    ("asked", "from_scores"),
    [({"certificate": "p.npz"}, False), ({"n_best": 5}, True), ({"within": 2.0}, True), ({}, False)],
)
def test_branch_and_cut_goes_on(tmp_path: Path, monkeypatch, from_scores: bool, asked) -> None:
    monkeypatch.chdir(tmp_path)
    branch_early(monkeypatch, 2)
    whole = by_branch_and_cut(tmp_path, from_scores=from_scores, **asked)
    parts: list[Any] = []
    for most in range(4, 2000, 4):
        stop = stopping_after(most, "branch and cut")
        own = {**asked, "checkpoint": "c.npz", "interrupted": stop, "resume": bool(parts)}
        parts.append(by_branch_and_cut(tmp_path, from_scores=from_scores, **own))
        if proved(parts[-1]):
            break
    assert len(parts) > 2
    assert load_saved_search("c.npz").among == ""
    last = parts[-1]
    assert sum(bool(part.nodes) for part in parts) > 1
    assert (last.optimal, last.objective) == (True, pytest.approx(whole.objective, rel=1e-12))
    bounds = [part.bound for part in parts if part.bound is not None]
    assert bounds == sorted(bounds, reverse=True)
    assert [part.nodes or 0 for part in parts] == sorted(part.nodes or 0 for part in parts)
    assert last.trace[: len(parts[-2].trace)] == parts[-2].trace
    if whole.alternatives is not None:
        scores = [[one.objective for one in r.alternatives.structures] for r in (whole, last)]
        assert scores[1] == pytest.approx(scores[0], rel=1e-12)
        assert last.alternatives.optimal
    if "certificate" in asked and not from_scores:
        verify(last, "p.npz", LOCAL)
    again = by_branch_and_cut(tmp_path, from_scores=from_scores, **asked, checkpoint="c.npz", resume=True)
    assert (again.optimal, again.nodes, again.bound) == (True, last.nodes, last.bound)
    assert again.alternatives == last.alternatives


def test_a_checkpoint_that_does_not_fit_the_local_scores_is_refused(tmp_path: Path) -> None:
    path, scores = tmp_path / "c.npz", local_scores(tmp_path)
    how = {"checkpoint": path, "verbose": False}
    solve_local_scores(scores, **how, interrupted=stopping_after(5, "branch and cut"))
    with pytest.raises(InputError, match="A checkpoint comes with the tree search of the backends"):
        solve_local_scores(scores, **how, backend="highs")
    with pytest.raises(InputError, match=r"another value of --n-best \(1, not 3\)"):
        solve_local_scores(scores, **how, n_best=3)
    with pytest.raises(InputError, match="belongs to a search on other data"):
        solve(LOCAL, **BDEU, **QUIET, checkpoint=path)
    for name, change in (
        ("in_eta", lambda a: a[::-1].copy()),
        ("rows", lambda a: a[1:]),
        ("bound", lambda a: a[1:]),
    ):
        other = resealed(tmp_path / "d.npz", path, **{f"search__{name}": change})
        with pytest.raises(InputError, match=r"The file '.*d\.npz' is not a complete checkpoint"):
            solve_local_scores(scores, checkpoint=other, verbose=False)
        assert other.exists()


# -- refusals -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the checkpoint of a search that was stopped in its tree."""
    path = tmp_path_factory.mktemp("stopped") / "c.npz"
    solve(CASES["sm"].data, Score(p=0.9), checkpoint=path, interrupted=stopping_after(400), **QUIET)
    return path


@pytest.mark.parametrize(
    ("data", "score", "options", "sentence"),
    [
        (4, Score(p=0.9), {}, "on other data"),
        (3, Score(p=0.95), {}, r"another value of the score's gamma \(2\.19\d*, not 2\.94\d*\)"),
        (3, Score(p=0.9, max_parents=1), {}, r"the score's max_parents \(2, not 1\)"),
        (3, Score(p=0.9), {"random_state": 1}, r"another value of --seed \(0, not 1\)"),
        (3, Score(p=0.9), {"subset": 20}, r"another value of --subset \(none, not 20\)"),
        (3, Score(p=0.9), {"screen": 3}, r"--screen \(none, not 3\)"),
        (3, Score(p=0.9), {"n_best": 3}, r"--n-best \(1, not 3\)"),
        (3, Score(p=0.9), {"merge": False}, "--no-merge"),
        (3, Score(p=0.9), {"constraints": RULES}, "with other constraints"),
    ],
)
def test_a_checkpoint_of_another_search_is_refused(stopped: Path, data, score, options, sentence) -> None:
    before = stopped.read_bytes()
    with pytest.raises(
        InputError, match=rf"The checkpoint '.*c\.npz' belongs to a search .*{sentence}.*; name"
    ):
        solve(random_data(data, n_features=6, n_samples=40), score, checkpoint=stopped, **QUIET, **options)
    assert stopped.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"resume": True}, r"--resume \(resume\) goes on from the file that --checkpoint"),
        ({"resume": True, "checkpoint": "none.npz"}, "There is no checkpoint 'none.npz' to go on from"),
        ({"checkpoint": "c.npz", "backend": "highs"}, "A checkpoint comes with the tree search of .* native"),
        (
            {"checkpoint": "c.npz", "score": "bic", "backend": "highs"},
            "A checkpoint comes with the tree search of",
        ),
        ({"checkpoint": "c.npz", "root_only": True}, "A checkpoint comes with the tree search"),
        ({"checkpoint": "none/c.npz"}, "Cannot write 'none/c.npz'"),
    ],
)
def test_what_has_no_checkpoint_is_refused(options, sentence, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=sentence):
        solve(CASES["sm"].data, **(QUIET | options))
    assert list(tmp_path.iterdir()) == []


def test_a_selection_has_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="A checkpoint keeps one search, and a selection makes many"):
        milpbn.solve_selected(CASES["sm"].data, checkpoint=tmp_path / "c.npz", **QUIET)


def resealed(path: Path, source: Path, **changes: Any) -> Path:
    """Write a checkpoint with other values and a valid checksum."""
    found = read_sealed(source, module.LARGEST)
    header, arrays = json.loads(found.header), dict(found.arrays)
    for name, value in changes.items():
        if name in header:
            header[name] = value
        else:
            arrays[name.replace("__", ".")] = value(arrays[name.replace("__", ".")].copy())
    write_sealed(path, header, arrays, compressed=False)
    return path


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"version": 2}, "was written by milpbn"),
        ({"milpbn": "0.0.1"}, "was written by milpbn 0.0.1, and this is milpbn"),
        ({"kind": "training"}, "is that of another kind of work"),
        ({"kind": None}, "is not a complete checkpoint"),
        ({"structure": {"X1": ["X2"], "X2": ["X1"]}}, "is not a complete checkpoint"),
        ({"structure": {"X1": ["X2", "X3", "C"]}}, "is not a complete checkpoint"),
        ({"node__vertices": lambda a: a + 1000}, "is not a complete checkpoint"),
        ({"node__bound": lambda a: a[:-1]}, "is not a complete checkpoint"),
        ({"optima__inside": lambda a: a[1:]}, "is not a complete checkpoint"),
        ({"root__allowed": lambda a: a[1:]}, "is not a complete checkpoint"),
        ({"rule__counts": lambda a: a.astype(np.float32)}, "is not a complete checkpoint"),
    ],
)
def test_a_checkpoint_whose_parts_do_not_fit_is_refused(
    stopped: Path, tmp_path: Path, changes, sentence
) -> None:
    path = resealed(tmp_path / "c.npz", stopped, **changes)
    with pytest.raises(InputError, match=rf"The (checkpoint|file) '.*c\.npz' {sentence}"):
        solve(CASES["sm"].data, Score(p=0.9), checkpoint=path, **QUIET)


@pytest.mark.parametrize("damage", ["cut", "changed", "text", "empty"])
def test_a_damaged_checkpoint_is_refused(stopped: Path, tmp_path: Path, damage: str) -> None:
    content, path = stopped.read_bytes(), tmp_path / "c.npz"
    at = content.index(b"rule.sums.npy") + 400
    damaged = {
        "cut": content[: len(content) // 2],
        "changed": content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :],
        "text": b"a text",
        "empty": b"",
    }[damage]
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=r"The file '.*c\.npz' is not a complete checkpoint"):
        solve(CASES["sm"].data, Score(p=0.9), checkpoint=path, **QUIET)
    assert path.read_bytes() == damaged


@pytest.mark.filterwarnings("ignore:The checkpoint")
def test_a_checkpoint_that_is_too_large_is_not_written(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 1000)
    path = tmp_path / "c.npz"
    with pytest.raises(
        NotSavedError, match=r"would take .* KiB, but such files have at most 1000 bytes"
    ) as error:
        solve(CASES["sm"].data, Score(p=0.9), checkpoint=path, **QUIET)
    assert error.value.result.optimal
    assert not path.exists()
    monkeypatch.undo()
    monkeypatch.setattr(module.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 99}))
    with pytest.raises(NotSavedError, match=r"but the disk has only 99 bytes; it was not written"):
        solve(CASES["sm"].data, Score(p=0.9), checkpoint=path, **QUIET)


def test_the_forecast_of_the_size_is_that_of_the_file(tmp_path: Path, monkeypatch) -> None:
    case, path = CASES["sm"], tmp_path / "c.npz"
    monkeypatch.setattr(module, "LARGEST", 0)
    with pytest.raises(NotSavedError) as error:
        search(case, tmp_path, checkpoint=path, interrupted=stopping_after(400))
    found = re.search(r"would take ([\d.]+) KiB", str(error.value))
    assert found is not None
    monkeypatch.undo()
    search(case, tmp_path, checkpoint=path, interrupted=stopping_after(400))
    size = sum(array.nbytes for array in read_sealed(path, module.LARGEST).arrays.values())
    assert 0.8 * float(found[1]) < size / 1024 < float(found[1])
