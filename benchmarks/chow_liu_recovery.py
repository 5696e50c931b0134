"""Does training on the likelihood find the Chow-Liu TAN structure again, as in R20, section 4.6: counted over seeds.

    python benchmarks/chow_liu_recovery.py --data-dir DIR [--data letter] [--seeds 20] [--epochs 200]

Every feature may choose any feature before it in an order that fits the Chow-Liu structure, or none. Writes
results/learners/chow-liu-recovery.json: for every seed, how many features have another parent than in the Chow-Liu
structure, and what it costs in nats per sample of training likelihood. Features with a single state (letter has one)
are not counted: all parents are equally good for them.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from images import RESULTS, load

from milpbn.atomic import atomic_write_text
from milpbn.learners.base import Control
from milpbn.learners.differentiable import Training, make_loss, train
from milpbn.learners.differentiable.orderings import choices_around
from milpbn.learners.differentiable.presets import BATCH_SIZES
from milpbn.learners.tan import conditional_mutual_information, tan_structure


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of *-discretised.npz")
    parser.add_argument("--data", choices=BATCH_SIZES, default="letter")
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--learning-rate", type=float, default=1e-1)
    parser.add_argument("--output", type=Path, default=RESULTS / "chow-liu-recovery.json")
    options = parser.parse_args()
    data, _ = load(options.data_dir, options.data, 1)
    tree = tan_structure(data)
    information = conditional_mutual_information(data)
    training = Training(
        loss=make_loss("nll"),
        epochs=options.epochs,
        batch_size=BATCH_SIZES[options.data],
        learning_rate=options.learning_rate,
    )
    varying = [i for i in range(data.n_features) if data.n_states[i] > 1]
    runs = []
    for seed in range(options.seeds):
        begun = time.perf_counter()
        found = train(data, choices_around(tree), training, Control(random_state=seed)).parents
        runs.append(
            {
                "seed": seed,
                "other_parents": sum(found[i] != tree.parents[i] for i in varying),
                "lost_nats": sum(
                    sum(information[i, j] * sign for j in parents[:-1])
                    for sign, structure in ((1, tree.parents), (-1, found))
                    for i, parents in enumerate(structure[:-1])
                ),
                "seconds": time.perf_counter() - begun,
            }
        )
        print(json.dumps(runs[-1]), flush=True)
    command = (
        f"python benchmarks/chow_liu_recovery.py --data-dir DIR --data {options.data} --seeds {options.seeds} "
        f"--epochs {options.epochs} --learning-rate {options.learning_rate:g}"
    )
    recovered = sum(run["other_parents"] == 0 for run in runs)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    document = {"command": command, "recovered": recovered, "of": len(runs), "runs": runs}
    atomic_write_text(options.output, json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
