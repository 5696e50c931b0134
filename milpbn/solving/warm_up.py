"""The kernels that each stage of a search needs; several processes compile them side by side before the stage begins.

The lists hold the kernels that Python calls. Larger kernels that these call stand before them, so that no process waits
for another one. A kernel is compiled once per signature; scores share most signatures, and so most kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import cache
from typing import Any

import numba
import numpy as np

from milpbn.data.dataset import Dataset, Variable
from milpbn.engine.dual import curvature, frank_wolfe, inequalities, newton, pairs, point
from milpbn.engine.dual.inequalities import child_limits, subproblem_of
from milpbn.engine.dual.point import empty_point
from milpbn.engine.parent_sets import ascent, blocks, climbing, clusters, order_relation, subsets
from milpbn.engine.parent_sets import rows as parent_set_rows
from milpbn.engine.parent_sets.clusters import Support
from milpbn.engine.parent_sets.sets import generator, linked_sets, list_members, list_sets, undominated
from milpbn.engine.relaxation import branching, oracle, orders, reduced_costs
from milpbn.engine.relaxation.branching import Arcs
from milpbn.engine.root import model_of
from milpbn.engine.tree import branching_rule
from milpbn.engine.tuning import TUNING
from milpbn.heuristics import information, rounds
from milpbn.problem import changes, duals, products
from milpbn.problem.candidates import admitted_sets, build_candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.scores.spec import Score
from milpbn.problem.undominated import Levels
from milpbn.util import stages
from milpbn.util.budget import Budget
from milpbn.util.compiled import Specialization, specialized
from milpbn.util.compiling import Compilation, are_cached

#: The kernels of each stage: of local search and the trivial bound (``search``), of the root's steps (``root``), of
#: branch and bound (``branching``), and of the coefficients of a MILP (``milp``).
Needs = dict[str, list[Specialization]]
#: The `id` of each list of kernels that are all loaded in this process; to ask kernel by kernel would take 0.7 ms in
#: every search. No id is used again, because the caches of `needed` and `for_parent_sets` keep the lists alive.
_LOADED: set[int] = set()


class Kernels:
    """The kernels of one search, which other processes compile in the order of the stages.

    For scores with margins, `bounds` and `branches` say whether the project's own bounds are computed, and whether its
    own tree search runs.
    """

    def __init__(self, problem: Problem, bounds: bool, branches: bool, stopping: Callable[[], bool]) -> None:
        needs: Needs = {}
        if problem.margins is not None and not numba.config.DISABLE_JIT:
            rows = (
                bool(problem.rules.max_children)
                or problem.candidates.n_variables > TUNING.oracle.most_ordered
            )
            unused = {"milp" if branches else "branching"}
            if not (bounds and problem.score.kind.sums_samples):
                unused.add("root")
            known = needed(problem.score.name, problem.score.max_parents, rows=rows)
            needs = {stage: jobs for stage, jobs in known.items() if stage not in unused}
        elif problem.curve is None and not numba.config.DISABLE_JIT:
            # MILP solvers get rows that these kernels find.
            needs = {"branching": for_parent_sets()}
        self._needs, self._stopping = needs, stopping
        absent = {stage: [] if id(jobs) in _LOADED else jobs for stage, jobs in needs.items()}
        self._compilation = Compilation(
            list(dict.fromkeys(job for jobs in absent.values() for job in jobs)), _tell
        )
        #: Whether the first stages have to wait for compilation. Branching may never be reached.
        self.missing = not are_cached([*absent.get("search", []), *absent.get("root", [])])
        if self.missing:
            self._compilation.start()

    def ready(self, stage: str) -> bool:
        """Wait for the kernels of a stage; return whether they are compiled."""
        jobs = self._needs.get(stage)
        if jobs is None or id(jobs) in _LOADED:
            return True
        if loaded := self._compilation.ready(jobs, self._stopping):
            _LOADED.add(id(jobs))
        return loaded

    def close(self) -> None:
        """Stop compiling ahead of time."""
        self._compilation.close()


def count(done: int, of: int) -> str:
    """Return the line of progress after `done` of `of` kernels."""
    return f"compiling kernels, once on this machine: {done} of {of}"


def _tell(done: int, of: int) -> None:
    stages.tell(count(done, of))


def warm_up(problem: Problem, *, bounds: bool) -> None:
    """Wait for the kernels of a local search and, if wanted, of the project's own bounds."""
    with closing(Kernels(problem, bounds, False, lambda: False)) as kernels:
        for stage in ("search", "root"):
            kernels.ready(stage)


