"""Time of an epoch of differentiable TAN against the memory traffic that it cannot do without.

    python benchmarks/differentiable_tan.py --data-dir DIR [--data letter satimage usps] [--repeats 7]

The traffic of a step is counted from the model, float32 throughout: the log-probabilities of the chosen families are
gathered for the loss, those of all families of variables with a choice for the gradient of Phi; the loss's derivatives
are scattered (read, write) into the chosen families' gradients; Adam reads and writes parameters and both moments of
every table, and the gradients of the chosen ones. It is divided by the bandwidth of copying 256 MB (bytes read and
written). gamma is so large that no sample is spared, and the epochs timed come after one in which all tables were
chosen, so that all move but those without a gradient (a feature of letter is constant): later epochs are faster. Times
are processor times of the one thread, the least of the repeats. Writes results/learners/differentiable-tan-speed.json.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from images import DISCRETISED, RESULTS, load
from numpy.typing import NDArray

from milpbn.atomic import atomic_write_text
from milpbn.data.dataset import Dataset
from milpbn.learners.differentiable.adam import initial_state
from milpbn.learners.differentiable.gradients import make_work
from milpbn.learners.differentiable.layout import Layout, build_layout, uniform_tables
from milpbn.learners.differentiable.losses import make_loss
from milpbn.learners.differentiable.orderings import candidate_choices
from milpbn.learners.differentiable.presets import BATCH_SIZES
from milpbn.learners.differentiable.training import train_epoch

#: Bytes of a parameter.
WIDTH = 4


def least(action: Callable[[], object], repeats: int) -> float:
    """Return the least processor time of an action, seconds."""
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        action()
        times.append(time.process_time() - begun)
    return min(times)


def bandwidth(size: int, repeats: int) -> float:
    """Return the bytes per second, read and written, of copying an array of so many bytes."""
    source = np.ones(size // WIDTH, dtype=np.float32)
    target = np.zeros_like(source)
    rounds = max(1, 2**28 // size)

    def copy() -> None:
        for _ in range(rounds):
            np.copyto(target, source)

    return 2 * size * rounds / least(copy, repeats)


def traffic(data: Dataset, layout: Layout, moving: NDArray[np.bool_], batch_size: int) -> dict[str, float]:
    """Return the bytes of an epoch in which all families of a variable are chosen equally often."""
    counts = np.diff(layout.first)
    several = np.repeat(counts > 1, counts)
    share = np.repeat(1.0 / counts, counts)
    sizes = np.diff(layout.start) * moving
    chosen = float(share @ layout.entries)
    steps = math.ceil(data.n_samples / batch_size)
    return {
        "gathers": WIDTH * data.n_samples * (chosen + float(layout.entries[several].sum())),
        "scatters": WIDTH * data.n_samples * 2 * chosen,
        "adam": WIDTH * steps * (6 * float(sizes.sum()) + 2 * float(share @ sizes)),
    }


def measure(data: Dataset, structure: str, batch_size: int, repeats: int) -> dict[str, float]:
    """Return the seconds and the bytes of an epoch."""
    layout = build_layout(data, candidate_choices(data, structure, 8))
    loss = make_loss("hyb", 30.0, 1e4, 10.0)
    rng = np.random.default_rng(0)
    steps = math.ceil(data.n_samples / batch_size)
    state = initial_state(layout, uniform_tables(layout, rng), "float32")
    work = make_work(layout, batch_size, data.n_classes, "float32")

    def epoch() -> None:
        noise, order = rng.gumbel(size=(steps, layout.n_families)), rng.permutation(data.n_samples)
        begun = time.process_time()
        train_epoch(
            layout, state, loss, data.codes, data.weights, order, batch_size, noise, 10.0, 3e-3, 0.0, work
        )
        spent.append(time.process_time() - begun)

    spent: list[float] = []
    for _ in range(1 + repeats):
        epoch()
    parts = traffic(data, layout, state.idle < 0, batch_size)
    return {"epoch_seconds": min(spent[1:]), "parameters": layout.size, **parts, "bytes": sum(parts.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of *-discretised.npz")
    parser.add_argument("--data", nargs="+", choices=DISCRETISED, default=DISCRETISED)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--output", type=Path, default=RESULTS / "differentiable-tan-speed.json")
    options = parser.parse_args()
    results, rates = {}, []
    for name in options.data:
        data, _ = load(options.data_dir, name, 1)
        for structure in ("chow-liu", "subset"):
            rates.append(bandwidth(2**28, options.repeats))
            results[f"{name} {structure}"] = measure(data, structure, BATCH_SIZES[name], options.repeats)
    for key, found in results.items():
        found["ratio"] = found["epoch_seconds"] * max(rates) / found["bytes"]
        # A working set of parameters and moments may fit a cache, which is faster than memory.
        found["bandwidth_of_working_set"] = bandwidth(3 * WIDTH * int(found["parameters"]), options.repeats)
        print(key, json.dumps(found), flush=True)
    command = (
        f"python benchmarks/differentiable_tan.py --data-dir DIR --data {' '.join(options.data)} "
        f"--repeats {options.repeats}"
    )
    document = {"command": command, "bandwidth": max(rates), "results": results}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    atomic_write_text(options.output, json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
