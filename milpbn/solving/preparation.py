"""The stages before the engine: steps to all parent sets, first structures, local search, and the root bound.

Each stage is a small function of the job and the session, and asks the session whether to stop.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from milpbn.claims.reasons import BoundSource, Limit
from milpbn.engine.root import Root, root_bound
from milpbn.errors import SolverError
from milpbn.heuristics.starts import plain_starts
from milpbn.heuristics.tuning import TUNING as CLIMBS
from milpbn.problem.bounds import first_bound, loose_bound, trivial_bound
from milpbn.problem.scores.base import Shape
from milpbn.solving.checkpoint import SavedSearch
from milpbn.solving.engines.base import Start
from milpbn.solving.engines.branch_and_cut import BranchAndCutEngine
from milpbn.solving.enlarging import climb, offer
from milpbn.solving.job import Job
from milpbn.solving.state import Session
from milpbn.solving.warm_up import Kernels
from milpbn.util import stages
from milpbn.util.checkpoints import incomplete
from milpbn.util.saved_arrays import SavedArrays, UnfitError

#: Seconds for the trivial bound; it rarely needs more.
TRIVIAL_SECONDS = 0.5


def prepare(job: Job, session: Session, kernels: Kernels) -> None:
    """Find first structures and bounds, the quickest first; each stage waits for its kernels."""
    if job.earlier is not None and job.earlier.tree is not None:
        _go_on(job, session, kernels, job.earlier, job.earlier.tree)
        return
    if job.earlier is not None:
        resume(session, job.earlier)
    problem = session.problem
    bounds = session.products.multiplier_proof is None  # such a proof has none of the bounds below
    if bounds:
        loose = loose_bound(problem.score, problem.data, problem.rules, problem.sample_weights)
        session.bound(loose, BoundSource.CERTIFIED)
    for step in job.steps:
        if not step.enlarge(session, kernels, job.options, job.budget):
            # Whatever the reason was: no engine must search over these parent sets only.
            session.stop(Limit.TIME)
            return
    if job.engine.capabilities.local_only:
        # Branch and cut climbs by itself, and has better bounds at once.
        if bounds:
            session.bound(trivial_bound(session.problem), BoundSource.CERTIFIED)
        offer(session, islice(plain_starts(session.problem, job.options.start), 1))
        return
    starts = offer(session, plain_starts(session.problem, job.options.start))
    if session.budget.stop():
        return
    stages.enter("kernels")
    # A better bound comes soon where no kernels are missing; and this one is in no certificate.
    if kernels.missing and job.options.root_bound and job.options.certificate is None:
        _bound_first(session)
    if not kernels.ready("search") or session.budget.stop():
        return
    stages.enter("trivial bound")
    session.bound(trivial_bound(session.problem, session.brief(TRIVIAL_SECONDS).over), BoundSource.CERTIFIED)
    if session.structure is not None:  # the best first: the time may suffice for one climb only
        starts = [session.structure, *(s for s in starts if s != session.structure)]
    # An engine that continues from the root perturbs structures by itself.
    restarts = 0 if job.continues_root else CLIMBS.restarts
    local = session.problem.score.kind.shape is Shape.LINEAR
    if not (local and job.options.root_bound):
        climb(session, starts, job.options.random_state, restarts=restarts)
    stage = "branching" if local else "root"
    if job.options.root_bound and kernels.ready(stage) and not session.budget.stop():
        (_bound_local if local else _bound_root)(job, session)


def resume(session: Session, earlier: SavedSearch) -> None:
    """Take the incumbent of an earlier run, and its bound if its tree search had begun; else only the times."""
    try:
        if earlier.tree is not None:
            session.resume(earlier.structure, earlier.bound, earlier.trace, earlier.nodes or None)
        else:
            session.resume(earlier.structure, None, [(t, z, None) for t, z, _ in earlier.trace], None)
    except SolverError:  # the structure is none of the problem
        raise incomplete(earlier.path) from None


def _go_on(job: Job, session: Session, kernels: Kernels, earlier: SavedSearch, tree: SavedArrays) -> None:
    """Take incumbent, bound and root of an earlier run; its engine takes the rest."""
    stages.enter("checkpoint")
    # Kernels come first: the session of a search that has ended stops as soon as it has the bound.
    ready = kernels.ready("root") and kernels.ready("branching")
    resume(session, earlier)
    if not ready or not job.continues_root:
        return
    root = Root(
        session.problem,
        earlier.structure,
        threads=job.options.n_threads,
        proof=session.products.proof,
        pool=session.pool,
    )
    try:
        root.restore(tree.under("root."))
        root.pool.restore(tree.under("pool."), session.problem)
    except UnfitError:
        raise incomplete(earlier.path) from None
    session.produce(root=root)


def _bound_first(session: Session) -> None:
    """Bound the problem without kernels, which are compiled meanwhile."""
    problem, structure = session.problem, session.structure
    if structure is not None and problem.margins is not None and problem.score.kind.sums_samples:
        session.bound(first_bound(problem, structure, session.budget.over), BoundSource.CERTIFIED)


def _bound_root(job: Job, session: Session) -> None:
    """Take root steps until they gain little; stop earlier before an engine that does not continue from the root."""
    stages.enter("root bound")
    options, before = job.options, session.objective
    budget = None if job.continues_root else session.brief()
    reduced, root = root_bound(
        session.problem,
        session.structure,
        session.events("frank-wolfe", budget=budget),
        reduce=options.reduce,
        threads=options.n_threads,
        proof=session.products.proof,
        pool=session.pool,
    )
    session.produce(reduced=reduced, root=root)
    if session.structure is not None and session.objective != before:
        climb(session, [session.structure], options.random_state)


def _bound_local(job: Job, session: Session) -> None:
    """Run branch and cut without branching, before a MILP solver."""
    settings = replace(job.options.settings(session.budget.deadline), root_only=True)
    events = session.events(BranchAndCutEngine.source, budget=session.brief())
    BranchAndCutEngine().run(session.problem, Start(session.structure), settings, events)
