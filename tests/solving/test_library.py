"""What a result adds to a library of known networks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import milpbn
from milpbn.data import read_table
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.rescore import rescored
from milpbn.problem.scores.spec import Score
from milpbn.solving.library import KnownNetwork, compare, load_library, open_problems, overview
from milpbn.trials.store import Store

SCORE = Score(p=0.9)


@pytest.fixture(scope="module")
def corral():
    return read_table("instance:corral").dataset("train")


@pytest.fixture(scope="module")
def proved(corral, tmp_path_factory):
    """A result that is proved, and its certificate."""
    path = tmp_path_factory.mktemp("proof") / "proof.npz"
    return milpbn.solve(corral, SCORE, certificate=path, threads=1), path


@pytest.fixture
def known(corral, proved) -> KnownNetwork:
    """A worse structure with a looser bound for the same problem."""
    structure = Structure.naive_bayes(corral.names)
    objective, _ = rescored(corral, structure, SCORE)
    bound = proved[0].objective + 1.0
    return KnownNetwork(
        *("corral", corral.sha256, SCORE, structure, objective, bound, 1e-6, 5.0, 20.0, 20.0, None)
    )


def added(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("adds"))[11:]


def test_a_result_adds_what_is_better(corral, proved, known: KnownNetwork) -> None:
    result, certificate = proved
    everything = "a better structure, and a tighter bound, and a proof of the optimum"
    assert added(compare(result, [known], corral, certificate)) == everything
    assert "not checked without --certificate" in added(compare(result, [known], corral, None))
    worse = replace(result, structure=known.structure, objective=known.objective, reason="feasible")
    assert added(compare(worse, [known], corral, None)).startswith("a tighter bound")
    unbounded = replace(result, bound=None, reason="feasible", proved=None, trace=())
    assert added(compare(unbounded, [known], corral, None)) == "a better structure"
    tight = replace(known, bound=result.bound)
    assert added(compare(unbounded, [tight], corral, None)) == (
        "a better structure, and with the library's bound, a proof"
    )
    same = replace(tight, structure=result.structure, objective=result.objective)
    assert same.proved
    assert added(compare(result, [known, same][1:], corral, certificate)) == "nothing"


def test_what_is_no_answer_to_the_same_question_is_refused(corral, proved, known: KnownNetwork) -> None:
    result, _ = proved
    other = read_table("instance:monks-1").dataset("train")
    limited = replace(result, constraints=milpbn.Constraints(forbidden=(("class", "A0"),)))
    for changed, data, words in (
        (result, other, "other data"),
        (replace(result, score=Score(p=0.8)), corral, "no network for"),
        (replace(result, score=Score(p=0.9, max_parents=1)), corral, "no network for"),
        (limited, corral, "no network for"),
        (replace(result, objective=result.objective + 0.01), corral, "scores"),
        (replace(result, bound=known.objective - 1.0), corral, "contradicts"),
    ):
        with pytest.raises(InputError, match=words):
            compare(changed, [known], data, None)
    with pytest.raises(InputError, match="contradicts"):
        compare(result, [replace(known, bound=result.objective - 1.0)], corral, None)


def test_the_library_of_the_package_is_true_of_its_data() -> None:
    """The embedded sets that take a moment to read: scores from the data, below their bounds."""
    networks = load_library()
    small = [
        one for one in networks if one.source.removeprefix("instance:") in ("corral", "monks-1", "led-7")
    ]
    assert len(small) >= 4
    for one in small:
        if not one.source.startswith("instance:"):
            continue
        data = read_table(one.source).dataset("train")
        structure = Structure.from_mapping(data.names, one.structure.to_mapping())
        score, error = rescored(data, structure, one.score)
        assert abs(score - one.objective) <= error
        assert one.sha256 == data.sha256
        assert one.proved or one.source == "instance:led-7"
    assert all(one.bound >= one.objective for one in networks)


def test_tables_show_what_is_proved_and_what_is_open(known: KnownNetwork, proved) -> None:
    done = replace(known, score=Score(p=0.99), objective=known.bound)
    assert overview([known, done]) == [
        ["data", "score", "p=0.9", "p=0.99"],
        ["corral", "sm", f"{100 * known.gap.relative_to_bound:.2g} %", "proved"],
    ]
    rows = open_problems([known, done])
    assert len(rows) == 2
    assert rows[1][5] == f"{known.gap.absolute / 5.0:.2g}"


def test_files_that_are_no_library_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no library"):
        load_library(tmp_path / "none.jsonl.gz")
    Store(tmp_path / "other.jsonl.gz").add({"a": {"b": 1}})
    with pytest.raises(InputError, match="no library of networks"):
        load_library(tmp_path / "other.jsonl.gz")
