"""Local scores: written for GOBNILP and BLIP, and maximised by the MILP solvers without data."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from milpbn.certificate.multiplier_proof import MultiplierProof
from milpbn.claims.about import BackendInfo
from milpbn.claims.local_result import LocalResult
from milpbn.claims.reasons import BoundSource, Reason
from milpbn.claims.result import NotSavedError
from milpbn.data.dataset import Dataset, Variable
from milpbn.engine.parent_sets.climbing import OrderClimber
from milpbn.engine.parent_sets.sets import list_sets
from milpbn.engine.reduction import restricted
from milpbn.errors import InputError, MilpbnError, NoIncumbentError
from milpbn.milp.files.jkl_file import LocalScores, read_jkl, write_jkl
from milpbn.network.structure import Structure
from milpbn.problem.class_free import stated
from milpbn.problem.constraints import Constraints, Rules
from milpbn.problem.problem import Problem, build_problem, checked_constraints
from milpbn.problem.rounding import CAREFUL, EPS
from milpbn.problem.scores.spec import Score
from milpbn.solvers.registry import DEFAULT_SOLVER, find_solver, solver_names
from milpbn.solving.api import training_data
from milpbn.solving.checkpoint import CheckpointFile, SavedSearch, description, read_saved_search
from milpbn.solving.engines.base import Engine, Start
from milpbn.solving.engines.branch_and_cut import BranchAndCutEngine
from milpbn.solving.engines.milp import MilpEngine
from milpbn.solving.engines.registry import automatic, for_solvers
from milpbn.solving.files import RunFiles
from milpbn.solving.listing import Listing, claims_of
from milpbn.solving.options import LocalOptionKeywords, Options, takes
from milpbn.solving.preparation import resume
from milpbn.solving.progress import (
    Progress,
    alternative_lines,
    number_lines,
    status_words,
    structure_lines,
    wants_progress,
)
from milpbn.solving.state import Session
from milpbn.util import interrupts, stages
from milpbn.util.budget import Budget
from milpbn.util.checkpoints import incomplete
from milpbn.util.plurals import counted
from milpbn.util.progress_line import LINE
from milpbn.util.saved_arrays import UnfitError

#: How a MILP excludes cycles by default. With many parent sets a model with cluster rows is smaller.
ACYCLICITY = "cluster"


def export_local_scores(
    data: Any,
    score: Score | str = "bdeu",
    *,
    path: str | os.PathLike[str],
    constraints: Constraints | None = None,
    dominated: bool = False,
) -> LocalScores:
    """Write the local scores of candidate parent sets as a ``.jkl`` file.

    Parameters
    ----------
    data : Dataset, Table, or anything `read_table` reads
        Training data.
    score : Score or str
        A sum of local scores: ``ll``, ``mdl`` (= ``bic``), ``aic`` or ``bdeu``. Arc weights are added to them.
    path : path
        The file.
    constraints : Constraints, optional
        Parent sets that they exclude are left out. Limits on the number of children cannot be written.
    dominated : bool
        Also write parent sets with a subset that scores no less. A best structure needs none of them, but a list of
        several structures may.

    Raises
    ------
    InputError
        If the score or a constraint is no sum over parent sets, the data are unusable, or the file cannot be written.
    """
    spec = Score(name=score) if isinstance(score, str) else score
    if spec.is_margin or spec.kind.curve is not None:
        raise InputError(
            f"The score {spec.name} is not a sum of local scores, as a .jkl file needs it; choose ll, mdl, aic or "
            "bdeu, or write the model as .lp or .mps."
        )
    dataset = training_data(data)
    asked = stated(dataset, spec, checked_constraints(constraints))
    problem = build_problem(dataset, *asked, for_milp=False, dominated=dominated)
    if problem.rules.max_children:
        raise InputError("A .jkl file cannot hold limits on the number of children; drop --max-children.")
    if constraints is not None and (options := constraints.path_options):
        raise InputError(
            f"A .jkl file cannot hold constraints on paths; drop {options}, or write the model as .lp."
        )
    if not dominated:
        listed = list_sets(problem.candidates, problem.linear + CAREFUL * problem.linear_error)
        problem = restricted(problem, np.isin(np.arange(problem.candidates.n_sets), listed.in_eta))
    local = LocalScores(problem.candidates, problem.linear)
    write_jkl(local, path)
    return local


@takes(LocalOptionKeywords, acyclicity=ACYCLICITY, threads=1)
def solve_local_scores(
    scores: LocalScores | str | os.PathLike[str],
    *,
    name: str | None = None,
    started: float | None = None,
    **options: Unpack[LocalOptionKeywords],
) -> LocalResult:
    """Find the structure with the largest sum of local scores, such as those of a ``.jkl`` file.

    There are no data, so there is no classifier, and the structure's score is not computed anew from data.

    Parameters
    ----------
    scores : LocalScores or path
        The scores, or their file.
    name : str, optional
        Name of the scores in the result; by default that of the file without its ending.
    started : float, optional
        `time.monotonic` value from which the time limit counts; by default the time of the call.
    **options
        How to search; see `milpbn.solving.options.Options`. The backend is ``branch-and-cut``, which
        ``auto`` stands for, or a MILP solver. The start is a structure over the variables of the file, in its order.
        ``output`` gets what `LocalResult.to_dict` returns.

    Raises
    ------
    InputError
        If the file or an option is unusable, or every choice of parent sets has a cycle.
    NoIncumbentError
        If no structure was found within the limits.
    SolverError
        If the solver fails.
    NotSavedError
        If a file could not be written at the end; its attribute ``result`` is the result.
    """
    how = Options(**options)
    budget = Budget(how.time_limit, began=started, cancelled=how.interrupted)
    engine = _engine(how)
    version = engine.version()  # refuses one that is not installed
    if how.most_listed > 1 and not engine.capabilities.n_best:
        raise InputError(
            f"A list of the best structures comes with the backend {BranchAndCutEngine.name}; leave out --n-best "
            "(n_best) and --within (within), or --backend (backend)."
        )
    engine.check_options(how.solver_options or {})
    with stages.shown(budget.began, wanted=wants_progress(how.verbose)):
        local = scores if isinstance(scores, LocalScores) else read_jkl(scores)
        if name is None:
            name = "local scores" if isinstance(scores, LocalScores) else scores_name(scores)
        about, earlier = _earlier(local, how)
        search = _Search(local, name, how, engine, version, about, earlier)
        problem, seconds = LocalProblem.of(local), 0.0 if earlier is None else earlier.seconds
        pool = how.pool(problem.score_error)
        return search.run(Session(problem, budget, earlier_seconds=seconds, target=how.target, pool=pool))


def _earlier(local: LocalScores, options: Options) -> tuple[dict[str, Any], SavedSearch | None]:
    """Return what describes the search in its checkpoint, and the run from which it goes on."""
    values = description(options, local.sha256, Score(name="ll", parent_sets="all"), Constraints())
    earlier = None
    if options.checkpoint is not None:
        earlier = read_saved_search(options.checkpoint, options, local.candidates.names, values)
    if earlier is not None and wants_progress(options.verbose):
        LINE.keep(earlier.sentence)
    return values, earlier


def scores_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file of local scores without its endings."""
    return Path(Path(path).name.removesuffix(".gz")).stem


