"""The stages before the engine: a search over small parent sets, first structures, local search, and the root bound.

Each stage is a small function of the job and the session, and asks the session whether to stop.
"""

from __future__ import annotations

from collections.abc import Iterable

from milpbn.claims.reasons import BoundSource, Limit
from milpbn.engine.root import Root, root_bound
from milpbn.engine.saved_root import restore_root
from milpbn.errors import NoIncumbentError
from milpbn.heuristics.local_search import search
from milpbn.heuristics.starts import plain_starts
from milpbn.heuristics.tuning import TUNING as CLIMBS
from milpbn.network.cpt import require_match
from milpbn.network.structure import Structure
from milpbn.problem.first_bound import first_bound
from milpbn.problem.trivial_bound import loose_bound, trivial_bound
from milpbn.solving.checkpoint import SavedSearch, require_incumbent
from milpbn.solving.job import BRIEF_SECONDS, Job
from milpbn.solving.screening import Screening, screen
from milpbn.solving.state import Session
from milpbn.solving.warm_up import Kernels
from milpbn.util import stages
from milpbn.util.checkpoints import incomplete
from milpbn.util.saved_arrays import SavedArrays, UnfitError

#: Seconds for the trivial bound; it rarely needs more.
TRIVIAL_SECONDS = 0.5
#: Time for local search over the small parent sets, as a share of the expected time to build the full problem.
SMALL_SETS_SHARE = 0.2


def prepare(job: Job, session: Session, kernels: Kernels) -> None:
    """Find first structures and bounds, the quickest first; each stage waits for its kernels."""
    if job.earlier is not None and job.earlier.tree is not None:
        _go_on(job, session, kernels, job.earlier, job.earlier.tree)
        return
    if job.earlier is not None:
        _begin_with(session, job.earlier)
    session.bound(_loose_bound(session), BoundSource.CERTIFIED)
    if not _search_small_sets(job, session):
        return
    if job.screening is not None and not _screen(job, session, kernels, job.screening):
        session.stop(
            Limit.TIME
        )  # whatever the reason was: an engine must not search over the small sets only
        return
    starts = _offer(session, plain_starts(session.problem, job.options.start))
    if session.stopping():
        return
    stages.enter("kernels")
    # A better bound comes soon where no kernels are missing; and this one is in no certificate.
    if kernels.missing and job.options.root_bound and job.options.certificate is None:
        _bound_first(session)
    if not kernels.ready("search") or session.stopping():
        return
    stages.enter("trivial bound")
    session.bound(trivial_bound(session.problem, job.brief(session, TRIVIAL_SECONDS)), BoundSource.CERTIFIED)
    if session.structure is not None:  # the best first: the time may suffice for one climb only
        starts = [session.structure, *(s for s in starts if s != session.structure)]
    # An engine that continues from the root perturbs structures by itself.
    _climb(job, session, starts, 0 if job.engine.capabilities.continues_root else CLIMBS.restarts)
    if job.options.root_bound and kernels.ready("root") and not session.stopping():
        _bound_root(job, session)


def _begin_with(session: Session, earlier: SavedSearch) -> None:
    """Take the incumbent of an earlier run whose tree search had not begun. Its bounds are computed anew."""
    require_incumbent(earlier, session.problem)
    session.resume(earlier.structure, None, [(t, z, None) for t, z, _ in earlier.trace], None)


def _go_on(job: Job, session: Session, kernels: Kernels, earlier: SavedSearch, tree: SavedArrays) -> None:
    """Take incumbent, bound and root of an earlier run; its engine takes the rest."""
    stages.enter("checkpoint")
    problem = session.problem
    require_incumbent(earlier, problem)
    # Kernels come first: the session of a search that has ended stops as soon as it has the bound.
    ready = kernels.ready("root") and kernels.ready("branching")
    session.resume(earlier.structure, earlier.bound, earlier.trace, earlier.nodes)
    if not ready:
        return
    root = Root(
        problem,
        earlier.structure,
        threads=job.options.n_threads,
        proof=session.made.proof,
        n_best=job.options.n_best,
    )
    try:
        restore_root(root, tree.under("root."))
        root.pool.restore(tree.under("pool."), problem)
    except UnfitError:
        raise incomplete(earlier.path) from None
    session.make(root=root)


def _loose_bound(session: Session) -> float:
    problem = session.problem
    return loose_bound(problem.score, problem.data, problem.rules, problem.sample_weights)


def _bound_first(session: Session) -> None:
    """Bound the problem without kernels, which are compiled meanwhile."""
    problem, structure = session.problem, session.structure
    if structure is not None and problem.margins is not None and problem.score.kind.sums_samples:
        session.bound(first_bound(problem, structure, session.stopping), BoundSource.CERTIFIED)


def _search_small_sets(job: Job, session: Session) -> bool:
    """Search over small parent sets, then build the problem over larger ones; return whether the time sufficed."""
    for larger in job.larger:
        problem, start = session.problem, job.options.start
        if start is not None:
            require_match(problem.data, start)
            start = problem.adopted(start)
            start = start if problem.obeys(start) else None
        starts = _offer(session, plain_starts(problem, start))
        _climb(job, session, starts, 0, SMALL_SETS_SHARE * larger.seconds)
        if session.stopping():
            return False
        try:
            made = larger.make()
        except NoIncumbentError:
            session.stop(Limit.TIME)
            return False
        session.make(problem=made, reduced=made, coefficient_seconds=session.elapsed())
    return True


def _screen(job: Job, session: Session, kernels: Kernels, screening: Screening) -> bool:
    """Search over the small parent sets, then screen the others; return whether the time sufficed for both."""
    starts = _offer(session, plain_starts(session.problem, job.options.start))
    stages.enter("kernels")
    if session.stopping() or not kernels.ready("search"):
        return False
    _climb(job, session, starts, 0)
    if session.stopping():
        return False
    bounded = kernels.ready("root")
    return screen(session, screening, bounded=bounded, threads=job.options.n_threads)


def _offer(session: Session, starts: Iterable[Structure]) -> list[Structure]:
    """Offer each structure to the session as soon as it is found, and return them all."""
    stages.enter("first structures")
    offered = []
    for structure in starts:
        session.offer(structure, "start")
        offered.append(structure)
        if session.stopping():
            break
    return offered


def _climb(
    job: Job, session: Session, starts: list[Structure], restarts: int, most: float = BRIEF_SECONDS
) -> None:
    """Run local search for at most `most` seconds, and offer what it finds."""
    stages.enter("local search")
    search(
        session.problem,
        starts,
        random_state=job.options.random_state,
        restarts=restarts,
        stopping=job.brief(session, most),
        found=session.events("local search").offer,
    )


def _bound_root(job: Job, session: Session) -> None:
    """Take root steps until they gain little; stop earlier before an engine that does not continue from the root."""
    stages.enter("root bound")
    options, before = job.options, session.objective
    stopping = None if job.engine.capabilities.continues_root else job.brief(session)
    reduced, root = root_bound(
        session.problem,
        session.structure,
        session.events("frank-wolfe", stopping=stopping),
        reduce=options.reduce,
        threads=options.n_threads,
        proof=session.made.proof,
        n_best=options.n_best,
    )
    session.make(reduced=reduced, root=root)
    if session.structure is not None and session.objective != before:
        _climb(job, session, [session.structure], 0)
