"""The standard error of a score beside what another sample of the same size changes.

    python benchmarks/standard_error.py --data-dir DIR [NAME ...]

For the best networks of the library (SM, p = .99): the standard error, and the standard deviation of the score over
bootstrap samples. Where the rows suffice, also that over 20 disjoint parts of the rows beside the mean of their own
standard errors. The structure stays, and the parameters are estimated from each sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import (
    RESULTS,
    command,
    errors_as_sentences,
    parse,
    parser,
    read_results,
    training_rows,
    write_results,
)

from milpbn.data import Dataset
from milpbn.network.structure import Structure
from milpbn.problem.rescore import rescore, standard_error
from milpbn.problem.scores.spec import Score
from milpbn.solving.library import load_library

DRAWS, PARTS, LEAST = 200, 20, 200


def measured(data: Dataset, structure: Structure, score: Score) -> dict[str, Any]:
    """Return the standard error and the standard deviations that it is compared with, in nats."""
    rng, n = np.random.default_rng(0), data.n_samples

    def error_of(part: Dataset) -> float:
        error = standard_error(part, structure, score)
        assert error is not None
        return error

    def one(rows: Any) -> tuple[float, float]:
        part = data.take(rows)
        return rescore(part, structure, score), error_of(part)

    drawn = [one(rng.integers(0, n, n))[0] for _ in range(DRAWS)]
    found = {"samples": n, "standard_error": error_of(data), "bootstrap": float(np.std(drawn, ddof=1))}
    if n >= PARTS * LEAST:
        size = n // PARTS
        parts = [one(rows) for rows in np.split(rng.permutation(n)[: size * PARTS], PARTS)]
        scores, errors = np.array(parts).T
        found |= {"part": size, "of_parts": float(errors.mean()), "over_parts": float(np.std(scores, ddof=1))}
    return {key: float(f"{value:.4g}") for key, value in found.items()}


def main() -> None:
    """Measure the named sets, by default all of the library, and write the file."""
    options = parse(parser(__doc__, output=RESULTS / "standard_error.json"))
    entries = [entry for entry in load_library() if entry.score.name == "sm" and entry.p == 0.99]
    results = {"command": command(options), **read_results(options.output)}
    with errors_as_sentences():
        for entry in entries:
            if options.data and entry.source not in options.data:
                continue
            data = training_rows(
                entry.source, None if entry.source.startswith("instance:") else options.data_dir
            )
            structure = Structure.from_mapping(data.names, entry.structure.to_mapping())
            results[entry.source] = measured(data, structure, entry.score)
            print(entry.source, results[entry.source], flush=True)
            write_results(options.output, results)


if __name__ == "__main__":
    main()
