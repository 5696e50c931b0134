"""The generated problems against their definitions, re-stated independently."""

import hashlib
import os
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from milpbn import instances
from milpbn.instances import generate

DATA_DIR = Path(os.environ.get("MILPBN_DATA", Path(__file__).parents[2] / ".." / "shared" / "data" / "uci"))

#: Class counts: given by the sources or counted by hand; the last two belong to our samples.
CLASS_COUNTS = {
    "corral": {"0": 72, "1": 56},
    "mofn-3-7-10": {"0": 8 * (1 + 7 + 21), "1": 8 * (128 - 1 - 7 - 21)},
    "monks-1": {"0": 216, "1": 216},
    "monks-2": {"0": 290, "1": 142},
    "monks-3": {"0": 204, "1": 228},
    "tic-tac-toe": {"positive": 626, "negative": 332},
    "balance-scale": {"L": 288, "B": 49, "R": 288},
    "iris": {"setosa": 50, "versicolor": 50, "virginica": 50},
    "wine": {"class_0": 59, "class_1": 71, "class_2": 48},
    "breast-cancer": {"malignant": 212, "benign": 357},
}

#: SHA-256 of the comma-separated values; a change here changes every known optimum.
CONTENT = {
    "corral": "279430ec6d057adec0fa22ad8c5b5461763dcdc87abb5d95bf13aa2c999dd6cd",
    "mofn-3-7-10": "29591ee5f9ebfc6fd54199315e4138f772917369d1ebca7790c56cc48b959b70",
    "monks-1": "88e9d144b5b056073a7235b4512be84a1181cf1a57d9aa3117c34e5a15c378b8",
    "monks-2": "6e1fc68524e35f1026b026278d8f7e97ff4642c54f0378cf5ae191ebb1b12325",
    "monks-3": "cb73f460b886ce7bef2ce12b1a7b2fbb74ee1f12f2885ac7dadd454495041c06",
    "tic-tac-toe": "5598b1edd8b40631d62e3df84e8900e3372714fd79353804a5ad0a814fd75989",
    "balance-scale": "ef70fa31a682a11bad412c262dd2d8b3ea3a53f0f127b8b1ce87a0ad8fb9450b",
    "led-7": "6ee42bfcb8bccb888cdf62665fb3fbf6025eea8cd47a9066a3781884c1f416d0",
    "waveform-21": "87bdeac7a565f67920e61f2dabe871500d0afae0e1c28380f32ad1098a38a401",
}


def rows_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(frame.itertuples(index=False, name=None))


def catalog_table(name: str) -> pd.DataFrame:
    path = DATA_DIR / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return pd.read_csv(path)


@pytest.mark.parametrize("name", CLASS_COUNTS)
def test_class_counts_are_the_published_ones(name):
    assert Counter(instances.load(name)["class"]) == CLASS_COUNTS[name]


@pytest.mark.parametrize("name", CONTENT)
def test_generated_content_has_its_recorded_hash(name):
    # Not to_csv: its number format and the frame's string type are pandas' own business.
    frame = instances.load(name)
    lines = [",".join(frame.columns)] + [",".join(map(str, row)) for row in rows_of(frame)]
    text = "\n".join(lines) + "\n"
    assert hashlib.sha256(text.encode()).hexdigest() == CONTENT[name]


def test_corral_follows_the_truth_table():
    frame = instances.load("corral").astype(int)
    assert ((frame["A0"] & frame["A1"] | frame["B0"] & frame["B1"]) == frame["class"]).all()
    agreement = (frame["Correlated"] == frame["class"]).groupby(frame["class"]).mean()
    assert agreement.tolist() == [0.75, 0.75]
    assert Counter(frame["Irrelevant"]) == {0: 64, 1: 64}


def test_corral_equals_the_published_file():
    published = catalog_table("corral").astype(str)
    assert Counter(rows_of(published)) == Counter(rows_of(instances.load("corral")))


def test_mofn_equals_the_published_inputs():
    published = catalog_table("mofn-3-7-10").astype(str).drop_duplicates()
    assert set(rows_of(published)) == set(rows_of(instances.load("mofn-3-7-10")))


def test_monks_cover_all_robots():
    for name in ("monks-1", "monks-2", "monks-3"):
        frame = instances.load(name)
        assert frame.iloc[:, :-1].nunique().tolist() == [3, 3, 2, 3, 4, 2]
        assert not frame.iloc[:, :-1].duplicated().any()


