"""Progress lines, files and result of a run, during the search and at its end."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from milpbn.certificate.format import kept_arrays, on_all_samples
from milpbn.claims.about import COMPILED
from milpbn.claims.local_result import result_over
from milpbn.claims.parts import ProvedArcs
from milpbn.claims.reasons import Limit
from milpbn.claims.result import BackendInfo, DataSummary, Result, Seconds
from milpbn.data import Dataset
from milpbn.data.dataset import dropped_notes, notes_of_results
from milpbn.network.classifier import DESCRIBED, Classifier, rows_by_state
from milpbn.problem.local import LocalDataset
from milpbn.solving.checkpoint import CheckpointFile
from milpbn.solving.files import ResultAndProof, RunFiles
from milpbn.solving.job import Job
from milpbn.solving.listing import Listing, claims_of
from milpbn.solving.options import Options
from milpbn.solving.products import Products
from milpbn.solving.progress import Progress, outlook_lines, threads_alone, wants_progress
from milpbn.solving.reductions import of_whole_problem, only_small
from milpbn.solving.state import Session
from milpbn.util.compiled import COMPILING
from milpbn.util.memory import format_bytes, memory_limit
from milpbn.version import __version__

#: Share of a run's seconds from which the result says that compilation used up the time limit.
COMPILING_SHARE = 0.1


class Report:
    """Shows and saves the state of a session; raises InputError if one of the files cannot be written."""

    def __init__(self, job: Job, session: Session) -> None:
        self._job, self._session = job, session
        self._summary = DataSummary.of(job.dataset)
        #: The name of the run, which its certificate has too.
        self._name = uuid.uuid4().hex
        self._progress = Progress() if wants_progress(job.options.verbose) else None
        path = job.options.checkpoint
        #: The checkpoint, if one is wanted.
        self.checkpoint = None if path is None else CheckpointFile(path, session, job.described, job.earlier)
        self._files = RunFiles(job.options, self.checkpoint)
        self._listing = Listing.of(session, job.options, job.dataset)
        #: Number of points of the trace that the caller's function has been told of.
        self._told = 0

    def update(self) -> None:
        """Show what changed since the last call, and save it from time to time."""
        session = self._session
        if self._listing is not None:
            self._listing.keep_time()
        _, objective, bound, trace = session.snapshot()
        if self._progress is not None:
            nodes, others = session.node_count, self._others()
            self._progress.line(session.elapsed(), nodes, objective, bound, session.source, others)
            self._progress.outlook(session.elapsed(), self._outlook)
        self._files.update(trace, lambda: self.current(final=False))
        self._tell(len(trace))

    def _outlook(self) -> list[str]:
        """Return what is ahead, if all of the problem is searched."""
        session, job = self._session, self._job
        structure, objective, _, trace = session.snapshot()
        if session.problem.screened is not None or session.problem.sample_weights is not None:
            return []
        error = session.standard_error(structure) if session.target.gap_se else None
        gap = session.target.relative(objective, error)
        return outlook_lines(trace, session.elapsed(), gap, threads_alone(job.options, job.engine.name))

    def _others(self) -> str:
        """Return the proof of the K best structures so far, for the line of progress; empty if one is wanted."""
        pool = self._session.pool
        if self._listing is None or not pool.selective:
            return ""
        last, bound = pool.cutoff, pool.others(pool.rest)
        known = "" if bound == np.inf else f", all others at most {bound:.6f}"
        return f"; {f'number {pool.size} has' if pool.full else f'{len(pool)} listed from'} {last:.6f}{known}"

    def _tell(self, points: int) -> None:
        """Call the caller's function with the result so far, if the trace has grown since the last call."""
        tell = self._job.options.on_change
        if tell is None or points <= self._told:
            return
        self._told = points
        result = self.current(final=False)[0]
        classifier = fit_classifier(self._job.dataset, result, self._job.options)
        if tell(replace(result, classifier=classifier)):
            self._session.stop(Limit.USER)

    def finish(self, last: ResultAndProof) -> list[str]:
        """Save everything for the last time; return a sentence for each file that could not be written."""
        result, arrays = last
        return self._files.finish(self._session.snapshot()[3], result, arrays)

    def current(self, *, final: bool) -> ResultAndProof:
        """Return the current result, and the arrays of its proof.

        The search may be running meanwhile. So the bounds and the arcs are read before their proof. The proof is read
        before the incumbent, because its fixings hold for the incumbents so far, and before the problem, because it may
        be about the parent sets that screening has just kept.
        """
        bound, products = self._session.best_bound, self._session.products
        rest = self._session.pool.rest
        arcs = None if products.root is None else products.root.proved_arcs()
        proof = products.proof or products.multiplier_proof
        arrays = None if proof is None else proof.arrays()
        products = self._session.products
        if arrays is not None and products.problem.screened is not None:
            candidates = products.problem.candidates
            arrays |= kept_arrays(candidates.variable, candidates.flat)
        if arrays is not None and products.proof_on_all is not None:
            arrays |= on_all_samples(products.proof_on_all)
        return self._result(bound, rest, arcs, products, final=final), arrays

    def _result(
        self,
        bound: float | None,
        rest: float,
        arcs: Mapping[str, list[list[str]]] | None,
        products: Products,
        *,
        final: bool,
    ) -> Result:
        job, session = self._job, self._session
        claims = claims_of(session, self._listing, bound, rest, final=final)
        total = session.elapsed()
        before = products.coefficient_seconds + products.model_seconds
        result = result_over(
            job.dataset,
            data=self._summary,
            score=products.problem.score,
            constraints=products.problem.constraints,
            **claims,
            standard_error=session.standard_error(claims["structure"]),
            bound_source=session.bound_source,
            backend=BackendInfo(
                job.engine.name,
                job.version,
                job.options.n_threads,
                None if job.dispatcher is None else job.dispatcher.workers,
            ),
            seconds=Seconds(total, products.coefficient_seconds, products.model_seconds, total - before),
            seed=job.options.random_state,
            run=self._name,
            proved=None if arcs is None else ProvedArcs.of(arcs),
            detail=self._detail() if final else "",
            request=job.dataset.request,
            notes=(
                *notes_of_results(job.dataset.notes),
                *only_small(job.steps, products.problem, claims["limit"]),
                *_compiling(claims["limit"], session.started, total),
            ),
        )
        result = of_whole_problem(products.problem, result, products.bound_on_all)
        if not final:
            return result
        return replace(result, classifier=fit_classifier(job.dataset, result, job.options))

    def _detail(self) -> str:
        """Return the text of the error, the memory limit, what proved the optimum, or the solver's own status."""
        if self._session.error is not None:
            return str(self._session.error)
        if self._session.budget.stopped is Limit.MEMORY:
            return f"the memory limit of {format_bytes(memory_limit() or 0)} is nearly reached"
        outcome = self._session.products.outcome
        return outcome.proved_by or (outcome.detail if self._session.budget.stopped is None else "")


