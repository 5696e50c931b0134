"""How often training on the likelihood finds the Chow-Liu TAN structure (Roth & Pernkopf 2020, section 4.6).

    python benchmarks/chow_liu_recovery.py [letter] --data-dir DIR [--seeds 20] [--epochs 200]

Every feature may choose any feature before it in an order that fits the Chow-Liu structure, or no feature. Writes
results/learners/chow-liu-recovery.json: for every seed, how many features have another parent than in the Chow-Liu
structure, and how much training log-likelihood this loses, in nats per sample. Features with a single state (letter
has one) are not counted, because all parents are equally good for them.
"""

from __future__ import annotations

import json
import time

from common import RESULTS, command, parse, parser, write_results
from images import DISCRETISED, load

from milpbn.heuristics.information import conditional_mutual_information
from milpbn.heuristics.trees import tan_structure
from milpbn.learners.base import Control
from milpbn.learners.differentiable import Training, make_loss, train
from milpbn.learners.differentiable.orderings import choices_around
from milpbn.learners.differentiable.presets import BATCH_SIZES


def main() -> None:
    made = parser(__doc__, data=("letter",), output=RESULTS / "learners" / "chow-liu-recovery.json")
    made.add_argument("--seeds", type=int, default=20, help="number of seeds, from 0")
    made.add_argument("--epochs", type=int, default=200)
    made.add_argument("--learning-rate", type=float, default=1e-1)
    options = parse(made, DISCRETISED)
    [name] = options.data
    data, _ = load(options.data_dir, name, 1)
    tree = tan_structure(data)
    information = conditional_mutual_information(data)
    training = Training(
        loss=make_loss("nll"),
        epochs=options.epochs,
        batch_size=BATCH_SIZES[name],
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
    recovered = sum(run["other_parents"] == 0 for run in runs)
    document = {"command": command(options, name), "recovered": recovered, "of": len(runs), "runs": runs}
    write_results(options.output, document)


if __name__ == "__main__":
    main()