@pytest.mark.parametrize(
    ("name", "robot", "label"),
    [
        ("monks-1", "222231", "1"),  # same shapes
        ("monks-1", "232231", "0"),
        ("monks-1", "232211", "1"),  # red jacket
        ("monks-2", "112222", "1"),
        ("monks-2", "111222", "0"),
        ("monks-2", "232242", "0"),
        ("monks-3", "131132", "1"),  # green jacket and sword, although an octagon
        ("monks-3", "131232", "0"),
        ("monks-3", "122222", "1"),  # neither blue nor octagon
        ("monks-3", "122242", "0"),
    ],
)
def test_monks_by_hand(name, robot, label):
    labels = {"".join(row[:-1]): row[-1] for row in rows_of(instances.load(name))}
    assert labels[robot] == label


def test_tic_tac_toe_by_playing_every_game():
    rows_and_columns = [[3 * i + j for j in range(3)] for i in range(3)]
    rows_and_columns += [[3 * i + j for i in range(3)] for j in range(3)]
    lines = [*rows_and_columns, [0, 4, 8], [2, 4, 6]]
    ends: dict[str, str] = {}
    seen = set()

    def play(board: str, player: str, opponent: str) -> None:
        if board in seen:
            return
        seen.add(board)
        if any(all(board[i] == opponent for i in line) for line in lines):  # the last move won
            ends[board] = "positive" if opponent == "x" else "negative"
        elif "b" not in board:
            ends[board] = "negative"
        else:
            for i in [i for i, square in enumerate(board) if square == "b"]:
                play(board[:i] + player + board[i + 1 :], opponent, player)

    play("b" * 9, "x", "o")
    frame = instances.load("tic-tac-toe")
    assert len(frame) == 958
    assert {"".join(row[:-1]): row[-1] for row in rows_of(frame)} == ends
    draws = [board for board in ends if board.count("b") == 0 and ends[board] == "negative"]
    assert len(draws) == 16


def test_balance_scale_by_torque():
    for *setting, label in rows_of(instances.load("balance-scale")):
        left_weight, left_distance, right_weight, right_distance = map(int, setting)
        tilt = np.sign(left_weight * left_distance - right_weight * right_distance)
        assert label == {1: "L", 0: "B", -1: "R"}[int(tilt)]


def test_led_has_the_published_bayes_rate():
    # CART quotes a Bayes error of 0.26: the best guess of the digit from all 128 displays.
    best = 0.0
    for shown in product("01", repeat=7):
        likelihoods = []
        for lit in generate.LED_SEGMENTS:
            flips = sum(a != b for a, b in zip(shown, lit, strict=True))
            likelihoods.append(0.1**flips * 0.9 ** (7 - flips))
        best += max(likelihoods) / 10
    assert best == pytest.approx(0.74, abs=0.005)


def test_led_sample_has_the_noise_it_says():
    frame = instances.load("led-7")
    lit = [generate.LED_SEGMENTS[int(digit)] for digit in frame["class"]]
    flips = []
    for (*shown, _), on in zip(rows_of(frame), lit, strict=True):
        flips += [a != b for a, b in zip(shown, on, strict=True)]
    assert np.mean(flips) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / len(flips)))
    assert frame["class"].nunique() == 10


def test_waveform_sample_has_the_moments_of_its_definition():
    frame = instances.load("waveform-21")
    peaks = {"0": (6, 14), "1": (6, 10), "2": (14, 10)}  # zero-based positions of a class's two waves
    for label, group in frame.groupby("class"):
        a, b = ([max(6 - abs(i - peak), 0) for i in range(21)] for peak in peaks[str(label)])
        mean = (np.array(a) + b) / 2
        variance = 1 + (np.array(a, dtype=float) - b) ** 2 / 12
        observed = group.iloc[:, :-1]
        standard_error = np.sqrt(variance / len(group))
        assert (np.abs(observed.mean() - mean) < 4 * standard_error).all()
        assert observed.var().mean() == pytest.approx(variance.mean(), rel=0.1)


def test_waveform_classes_are_those_of_the_published_file():
    published = catalog_table("waveform-21").groupby("class").mean()
    waves = generate.base_waves()
    expected = [(waves[a] + waves[b]) / 2 for a, b in generate.WAVE_PAIRS]
    np.testing.assert_allclose(published.to_numpy(), expected, atol=0.15)
