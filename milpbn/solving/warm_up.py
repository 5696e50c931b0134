"""The kernels that each stage of a search needs; several processes compile them side by side before the stage begins.

The lists hold the kernels that Python calls. Larger kernels that these call stand before them, so that no process waits
for another one. A kernel is compiled once per signature; scores share most signatures, and so most kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numba
import numpy as np

from milpbn.data.dataset import Dataset, Variable
from milpbn.engine.dual import curvature, frank_wolfe, inequalities, line_search, newton, point
from milpbn.engine.dual.inequalities import child_limits, subproblem_of
from milpbn.engine.dual.point import empty_point
from milpbn.engine.relaxation import branching, oracle, orders, reduced_costs
from milpbn.engine.relaxation.branching import Arcs
from milpbn.engine.root import model_of
from milpbn.engine.tree import branching_rule
from milpbn.engine.tuning import TUNING
from milpbn.heuristics import information
from milpbn.problem import changes, duals, products
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.scores.spec import Score
from milpbn.util import stages
from milpbn.util.compiled import Specialization, specialized
from milpbn.util.compiling import Compilation, are_cached


class Needs(NamedTuple):
    """The kernels of each stage of a search.

    Attributes
    ----------
    search : list of Specialization
        Kernels of local search and the trivial bound.
    root : list of Specialization
        Kernels of the root's steps.
    branching : list of Specialization
        Kernels of branch and bound.
    milp : list of Specialization
        Kernels of the coefficients of a MILP.
    """

    search: list[Specialization]
    root: list[Specialization]
    branching: list[Specialization]
    milp: list[Specialization]


class Kernels:
    """The kernels of one search, which other processes compile in the order of the stages.

    Parameters
    ----------
    problem : Problem
        What is maximised.
    bounds, branches : bool
        Whether the project's own bounds are computed, and whether the native branch and bound runs.
    stopping : callable
        Whether to stop; called while kernels are compiled.
    """

    def __init__(self, problem: Problem, bounds: bool, branches: bool, stopping: Callable[[], bool]) -> None:
        nothing: list[Specialization] = []
        needs = Needs(nothing, nothing, nothing, nothing)
        if problem.margins is not None and not numba.config.DISABLE_JIT:
            rows = (
                bool(problem.rules.max_children)
                or problem.candidates.n_variables > TUNING.oracle.most_ordered
            )
            needs = needed(problem.score.name, problem.score.max_parents, rows=rows)
            bounds = bounds and problem.score.kind.sums_samples
            if not bounds:
                needs = needs._replace(root=[])
            needs = needs._replace(milp=[]) if branches else needs._replace(branching=[])
        self._needs, self._stopping = needs, stopping
        self._compilation = Compilation(list(dict.fromkeys(job for stage in needs for job in stage)), _tell)
        #: Whether the first stages have to wait for compilation. Branching may never be reached.
        self.missing = not are_cached([*needs.search, *needs.root])
        if self.missing:
            self._compilation.start()

    def ready(self, stage: str) -> bool:
        """Wait for the kernels of a stage (an attribute of `Needs`); return whether they are compiled."""
        return self._compilation.ready(getattr(self._needs, stage), self._stopping)

    def close(self) -> None:
        """Stop compiling ahead of time."""
        self._compilation.close()


def count(done: int, of: int) -> str:
    """Return the line of progress after `done` of `of` kernels."""
    return f"compiling kernels, once on this machine: {done} of {of}"


def _tell(done: int, of: int) -> None:
    stages.tell(count(done, of))


def warm_up(problem: Problem, *, bounds: bool) -> None:
    """Wait for the kernels of a local search and, if wanted, of the project's own bounds.

    Parameters
    ----------
    problem : Problem
        What will be maximised.
    bounds : bool
        Whether the project's own bounds will be computed, too.
    """
    kernels = Kernels(problem, bounds, False, lambda: False)
    try:
        for stage in ("search", "root"):
            kernels.ready(stage)
    finally:
        kernels.close()


def compile_all(
    told: Callable[[int, int], object] = lambda done, of: None,
    stopping: Callable[[], bool] = lambda: False,
) -> int:
    """Compile the kernels of all searches that are not on disk yet; return the number of all kernels.

    Parameters
    ----------
    told : callable
        Called with the number of kernels compiled so far, and the number to compile.
    stopping : callable
        Whether to stop; called between kernels.
    """
    if numba.config.DISABLE_JIT:
        return 0
    needs = (needed(name, parents, rows=True) for name in ("sm", "cll") for parents in (2, 3))
    jobs = list(dict.fromkeys(job for all_stages in needs for stage in all_stages for job in stage))
    compilation = Compilation(jobs, told)
    try:
        compilation.ready(jobs, stopping)
    finally:
        compilation.close()
    return len(jobs)


def tiny_data() -> Dataset:
    """Return a small table of 60 rows, three features and three classes."""
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 2, (60, 3)), np.arange(60) % 3]).astype(np.int32)
    variables = [Variable(f"x{i}", ("0", "1")) for i in range(3)] + [Variable("c", ("0", "1", "2"))]
    return Dataset("tiny", tuple(variables), codes, np.ones(60))


@cache
def needed(score_name: str, max_parents: int, *, rows: bool) -> Needs:
    """Return the kernels that a search needs.

    Parameters
    ----------
    score_name : str
        A score with margins. All sums of minima share one list of kernels, and so do all sums of likelihoods.
    max_parents : int
        ``max_parents`` of the score.
    rows : bool
        Whether inequalities may enter the bound: child limits, or cluster rows where acyclicity is relaxed.
    """
    data = tiny_data()
    score = Score(name=score_name, max_parents=max_parents)
    if not score.kind.sums_samples:  # the kernels are those of the soft margin
        score = Score(name="sm", max_parents=max_parents)
    problem = build_problem(data, score, for_milp=False)
    margins = problem.margins
    assert margins is not None
    tables, softening = margins.flat, margins.softening
    model = model_of(problem)
    o, part = model.oracle, empty_point(model)
    inequality_rows = child_limits(problem.candidates, problem.rules)
    forced = np.zeros((o.n, o.n), dtype=np.int64)
    node = subproblem_of(
        model, inequality_rows, np.zeros(0), np.ones(len(model.linear), dtype=bool), forced, 0
    )
    # Arguments whose types are those of the searches' arguments; the values do not matter.
    number, numbers, some = 0.0, np.zeros(1), np.zeros(1, dtype=np.int64)
    few, entry = some.astype(np.float32), some.astype(np.int32)
    square, flags = np.zeros((1, 1)), np.zeros(1, dtype=bool)
    narrow = square.astype(np.float32)
    arcs = Arcs(some, some, numbers, some)
    vertices, weights = part.vertices, part.duals
    question = o, numbers, flags, forced, 0, some

    steps_at_a_point = [
        specialized(point._entries_of, numbers, vertices, numbers, 0),
        specialized(point._columns_of, some, some, numbers),
        specialized(point._clear, square),
        specialized(products._add_range, tables, some, numbers, square, 0, 0),
    ]
    heaviest = [
        specialized(branching.maximum_arborescence, arcs, some, numbers),
        specialized(orders._best_sets_of, some, some, numbers, flags, 0, 0, numbers, entry),
        specialized(
            orders._read_off,
            some,
            numbers,
            flags,
            0,
            some.astype(np.int32)[None],
            numbers,
            some.astype(np.int8),
            some,
        ),
        specialized(oracle.arcs_of, o, numbers, flags, forced, flags),
        specialized(oracle.class_bounds, o, numbers, flags, numbers, number, numbers),
        specialized(orders.best_order, some, some, numbers, flags, some),
        specialized(oracle.heaviest_branching, o, numbers, flags, forced, flags, some, numbers),
        specialized(oracle.heaviest_structure, *question),
    ]
    weighing = [
        specialized(duals._gradient_range, tables, weights, flags, numbers, 0, 0),
        specialized(duals.weigh, tables, softening, square, number, weights),
    ]
    values = square, some, numbers, some
    changed = (
        [
            specialized(changes._to_odds, square, False),
            specialized(changes._likelihoods, tables, square, numbers, some, numbers, some, numbers, 0, 0),
        ]
        if softening.smooth
        else [specialized(changes._margins, tables, number, *values, False, numbers, 0, 0)]
    )
    search = [
        *steps_at_a_point[-1:],
        *weighing,
        specialized(products._best_margins, tables, some, flags, numbers, 0, 0),
        *changed,
        specialized(changes._within_reach, tables, square, number),
        specialized(products.total_score, tables, softening, square, False),
        specialized(changes.table_spreads, tables),
        specialized(
            information._add_information, data.codes, some, some, numbers, numbers, number, 0, square
        ),
    ]
    root = [
        *heaviest,
        *steps_at_a_point,
        specialized(point.rounding, model, weights, number, number, number),
        specialized(
            newton._maximise_model,
            *(o, forced, 0, numbers, square, some, some, flags, vertices, numbers, numbers, 0),
        ),
        specialized(curvature._slopes, tables, weights, some, 0, 0, 0, 0, few, few, narrow),
        specialized(newton._entries_in_use, o, some, vertices, 0, some, flags, some),
        specialized(line_search.step_length, tables, softening, weights, square, square, *[number] * 4),
        specialized(frank_wolfe._difference, numbers, some, some),
        specialized(frank_wolfe._shift, vertices, numbers, 0, 0, 0, some, number),
        specialized(newton._move_shares, vertices, numbers, numbers, number, 0),
        specialized(frank_wolfe._compare, numbers, vertices, numbers, 0, some, number),
        specialized(curvature._factors, numbers, weights, few, few),
        specialized(curvature.add_scaled, square, number, narrow),
        specialized(curvature.add_scaled, square, number, square),
        specialized(point.copy_vertices, vertices, numbers, 0, vertices, numbers),
        specialized(newton._count, flags),
        specialized(newton._slope, numbers, some, numbers),
        specialized(frank_wolfe._next_temperature, *[number] * 6, False),
        specialized(frank_wolfe.may_be_left, part.state, number, number, number),
        specialized(curvature._end_of_block, some, 0, 0),
        specialized(point.copy, numbers, numbers),
        specialized(point.copy, some, some),
        specialized(oracle.largest_of, numbers, flags),
        specialized(oracle.block_parents, o, 0, flags),
        specialized(branching.rounding_slack, 0, number),
    ]
    if o.kind == oracle.BRANCHINGS:
        root.append(
            specialized(
                reduced_costs._bound_branchings, *(o, numbers, flags, forced, 0, number, number, numbers)
            )
        )
    if o.kind == oracle.ORDERS:
        root.append(specialized(orders.heaviest_orders, some, some, numbers, flags, numbers))
    if rows:
        root += [
            specialized(
                inequalities.lower, o, inequality_rows, numbers, flags, forced, 0, numbers, some, number, some
            ),
            specialized(inequalities.add_terms, o, inequality_rows, numbers, numbers),
            specialized(inequalities.add_row, o, inequality_rows, 0, number, numbers),
            specialized(inequalities.side, inequality_rows, 0),
        ]
    tree = [
        specialized(curvature.curvature, tables, weights, some, number, False),
        specialized(newton.newton_step, model, node, part, numbers, some, number, False),
        specialized(point.refresh, model, node, part, False),
        specialized(point.evaluate_compiled, model, node, part, False),
        specialized(point._mark_near, entry, square, number, flags),
        specialized(branching_rule._shares, o, vertices, numbers, square, numbers),
        specialized(
            frank_wolfe.take_compiled_steps, model, node, part, number, number, number, 0, True, False
        ),
    ]
    alpha = [specialized(products._fill_coefficients, tables, square[None], 0, 0)]
    return Needs(search, root, tree, alpha)
