"""The root of a search: rows and columns are added in rounds, parent sets are fixed, and structures are found.

A round solves the linear program, bounds all costs by its multipliers, fixes parent sets by reduced costs, adds cheaper
parent sets and violated rows, and removes rows without multipliers, which stay in a pool.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.multiplier_proof import MultiplierProof
from milpbn.engine.parent_sets.ascent import first_clusters
from milpbn.engine.parent_sets.blocks import violated_blocks
from milpbn.engine.parent_sets.climbing import LEAST_GAIN, OrderClimber, greedy_order
from milpbn.engine.parent_sets.clusters import Support, violated_clusters
from milpbn.engine.parent_sets.paths import broken_independences, violated_path_rows
from milpbn.engine.parent_sets.relaxation import Priced, RestrictedProgram
from milpbn.engine.parent_sets.rows import PackedRows, Row, activities, pack
from milpbn.engine.parent_sets.sets import ParentSets
from milpbn.problem.constraints import Rules
from milpbn.util.budget import Budget

#: Sizes of the blocks that are examined, in turn, and their number in a round.
BLOCK_SIZES, BLOCKS = (5, 6, 7, 8), 40
#: When rounds gain nothing, this many times as many blocks are examined, and the rounds end after so many of them.
MORE_BLOCKS, IDLE_ROUNDS = 4, 4
#: Most rounds, and the rounds over which the bound must gain this share of the gap a round.
ROUNDS, PATIENCE, WORTHWHILE = 400, 12, 1e-3
#: Cheapest parent sets of each variable in the first linear program, and those within this share of the gap.
FIRST_SETS, FIRST_SHARE = 12, 0.05
#: Most columns that a round adds, for each variable. Rows wait while there are more than the second number.
MOST_COLUMNS, FEW_COLUMNS = 40, 5
#: Rounds without a multiplier after which a row leaves the linear program.
OLD = 8
#: Clusters that a round adds at most, and rows from the pool.
MOST_CLUSTERS, MOST_POOLED = 60, 60
#: Most rows of the pool.
POOL = 20_000
#: The seeds of the separation of two threads differ by as many rounds.
ROUNDS_OF_THREAD = 1_000_000
#: Perturbations after a better structure was found from a fractional point.
PERTURBATIONS = 400
#: Rounds of the root in which every fifth one climbs thoroughly.
EARLY = 50
#: Thorough climbs from a point, their perturbations for each variable, and the temperature (see `climbing.HOT`).
THOROUGH, PER_VARIABLE, WARM = 2, 10, 0.012

NO_RULES = Rules()


class RowPool:
    """All rows found so far, for points of later nodes. Any thread may call any method."""

    def __init__(self, n_variables: int) -> None:
        self._n, self._known = n_variables, set[Row]()
        self._rows: list[Row] = []
        self._packed: PackedRows = pack([], n_variables)
        self._lock = threading.Lock()

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows that are new."""
        with self._lock:
            new = [row for row in rows if row not in self._known][: max(0, POOL - len(self._rows))]
            if new:
                self._known.update(new)
                self._rows += new
                self._packed = self._packed.followed_by(pack(new, self._n))

    def rows(self) -> list[Row]:
        """Return all rows."""
        return list(self._rows)

    def violated(self, sets: ParentSets, point: Support, present: set[Row], least: float = 1e-3) -> list[Row]:
        """Return violated rows that are not `present`, those that fail by the largest share first."""
        packed = self._packed  # another thread may put a longer one in its place
        fails = activities(sets, point.used, point.shares, packed) / np.maximum(1.0, packed.right)
        order = (r for r in np.argsort(-fails, kind="stable") if fails[r] > least)
        return list(islice((row for r in order if (row := self._rows[r]) not in present), MOST_POOLED))


