"""The counts of a stability run, its table, and its file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from milpbn.claims.about import DataSummary
from milpbn.claims.stability import ArcShare, SampleRun, Stability
from milpbn.errors import InputError
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score


def run(optimal: bool = True, **parents: tuple[str, ...]) -> SampleRun:
    structure = {"a": (), "b": (), "c": (), "class": (), **parents}
    return SampleRun(structure=structure, objective=1.0, bound=1.0, optimal=optimal, seconds=0.5)


@pytest.fixture
def found() -> Stability:
    """Four samples, one of them without a structure and one without a proof."""
    return Stability(
        data=DataSummary("toy", "0" * 64, 40, 30, 3, 2),
        names=("b", "a", "c", "class"),
        score=Score(p=0.9),
        constraints=Constraints(),
        seed=7,
        time_limit_each=10.0,
        backend="native",
        asked=5,
        all_rows=run(a=("b", "class"), **{"class": ("c",)}),
        runs={
            1: run(a=("b", "class"), b=("class",)),
            2: run(b=("a", "class"), a=("class",)),
            3: run(b=("a", "class"), a=("class",), optimal=False),
            4: SampleRun(structure=None, failure="It failed."),
        },
    )


def test_edges_are_counted_in_both_directions_and_arcs_of_the_class_in_one(found: Stability) -> None:
    shares = {(share.parent, share.child): share for share in found.shares()}
    assert shares["a", "b"] == ArcShare(
        parent="a", child="b", count=3, proved=2, backwards=1, in_all_rows="<-"
    )
    assert shares["class", "a"].count == shares["class", "b"].count == 3
    assert shares["c", "class"] == ArcShare(
        parent="c", child="class", count=0, proved=0, backwards=0, in_all_rows="->"
    )
    assert ("b", "a") not in shares
    assert len(shares) == 4
    assert [share.count for share in found.shares()] == [3, 3, 3, 0]


def test_a_direction_that_is_in_no_sample_is_shown_once(found: Stability) -> None:
    only = replace(found, runs={1: found.runs[2]})
    edges = [share for share in only.shares() if "class" not in (share.parent, share.child)]
    assert [(share.parent, share.child, share.in_all_rows) for share in edges] == [("a", "b", "<-")]
    even = replace(found, runs={1: found.runs[1], 2: found.runs[2]})
    edges = [share for share in even.shares() if "class" not in (share.parent, share.child)]
    assert [(share.parent, share.child, share.backwards) for share in edges] == [("a", "b", 1)]


def test_the_table_says_what_is_not_proved(found: Stability) -> None:
    text = str(found)
    assert "4 of 5 bootstrap samples searched, 2 proved; seed 7" in text
    assert "1 failed, for example: It failed." in text
    assert "the shares are of all structures found; those of proved optima are beside them" in text
    assert "   1.00    1.00     <-     a - b  (0.67 ->, 0.33 <-)" in text.splitlines()
    proved = replace(found, runs={1: found.runs[1]})
    assert "   1.00     ->     class -> a" in str(proved).splitlines()
    assert "  proved" not in str(proved)
    assert "share" not in str(replace(found, runs={}))


def test_the_file_is_read_as_it_was_written(found: Stability, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    found.save(path)
    values = json.loads(path.read_text())
    assert values["arcs"][0]["count"] == 3
    assert Stability.from_dict(values, "The file") == found


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("names", ["class"], "names are not those of features and a class"),
        ("runs", {"0": {}}, "not numbered from 1"),
        ("runs", {"one": {}}, "not numbered from 1"),
        ("runs", {"1": {"structure": {"a": []}}}, "other variables than the data"),
        ("asked", 0, "asked"),
        ("score", {"name": "none"}, "score"),
    ],
)
def test_an_unusable_file_is_refused(found: Stability, key: str, value: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Stability.from_dict(found.to_dict() | {key: value}, "The file 's.json'")
