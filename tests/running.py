"""Run one solver on one problem, and ask the oracle about the same problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, count, pairwise

import numpy as np
import oracle
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from milpbn.certificate.multiplier_proof import MultiplierProof
from milpbn.claims.reasons import BoundSource
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset, Variable
from milpbn.engine.dual.point import Point, Subproblem
from milpbn.engine.events import PROOF, EventLog
from milpbn.engine.parent_sets import ascent, cutting, search
from milpbn.engine.parent_sets.decisions import ArcDecision
from milpbn.engine.parent_sets.open_nodes import SearchNode
from milpbn.engine.parent_sets.search import Search
from milpbn.engine.parent_sets.sets import ParentSets
from milpbn.engine.pool import Pool
from milpbn.engine.relaxation.oracle import Oracle, heaviest_structure
from milpbn.engine.tuning import TUNING, Tuning
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates, list_candidates
from milpbn.problem.conflicts import resolve
from milpbn.problem.constraints import Constraints, Rules
from milpbn.problem.local import LocalDataset, LocalScore, LocalScores
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.solvers.base import Outcome, Settings, Solver
from milpbn.solvers.registry import find_solver
from milpbn.solving.engines import branch_and_cut
from milpbn.solving.engines.base import Start
from milpbn.solving.engines.registry import get_engine
from milpbn.solving.state import Session
from milpbn.util.saved_arrays import SavedArrays

FORMULATIONS = ("order", "cluster")
#: Candidate parent sets of every variable.
Sets = Sequence[Sequence[tuple[int, ...]]]


def _installed(name: str) -> bool:
    try:
        find_solver(name).version()
    except InputError:
        return False
    return True


#: The MILP solvers that are installed on this machine; SCIP is an optional extra.
BACKENDS = tuple(name for name in ("highs", "cbc", "cpsat", "scip", "pulp:HiGHS") if _installed(name))


def listed(constraints: Constraints, names, score: Score) -> Candidates:
    """Return all candidate parent sets under constraints."""
    return list_candidates(names, resolve(constraints, names, score)[1])


def require_backend(name: str) -> Solver:
    if name not in BACKENDS:
        pytest.skip(f"{name} is not installed")
    return find_solver(name)


def dataset(rows, n_states=None, weights=None) -> Dataset:
    """Return data with the given integer codes; the class is the last column."""
    codes = np.array(rows, dtype=np.int32)
    n_states = codes.max(axis=0) + 1 if n_states is None else n_states
    names = [f"X{i + 1}" for i in range(codes.shape[1] - 1)] + ["C"]
    variables = tuple(
        Variable(name, tuple(f"s{j}" for j in range(n))) for name, n in zip(names, n_states, strict=True)
    )
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
    return Dataset("test", variables, codes, weights)


#: Soft margins of every kind that the bounds are tested with.
MARGINS = (
    Score(p=0.9, class_parents=False),
    Score(p=0.9),
    Score(p=0.6, penalty=0.3),
    Score(p=0.99, max_parents=3),
    Score(name="sbm", p=0.9),
    Score(name="sbm", p=0.99, max_parents=3, hybrid=0.05),
    Score(p=0.95, max_parents=1),
)

#: Leave-one-out scores of every kind, for data that are `heavy_enough`.
LEAVING_OUT = (
    Score(p=0.9, hybrid=0.05, leave_one_out=True),
    Score(name="sbm", p=0.95, max_parents=3, leave_one_out=True),
    Score(name="cll", smoothing=0.5, leave_one_out=True),
)

#: Scores whose parameters are shrunk towards other tables, for data that are `heavy_enough`.
SHRUNK = (
    Score(p=0.9, max_parents=3, smoothing_towards="class"),
    Score(name="sbm", p=0.95, smoothing_towards="marginal"),
    Score(p=0.9, max_parents=3, hybrid=0.05, leave_one_out=True, smoothing_towards="marginal"),
    Score(name="cll", smoothing=0.5, leave_one_out=True, smoothing_towards="class"),
)


def heavy_enough(data: Dataset, score: Score) -> Dataset:
    """The data, with larger weights if the score leaves out one unit of each and some are below 1."""
    light = score.leave_one_out and (data.weights < 1).any()
    return replace(data, weights=data.weights + 1.0) if light else data


def oracle_tuning(**values) -> Tuning:
    """Return the engine's search parameters with changed parameters of the oracle."""
    return replace(TUNING, oracle=replace(TUNING.oracle, **values))