def compile_all(
    told: Callable[[int, int], object] = lambda done, of: None, stopping: Callable[[], bool] = lambda: False
) -> int:
    """Compile the kernels of all searches that are not on disk yet; return the number of all kernels.

    `told` is called with the number of kernels compiled so far, and the number to compile.
    """
    if numba.config.DISABLE_JIT:
        return 0
    needs = (needed(name, parents, rows=True) for name in ("sm", "cll") for parents in (2, 3))
    jobs = list(dict.fromkeys(job for stages_of in needs for stage in stages_of.values() for job in stage))
    jobs += for_parent_sets()
    with closing(Compilation(jobs, told)) as compilation:
        compilation.ready(jobs, stopping)
    return len(jobs)


def of_default_search() -> list[Specialization]:
    """Return the kernels that an installation compiles: those of sums of minima with two parents."""
    needs = needed("sm", 2, rows=False)
    return list(dict.fromkeys(job for stage in ("search", "root", "branching") for job in needs[stage]))


def tiny_data(n_classes: int = 3) -> Dataset:
    """Return a small table of 60 rows and three features."""
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 2, (60, 3)), np.arange(60) % n_classes]).astype(np.int32)
    classes = Variable("c", tuple(map(str, range(n_classes))))
    variables = [Variable(f"x{i}", ("0", "1")) for i in range(3)] + [classes]
    return Dataset("tiny", tuple(variables), codes, np.ones(60))