class BestKnown:
    """What threads share about structures; see the attributes of `Cutting`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.cutoff, self.best_cost = math.inf, math.inf
        self.best: NDArray[np.int64] | None = None


class Cutting:
    """The linear program of a search, its rows, the best structure, and the parent sets that are not fixed.

    Parameters
    ----------
    sets : ParentSets
        The parent sets.
    climber : OrderClimber
        Finds structures, which may break the limits.
    limits : list of Row
        Limits of children.
    found : callable
        Called with the parent sets of a structure, int64 of shape (V,). Returns the new cutoff, inf if there is none
        yet, or None if the structure is not allowed.
    margin : float
        A parent set is fixed if every structure with it exceeds the cutoff by this, in nats; inf for never.
    budget : Budget
        Asked between rounds.
    seed : int
        Seed of the separation.
    proof : MultiplierProof or None
        Gets all steps of the root if a certificate is wanted.
    rules : Rules
        The rules on paths (`milpbn.engine.parent_sets.paths`).
    several : bool
        Whether several best structures are wanted, so that `found` is told of worse ones than the best, too.

    Attributes
    ----------
    allowed : bool array, shape (P,)
        The parent sets that are not fixed to 0.
    cutoff : float
        Structures that cost more are not wanted: the cost of the best structure known, or of the last one of a full
        list; inf without any.
    best, best_cost : int64 array of shape (V,) or None, float
        Parent sets and cost of the best structure known; None and inf if there is none.
    bound : float
        Every structure costs at least this, in nats, or is not wanted.
    """

    def __init__(
        self,
        sets: ParentSets,
        climber: OrderClimber,
        limits: list[Row],
        found: Callable[[NDArray[np.int64]], float | None],
        margin: float,
        budget: Budget,
        seed: int = 0,
        proof: MultiplierProof | None = None,
        *,
        rules: Rules = NO_RULES,
        several: bool = False,
    ) -> None:
        self.sets, self.climber, self.budget, self.proof = sets, climber, budget, proof
        self._found, self._limits, self.margin, self.rules = found, limits, margin, rules
        self._seed, self.rng, self.several = seed, np.random.default_rng(seed), several
        self.allowed = np.ones(sets.n_sets, dtype=bool)
        self.bound, self.known = 0.0, BestKnown()
        self.relaxation = RestrictedProgram(sets)
        self.pool = RowPool(sets.n_variables)
        self.rounds = 0
        if climber.cost < math.inf:
            self.offer(climber.choice())

    @property
    def cutoff(self) -> float:
        """See the class."""
        return self.known.cutoff

    @property
    def best(self) -> NDArray[np.int64] | None:
        """See the class."""
        return self.known.best

    @property
    def best_cost(self) -> float:
        """See the class."""
        return self.known.best_cost

    def copied(self, thread: int) -> Cutting:
        """Return a copy for another thread: the same rows and columns, other random numbers, and what is shared."""
        other = copy.copy(self)
        other.relaxation = RestrictedProgram(self.sets)
        other.relaxation.add_rows(self.relaxation.rows)
        other.relaxation.add_columns(self.relaxation.columns)
        other.rng, other.rounds = np.random.default_rng([self._seed, thread]), ROUNDS_OF_THREAD * thread
        other.climber = self.climber.copied(self._seed + thread)
        return other

    def begin(self) -> bool:
        """Make the first linear program; return whether the parent sets may hold a structure."""
        first = first_clusters(self.sets, self._seed, self.budget)
        if first is not None:
            self._start(*first)
        return first is not None

    def offer(self, choice: NDArray[np.int64]) -> bool:
        """Take the parent sets of an acyclic structure, if they are better than the best ones or several are wanted.

        Return False if the structure is not allowed. One that is not taken for its cost is not checked: True.
        """
        cost, known = float(self.sets.costs[choice].sum()), self.known
        with known.lock:
            if not self.several and cost >= known.cutoff - LEAST_GAIN:
                return True
            most = self._found(choice)
            if most is None:
                return False
            known.cutoff = min(known.cutoff, most)
            if cost < known.best_cost:
                known.best_cost, known.best = cost, choice
            return True

    def _start(self, clusters: list[Row], multipliers: NDArray[np.float64]) -> None:
        """Make the first linear program from the clusters of the dual ascent and the cheapest parent sets."""
        relaxation, sets = self.relaxation, self.sets
        relaxation.add_rows([*self._limits, *clusters])
        self.pool.add(clusters)
        relaxation.multipliers = np.concatenate([np.zeros(len(self._limits)), multipliers])
        priced = self._priced()
        self.fix(priced)
        excess = priced.with_set - priced.bound
        chosen = self.allowed & (excess <= FIRST_SHARE * max(0.0, min(self.cutoff, 1e12) - self.bound))
        for begin, end in zip(sets.offsets[:-1], sets.offsets[1:], strict=True):
            cheapest = begin + np.argsort(excess[begin:end], kind="stable")[:FIRST_SETS]
            chosen[cheapest] = self.allowed[cheapest]
        if self.best is not None:
            chosen[self.best] = True
        relaxation.add_columns(np.flatnonzero(chosen))

    def resume(self, rows: Sequence[Row], pooled: Sequence[Row], columns: NDArray[np.int64]) -> None:
        """Make the linear program of an earlier search, and its pool."""
        self.relaxation.add_rows([*self._limits, *rows])
        self.pool.add([row for row in (*rows, *pooled) if row not in self._limits])
        self.relaxation.add_columns(columns)

    def _priced(self) -> Priced:
        """Bound all costs by the multipliers of the linear program."""
        priced = self.relaxation.price(self.allowed)
        if self.proof is not None and priced.bound > self.bound:
            self.proof.bound(0, self.relaxation.step(self.proof))
        self.bound = max(self.bound, priced.bound)
        return priced

    def useless(self, priced: Priced) -> NDArray[np.bool_]:
        """Return which parent sets are in no structure that is wanted, bool array, shape (P,)."""
        return priced.with_set > self.cutoff + self.margin

    def fix(self, priced: Priced) -> None:
        """Fix the parent sets to 0 that no wanted structure has."""
        gone = self.useless(priced)
        if self.best is not None:
            gone[self.best] = False
        if self.proof is not None and (gone & self.allowed).any():
            self.proof.fix(0, self.relaxation.step(self.proof))
        self.allowed &= ~gone

    def removable(self) -> NDArray[np.bool_]:
        """Return which rows of the linear program may be removed: all but the limits of children."""
        return np.arange(len(self.relaxation.rows)) >= len(self._limits)

    def improve(self, point: Support, *, thorough: bool = False) -> bool:
        """Climb from the order of a point; `thorough` climbs, which go on from worse orders, are several.

        Return whether a better structure was found.
        """
        weights, before = np.zeros(self.sets.n_sets), self.cutoff
        weights[point.used] = point.shares
        order = greedy_order(self.sets, weights)
        for _ in range(THOROUGH if thorough else 1):
            better = self.climber.start(order, afresh=thorough)
            if thorough:
                better |= self.climber.perturb(PER_VARIABLE * len(order), self.budget, WARM)
            elif better:
                self.climber.perturb(PERTURBATIONS, self.budget)
            if better:
                self.offer(self.climber.choice())
        return self.cutoff < before - LEAST_GAIN

    def separate(self, point: Support, blocks: int, *, parallel: bool = False) -> list[Row]:
        """Return violated rows that are not in the linear program, and keep them in the pool."""
        self.rounds += 1
        present = self.relaxation.present
        clusters = [row for row in violated_clusters(point, self._seed + self.rounds) if row not in present]
        rows = clusters[:MOST_CLUSTERS] + violated_path_rows(point, self.rules)
        if blocks and not point.integral and not self.budget.over():
            rows += violated_blocks(point, BLOCK_SIZES, blocks, self.rng, parallel=parallel)
        self.pool.add(rows)
        return [row for row in rows if row not in present]

    def cutting_off(self, point: Support) -> list[Row]:
        """Return rows that cut off an integral point; none if it is an allowed structure.

        These are the clusters of cycles, or rows of paths.
        """
        if rows := violated_clusters(point, self._seed):
            return rows
        return violated_path_rows(point, self.rules) + broken_independences(point, self.rules)

    def run(self, told: Callable[[], object], proved: Callable[[], bool], *, blocks: int = BLOCKS) -> None:
        """Add columns and rows in rounds until the bound gains little, the gap is closed or the budget is used up.

        `told` and `proved` are called in every round; `blocks` is the number of blocks that each examines.
        """
        relaxation, n = self.relaxation, self.sets.n_variables
        history: list[float] = []
        idle, near = 0, False
        for turn in range(ROUNDS):
            if self.budget.over() or not relaxation.solve():
                return
            priced = self._priced()
            told()
            point = relaxation.support()
            if turn % 5 == 0 or point.integral:
                self.improve(point, thorough=near and turn % 5 == 0 and turn < EARLY)
            self.fix(priced)
            if proved():
                return
            columns = relaxation.missing(self.allowed, priced.reduced, MOST_COLUMNS * n)
            near = len(columns) < FEW_COLUMNS * n
            relaxation.grow_older()
            relaxation.drop_rows((relaxation.age > OLD) & self.removable())
            relaxation.drop_columns(~self.allowed[relaxation.columns])
            relaxation.add_columns(columns)
            added = 0
            if near or turn % 3 == 2:
                number = blocks * (MORE_BLOCKS if idle else 1)
                added = relaxation.add_rows(self.separate(point, number, parallel=True))
            idle = 0 if added else idle + (not len(columns))
            history.append(self.bound)
            gap = self.cutoff - self.bound
            little = (
                len(history) > PATIENCE
                and not len(columns)
                and self.bound - history[-PATIENCE] < WORTHWHILE * PATIENCE * gap
            )
            if little or idle >= IDLE_ROUNDS:
                if not self.improve(point, thorough=True):
                    return
                history, idle = [], 0