def _compiling(limit: Limit | None, started: float, total: float) -> list[str]:
    """Return the note on a time limit that compilation used up, if it did."""
    seconds = COMPILING.since(started)
    if limit is not Limit.TIME or seconds < COMPILING_SHARE * total:
        return []
    return [
        f"{COMPILED} took {seconds:.0f} of {total:.0f} seconds, once on this machine; a second run with the same "
        "limit gets further. `milpbn compile` compiles all kernels ahead of time."
    ]


def fit_classifier(dataset: Dataset, result: Result, options: Options | None = None) -> Classifier | None:
    """Fit the parameters of a result's structure, with the numbers of the result as provenance; None without data.

    The options may have costs, by which the classifier decides.
    """
    if result.structure is None or isinstance(dataset, LocalDataset):
        return None
    notes = dropped_notes(dataset.notes)
    about = {**vars(result.data), "rows_by_state": rows_by_state(dataset)}
    provenance = {
        "milpbn": __version__,
        "data": {**about, **({"notes": list(notes)} if notes else {})},
        "score": result.score.to_dict(),
        DESCRIBED: result.described_score,
        "among": result.among or None,
        "objective": result.objective,
        "bound": result.bound,
        "status": result.reason.value,
        "backend": vars(result.backend),
    }
    classifier = Classifier.fit(
        dataset,
        result.structure,
        result.score.smoothing,
        provenance,
        smoothing_towards=result.score.smoothing_towards,
    )
    return classifier if options is None else replace(classifier, decision=options.decision(dataset))