#: Kernels of each stage, each with the examples of its arguments (`_examples`), whose types are those of a search.
SEARCH = [
    (products._add_range, "tables some numbers square 0 0"),
    (duals._gradient_range, "tables weights flags numbers 0 0"),
    (duals.weigh, "tables softening square number weights"),
    (products._best_margins, "tables some flags numbers 0 0"),
    (changes.within_reach, "tables square some numbers number"),
    (products.total_score, "tables softening square False"),
    (changes.table_spreads, "tables"),
    (information._add_information, "codes some some numbers numbers number 0 square"),
]
#: Those of scores with a smooth minimum, and of the others.
SMOOTH = [(changes._to_odds, "square False"), (changes._likelihoods, "tables near numbers some numbers")]
HARD = [
    (changes.add_up_margins, "tables near number False some numbers"),
    (rounds.improve, "tables numbers softening numbers some some some some numbers some some square some"),
]
ROOT = [
    (branching.maximum_arborescence, "arcs some numbers"),
    (oracle.arcs_of, "oracle numbers flags forced flags"),
    (oracle.class_bounds, "oracle numbers flags numbers number numbers"),
    (orders.best_order, "some some numbers flags some"),
    (oracle.heaviest_branching, "oracle numbers flags forced flags some numbers"),
    (oracle.heaviest_structure, "oracle numbers flags forced 0 some"),
    (point._entries_of, "numbers vertices numbers 0"),
    (point._columns_of, "some some numbers"),
    (point._clear, "square"),
    (products._add_range, "tables some numbers square 0 0"),
    (point.rounding, "model weights number number number"),
    (newton._maximise_model, "oracle forced 0 numbers square some some flags vertices numbers numbers 0"),
    (curvature._slopes, "tables weights some 0 0 0 0 float32s float32s float32_rows"),
    (newton._entries_in_use, "oracle some vertices 0 some flags some"),
    (newton.step_length, "tables pairs softening weights square square number number number number"),
    (frank_wolfe._difference, "numbers some some"),
    (frank_wolfe._shift, "vertices numbers 0 0 0 some number"),
    (newton._move_shares, "vertices numbers numbers number 0"),
    (frank_wolfe._compare, "numbers vertices numbers 0 some number"),
    (curvature._factors, "numbers weights float32s float32s"),
    (curvature.add_scaled, "square number float32_rows"),
    (curvature.add_scaled, "square number square"),
    (point.copy_vertices, "vertices numbers 0 vertices numbers"),
    (newton._count, "flags"),
    (newton._slope, "numbers some numbers"),
    (frank_wolfe._next_temperature, "number number number number number number False"),
    (frank_wolfe.may_be_left, "state goal"),
    (curvature._end_of_block, "some 0 0"),
    (point.copy, "numbers numbers"),
    (point.copy, "some some"),
    (oracle.largest_of, "numbers flags"),
    (oracle.block_parents, "oracle 0 flags"),
    (branching.rounding_slack, "0 number"),
]
#: Those of each kind of oracle, and of inequalities.
OF_ORACLE = {
    oracle.BRANCHINGS: [
        (reduced_costs._bound_branchings, "oracle numbers flags forced 0 number number numbers")
    ],
    oracle.ORDERS: [(orders.heaviest_orders, "some some numbers flags numbers")],
}
ROWS = [
    (inequalities.lower, "oracle rows numbers flags forced 0 numbers some number some"),
    (inequalities.add_terms, "oracle rows numbers numbers"),
    (inequalities.add_row, "oracle rows 0 number numbers"),
    (inequalities.side, "rows 0"),
]
TREE = [
    (curvature.curvature, "tables weights some number False"),
    (newton.newton_step, "model node point numbers some number False"),
    (point.refresh, "model node point False"),
    (point.evaluate_compiled, "model node point False"),
    (pairs.mark_near, "tables softening square number marks"),
    (pairs.fill, "tables some int32_rows words words float32_rows"),
    (branching_rule._shares, "oracle vertices numbers square numbers"),
    (frank_wolfe.take_compiled_steps, "model node point goal 0 True False"),
]
COEFFICIENTS = [(products._fill_coefficients, "tables cube 0 0")]

#: Those of branch and cut over parent sets.
PARENT_SETS = [
    (undominated, "some words"),
    (list_members, "words some"),
    (climbing.cost_of_order, "linked order"),
    (climbing.climb, "linked order number True numbers random"),
    (climbing.perturbed_climbs, "linked order number some number 0 number numbers random"),
    (climbing._greedy, "sets some numbers numbers some"),
    (ascent.unplaceable, "some some words"),
    (ascent.ascend, "sets numbers words numbers 0 0 flags random"),
    (parent_set_rows.block_terms, "numbers"),
    (parent_set_rows.lagrangian, "sets packed numbers flags numbers numbers"),
    (parent_set_rows.entries, "sets some packed words False int32s numbers int32s"),
    (parent_set_rows.activities, "sets some numbers packed"),
    (clusters.arc_weights, "support"),
    (clusters.small_clusters, "support square words numbers"),
    (clusters.tabu_clusters, "support some 0 0 words numbers 0 random"),
    (blocks.families_of, "support some some some numbers"),
    (blocks.gauge, "0 some some numbers numbers"),
    (subsets._spread, "ranks"),
    (subsets._fill, "ranks places places numbers some numbers 0 0"),
    (subsets._read_off, "ranks places places numbers some numbers some some"),
    (order_relation.put_before, "words 0 0"),
    (order_relation.propagate, "sets flags words"),
]


