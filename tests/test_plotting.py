"""Pictures: layout, files, and refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milpbn.claims.parts import ScreenedClaim, SubsetClaim
from milpbn.claims.result import BackendInfo, DataSummary, Result
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.plotting import layout, plot_structure, plot_trace, save_picture
from milpbn.problem.scores.spec import Score

NAMES = ("a", "b", "c", "d", "class")
STRUCTURE = Structure(NAMES, ((4,), (0, 4), (0, 4), (1, 4), ()))
RESULT = Result(
    data=DataSummary("toy", "0" * 64, 10, 9, 4, 2),
    score=Score(),
    reason="feasible",
    limit="time",
    structure=STRUCTURE,
    objective=10.0,
    bound=12.0,
    backend=BackendInfo("highs", "HiGHS", 1),
    trace=((0.1, None, 20.0), (0.2, 9.0, 20.0), (0.3, 10.0, 12.0)),
)


def test_children_lie_below_their_feature_parents():
    place = layout(STRUCTURE)
    assert place[4] == (0.0, 0.0)
    for parent, child in STRUCTURE.arcs:
        assert place[child][1] < place[parent][1]
    assert len(set(place.values())) == len(NAMES)


def test_a_class_with_parents_has_a_place():
    structure = Structure(NAMES, ((), (4,), (4,), (4,), (0,)))
    assert len(set(layout(structure).values())) == len(NAMES)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_is_written(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    pytest.importorskip("networkx")
    path = tmp_path / f"result.{suffix}"
    save_picture(RESULT, path)
    assert path.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [path]


def test_the_title_says_what_the_gap_is_over():
    plt = pytest.importorskip("matplotlib.pyplot")
    kept = ScreenedClaim(
        objective=10.0,
        bound=12.0,
        optimal=False,
        k=2,
        criterion="linear gain",
        total=90,
        ranked=80,
        kept=dict.fromkeys(NAMES, 2),
    )
    subset = SubsetClaim(objective=10.0, bound=12.0, optimal=False, samples=4)
    for changes, words in (
        ({}, "of the bound"),
        ({"bound": None, "subset": subset}, "of the bound over a subset of the samples"),
        ({"bound": None, "screened": kept}, "of the bound over the kept parent sets"),
    ):
        axes = plot_trace(replace(RESULT, **changes))
        assert axes.get_title() == f"toy: gap 16.667 % {words}"
        plt.close(axes.figure)


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(InputError, match="ends in"):
        save_picture(RESULT, tmp_path / "result.txt")


def test_a_result_without_structure_is_refused(tmp_path):
    with pytest.raises(InputError, match="no structure"):
        save_picture(replace(RESULT, structure=None, reason="no_solution"), tmp_path / "result.png")


def test_features_that_change_no_prediction_are_grey():
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("networkx")
    # b has no arcs; c depends on the class through a only; d is another parent of a.
    structure = Structure(NAMES, ((3, 4), (), (0,), (), ()))
    assert structure.markov_blanket == {0, 3}
    axes = plot_structure(structure)
    colours = {text.get_text(): text.get_bbox_patch().get_facecolor() for text in axes.texts}
    plt.close(axes.figure)
    assert colours["b"] == colours["c"] != colours["a"] == colours["d"] != colours["class"]