def _engine(options: Options) -> Engine:
    unused = for_solvers(options, ACYCLICITY)
    name = automatic(options.backend, Score(name="ll"), for_milp=bool(unused))
    solver = find_solver(name)
    if solver is None and name.lower() != BranchAndCutEngine.name:
        raise InputError(
            f"Local scores are maximised by {BranchAndCutEngine.name} or a MILP solver, and there is no MILP solver "
            f"{name!r}; choose one of {BranchAndCutEngine.name}, {', '.join(solver_names())}."
        )
    for given, what in ((options.certificate, "certificate"), (options.checkpoint, "checkpoint")):
        if solver is not None and given is not None:
            raise InputError(
                f"A {what} comes with the backend {BranchAndCutEngine.name}, not with {name}; leave one of them out."
            )
    if solver is not None:
        return MilpEngine(solver)
    if unused:
        raise InputError(
            f"The backend {name} has no use for {', '.join(unused)}; leave it out, or name a MILP solver, for instance "
            f"--backend {DEFAULT_SOLVER}."
        )
    return BranchAndCutEngine()


@dataclass(frozen=True)
class _Search:
    """What is searched, and how."""

    local: LocalScores
    name: str
    options: Options
    engine: Engine
    version: str
    described: dict[str, Any]
    earlier: SavedSearch | None

    def run(self, session: Session) -> LocalResult:
        """Search, report, and return the result."""
        options, path, earlier = self.options, self.options.checkpoint, self.earlier
        checkpoint = None if path is None else CheckpointFile(path, session, self.described, earlier)
        files = RunFiles(options, checkpoint)
        progress = Progress() if wants_progress(options.verbose) else None
        if options.certificate is not None:
            known = None if earlier is None else earlier.proof
            proof = known if isinstance(known, MultiplierProof) else MultiplierProof()
            session.produce(multiplier_proof=proof)
        if earlier is not None:
            resume(session, earlier)
        own = self.engine.capabilities.own_bounds
        events = session.events(self.engine.source, BoundSource.CERTIFIED if own else BoundSource.SOLVER)
        first, listing = self._first(session.problem, session.budget), Listing.of(session, options)
        if first is not None:
            events.offer(first)

        def search() -> None:
            saved, proof = None if earlier is None else earlier.tree, session.products.multiplier_proof
            start = Start(first, saved=saved, proof=proof, pool=session.pool)
            settings = options.settings(session.budget.deadline)
            try:
                session.produce(outcome=self.engine.run(session.problem, start, settings, events))
            except UnfitError:
                assert earlier is not None
                raise incomplete(earlier.path) from None

        def update() -> None:
            _, objective, bound, trace = session.snapshot()
            if progress is not None:
                progress.line(session.elapsed(), session.node_count, objective, bound, session.source)
            files.update(trace, lambda: self._current(session, listing, final=False))

        try:
            with interrupts.deferred():
                session.watch(search, update, self.version, name="milpbn-local-scores", daemon=True)
        except MilpbnError as error:
            session.fail(error)
        finally:
            session.budget.close()  # a thread that nobody waits for may still run
        result, arrays = self._current(session, listing, final=True)
        failures = files.finish(session.snapshot()[3], result, arrays)
        if session.error is not None:
            raise session.error
        if result.reason is Reason.INFEASIBLE:
            raise InputError("Every choice of the listed parent sets has a cycle; add smaller parent sets.")
        if result.structure is None:
            raise NoIncumbentError(
                f"No structure was found within the {result.limit or 'time'} limit; allow more time."
            )
        if failures:
            raise NotSavedError(failures[0], result)
        return result

    def _first(self, problem: Problem, budget: Budget) -> Structure | None:
        """Return the user's start, or what climbing over orders finds for a MILP solver; None without any."""
        start, empty = self.options.start, Structure.empty(problem.candidates.names)
        if self.earlier is not None:
            return self.earlier.structure
        if start is None and self.engine.capabilities.milp:
            listed = list_sets(problem.candidates, problem.linear)
            climber = OrderClimber.climbed(listed.sets, self.options.random_state, budget)
            if climber.cost < math.inf:
                return problem.candidates.structure(listed.in_eta[climber.choice()])
        if start is None:
            return empty if problem.obeys(empty) else None
        if start.names != empty.names or not problem.obeys(start):
            raise InputError(
                "The start has other variables than the local scores, or a parent set that they do not list."
            )
        return start

    def _current(
        self, session: Session, listing: Listing | None, *, final: bool
    ) -> tuple[LocalResult, dict[str, Any] | None]:
        """Return the result, and the arrays of its proof, which is read after the bound that it proves."""
        result = self._result(session, listing, final=final)
        proof = session.products.multiplier_proof
        return result, None if proof is None else proof.arrays()

    def _result(self, session: Session, listing: Listing | None, *, final: bool) -> LocalResult:
        candidates = self.local.candidates
        bound, rest = session.best_bound, session.pool.rest
        claims = claims_of(session, listing, bound, rest, final=final)
        outcome = session.products.outcome
        detail = outcome.proved_by or (outcome.detail if final and session.budget.stopped is None else "")
        return LocalResult(
            name=self.name,
            sha256=self.local.sha256,
            variables=candidates.n_variables,
            parent_sets=candidates.n_sets,
            **claims,
            detail=detail,
            backend=BackendInfo(self.engine.name, self.version, self.options.n_threads),
            seconds=session.elapsed(),
            seed=self.options.random_state,
        )