@cache
def for_parent_sets() -> list[Specialization]:
    """Return the kernels that branch and cut over parent sets needs."""
    score = Score(name="ll")
    candidates = build_candidates(tiny_data().names, score)
    sets, some = (
        list_sets(candidates, np.zeros(candidates.n_sets), dominated=True).sets,
        np.zeros(1, dtype=np.int64),
    )
    examples = _plain_examples() | {
        "sets": sets,
        "words": sets.masks,
        "linked": linked_sets(sets),
        "order": climbing.order_state(some),
        "packed": parent_set_rows.pack([], sets.n_variables),
        "support": Support(some, some, sets.masks, np.zeros(1)),
        "random": generator(0),
        "ranks": np.zeros(1, dtype=np.uint16),
        "places": np.zeros((1, 1), dtype=np.int64),
    }
    scoring = Levels(tiny_data(), score, Rules(), admitted_sets(3, score, Rules()), Budget()).kernels
    return scoring + [
        specialized(kernel, *(examples[name] for name in names.split())) for kernel, names in PARENT_SETS
    ]


@cache
def needed(score_name: str, max_parents: int, *, rows: bool) -> Needs:
    """Return the kernels that a search needs.

    The score has margins. All sums of minima share one list of kernels, and so do all sums of likelihoods. `rows` says
    whether inequalities may enter the bound: child limits, or cluster rows where acyclicity is relaxed.
    """
    score = Score(name=score_name, max_parents=max_parents)
    if not score.kind.sums_samples:  # the kernels are those of the soft margin
        score = Score(name="sm", max_parents=max_parents)
    examples = _examples(build_problem(tiny_data(), score, for_milp=False))

    def of(*tables: list[tuple[Any, str]]) -> list[Specialization]:
        return [
            specialized(kernel, *(examples[name] for name in names.split()))
            for table in tables
            for kernel, names in table
        ]

    search = of(SEARCH, SMOOTH if examples["softening"].smooth else HARD)
    root = of(ROOT, OF_ORACLE.get(examples["oracle"].kind, []), ROWS if rows else [])
    return {
        "search": search,
        "root": root,
        "branching": of(TREE),
        "milp": of(COEFFICIENTS) + for_parent_sets(),
    }


def _examples(problem: Problem) -> dict[str, Any]:
    """Return arguments of kernels by the names that stand for them; only their types matter."""
    margins, model = problem.margins, model_of(problem)
    assert margins is not None
    part, n = empty_point(model), model.oracle.n
    some, square = np.zeros(1, dtype=np.int64), np.zeros((1, 1))
    rows, forced = child_limits(problem.candidates, problem.rules), np.zeros((n, n), dtype=np.int64)
    allowed = np.ones(len(model.linear), dtype=bool)
    return _plain_examples() | {
        "cube": square[None],
        "marks": square.astype(bool),
        "words": some.astype(np.uint32),
        "int8s": some.astype(np.int8),
        "int32_rows": some.astype(np.int32)[None],
        "float32s": some.astype(np.float32),
        "float32_rows": square.astype(np.float32),
        "codes": problem.data.codes,
        "tables": margins.tables,
        "softening": margins.softening,
        "pairs": model.pairs,
        "model": model,
        "oracle": model.oracle,
        "point": part,
        "state": part.state,
        "vertices": part.vertices,
        "weights": part.duals,
        "rows": rows,
        "forced": forced,
        "near": changes.Near(some, square, np.zeros(1)),
        "node": subproblem_of(model, rows, np.zeros(0), allowed, forced, 0),
        "goal": frank_wolfe.Goal(0.0, 0.0, 0.0),
        "arcs": Arcs(some, some, np.zeros(1), some),
    }


def _plain_examples() -> dict[str, Any]:
    """Return numbers and arrays of numbers by the names that stand for them."""
    some = np.zeros(1, dtype=np.int64)
    return {
        "0": 0,
        "False": False,
        "True": True,
        "number": 0.0,
        "numbers": np.zeros(1),
        "some": some,
        "flags": np.zeros(1, dtype=bool),
        "square": np.zeros((1, 1)),
        "int32s": some.astype(np.int32),
    }
