"""What block rows bring to the root of margin scores with three parents, whose oracle has cluster rows only.

    python benchmarks/block_rows.py [NAME ...] [--p .9 .99] [--data-dir DIR]

After the root's steps the linear program over parent sets is solved again for the gradient of the best bound, with
cluster rows and with block rows as well. Their difference is what blocks take from the bound at this point (`at the
point`). Then the multipliers of the blocks become linear terms of the problem, and the root is run anew (`anew`): any
multipliers give a valid bound, so this shows what steps that know the blocks reach. Gaps are in nats. The oracle is
exact for up to 14 variables, so that blocks can bring nothing there.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from common import RESULTS, parser, training_rows, write_results

import milpbn
from milpbn.engine.events import EventLog
from milpbn.engine.parent_sets.climbing import OrderClimber, greedy_order
from milpbn.engine.parent_sets.cutting import BLOCKS, Cutting
from milpbn.engine.parent_sets.relaxation import RestrictedProgram
from milpbn.engine.parent_sets.rows import BLOCK
from milpbn.engine.parent_sets.sets import list_sets
from milpbn.engine.relaxation.oracle import RELAXED
from milpbn.engine.root import Root, root_bound
from milpbn.errors import MilpbnError
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem
from milpbn.problem.scores.spec import Score
from milpbn.solving import preparation
from milpbn.util.budget import Budget

OUTPUT = RESULTS / "decomposable" / "block_rows.json"


def linear_program(problem: Problem, weights: np.ndarray, incumbent: np.ndarray, blocks: int) -> Cutting:
    """Return the linear program over parent sets after its rounds, for some weights."""
    sets = list_sets(problem.candidates, weights, dominated=True)
    climber = OrderClimber(sets.sets, 0)
    climber.start(greedy_order(sets.sets, np.ones(sets.sets.n_sets)))
    cutting = Cutting(
        sets.sets, climber, [], lambda choice: float(sets.sets.costs[choice].sum()), math.inf, Budget(None)
    )
    cutting.known.cutoff = min(cutting.cutoff, sets.best - float(weights[incumbent].sum()))
    cutting.begin()
    cutting.run(lambda: None, lambda: False, blocks=blocks)
    return cutting


def block_terms(cutting: Cutting, weights: np.ndarray, problem: Problem) -> tuple[np.ndarray, float]:
    """Return the terms of the blocks by their multipliers, shape (P,), and the sum of their right-hand sides."""
    sets = list_sets(problem.candidates, weights, dominated=True)
    values = cutting.relaxation.multipliers
    chosen = [r for r, row in enumerate(cutting.relaxation.rows) if row.kind == BLOCK and values[r] > 0]
    program = RestrictedProgram(sets.sets)
    program.add_rows([cutting.relaxation.rows[r] for r in chosen])
    program.multipliers = values[chosen]
    terms = np.empty(len(weights))
    terms[sets.in_eta] = program.price(np.ones(len(weights), bool)).reduced - sets.sets.costs
    return terms, float(program.packed.right @ program.multipliers)


def measured(problem: Problem, best: Structure, root: Root) -> dict[str, Any]:
    """Return the gap of a root, and what block rows take from it."""
    score = root.value(best)
    choice = problem.choice(best)
    assert choice is not None
    weights = root.point.gradient - (root.subproblem.linear - root.model.linear)
    without, with_blocks = (linear_program(problem, weights, choice, blocks) for blocks in (0, BLOCKS))
    terms, right = block_terms(with_blocks, weights, problem)
    again = Root(replace(problem, linear=problem.linear - terms), best)
    again.run(best, EventLog())  # its bounds are those of another problem
    return {
        "gap": root.bound - score,
        "at_the_point": with_blocks.bound - without.bound,
        "anew": root.bound - (again.bound + right),
        "steps": [root.steps, again.steps],
    }


def observed(cells: dict[str, Any]) -> Callable[..., Any]:
    """Return `root_bound`, which also measures what block rows bring, and then ends the search."""

    def run(problem: Problem, best: Structure, events: Any, **options: Any) -> Any:
        begun = time.process_time()
        _, root = root_bound(problem, best, events, **options)
        spent = time.process_time() - begun
        assert root is not None
        exact = root.model.oracle.kind != RELAXED
        structure = root.problem.candidates.structure(root.pool.best()[0][0]) if len(root.pool) else best
        cells.update({"oracle": "exact" if exact else "relaxed", "root_cpu": round(spent, 1)})
        if not exact:
            cells.update(measured(problem, structure, root))
        cells["cpu"] = round(time.process_time() - begun, 1)
        raise MilpbnError("the search ends after its root")

    return run


def main() -> None:
    """Measure the data sets of the command line."""
    options = parser(
        __doc__,
        data=(
            "car",
            "nursery",
            "heart",
            "hepatitis",
            "australian",
            "waveform-21",
            "segment",
            "soybean-large",
        ),
    )
    options.add_argument("--p", type=float, nargs="+", default=[0.9, 0.99])
    given = options.parse_args()
    results = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    for name, p in product(given.data, given.p):
        cells: dict[str, Any] = {}
        preparation.root_bound = observed(cells)  # type: ignore[attr-defined]
        score = Score(p=p, max_parents=3)
        try:
            milpbn.solve(training_rows(name, given.data_dir), score, threads=1, verbose=False)
        except MilpbnError:  # that of `observed`, or a real one
            if "cpu" not in cells:
                raise
        results[f"{name}, p = {p}"] = cells
        print(name, p, json.dumps(cells), flush=True)
        write_results(OUTPUT, results)


if __name__ == "__main__":
    main()