class LocalProblem(Problem):
    """The problem of a linear score that is given instead of computed; its data are one row without meaning."""

    @classmethod
    def of(cls, local: LocalScores) -> LocalProblem:
        """Return the problem of local scores."""
        names = local.candidates.names
        variables = tuple(Variable(name, ("0", "1")) for name in names)
        data = Dataset("local scores", variables, np.zeros((1, len(names)), dtype=np.int32), np.ones(1))
        errors = 2 * EPS * np.abs(local.scores)  # of a sum of these numbers
        return cls(data, Score(name="ll"), local.candidates, Rules(), local.scores, errors)

    def rescored(self, structure: Structure) -> tuple[float, float]:
        """Return the sum of a structure's local scores, and a bound on its rounding error."""
        choice = self.choice(structure)
        assert choice is not None
        parts = self.linear[choice]
        return math.fsum(parts), 4 * EPS * math.fsum(np.abs(parts))

    def objection(self, structure: Structure) -> str | None:
        """Return None: there are no constraints but the listed parent sets."""
        return None


def describe(result: LocalResult, *, read: bool = False) -> str:
    """Return the closing block: data, status, score, bound, gap, time and structure.

    For a result that was `read` from a file, the block says that the bound is the claim of the file.
    """
    own = result.backend.name == BranchAndCutEngine.name
    source = f"{'the file says ' if read else ''}{BoundSource.CERTIFIED if own else BoundSource.SOLVER}"
    lines = [
        f"data       {result.name}: local scores of {counted(result.parent_sets, 'parent set')} of "
        f"{counted(result.variables, 'variable')}",
        f"backend    {result.backend.version}",
        f"status     {status_words(result)}",
        *number_lines(result.objective, result.bound, "" if result.bound is None else source),
        *alternative_lines(result.alternatives),
        f"seconds    {result.seconds:.2f}",
    ]
    if result.structure is not None:
        lines += structure_lines(result.structure)
    return "\n".join(lines)