def random_data(seed, n_features=3, n_classes=3, max_states=3, n_samples=16, weights=False) -> Dataset:
    rng = np.random.default_rng(seed)
    return oracle.random_dataset(rng, n_features, n_classes, max_states, n_samples, weights)


class FixedIncumbent:
    """An incumbent that stays as it is, for the engine's expansions; it asserts that no structure is better."""

    def __init__(self, cutoff: float) -> None:
        self.cutoff = cutoff

    def offer(self, structure: Structure, value: float) -> None:
        assert value <= self.cutoff + 1e-9

    def climb_from_answer(self, point: Point) -> None:
        """Leave the point as it is."""


def whole_node(oracle: Oracle, linear: NDArray[np.float64]) -> Subproblem:
    """The problem without any restriction, as the kernels take a node."""
    forced = np.zeros((oracle.n, oracle.n), dtype=np.int64)
    return Subproblem(np.ones(len(linear), dtype=bool), forced, 0, linear, 0.0)


def heaviest(oracle: Oracle, weights: NDArray[np.float64]) -> float:
    """The oracle's upper bound on the weights of all structures."""
    choice = np.empty(len(oracle.offsets) - 1, dtype=np.int64)
    return heaviest_structure(oracle, weights, *whole_node(oracle, weights)[:3], choice)[1]


def copied_feature() -> Dataset:
    """Random data with three copies of a feature that the class mostly follows."""
    plain = random_data(5, n_features=4, n_samples=120)
    codes = plain.codes.copy()
    codes[:, 1] = codes[:, 2] = codes[:, 0]
    codes[:, -1] = codes[:, 0] % plain.n_classes
    codes[::6, -1] = (codes[::6, -1] + 1) % plain.n_classes
    first = plain.variables[0].states
    variables = tuple(replace(v, states=first) if k in (1, 2) else v for k, v in enumerate(plain.variables))
    return replace(plain, codes=codes, variables=variables)


def run(
    problem: Problem,
    backend: str,
    acyclicity: str = "order",
    start: Structure | None = None,
    *,
    reduce: bool = False,
) -> tuple[Session, Outcome]:
    """Solve with a solver, or branch and cut, alone: no heuristics of a run, and no bound but its own."""
    session = Session(problem)
    settings = Settings(acyclicity=acyclicity, reduce=reduce)
    events = session.events(backend, BoundSource.SOLVER)
    outcome = get_engine(backend).run(problem, Start(start), settings, events)
    if session.error is not None:
        raise session.error
    return session, outcome


def check_trace(result: Result, best: float) -> None:
    """Incumbent <= optimum <= bound at every point; the incumbent never falls, the bound never rises."""
    tiny = 1e-9 * max(1.0, abs(best))
    assert result.trace
    for t, z, b in result.trace:
        assert 0 <= t <= result.seconds.total
        assert z is None or z <= best + tiny
        assert b is None or b >= best - tiny
        assert z is None or b is None or z <= b
    for (t, z, b), (later, higher, lower) in pairwise(result.trace):
        assert t <= later
        assert z is None or z <= higher
        assert b is None or lower <= b
    assert result.trace[-1][1:] == (result.objective, result.bound)


#: Optima by problem. Many tests solve one problem in several ways.
_optima: dict[tuple[object, ...], oracle.Best] = {}


def optimum(
    data: Dataset,
    score: Score,
    constraints: Constraints | None = None,
    sets: Sets | None = None,
    most: int = 0,
) -> oracle.Best:
    """Enumerate the structures over candidate sets, by default those that `constraints` leave, and rank `most`."""
    constraints = constraints or Constraints()
    states = tuple((v.name, v.n_states) for v in data.variables)
    asked = repr((score.to_dict(), constraints, sets, most))
    problem = (states, data.codes.tobytes(), data.weights.tobytes(), asked)
    if problem not in _optima:
        _optima[problem] = _enumerated(data, score, constraints, sets, most)
    return _optima[problem]


def _enumerated(
    data: Dataset, score: Score, constraints: Constraints, sets: Sets | None, most: int
) -> oracle.Best:
    sets = candidate_sets(data.names, score, constraints) if sets is None else sets
    index = {name: i for i, name in enumerate(data.names)}
    weights = {(index[a], index[b]): w for (a, b), w in constraints.arc_weights.items()}
    obeys = predicate(data.names, constraints)
    total = data.weights.sum()
    penalty = {"bic": np.log(total) / 2, "aic": 1.0}.get(score.penalty, score.penalty)
    return oracle.enumerate_best(
        data,
        score.name,
        gamma=score.gamma,
        smoothing=score.smoothing,
        ess=score.equivalent_sample_size,
        penalty=float(penalty),
        hybrid=score.hybrid,
        leave_one_out=score.leave_one_out,
        smoothing_towards=score.smoothing_towards,
        allowed=obeys if constraints else None,
        candidates=sets,
        bonus=lambda parents: sum(weights.get((j, i), 0.0) for i, p in enumerate(parents) for j in p),
        most=most,
    )


