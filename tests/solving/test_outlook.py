"""Forecasts of the time to a gap, from traces whose bounds fall in a known way."""

from __future__ import annotations

import io

import numpy as np
import pytest

from milpbn.claims.gap import Target
from milpbn.claims.reading import TracePoint
from milpbn.solving.outlook import Outlook, forecast, next_gap, show_time
from milpbn.solving.progress import Progress, outlook_lines
from milpbn.util.progress_line import ProgressLine


def trace(fall: float, seconds: float = 64.0, wobble: float = 0.0) -> list[TracePoint]:
    """An incumbent of 1000, and a bound that falls by `fall` nats with every doubling from 1100 after 1 s."""
    times = np.geomspace(1.0, seconds, 200)
    bounds = 1100 - fall * np.log2(times) + wobble * np.sin(np.log2(times) * np.pi / 2)
    return [(float(t), 1000.0, float(b)) for t, b in zip(times, bounds, strict=True)]


def test_an_even_fall_is_continued() -> None:
    """After 64 s the bound is 1040, 3.85 % above; at 2 % it is 1020.4, 1.96 doublings later."""
    made = forecast(trace(10.0), 64.0)
    assert made is not None
    assert made.gap == 0.02
    assert made.seconds == pytest.approx(64 * 2 ** ((1040 - 1000 / 0.98) / 10), rel=1e-2)
    assert made.least < made.seconds < made.most
    assert made.fall == pytest.approx(10, rel=1e-2)
    assert "to a gap of 2 %" in made.describe(64.0)


def test_a_gap_that_is_asked_for_is_forecast() -> None:
    made = forecast(trace(10.0), 64.0, 0.03)
    assert made is not None
    assert made.gap == 0.03


def test_a_long_search_is_also_forecast_for_a_cluster() -> None:
    """Two threads do in 64 hours what 64 workers do in two, and with 80 % efficiency in 2.5."""
    made = Outlook(0.005, 64 * 3600.0, 32 * 3600.0, 128 * 3600.0, 10.0)
    said = made.describe(0.0, 2)
    assert said.startswith(
        "about 2.7 d more (32 h to 5.3 d) on this machine, 2 h (60 min to 5 h) on 64 workers, to"
    )
    assert "64 workers" not in made.describe(0.0)
    assert "64 workers" not in made.describe(0.0, 64)
    assert "64 workers" not in made.describe(64 * 3600.0 - 60, 2)


def test_progress_has_a_line_on_what_is_ahead_after_every_doubling() -> None:
    stream, seconds = io.StringIO(), np.arange(0.0, 300.0, 0.5)
    progress = Progress(ProgressLine(stream))
    for now in seconds:
        known = [point for point in trace(10.0, 300.0) if point[0] <= now]
        progress.outlook(now, lambda known=known, now=now: outlook_lines(known, now))
    lines = stream.getvalue().splitlines()
    assert [float(line.split("s")[0]) for line in lines] == [30, 60, 120, 240]
    assert all("to a gap of" in line for line in lines)


@pytest.mark.parametrize(
    "target", [Target(0.02), Target(gap_abs=20.408163), Target(gap_se=2.0408163)], ids=str
)
def test_the_gap_that_was_asked_for_is_relative_to_the_bound(target: Target) -> None:
    """2 % of 1020.408."""
    assert target.relative(1000.0, 10.0) == pytest.approx(0.02, rel=1e-6)


@pytest.mark.parametrize(
    "points",
    [
        trace(10.0, wobble=15.0),
        trace(0.1),
        [],
        [(1.0, None, 1100.0), (64.0, None, 1040.0)],
        [(60.0, 1000.0, 1040.0)],
        [(t, -5.0, b) for t, _, b in trace(10.0)],
    ],
    ids=["uneven", "too slow", "nothing", "no incumbent", "no past", "negative"],
)
def test_no_forecast_is_made_where_it_would_be_a_guess(points: list[TracePoint]) -> None:
    assert forecast(points, 64.0) is None


def test_short_runs_have_none() -> None:
    assert forecast(trace(10.0, seconds=3.0), 3.0) is None


def test_gaps_and_times_in_words() -> None:
    assert [next_gap(gap) for gap in (0.0385, 0.021, 0.0051, 0.6)] == [0.02, 0.01, 0.002, 0.2]
    assert [show_time(x) for x in (3.0, 119.0, 600.0, 9000.0, 200000.0)] == [
        "3 s",
        "119 s",
        "10 min",
        "2.5 h",
        "2.3 d",
    ]
