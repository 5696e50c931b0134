"""Which of the settings with equal held-out accuracy is taken: smallest p, largest p, or least log-loss.

    python benchmarks/ties.py [glass2 heart] --data-dir DIR [--seeds 1 2]

As in results/p12, p and max_parents of SM and SBM are chosen by accuracy on held-out rows, but inside the training rows
of the first part of each data set: these are split into 5 folds, or into a validation set of 20 % above 1,000 rows, and
each rule chooses on one side and is measured on the other. No test row is read. Every trial has a second; where the
rules differ, the final searches have 10 s each. The results are kept after every part, and a run that is killed goes
on where it stopped. Printed in the end, for each other rule: on how many parts it takes a setting other than that with
the smallest p, and the mean differences there.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, parse, parser, read_results, write_results

from milpbn.claims.selection import Selection, Trial
from milpbn.data import read_table
from milpbn.experiments.figures import Figures
from milpbn.experiments.protocol import Part, nested_parts
from milpbn.network.classifier import Classifier
from milpbn.problem.scores.spec import P_GRID, Score
from milpbn.solving.api import maximise
from milpbn.solving.grid import Grid
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.selection import choose

DATA = [
    "iris", "corral", "glass2", "hepatitis", "heart", "cleve", "australian", "diabetes", "car", "mofn-3-7-10",
    "waveform-21", "segment",
]  # fmt: skip
TRIAL_SECONDS, FINAL_SECONDS = 1.0, 10.0


def setting(trial: Trial) -> dict[str, Any]:
    """Return the values of a trial."""
    return {"p": trial.p, "max_parents": trial.max_parents}


def by_rule(found: Selection) -> dict[str, Trial]:
    """Return what each rule takes of the most accurate settings."""
    chosen = found.chosen
    assert chosen is not None
    tied = [trial for trial in found.trials if trial.value("accuracy") == chosen.value("accuracy")]
    return {
        "smallest-p": chosen,
        "largest-p": min(tied, key=lambda t: (t.max_parents, -t.p)),
        "log-loss": min(tied, key=lambda t: (round(t.log_loss or 0.0, 12), t.max_parents, t.p)),
    }


def measured(part: Part, name: str, options: Options, trial: Trial) -> dict[str, Any]:
    """Search with the values of a trial on the training rows, and return figures on the others."""
    result = maximise(Question(part.train, Score(name=name, class_parents=True, **setting(trial))), options)
    assert isinstance(result.classifier, Classifier)
    found = Figures.of_logs(result.classifier.predict_log_joint(part.test), part.test.y)
    return {
        **setting(trial),
        "accuracy": found.accuracy,
        "log_loss": found.log_loss,
        "proved": result.optimal,
    }


def compared(part: Part, name: str, seed: int) -> dict[str, Any]:
    """Return what the rules choose on a part, and how good it is where they differ."""
    score = Score(name=name, class_parents=True)
    options = Options(threads=1, random_state=seed, verbose=False)
    rules = by_rule(choose(part.training, score, options, Grid(P_GRID, (1, 2)), trial_seconds=TRIAL_SECONDS))
    settings = {rule: setting(trial) for rule, trial in rules.items()}
    if all(one == settings["smallest-p"] for one in settings.values()):
        return {"same": settings["smallest-p"]}
    final = replace(options, time_limit=FINAL_SECONDS)
    found: dict[str, Any] = {}
    for rule, trial in rules.items():
        twin = next((other for other in found if settings[other] == settings[rule]), None)
        found[rule] = found[twin] if twin else measured(part, name, final, trial)
    return found


def main() -> None:
    """Compare the rules on all parts that are not in the file yet, and print the means."""
    made = parser(__doc__, data=DATA, output=RESULTS / "ties.json")
    made.add_argument("--seeds", type=int, nargs="+", default=[1, 2], help="seeds of the splits")
    options = parse(made)
    path: Path = options.output
    kept = read_results(path)
    for seed in options.seeds:
        for data in options.data:
            table = read_table(data, data_dir=options.data_dir)
            for part in nested_parts(table, seed):
                for name in ("sm", "sbm") if table.dataset("all").n_classes > 2 else ("sm",):
                    key = f"{data} {name} seed {seed} {part.name}"
                    if key not in kept:
                        kept[key] = compared(part, name, seed)
                        write_results(path, kept)
                        print(key, kept[key], flush=True)
    print(summary(kept))


def summary(kept: dict[str, Any]) -> str:
    """Return for each rule on how many parts it differs from the smallest p, and the mean differences there."""
    lines = []
    for rule in ("largest-p", "log-loss"):
        pairs = [(one[rule], one["smallest-p"]) for one in kept.values() if "same" not in one]
        pairs = [(other, usual) for other, usual in pairs if other != usual]
        lines.append(f"{rule}: another setting on {len(pairs)} of {len(kept)} parts")
        for what, scale, unit in (("accuracy", 100, "points"), ("log_loss", 1, "nats")):
            gains = scale * np.array([other[what] - usual[what] for other, usual in pairs])
            error = gains.std(ddof=1) / np.sqrt(len(gains))
            lines.append(
                f"    {what}: {gains.mean():+.4f} {unit}, standard error {error:.4f}; higher on {(gains > 0).sum()}, "
                f"lower on {(gains < 0).sum()}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
