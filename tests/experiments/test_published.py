"""The published numbers: what they must obey, and a few of them by hand."""

from __future__ import annotations

import pytest

from milpbn.experiments.published import published
from milpbn.network.intervals import normal_half_width

#: Test rows of the sets with a test set of which the number is known.
TEST_ROWS = {
    "letter": 5000,
    "mofn-3-7-10": 1024,
    "satimage": 2000,
    "segment": 770,
    "waveform-21": 4700,
    "adult": 15060,
}
#: Sets with more than two classes of the 31.
MULTICLASS = {
    *(
        "abalone",
        "car",
        "glass",
        "iris",
        "letter",
        "lymphography",
        "nursery",
        "satimage",
        "segment",
        "shuttle-small",
    ),
    *("soybean-large", "vehicle", "waveform-21"),
}


def test_there_are_31_sets_and_six_methods():
    assert len(published().accuracies) == 31
    assert all(
        set(row) == {"nb", "tan", "mdl", "sm", "sbm", "svm"} for row in published().accuracies.values()
    )
    without = {(d, m) for d, row in published().accuracies.items() for m, a in row.items() if a is None}
    assert without == {("letter", "sm"), ("soybean-large", "sm")}


@pytest.mark.parametrize(("data", "rows"), TEST_ROWS.items())
def test_intervals_of_test_sets_are_those_of_their_rows(data, rows):
    for told in published().accuracies[data].values():
        if told is not None:
            assert 100 * normal_half_width(told.percent / 100, rows) == pytest.approx(
                told.half_width, abs=0.011
            )


def test_two_classes_have_one_soft_margin():
    for data in set(published().accuracies) - MULTICLASS:
        assert published().accuracy(data, "sm") == published().accuracy(data, "sbm"), data


def test_wins_are_at_most_the_sets_and_fewer_at_95_percent():
    wins = published().wins
    for row, cells in wins.items():
        assert set(cells) == set(wins) - {row}
        for column, (low, high) in cells.items():
            assert high <= low
            assert low + wins[column][row][0] <= 31


def test_published_figures_are_those_of_the_paper():
    assert published().accuracy("heart", "tan").lower == pytest.approx(82.22 - 5.29)
    assert published().accuracy("segment", "svm").upper == pytest.approx(97.53 + 1.10)
    assert published().gap("satimage", "sbm") == 15.04
    assert published().gap("letter", "sm") == float("inf")
    assert published().gap("heart", "sm") == 0.0  # not in Table 1: solved
    assert published().gap("heart", "nb") is None
    assert published().gap("my-own-data", "sm") is None
    assert published().wins["svm"]["sm"] == (11, 6)
