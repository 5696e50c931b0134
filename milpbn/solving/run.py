"""The stages of a run: preparation, search, parameters, report. Limits do not wait for the stages' threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import replace

from milpbn.certificate.format import Proof
from milpbn.certificate.multiplier_proof import MultiplierProof
from milpbn.claims.reasons import BoundSource, Limit
from milpbn.claims.result import FailedSearchError, NotSavedError, Result
from milpbn.engine.events import EventLog
from milpbn.engine.root import root_bound
from milpbn.errors import NoIncumbentError, SolverError
from milpbn.network.classifier import Classifier
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.monotone_fit import made_monotone
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.parameters.refit import give_up, refit_classifier
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.gate import objection
from milpbn.problem.scores.spec import Score
from milpbn.solvers.base import Outcome
from milpbn.solving.engines.base import Engine, Start
from milpbn.solving.engines.native import NativeEngine
from milpbn.solving.engines.registry import without_root
from milpbn.solving.job import Job
from milpbn.solving.preparation import prepare
from milpbn.solving.reductions import SmallSetsFirst
from milpbn.solving.report import Report
from milpbn.solving.state import OUT_OF_MEMORY, Session
from milpbn.solving.warm_up import Kernels
from milpbn.util import interrupts, stages
from milpbn.util.budget import Budget
from milpbn.util.checkpoints import incomplete
from milpbn.util.clock import ALL_SAMPLES_SHARE, within
from milpbn.util.saved_arrays import UnfitError
from milpbn.util.threads import library_threads, threads_used


def run(job: Job) -> Result:
    """Search until proof, limit or interrupt, and return the result.

    Raise FailedSearchError if the solver failed after a structure was found; incumbent and bound are in its attribute
    ``result``, and in the output file. Raise SolverError if it failed before, and NotSavedError if a file could not be
    written.
    """
    options, earlier = job.options, job.earlier
    session = Session(
        job.problem,
        job.search_budget(),
        earlier_seconds=0.0 if earlier is None else earlier.seconds,
        timed=options.time_limit is not None or not job.continues_root or options.root_only,
        target=options.target,
        pool=options.pool(job.problem.score_error),
    )
    proof, known = None, None if earlier is None else earlier.proof
    if options.certificate is not None and job.engine.capabilities.local_only:
        session.produce(multiplier_proof=known if isinstance(known, MultiplierProof) else MultiplierProof())
    elif options.certificate is not None:
        proof = known if isinstance(known, Proof) else Proof()
        proof.sample_weights = job.problem.subset_weights
    coefficients, model = (
        (0.0, 0.0) if earlier is None else (earlier.coefficient_seconds, earlier.model_seconds)
    )
    coefficients += time.monotonic() - job.budget.began
    session.produce(proof=proof, coefficient_seconds=coefficients, model_seconds=model)
    report = Report(job, session)
    try:
        try:
            # Kernels of the native engine and NumPy's own threads would compete for the cores.
            blas = 1 if job.continues_root else options.n_threads
            with library_threads(blas), threads_used(options.n_threads), interrupts.deferred():
                bounds = options.root_bound or any(step.bounds for step in job.steps)
                can = job.engine.capabilities
                branches = can.local_only or (can.continues_root and not options.root_only)
                with closing(Kernels(job.problem, bounds, branches, session.budget.over)) as kernels:
                    _run_stages(job, session, kernels, report)
                    _bound_on_all(job, session, report)
        except KeyboardInterrupt:
            session.stop(Limit.USER)
        except SolverError as error:
            session.fail(error)
        except MemoryError:
            session.produce(outcome=OUT_OF_MEMORY)
        with _saving(session):
            found = report.current(final=True)
    finally:
        for budget in (session.budget, job.budget):
            budget.close()  # a thread that nobody waits for may still search, or build a problem
    if session.error is None:
        result = _with_parameters(job, found[0], interrupted=session.budget.stopped is Limit.USER)
        found = result, found[1]
    with _saving(session):
        failures = report.finish(found)
    if session.error is not None:
        if isinstance(session.error, SolverError) and found[0].structure is not None:
            raise FailedSearchError(str(session.error), found[0]) from session.error
        raise session.error
    if failures:
        raise NotSavedError(failures[0], found[0])
    return found[0]


def _bound_on_all(job: Job, session: Session, report: Report) -> None:
    """Bound the score over all samples after a search over a subset.

    The bound is that of the root. If the run has a time limit and the engine branches, a short tree search lowers it.
    """
    products, structure, budget = session.products, session.structure, job.search_budget(on_all=True)
    ended = session.error is not None or session.budget.stopped in (Limit.USER, Limit.MEMORY)
    if products.problem.sample_weights is None or structure is None or products.root is None:
        return
    if ended or products.outcome is OUT_OF_MEMORY or budget.stop():
        return
    stages.enter("bound over all samples")
    options, limit = job.options, job.options.time_limit
    if limit is not None:
        budget = budget.at_most(ALL_SAMPLES_SHARE * limit)  # also where the search was short
    # The proofs share a file.
    proof = None if products.proof is None else Proof(nbytes=products.proof.nbytes)
    log = EventLog(budget.over)

    def work() -> None:
        with suppress(NoIncumbentError):  # no time for the tables of all samples
            whole = SmallSetsFirst.on_all_samples(products.problem, budget)
            _, root = root_bound(whole, structure, log, threads=options.n_threads, proof=proof)
            if limit is not None and job.continues_root and not options.root_only:
                start = Start([structure, *log.structures][-1], root)
                NativeEngine().run(whole, start, options.settings(budget.deadline), log)

    within(work, budget.over, name="milpbn-all-samples", tick=report.update)
    if bounds := list(log.bounds):
        # The tree has scores by the tables, which may be below those from the data by rounding errors.
        whole = replace(products.problem, sample_weights=None)
        known = [sum(whole.rescored(s)) for s in log.structures[-1:]]
        session.produce(bound_on_all=max([min(bounds), *known]), proof_on_all=proof)


def _saving(session: Session) -> AbstractContextManager[None]:
    """Defer signals while files are written. If a signal has ended the search, the next one is not deferred."""
    return nullcontext() if session.budget.stopped is Limit.USER else interrupts.saving()


def _run_stages(job: Job, session: Session, kernels: Kernels, report: Report) -> None:
    """Prepare, then search, each in a thread; a thread that does not stop in time is not waited for."""

    def in_thread(work: Callable[[], None], daemon: bool) -> None:
        session.watch(work, report.update, job.version, name=f"milpbn-{job.engine.name}", daemon=daemon)

    in_thread(lambda: prepare(job, session, kernels), daemon=False)
    if session.error is not None or session.products.outcome is OUT_OF_MEMORY:
        return
    # A search that goes on has a root if it continues from one; its engine notices by itself that it has ended before.
    goes_on = job.earlier is not None and job.earlier.tree is not None
    goes_on &= session.products.root is not None or not job.continues_root
    if session.budget.stop() and not goes_on:
        return
    if job.options.root_only and not job.engine.capabilities.local_only:
        session.produce(outcome=Outcome(limit="node"))
        return
    engine = without_root(job.engine, job.problem.score) if session.products.root is None else job.engine

    def search() -> None:
        if kernels.ready("branching"):
            _search(job, session, engine)

    in_thread(search, daemon=not engine.capabilities.continues_root)
    if session.error is not None:
        return
    if report.checkpoint is not None:
        # Before the last fixing, which a run without a stop would not do here.
        report.checkpoint.capture()
    root = session.products.root
    if root is not None and session.structure is not None and job.options.reduce:
        root.fix(session.structure)  # the last incumbent may fix more parent sets


def _search(job: Job, session: Session, engine: Engine) -> None:
    """Run the engine from the incumbent and the root bound."""
    options, products = job.options, session.products
    structure = session.structure if options.warm_start else options.start
    if structure is not None:
        structure = products.problem.adopted(structure)
    settings = options.settings(session.budget.deadline)
    bound_source = BoundSource.CERTIFIED if engine.capabilities.own_bounds else BoundSource.SOLVER
    events = session.events(engine.source, bound_source)
    earlier = job.earlier
    saved = None if earlier is None else earlier.tree
    proof = products.multiplier_proof
    start = Start(structure, products.root, saved, job.dispatcher, proof, session.pool)
    try:
        outcome = engine.run(products.reduced, start, settings, events)
    except UnfitError:
        assert earlier is not None
        raise incomplete(earlier.path) from None
    session.produce(outcome=outcome, model_seconds=outcome.model_seconds)
    incumbent = session.structure
    # If the reduced problem lacks a parent set of the incumbent, it may truly be infeasible.
    if outcome.infeasible and incumbent is not None and products.reduced.choice(incumbent) is not None:
        raise SolverError(
            f"The solver says that no structure obeys the constraints ({outcome.detail}), although one does, with "
            f"the score {session.objective!r}; install another version of it, or choose another --backend."
        )


def _with_parameters(job: Job, result: Result, *, interrupted: bool) -> Result:
    """Return the result of a finished search with the parameters that the options ask for.

    The fit ends at the time limit of the run. If it is stopped, or tables cannot hold its parameters, the generative
    parameters are kept, and the record says why.
    """
    method = job.options.method
    if result.structure is None or not isinstance(result.classifier, Classifier):
        return result
    monotone = job.options.monotone_constraints(job.dataset)
    if method == "ml" and not monotone:
        return replace(result, parameters=ParameterFit())
    objection_of_arcs = objection_to_arcs(result.score, result.constraints)
    if interrupted:
        record, classifier = give_up(ParameterMethod.parse(method).name, Limit.USER), result.classifier
        if monotone:
            classifier, record = made_monotone(classifier, monotone, record, objection_of_arcs)
        return replace(result, classifier=classifier, parameters=record)

    begun, seconds = time.monotonic(), result.seconds
    stages.enter("parameters of the classifier")
    left = None if job.budget.deadline is None else job.budget.left()
    with interrupts.deferred():
        classifier, record = refit_classifier(
            result.classifier,
            job.dataset,
            method,
            objection=objection_of_arcs,
            random_state=job.options.random_state,
            budget=Budget(left, cancelled=job.options.interrupted),
            report=stages.tell,
            monotone=monotone,
        )
    took = time.monotonic() - begun
    seconds = replace(seconds, total=seconds.total + took, parameters=seconds.parameters + took)
    return replace(result, classifier=classifier, parameters=record, seconds=seconds)


def objection_to_arcs(score: Score, constraints: Constraints) -> Callable[[Structure], str | None]:
    """Return a function that says why a structure with arcs for normalisers breaks a constraint, or returns None.

    Such an arc does not count against max_parents, but it does against the constraints.
    """

    def forbidden(structure: Structure) -> str | None:
        free = replace(score, max_parents=len(structure.names))
        return objection(structure, free, constraints, any_class_free=True)

    return forbidden
