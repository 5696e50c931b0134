"""How often the 95 % intervals of ROC-AUC and of the other figures of a class hold the truth.

    python benchmarks/intervals.py [--draws N]

Rows of simulated worlds: a class, a normal feature that is shifted for the class, calibrated probabilities with ties,
and weights that are equal, random, by class, or depend on the feature. The truth is the figure on 1,500,000 rows. The
standard error of a coverage of .95 is .005 over 2,000 draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import RESULTS, parser, write_results
from numpy.typing import NDArray

from milpbn.network.calibration import losses_of_logs, squared_errors
from milpbn.network.discrimination import NAMES, class_figures
from milpbn.network.intervals import Interval, stratified_mean_interval

#: Rows, share of the class, shift of the feature in standard deviations, and weights.
WORLDS = (
    (200, 0.5, 1.0, "equal"),
    (100, 0.3, 1.5, "random"),
    (300, 0.1, 1.0, "by feature"),
    (1000, 0.1, 3.0, "two sizes"),
    (600, 0.05, 1.0, "random"),
    (600, 0.05, 1.5, "by class"),
    (600, 0.02, 1.0, "equal"),
    (600, 0.02, 2.5, "equal"),
    (2000, 0.02, 1.5, "random"),
    (60, 0.5, 2.5, "equal"),
)
TRUTH = 1_500_000
Rows = tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]


def rows(world: tuple[int, float, float, str], n: int, rng: np.random.Generator) -> Rows:
    """Return which rows are of the class, their probabilities, and weights."""
    _, share, shift, weighted = world
    positive = rng.random(n) < share
    x = rng.normal(shift * positive)
    odds = np.round(4 * (np.log(share / (1 - share)) + shift * x - shift**2 / 2)) / 4
    weights = {
        "equal": lambda: np.ones(n),
        "random": lambda: rng.exponential(size=n) + 0.05,
        "by class": lambda: np.where(positive, 1 / share, 1 / (1 - share)),
        "two sizes": lambda: np.where(rng.random(n) < 0.5, 1.0, 4.0),
        "by feature": lambda: np.exp(0.5 * x),
    }[weighted]()
    return positive, 1 / (1 + np.exp(-odds)), weights


def figures(drawn: Rows, threshold: float) -> tuple[dict[str, float], dict[str, Interval | None]]:
    """Return all figures with their intervals."""
    positive, p, w = drawn
    found = class_figures("", p, positive, p >= threshold, w)
    values = {key: float(getattr(found, key)) for key in NAMES}
    intervals: dict[str, Interval | None] = dict(found.intervals)
    both, y = np.column_stack([1 - p, p]), positive.astype(np.int64)
    for key, losses in (("brier", squared_errors(both, y)), ("log_loss", losses_of_logs(np.log(both), y))):
        values[key] = float(w @ losses / w.sum())
        intervals[key] = stratified_mean_interval(losses, w, y)
    return values, intervals


def measured(world: tuple[int, float, float, str], draws: int) -> dict[str, Any]:
    """Return the share of the draws in which each interval holds the truth, and its mean width."""
    rng = np.random.default_rng(0)
    n, share, shift, weighted = world
    threshold = min(0.5, 2 * share) if share < 0.3 else 0.5
    truth, _ = figures(rows(world, TRUTH, rng), threshold)
    held: dict[str, list[bool]] = {key: [] for key in truth}
    width: dict[str, list[float]] = {key: [] for key in truth}
    for _ in range(draws):
        _, intervals = figures(rows(world, n, rng), threshold)
        for key, interval in intervals.items():
            if interval is not None:
                held[key].append(interval[0] <= truth[key] <= interval[1])
                width[key].append(interval[1] - interval[0])
    return {
        "rows": n,
        "share": share,
        "shift": shift,
        "weights": weighted,
        "coverage": {key: round(float(np.mean(found)), 4) for key, found in held.items()},
        "width": {key: round(float(np.mean(found)), 4) for key, found in width.items()},
    }


def main() -> None:
    """Measure all worlds, and write the file."""
    reader = parser(__doc__, data=None, output=RESULTS / "intervals.json")
    reader.add_argument("--draws", type=int, default=2000)
    options = reader.parse_args()
    found = {"draws": options.draws, "worlds": [measured(world, options.draws) for world in WORLDS]}
    write_results(
        options.output, {"command": f"python benchmarks/intervals.py --draws {options.draws}", **found}
    )


if __name__ == "__main__":
    main()
