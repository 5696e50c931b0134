"""Missing features under fitted parameters: tables nearest to the generative ones beside tables without that choice.

    python benchmarks/missing_parameters.py [car heart] --data-dir DIR

For each set the structure is TAN (Friedman, Geiger & Goldszmidt 1997), so that no search and no time limit decides. Its
hybrid parameters are fitted to the training rows once, with kappa and strength by folds, and become tables in two
ways: as they are (`milpbn.network.parameters.normalised`), and after `milpbn.network.parameters.nearest`. Both have the
same posteriors on complete rows. Generative tables are beside them. Features of the test rows are removed as in
missing.py; sets without test rows hold out the first of its three folds. Writes results/missing/parameters.json and
parameters.md.
"""

from __future__ import annotations

import warnings
from typing import Any
from unittest.mock import patch

import numpy as np
from common import RESULTS, command, parse, parser, write_results
from missing import LEAST, REPEATS, SHARES, parts, removed

import milpbn
from milpbn.data import UNKNOWN, Dataset
from milpbn.learners.base import Control
from milpbn.learners.generative.tan import Tan
from milpbn.network.parameters import refit
from milpbn.util.atomic import atomic_write_text

SETS = ("australian", "car", "cleve", "diabetes", "heart", "shuttle-small")
TITLES = {"generative": "generative", "plain": "hybrid, any tables", "nearest": "hybrid, nearest tables"}


def classifiers(train: Dataset) -> tuple[dict[str, milpbn.Classifier], str]:
    """Return the classifiers, and what the folds chose."""
    structure = Tan().fit(train, Control()).structure
    assert structure is not None
    generative = milpbn.Classifier.fit(train, structure)
    nearest, record = refit.refit_classifier(generative, train, "hybrid")
    plain = nearest
    if record.fitted:
        values = f"hybrid:{record.kappa:g}" + ("" if record.strength is None else f":{record.strength:g}")
        with patch.object(refit, "nearest", lambda structure, weights, generative, **others: weights):
            plain, _ = refit.refit_classifier(generative, train, values)
    else:
        values = "generative"
    return {"generative": generative, "plain": plain, "nearest": nearest}, values


def measure(train: Dataset, test: Dataset) -> dict[str, Any]:
    """Return the mean log-loss of the test rows by classifier and share."""
    test = test.take(np.flatnonzero(test.y != UNKNOWN))
    found, values = classifiers(train)
    losses: dict[str, list[float]] = {name: [] for name in found}
    for share in SHARES:
        repeats = REPEATS if share else 1
        sums = dict.fromkeys(found, 0.0)
        for repeat in range(repeats):
            codes = np.column_stack(
                [removed(test.X, share, repeat), np.full(test.n_samples, UNKNOWN, np.int32)]
            )
            rows = Dataset("test", train.variables, codes, np.ones(test.n_samples))
            for name, classifier in found.items():
                own = classifier.predict_proba(rows)[np.arange(test.n_samples), test.y]
                sums[name] -= float(np.log(np.maximum(own, LEAST)).mean()) / repeats
        for name, total in sums.items():
            losses[name].append(total)
    share_apart = np.abs(found["plain"].predict_proba(test) - found["nearest"].predict_proba(test)).max()
    return {"parameters": values, "apart_on_complete_rows": float(share_apart), "log_loss": losses}


def write_page(sets: dict[str, Any], line: str) -> None:
    """Write parameters.md from the figures."""
    heading = (
        "| set | parameters | tables | " + " | ".join(f"{100 * share:.0f} %" for share in SHARES) + " |\n"
    )
    lines = [heading, "|---" * (len(SHARES) + 3) + "|\n"]
    for name, found in sets.items():
        for kind, losses in found["log_loss"].items():
            shown = " | ".join(f"{loss:.3f}" for loss in losses)
            lines.append(f"| {name} | {found['parameters']} | {TITLES[kind]} | {shown} |\n")
    apart = max(found["apart_on_complete_rows"] for found in sets.values())
    atomic_write_text(
        RESULTS / "missing" / "parameters.md",
        f"""# Missing features under fitted parameters

Written by `{line}`. Log-loss in nats of test rows over the share of their features that was removed at
random. All three classifiers of a set have the same TAN structure; the last two have the same posteriors on complete
rows (they differ by at most {apart:.0e}). "Nearest" tables are those whose joint distribution is nearest to the
generative one (`milpbn/network/parameters/nearest.py`); "any" are those without this choice. Where the folds chose
generative parameters, all three are the same.

{"".join(lines)}""",
    )


def main() -> None:
    options = parse(parser(__doc__, data=SETS))
    warnings.simplefilter("ignore", milpbn.DataWarning)
    sets = {}
    for name in options.data:
        _, train, test = next(parts(milpbn.read_table(name, data_dir=options.data_dir)))
        sets[name] = measure(train, test)
        print(name, sets[name], flush=True)
    line = command(options)
    write_results(RESULTS / "missing" / "parameters.json", {"command": line, "sets": sets})
    write_page(sets, line)


if __name__ == "__main__":
    main()
