"""Fits the parameters of a structure by one of the methods, within a time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from milpbn.data.dataset import Dataset
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import Cpt, fit_cpts, log_cpts, require_match, require_states
from milpbn.network.parameters.conditional import Stopped, fit_deviations
from milpbn.network.parameters.design import Design
from milpbn.network.parameters.folds import (
    KAPPAS,
    choose_kappa,
    choose_temperature,
    generative_log_joint,
    make_folds,
)
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.nearest import nearest
from milpbn.network.parameters.normalised import completed, normalised, widened
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.prior import UNIFORM, Prior
from milpbn.network.structure import Structure
from milpbn.util.clock import within
from milpbn.util.threads import library_threads

#: Share of the time for the choice of kappa and strength; the rest is for the fit to all rows.
CHOICE_SHARE = 0.7
#: Accuracy of the fit to all rows; see `fit_deviations`.
TOLERANCE = 1e-6
#: Notes of a record.
GENERATIVE = (
    "On held-out rows no other parameters were better than the generative ones, which the classifier has."
)
CUT_SHORT = "The time limit ended the choice of kappa and strength before all values were tried."


@dataclass(frozen=True, kw_only=True)
class Refit:
    """Parameters of a structure.

    Attributes
    ----------
    structure : Structure
        The given structure, or one with more arcs (`ParameterFit.added_arcs`).
    cpts : tuple of Cpt or None
        Its tables; None if the previous parameters are kept.
    record : ParameterFit
        How they were fitted, or why not.
    """

    structure: Structure
    cpts: tuple[Cpt, ...] | None
    record: ParameterFit


def refit(
    data: Dataset,
    structure: Structure,
    method: str,
    smoothing: float = 1.0,
    *,
    smoothing_towards: str = UNIFORM,
    objection: Callable[[Structure], str | None] | None = None,
    random_state: int = 0,
    deadline: float | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    report: Callable[[str], None] = lambda line: None,
    before: str = "generative",
) -> Refit:
    """Fit the parameters of a structure.

    Parameters
    ----------
    data : Dataset
        Training samples, without unknown values.
    structure : Structure
        Over the data's variables.
    method : str
        What `milpbn.network.parameters.method.ParameterMethod.parse` reads: a name, or a name with kappa and strength,
        which are then not chosen by folds.
    smoothing : float
        Laplace constant of the generative parameters. With 0 the previous parameters are kept, except under ``ml``.
    smoothing_towards : str
        What the generative parameters are smoothed towards, one of `milpbn.network.prior.TOWARDS`.
    objection : callable, optional
        Says why a structure with added arcs breaks a constraint; see `completed`.
    random_state : int
        Seed of the folds.
    deadline : float, optional
        `time.monotonic` value at which to give up.
    interrupted : callable
        Asked often; True means to give up.
    report : callable
        Called with lines about the progress.
    before : str
        Adjective of the previous parameters, for the note that they are kept because no others can be fitted.

    Raises
    ------
    InputError
        If the method does not exist, or the data have unknown values or another structure.
    """
    begun, prior = time.monotonic(), Prior(smoothing, smoothing_towards)
    how = ParameterMethod.parse(method)
    require_match(data, structure)
    require_states(data)
    if how.name == "ml":
        plain = tuple(fit_cpts(data, structure, *prior))
        return Refit(structure=structure, cpts=plain, record=ParameterFit())

    def stopping() -> bool:
        return interrupted() or (deadline is not None and time.monotonic() >= deadline)

    def choice_over() -> bool:
        late = deadline is not None and time.monotonic() >= begun + CHOICE_SHARE * (deadline - begun)
        return late or stopping()

    try:
        whole, added = _completed_structure(data, structure, smoothing, objection)
        if stopping():
            raise Stopped
        rows = np.flatnonzero(data.weights > 0)
        used = data if len(rows) == data.n_samples else data.take(rows)
        with library_threads(1):  # more threads of BLAS slow down the solver's products of short vectors
            fitted = _fit(used, structure, how, prior, random_state, (choice_over, stopping), report)
            cpts = _tables(fitted, whole, used, prior, stopping)
            found = Refit(structure=whole, cpts=cpts, record=fitted.record)
    except Stopped:
        record = give_up(how.name, before, interrupted=interrupted())
        found = Refit(structure=structure, cpts=None, record=record)
    except _NotFitted as reason:
        found = Refit(structure=structure, cpts=None, record=_kept(how.name, str(reason), before))
    record = found.record
    if record.fitted:
        names = structure.names
        record = replace(record, added_arcs=tuple((names[a], names[b]) for a, b in added))
    elif found.cpts is not None:
        found = replace(found, structure=structure, cpts=tuple(fit_cpts(data, structure, *prior)))
    return replace(found, record=replace(record, seconds=time.monotonic() - begun))


class _NotFitted(Exception):  # noqa: N818  # no error: the previous parameters are kept
    """Raised if no parameters can be fitted; the text is the reason, a clause."""


class _Fitted(NamedTuple):
    """Weights of the families, and how they were fitted."""

    weights: list[Cpt]
    record: ParameterFit


def _completed_structure(
    data: Dataset,
    structure: Structure,
    smoothing: float,
    objection: Callable[[Structure], str | None] | None,
) -> tuple[Structure, list[tuple[int, int]]]:
    """Return the structure whose tables hold the parameters, and the arcs that it has in addition."""
    if not smoothing > 0:
        raise _NotFitted("without smoothing some probabilities may be 0, and their logarithms infinite")
    whole, added, reason = completed(structure, data.n_states, objection)
    if reason is not None:
        raise _NotFitted(f"probability tables cannot hold the fitted parameters of this structure: {reason}")
    return whole, added


def _fit(
    data: Dataset,
    structure: Structure,
    method: ParameterMethod,
    prior: Prior,
    random_state: int,
    stopping: tuple[Callable[[], bool], Callable[[], bool]],
    report: Callable[[str], None],
) -> _Fitted:
    """Choose by folds unless the values are given, and fit to all rows; `stopping` ends the choice, and everything."""
    design = Design(data, structure)
    if method.given:
        assert method.kappa is not None
        record = ParameterFit(method=method.name, fitted=True, kappa=method.kappa, strength=method.strength)
    else:
        record = _chosen(data, structure, design, method.name, prior, random_state, stopping[0], report)
    if stopping[1]():
        raise Stopped
    kappa = 1.0 if record.kappa is None else record.kappa
    deviations = None
    if record.strength is not None:
        rows = design.rows(data)
        deviations = fit_deviations(
            rows,
            kappa * generative_log_joint(rows, data, structure, prior),
            record.strength,
            np.zeros((design.n_columns, data.n_classes)),
            tolerance=TOLERANCE,
            stopping=stopping[1],
        )
    return _Fitted(design.tables(log_cpts(data, structure, *prior), kappa, deviations), record)


def _chosen(
    data: Dataset,
    structure: Structure,
    design: Design,
    method: str,
    prior: Prior,
    random_state: int,
    stopping: Callable[[], bool],
    report: Callable[[str], None],
) -> ParameterFit:
    """Return kappa and strength that the folds choose; no fit where generative parameters are the best."""
    if data.n_samples < 2:
        raise _NotFitted("folds need at least two rows with a weight above 0")
    folds = make_folds(data, structure, prior, design, random_state)
    if method == "temperature":
        choice = choose_temperature(folds)
    else:
        choice = choose_kappa(
            folds,
            KAPPAS if method == "hybrid" else (0.0,),
            design.n_columns,
            with_generative=method == "hybrid",
            stopping=stopping,
            report=report,
        )
    generative = choice.strength is None and choice.kappa == 1.0
    return ParameterFit(
        method=method,
        fitted=not generative,
        kappa=None if generative else choice.kappa,
        strength=choice.strength,
        held_out_log_loss=choice.log_loss,
        generative_log_loss=choice.generative_log_loss,
        folds=choice.folds,
        note=" ".join([GENERATIVE] * generative + [CUT_SHORT] * (not choice.complete)),
    )


def _tables(
    fitted: _Fitted, structure: Structure, data: Dataset, prior: Prior, stopping: Callable[[], bool]
) -> tuple[Cpt, ...]:
    """Return normalised tables of the weights, nearest to the generative ones of all that have their posteriors."""
    weights = widened(fitted.weights, structure, data.n_states)
    cpts = normalised(
        structure, nearest(structure, weights, log_cpts(data, structure, *prior), stopping=stopping)
    )
    if cpts is None:
        raise _NotFitted("a fitted probability is below the smallest that float64 holds accurately")
    return tuple(cpts)


def _kept(method: str, why: str, before: str) -> ParameterFit:
    return ParameterFit(method=method, note=f"{why[0].upper()}{why[1:]}; the {before} parameters are kept.")


def give_up(method: str, before: str = "generative", *, interrupted: bool) -> ParameterFit:
    """Return the record of a fit that was stopped by the user, or by the time limit."""
    what = "run was interrupted" if interrupted else "time limit ended"
    return _kept(method, f"the {what} before the parameters were fitted", before)


def refit_classifier(
    classifier: Classifier,
    data: Dataset,
    method: str,
    *,
    objection: Callable[[Structure], str | None] | None = None,
    random_state: int = 0,
    deadline: float | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    report: Callable[[str], None] = lambda line: None,
    before: str = "generative",
) -> tuple[Classifier, ParameterFit]:
    """Return a classifier with refitted parameters, and the record, which its provenance holds as well.

    A fit that is not over `milpbn.util.clock.GRACE` seconds after it was asked to stop is no longer waited for.

    Parameters
    ----------
    classifier : Classifier
        Structure, smoothing and provenance; also its parameters where no others can be fitted.
    data, method, objection, random_state, deadline, interrupted, report, before
        As for `refit`.
    """
    abandoned = threading.Event()
    begun = time.monotonic()
    name = ParameterMethod.parse(method).name

    def abandoned_or_interrupted() -> bool:
        return abandoned.is_set() or interrupted()

    def work() -> Refit:
        return refit(
            data,
            classifier.structure,
            method,
            classifier.smoothing,
            smoothing_towards=classifier.smoothing_towards,
            objection=objection,
            random_state=random_state,
            deadline=deadline,
            interrupted=abandoned_or_interrupted,
            report=report,
            before=before,
        )

    def stopping() -> bool:
        return abandoned_or_interrupted() or (deadline is not None and time.monotonic() >= deadline)

    found, record = None, None
    try:
        found = within(work, stopping, name="milpbn-parameters")
    except KeyboardInterrupt:
        record = give_up(name, before, interrupted=True)
    except MemoryError:
        record = _kept(name, "the memory did not suffice for the fit of the parameters", before)
    finally:
        abandoned.set()
    if found is not None:
        record = found.record
    elif record is None:
        record = give_up(name, before, interrupted=interrupted())
    record = replace(record, seconds=time.monotonic() - begun)
    provenance = {**classifier.provenance, "parameters": record.to_dict()}
    if found is None or found.cpts is None:
        return replace(classifier, provenance=provenance), record
    fitted = replace(classifier, structure=found.structure, cpts=found.cpts, provenance=provenance)
    return fitted, record