def all_choices(candidates: Candidates) -> np.ndarray:
    """Entries of eta of every acyclic choice, one row a structure and one column a variable."""
    rows = [
        [candidates.position(i, parents) for i, parents in enumerate(structure)]
        for structure in oracle.acyclic_structures(candidates.sets)
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, candidates.n_variables)


def scores_of(problem: Problem, choices: np.ndarray) -> np.ndarray:
    """Scores of structures, one row of parent sets each; those on margins from the dense coefficients."""
    margins = problem.margins
    if margins is None:
        return np.array([problem.value(problem.indicator(choice)) for choice in choices])
    column = np.full(problem.candidates.n_sets, -1)
    column[margins.columns] = np.arange(len(margins.columns))
    padded = np.concatenate([margins.alpha, np.zeros((*margins.alpha.shape[:2], 1))], axis=2)
    rows = padded[:, :, column[choices]].sum(axis=3)
    if margins.softening.smooth:
        parts = -logsumexp(np.concatenate([np.zeros_like(rows[:, :1]), -rows], axis=1), axis=1)
    else:
        parts = np.minimum(margins.softening.cap, rows.min(axis=1))
    return problem.linear[choices].sum(axis=1) + margins.weights @ parts


def best_of_all(problem: Problem) -> float:
    """The best score of a structure that obeys the rules, from the data themselves."""
    choices = all_choices(problem.candidates)
    structures = map(problem.candidates.structure, choices[np.argsort(-scores_of(problem, choices))])
    best = next(s for s in structures if problem.rules.over_limit(s.parents) is None)
    return rescore(problem.data, best, problem.score, problem.rules, problem.sample_weights)


def candidate_sets(
    names, score: Score, constraints: Constraints | None = None
) -> list[list[tuple[int, ...]]]:
    """Candidate sets by their definition: all sets within the limits, filtered one by one.

    Of a feature's class-free sets only the smallest allowed one is there if "paper" says so, or if it stands for all:
    margins are the same under all, and a penalty is the least.
    """
    V = len(names)
    obeys = _local_predicate(names, constraints or Constraints())
    weighted = constraints is not None and bool(constraints.arc_weights)
    margin = score.name in oracle.MARGIN_SCORES
    smallest = {
        "paper": True,
        "all": margin and not (score.hybrid or score.penalty or weighted),
        "auto": not (margin and (score.hybrid or weighted)),
    }[score.parent_sets]
    result = []
    for i in range(V):
        others = [j for j in range(V) if j != i]
        size = score.max_parents if i < V - 1 or score.class_parents else 0
        sets = [s for k in range(min(size, V - 1) + 1) for s in combinations(others, k) if obeys(i, s)]
        if i < V - 1 and smallest:
            free = [s for s in sets if V - 1 not in s]
            sets = [s for s in sets if V - 1 in s or not any(set(t) < set(s) for t in free)]
        result.append(sets)
    return result


def predicate(names, constraints: Constraints) -> Callable[[tuple[tuple[int, ...], ...]], bool]:
    """Whether a structure, as parent tuples, obeys the constraints; each one is checked by itself."""
    local = cache(_local_predicate(names, constraints))
    limits = constraints.max_children

    def obeys(parents) -> bool:
        for j, name in enumerate(names):
            limit = limits.get(name, limits.get("*") if j < len(names) - 1 else None)
            if limit is not None and sum(j in p for p in parents) > limit:
                return False
        return all(local(i, p) for i, p in enumerate(parents))

    return obeys


def _local_predicate(names, constraints: Constraints) -> Callable[[int, tuple[int, ...]], bool]:
    tier = {name: level for level, members in enumerate(constraints.tiers) for name in members}

    def obeys(i, parents) -> bool:
        child, members = names[i], {names[j] for j in parents}
        if any(b == child and a not in members for a, b in constraints.required):
            return False
        if any((a, child) in constraints.forbidden for a in members):
            return False
        if any(tier.get(a, -1) > tier.get(child, len(tier)) for a in members):
            return False
        if child in constraints.fixed and members != set(constraints.fixed[child]):
            return False
        return child not in constraints.allowed or members <= set(constraints.allowed[child])

    return obeys


