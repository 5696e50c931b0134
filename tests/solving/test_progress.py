"""The texts of the lines of progress."""

from __future__ import annotations

import pytest

from milpbn.solving.progress import show_gap


@pytest.mark.parametrize(
    ("gap", "text"),
    [(None, "-"), (1e-11, "0 %"), (2.34e-6, "0.00023 %"), (0.5, "50.000 %"), (2.18e14, "> 1000 %")],
)
def test_gaps_in_percent(gap: float | None, text: str) -> None:
    assert show_gap(gap) == text
