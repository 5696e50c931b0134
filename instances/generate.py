"""Problems that are generated from their published definitions, with the same rows on every machine.

Most sets are exhaustive: they hold every combination of the features' values. The two noisy sets are seeded
samples, made only from the uniform stream of PCG64, because NumPy does not guarantee fixed streams of other
distributions. Each generator returns a data frame whose last column is ``class``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

CORRAL_FEATURES = ("A0", "A1", "B0", "B1", "Irrelevant", "Correlated")

MONKS_FEATURES = ("head_shape", "body_shape", "is_smiling", "holding", "jacket_color", "has_tie")
MONKS_STATES = (3, 3, 2, 3, 4, 2)

SQUARES = tuple(
    f"{row}-{column}-square" for row in ("top", "middle", "bottom") for column in ("left", "middle", "right")
)
#: Index triples of a board's rows, columns and diagonals.
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))

#: Lit segments of the digits 0 to 9, in the order top, upper left, upper right, middle, lower left,
#: lower right, bottom (Breiman et al. 1984, pages 43-49).
LED_SEGMENTS = (
    "1110111",
    "0010010",
    "1011101",
    "1011011",
    "0111010",
    "1101011",
    "1101111",
    "1010010",
    "1111111",
    "1111011",
)

#: The two base waves that are mixed in each class of the waveform problem.
WAVE_PAIRS = ((0, 1), (0, 2), (1, 2))

LED_ROWS, LED_NOISE, LED_SEED = 1000, 0.1, 1984
WAVEFORM_ROWS, WAVEFORM_SEED = 300, 1984


def corral() -> pd.DataFrame:
    """Return corral (John, Kohavi & Pfleger 1994): 128 rows, 6 binary features.

    The class is (A0 and A1) or (B0 and B1). `Irrelevant` is independent of it. Each combination of the five
    features other than `Correlated` has four rows, and `Correlated` agrees with the class in three of them.
    """
    rows = []
    for a0, a1, b0, b1, irrelevant in product((0, 1), repeat=5):
        label = int((a0 and a1) or (b0 and b1))
        rows += [(a0, a1, b0, b1, irrelevant, label ^ flip, label) for flip in (0, 0, 0, 1)]
    return _nominal_frame(CORRAL_FEATURES, rows)


def mofn_3_7_10() -> pd.DataFrame:
    """Return mofn-3-7-10 (MLC++, Kohavi et al. 1997): all 1024 rows of 10 bits.

    The class is 1 if at least 3 of the 7 relevant bits, Bit-2 to Bit-8, are set.
    """
    rows = [(*bits, int(sum(bits[2:9]) >= 3)) for bits in product((0, 1), repeat=10)]
    return _nominal_frame([f"Bit-{i}" for i in range(10)], rows)


def monks_1() -> pd.DataFrame:
    """Return MONK-1 (Thrun et al. 1991), all 432 robots: same head and body shape, or a red jacket (1)."""
    return _monks(lambda a: a[0] == a[1] or a[4] == 1)


def monks_2() -> pd.DataFrame:
    """Return MONK-2 (Thrun et al. 1991), all 432 robots: exactly two attributes have their first value."""
    return _monks(lambda a: a.count(1) == 2)


def monks_3() -> pd.DataFrame:
    """Return MONK-3 (Thrun et al. 1991), all 432 robots, without noise.

    The class is 1 for a green jacket (3) and a sword (1), or for a jacket that is not blue (4) and a body that
    is not an octagon (3). The 5 % of wrong labels in the original are in its training sample only.
    """
    return _monks(lambda a: (a[4] == 3 and a[3] == 1) or (a[4] != 4 and a[1] != 3))


def tic_tac_toe() -> pd.DataFrame:
    """Return the tic-tac-toe endgames (Aha 1991): all 958 boards on which a game ends that x began.

    The nine squares have the states x, o and b (blank). The class is ``positive`` if x has three in a line.
    """
    rows = []
    for board in product("xob", repeat=9):
        moves_ahead = board.count("x") - board.count("o")
        x_wins, o_wins = _has_line(board, "x"), _has_line(board, "o")
        # The winner made the last move.
        x_ends = x_wins and not o_wins and moves_ahead == 1
        o_ends = o_wins and not x_wins and moves_ahead == 0
        draw = not x_wins and not o_wins and "b" not in board and moves_ahead == 1
        if x_ends or o_ends or draw:
            rows.append((*board, "positive" if x_wins else "negative"))
    return _nominal_frame(SQUARES, rows)


def balance_scale() -> pd.DataFrame:
    """Return balance-scale (Siegler 1976): all 625 settings of a scale; it tips to L or R, or balances (B)."""
    names = ("left-weight", "left-distance", "right-weight", "right-distance")
    rows = []
    for left_weight, left_distance, right_weight, right_distance in product(range(1, 6), repeat=4):
        torque = left_weight * left_distance - right_weight * right_distance
        label = "L" if torque > 0 else "R" if torque < 0 else "B"
        rows.append((left_weight, left_distance, right_weight, right_distance, label))
    return _nominal_frame(names, rows)


def led_7() -> pd.DataFrame:
    """Return a sample of LED-7 (Breiman et al. 1984): 1000 digits on a faulty seven-segment display.

    Digits are equally probable. Each segment is inverted independently with probability 0.1.
    """
    uniform = _uniform(LED_SEED, (LED_ROWS, 8))
    digits = (uniform[:, 0] * 10).astype(int)
    segments = np.array([[int(s) for s in lit] for lit in LED_SEGMENTS])[digits]
    shown = segments ^ (uniform[:, 1:] < LED_NOISE)
    rows = np.column_stack([shown, digits]).tolist()
    return _nominal_frame([f"segment-{i}" for i in range(1, 8)], rows)


def waveform_21() -> pd.DataFrame:
    """Return a sample of waveform-21 (Breiman et al. 1984): 300 rows, 21 continuous features, 3 classes.

    Class k mixes its two base waves of `WAVE_PAIRS`, x = u h_a + (1 - u) h_b + e, with u uniform on [0, 1)
    and e ~ N(0, 1) for each feature; values have two decimals, as in the published files.
    """
    uniform = _uniform(WAVEFORM_SEED, (WAVEFORM_ROWS, 23))
    classes = (uniform[:, 0] * 3).astype(int)
    mix = uniform[:, 1:2]
    noise = ndtri(uniform[:, 2:])  # inversion, because NumPy's normal generator may change
    waves = base_waves()
    first, second = np.array(WAVE_PAIRS)[classes].T
    values = np.round(mix * waves[first] + (1 - mix) * waves[second] + noise, 2) + 0.0  # no negative zeros
    frame = pd.DataFrame(values, columns=[f"X{i:02d}" for i in range(21)])
    return frame.assign(**{"class": [str(k) for k in classes]})


def base_waves() -> NDArray[np.float64]:
    """Return the three triangular base waves of the waveform problem, shape (3, 21).

    h_k(i) = max(6 - abs(i - p_k), 0) for i = 1..21, with peaks p = 7, 15 and 11.
    """
    return np.maximum(6.0 - np.abs(np.arange(1, 22) - np.array([[7], [15], [11]])), 0.0)


def _monks(concept: Callable[[tuple[int, ...]], bool]) -> pd.DataFrame:
    robots = product(*(range(1, n + 1) for n in MONKS_STATES))
    return _nominal_frame(MONKS_FEATURES, [(*robot, int(concept(robot))) for robot in robots])


def _has_line(board: Sequence[str], player: str) -> bool:
    return any(all(board[square] == player for square in line) for line in LINES)


def _uniform(seed: int, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return uniform numbers on [0, 1): the top 53 bits of PCG64's output, a stream that NumPy keeps fixed."""
    return np.random.Generator(np.random.PCG64(seed)).random(shape)


def _nominal_frame(features: Sequence[str], rows: Sequence[Sequence[object]]) -> pd.DataFrame:
    """Return a frame of strings, one row for each sequence of feature values followed by the class."""
    return pd.DataFrame(rows, columns=[*features, "class"]).astype(str)
