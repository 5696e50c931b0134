"""Branch and bound over parts of the search space, each bounded by a few warm-started Frank-Wolfe steps."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.choose import Chooser
from milpbn.bounds.frontier import Frontier
from milpbn.bounds.incumbent import Incumbent, target_of
from milpbn.bounds.inequalities import WORTH, lower, node_of
from milpbn.bounds.kernels import HARD
from milpbn.bounds.optima import Optima
from milpbn.bounds.point import (
    BEST_TEMPERATURE,
    BEST_VERTICES,
    BOUND,
    HALVES,
    TEMPERATURE,
    VERTICES,
    Node,
    Point,
    empty_point,
    evaluate,
    place,
    score_of,
)
from milpbn.bounds.proof import OVERHEAD, Proof
from milpbn.bounds.reduction import deletion_threshold
from milpbn.bounds.root import Root
from milpbn.bounds.space import Open, Part, Weights
from milpbn.bounds.tighten import deletable, tighten
from milpbn.network.structure import Structure, topological_order

#: Rounds of changes of all multipliers of a part, at most; rows that are changed between two looks at the clock.
SWEEPS, AT_A_TIME = 4, 16


class Tree:
    """Best-bound search from where the root's steps ended.

    Parameters
    ----------
    root : Root
        The whole problem, bounded.
    best : Structure
        The incumbent.
    found : callable
        Told of better structures; returns the best one that is known then.
    bounded : callable
        Told of smaller bounds on all structures.
    counted : callable
        Told of the number of parts so far.
    stopping : callable
        Asked after every burst of steps.
    threads : int
        Parts that are bounded at a time.
    random_state : int
        Seed of the local search.
    reduce : bool
        Delete entries inside the tree.
    proof : Proof or None
        Gets decisions, deletions and the weights of all leaves.
    memory : float
        Bytes that open parts and the proof may take; beyond them the search goes down before it goes wide.
    """

    def __init__(
        self,
        root: Root,
        best: Structure,
        *,
        found: Callable[[Structure], Structure | None],
        bounded: Callable[[float], None],
        counted: Callable[[int], None],
        stopping: Callable[[], bool],
        threads: int = 1,
        random_state: int = 0,
        reduce: bool = True,
        proof: Proof | None = None,
        memory: float = 4e9,
    ) -> None:
        self.root = root
        self.model = root.model
        self.problem = root.problem
        self.chooser = Chooser(root.model.oracle)
        self.proof = proof
        self.reduce = reduce
        self.threads = threads
        self.memory = memory
        self._bounded, self._counted, self._stopping = bounded, counted, stopping
        # Rows without a multiplier at the root get none: tried, and worse.
        self._active = np.flatnonzero(root.multipliers)
        self._frontier = Frontier()
        self._busy: dict[int, float] = {}
        self._lock = threading.Condition(threading.RLock())
        self._numbers = 0
        self._closed = -np.inf
        self._optima = Optima(root.problem.candidates)
        self.known = Incumbent(root, best, found, stopping, self._lock, random_state)
        self._failure: BaseException | None = None

    @property
    def incumbent(self) -> float:
        """Score of the best structure that is known."""
        return self.known.value

    @property
    def target(self) -> float:
        """A part with at most this bound is closed."""
        return target_of(self.incumbent)

    def run(self) -> bool:
        """Search until all parts are closed (True) or it is told to stop (False)."""
        root = self.root
        part = Part(root.allowed, ())
        point = root.point
        opened = None
        if root.bound > self.target:
            opened = self._open(0, part, point, root.multipliers, root.weights)
        if opened is None:
            self._closed = root.bound
            if root.bound > self.target:
                self._closed, weights = self._only_structure(part, point)
                self._leaf(0, weights)()
            self._optima.add(part.allowed, self._closed, self.incumbent)
            root.optima = self._optima
            self._tell()
            return True
        opened.bound = root.bound
        self._frontier.push(opened)
        others = [
            threading.Thread(target=self._work, args=(k,), name=f"milpbn-native-{k}", daemon=True)
            for k in range(1, self.threads)
        ]
        for thread in others:
            thread.start()
        self._work(0)
        for thread in others:
            thread.join()
        if self._failure is not None:
            raise self._failure
        finished = not self._frontier and not self._busy
        if finished:
            root.optima = self._optima
        self._tell()
        return finished

    def bound(self) -> float:
        """Return the bound on all structures."""
        return max(self._closed, self.incumbent, self._frontier.bound(), *self._busy.values())

    def _tell(self) -> None:
        bound = self.bound()
        self._frontier.near(bound, self.incumbent)
        self._bounded(bound)
        self._counted(self._numbers + 1)

    def _work(self, worker: int) -> None:
        """Take parts and split them, until there are none or it is time to stop."""
        point = empty_point(self.model)
        mine: Open | None = None
        try:
            while True:
                with self._lock:
                    while mine is None and not self._frontier and self._busy and self._failure is None:
                        self._lock.wait(0.1)
                        if self._stopping():
                            break
                    if self._failure is not None or self._stopping():
                        if mine is not None:
                            self._busy.pop(worker, None)
                            self._frontier.push(mine)
                        self._lock.notify_all()
                        return
                    if mine is None:
                        if not self._frontier:
                            if not self._busy:
                                self._lock.notify_all()
                                return
                            continue
                        mine = self._frontier.pop(newest=self._taken() > self.memory)
                    self._busy[worker] = mine.bound
                if mine.bound <= self.target:
                    children: list[Open] = []
                    self._close(
                        np.unpackbits(mine.allowed, count=len(self.model.linear)).astype(bool), mine.bound
                    )
                    finished = True
                else:
                    children, finished = self._split(mine, point)
                    self.known.search_on(self._numbers // 2)
                with self._lock:
                    self._busy.pop(worker, None)
                    if not finished:
                        # Stopped half-way: the part stays open as it was.
                        self._frontier.push(mine)
                        mine = None
                        self._lock.notify_all()
                        continue
                    down: Open | None = None
                    if children and self._taken() + sum(c.nbytes for c in children) > self.memory:
                        # Go down: the child that will close first.
                        down = min(children, key=lambda child: child.bound)
                        self._busy[worker] = down.bound
                    for child in children:
                        if child is not down:
                            self._frontier.push(child)
                    mine = down
                    self._tell()
                    self._lock.notify_all()
        except BaseException as error:
            with self._lock:
                self._failure = self._failure or error
                if mine is not None:
                    # It stays open, or the bound of the others would be taken for the bound of all.
                    self._frontier.push(mine)
                self._busy.pop(worker, None)
                self._lock.notify_all()

    def _taken(self) -> float:
        proof = 0.0 if self.proof is None else OVERHEAD * self.proof.nbytes
        return self._frontier.nbytes + proof

    def _split(self, opened: Open, point: Point) -> tuple[list[Open], bool]:
        """Bound both halves of a part; return those that stay open, and whether it was brought to an end."""
        P = len(self.model.linear)
        part = Part(np.unpackbits(opened.allowed, count=P).astype(bool), opened.edges)
        results: list[Open] = []
        notes: list[Callable[[], None]] = []
        with self._lock:
            numbers = (self._numbers + 1, self._numbers + 2)
            self._numbers += 2
        for number, inside in zip(numbers, (True, False), strict=True):
            half = part.split(self.model.oracle, opened.decision, inside)
            point.gradient[:] = opened.gradient
            node = self._node(half, opened.multipliers)
            node, multipliers = self._priced(node, point.gradient, opened.multipliers, opened.bound)
            reached = place(
                self.model,
                node,
                point,
                opened.vertices.astype(np.int64),
                opened.shares,
                opened.temperature,
                False,
            )
            if not reached:
                # No structure: any weights prove it.
                notes.append(self._leaf(number, opened.weights))
                continue
            if not tighten(
                self.model,
                node,
                point,
                opened.bound,
                lambda: self.target,
                stopping=self._stopping,
                found=self.known.look_at,
            ):
                return [], False
            if point.numbers[BOUND] > self.target:
                before = node
                node, multipliers = self._priced(
                    node, point.gradient.copy(), multipliers, float(point.numbers[BOUND])
                )
                if node is not before:
                    evaluate(self.model, node, point, False)
            bound = float(point.numbers[BOUND])
            self.chooser.learn(opened.decision, inside, opened.share, opened.bound - bound)
            own = weights = self._weights(point, multipliers)
            if bound > opened.bound:
                bound, weights = opened.bound, opened.weights
            child = None
            # Read once: were it better by the time of the deletions, these could leave a variable nothing.
            incumbent = self.incumbent
            if self.reduce and bound >= deletion_threshold(incumbent):
                # Closed or not: what is left of a part that holds an optimum says which arcs all optima have.
                gone = deletable(self.model, node, point, incumbent)
                if len(gone):
                    half.allowed[gone] = False
                    notes.append(self._deletion(number, own, gone))
            if bound > target_of(incumbent):
                child = self._open(number, half, point, multipliers, weights)
                if child is None:
                    bound, weights = self._only_structure(half, point)
            notes.append(self._leaf(number, weights))
            if child is None:
                self._close(half.allowed, bound)
                continue
            child.bound = bound
            results.append(child)
        if self.proof is not None:
            with self.proof.lock:
                self.proof.branch(opened.number, opened.decision, *numbers)
                for note in notes:
                    note()
        return results, True

    def _close(self, allowed: NDArray[np.bool_], bound: float) -> None:
        """Take note of a part that needs no more splits."""
        with self._lock:
            self._closed = max(self._closed, bound)
            self._optima.add(allowed, bound, self.incumbent)

    def _node(self, part: Part, multipliers: NDArray[np.float64]) -> Node:
        """Return a part as the steps take it, bounded with the multipliers."""
        forced = part.forced(self.model.oracle.n)
        return node_of(self.model, self.root.rows, multipliers, part.allowed, forced, len(part.edges))

    def _priced(
        self, node: Node, weights: NDArray[np.float64], multipliers: NDArray[np.float64], bound: float
    ) -> tuple[Node, NDArray[np.float64]]:
        """Lower a bound, not smaller than that at some weights, which hold the multipliers and change with them.

        Returns
        -------
        node, multipliers
            The same ones where the bound stays.
        """
        model, rows = self.model, self.root.rows
        if not len(self._active):
            return node, multipliers
        better = multipliers.copy()
        choice = np.empty(len(model.oracle.offsets) - 1, dtype=np.int64)
        space = node.allowed, node.forced, node.n_forced
        for _ in range(SWEEPS):
            fallen = 0.0
            for first in range(0, len(self._active), AT_A_TIME):
                some = self._active[first : first + AT_A_TIME]
                if bound > self.target and not self._stopping():
                    fall = lower(
                        model.oracle, rows, weights, *space, better, some, bound - self.target, choice
                    )
                    fallen, bound = fallen + fall, bound - fall
            if fallen <= WORTH * max(1.0, abs(bound)):
                break
        if (better == multipliers).all():
            return node, multipliers
        return node_of(model, rows, better, *space), better

    def _open(
        self,
        number: int,
        part: Part,
        point: Point,
        multipliers: NDArray[np.float64],
        weights: Weights | None,
    ) -> Open | None:
        """Return a part with the decision that will split it, or None if it holds one structure at most."""
        n = int(point.counts[VERTICES])
        vertices, shares = point.vertices[:n], point.shares[:n]
        inside = part.allowed[vertices].all(axis=1)
        if inside.any():
            vertices, shares = vertices[inside], shares[inside] / shares[inside].sum()
        chosen = self.chooser.choose(vertices, shares, part.allowed)
        if chosen is None:
            return None
        return Open(
            number,
            float(point.numbers[BOUND]),
            np.packbits(part.allowed),
            part.edges,
            vertices.astype(np.int32),
            shares.copy(),
            point.gradient.astype(np.float32),
            float(max(point.numbers[HALVES], point.numbers[TEMPERATURE])),
            chosen[0],
            chosen[1],
            multipliers,
            weights,
        )

    def _only_structure(self, part: Part, point: Point) -> tuple[float, Weights | None]:
        """Take the one structure of a part, and bound it by weights on its least margins: by its score."""
        none = np.zeros_like(self.root.multipliers)
        choice = np.flatnonzero(part.allowed)
        flat = self.problem.candidates.flat
        if topological_order([flat[p] for p in choice]) is None:
            return -np.inf, self._weights(point, none)
        structure = self.problem.candidates.structure(choice)
        if not self.problem.obeys(structure):
            return -np.inf, self._weights(point, none)
        value = score_of(self.model, choice, point.direction, False)
        self.known.offer(structure, value)
        point.vertices[0] = choice
        point.shares[0] = 1.0
        point.counts[VERTICES], point.counts[BEST_VERTICES] = 1, 0
        if not self.model.softening.smooth:
            point.numbers[BEST_TEMPERATURE] = HARD
        node = self._node(part, none)
        evaluate(self.model, node, point, False)
        return float(point.numbers[BOUND]), self._weights(point, none)

    def _weights(self, point: Point, multipliers: NDArray[np.float64]) -> Weights | None:
        """Return what proves the bound of a point that was evaluated, if a proof is wanted."""
        if self.proof is None:
            return None
        n = int(point.counts[VERTICES])
        temperature = float(point.numbers[BEST_TEMPERATURE])
        return Weights.of(point.vertices[:n], point.shares[:n], temperature, multipliers)

    def _leaf(self, number: int, weights: Weights | None) -> Callable[[], None]:
        proof = self.proof
        if proof is None or weights is None:
            return lambda: None
        return lambda: proof.leaf(number, weights)

    def _deletion(self, number: int, weights: Weights | None, gone: NDArray[np.int64]) -> Callable[[], None]:
        proof = self.proof
        if proof is None or weights is None:
            return lambda: None
        return lambda: proof.delete(number, weights, gone)
