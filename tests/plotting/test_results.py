"""Pictures of results."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pictures import of_kind, texts, titled

from milpbn.claims.parts import ProvedArcs, ScreenedClaim, SubsetClaim
from milpbn.claims.result import BackendInfo, DataSummary, Result
from milpbn.drawing.scene import Path
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.plotting import draw_result, draw_structure, draw_trace
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


def test_the_title_says_what_the_gap_is_over():
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
        assert f"toy: gap 16.667 % {words}" in texts(draw_trace(replace(RESULT, **changes)))


def test_the_lines_of_a_trace_end_at_score_and_bound():
    scene = draw_trace(RESULT)
    upper, lower = of_kind(scene, Path, width=2.0)
    assert (upper.edge, lower.edge) == ("class-edge", "feature-edge")
    assert upper.steps[-1][0] == lower.steps[-1][0]
    assert upper.steps[-1][1] < lower.steps[-1][1]
    assert len(lower.steps) == 2 * 3 - 1  # two changes and the end
    assert all(0 <= y <= scene.height for path in (upper, lower) for _, y in path.steps)


@pytest.mark.parametrize(
    "trace", [((0.0, None, None),), ((0.0, 1.0, None),), ((0.0, None, 5.0),), ((3.0, 0.0, 0.0),)]
)
def test_any_trace_is_drawn(trace):
    scene = draw_trace(replace(RESULT, trace=trace, seconds=replace(RESULT.seconds, total=0.0)))
    assert scene.height > 0


def test_what_is_missing_is_refused():
    with pytest.raises(InputError, match="no structure"):
        draw_result(replace(RESULT, structure=None, reason="no_solution"))
    with pytest.raises(InputError, match="no trace"):
        draw_trace(replace(RESULT, trace=()))


def test_arcs_that_are_not_proved_are_dashed():
    proved = ProvedArcs(inside=(("a", "b"),), outside=())
    scene = draw_structure(STRUCTURE, proved=proved)
    dashed = {name: arc.dashed for name, arc in titled(scene, Path).items()}
    assert dashed == {"a → b": False, "a → c": True, "b → d": True}


def test_a_result_shows_network_and_trace():
    scene = draw_result(RESULT)
    assert {"a", "b", "c", "d", "class", "seconds", "score (nats)"} <= set(texts(scene))


def test_lines_begin_where_they_come_into_the_picture():
    """The first incumbent and the first bound are far off; no line along the border claims another value."""
    trace = ((0.1, -500.0, 900.0), (0.2, 9.0, 20.0), (0.3, 9.5, 13.0), (0.4, 9.6, 12.5), (0.5, 10.0, 12.0))
    scene = draw_trace(replace(RESULT, trace=trace))
    upper, lower = of_kind(scene, Path, width=2.0)
    for line in (upper, lower):
        (x0, y0), (x1, y1) = line.steps[:2]
        assert x0 == x1
        assert y0 != y1
    # Between a trivial incumbent and the next one there is none, so that the axis need not hold both.
    lowest = [float(text) for text in texts(scene) if text.replace(".", "").isdigit()]
    assert min(lowest) >= 0.0