def random_constraints(rng: np.random.Generator, names, strength: float = 0.35) -> Constraints:
    """Every kind with probability `strength`; about half of the draws have no structure."""
    pairs = [(a, b) for a in names for b in names if a != b]

    def some(most: int) -> list[tuple[str, str]]:
        chosen = rng.choice(len(pairs), size=int(rng.integers(1, most + 1)), replace=False)
        return [pairs[k] for k in chosen]

    def parents(child: str, most: int) -> tuple[str, ...]:
        others = [n for n in names if n != child]
        return tuple(rng.choice(others, size=int(rng.integers(0, most + 1)), replace=False).tolist())

    def use() -> bool:
        return bool(rng.random() < strength)

    shuffled = rng.permutation(names).tolist()
    child, other, limited = (str(n) for n in rng.choice(names, 3))
    return Constraints(
        required=tuple(some(2)) if use() else (),
        forbidden=tuple(some(4)) if use() else (),
        tiers=((shuffled[0],), tuple(shuffled[1:3])) if use() else (),
        max_children={limited: int(rng.integers(0, 3)), **({"*": 1} if use() else {})} if use() else {},
        fixed={child: parents(child, 2)} if use() else {},
        allowed={other: parents(other, 3)} if use() else {},
        arc_weights={pair: float(rng.normal(scale=3.0)) for pair in some(3)} if use() else {},
    )


def in_parts(
    problem: Problem, settings: Settings, *, size: int = 1, reach: float = np.inf, certified: bool = False
) -> tuple[Outcome, list[EventLog], Pool, MultiplierProof | None]:
    """Branch and cut with a stop after ever more questions, each time going on from the state; return the last part.

    The events are those of all parts from which another part went on, and of the last one.
    """
    saved, parts = None, list[EventLog]()
    for most in count(2, 3):
        left = iter(range(most))
        events = EventLog(lambda left=left: next(left, None) is None)
        pool, proof = Pool(size, reach), MultiplierProof() if certified else None
        if saved is not None and certified:
            proof = MultiplierProof.restored(SavedArrays(dict(saved)).under(PROOF))
        known = None if saved is None else SavedArrays(dict(saved))
        start = Start(saved=known, proof=proof, pool=pool)
        outcome = get_engine("branch-and-cut").run(problem, start, replace(settings, resumable=True), events)
        state = events.state()
        if state is not None or outcome.finished or outcome.infeasible:
            parts.append(events)
        if outcome.finished or outcome.infeasible:
            return outcome, parts, pool, proof
        if state is not None:
            arrays = {name: made() if callable(made) else made for name, made in state.arrays().items()}
            assert sum(array.nbytes for array in arrays.values()) <= 1.2 * state.nbytes + 200
            saved = arrays
    raise AssertionError


def branch_early(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Let the tree prove what the root could: no rounds there, and random decisions before a node is bounded well."""
    rng, plain = np.random.default_rng(seed), Search._bounded
    monkeypatch.setattr(branch_and_cut, "MOST_SECONDS", 0.0)
    monkeypatch.setattr(cutting, "ROUNDS", 0)
    monkeypatch.setattr(cutting, "FIRST_SETS", 1 + seed % 2)
    monkeypatch.setattr(ascent, "MOST_CLUSTERS", 10 * (seed % 3))

    def bounded(self: Search, node: SearchNode) -> bool:
        if node.depth >= 4 or rng.random() < 0.2:
            return plain(self, node)
        self.relaxation.allow(self._allowed(node))
        assert self.relaxation.solve()
        self._improve(node, self.relaxation.price(self._allowed(node)).bound)
        return not self._pruned(node.bound)

    def fractional(sets: ParentSets, *_: object) -> list[ArcDecision]:
        pairs = [rng.choice(sets.n_variables, 2, replace=False).tolist() for _ in range(3)]
        return [ArcDecision(i, j, bool(rng.random() < 0.5)) for i, j in pairs]

    monkeypatch.setattr(Search, "_bounded", bounded)
    monkeypatch.setattr(search, "fractional", fractional)


def problem_of(candidates: Candidates, scores: NDArray[np.float64]) -> Problem:
    """Return the problem of local scores, shape (P,)."""
    data = LocalDataset.of(LocalScores(candidates, scores))
    return build_problem(data, LocalScore(), listed=(Rules(), candidates))
