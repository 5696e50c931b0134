"""Fits the parameters of a structure: by one of the methods within a time limit, or for all values of a method."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from milpbn.data.dataset import Dataset
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import fit_cpts, require_match, require_states
from milpbn.network.monotone.constraints import MonotoneConstraint, StateOrder
from milpbn.network.parameters.conditional import TOLERANCE, Stopped
from milpbn.network.parameters.folds import (
    KAPPAS,
    STRENGTHS,
    choose_kappa,
    choose_temperature,
    make_folds,
)
from milpbn.network.parameters.folds import TOLERANCE as PATH_TOLERANCE
from milpbn.network.parameters.log_linear import LogLinear, NotFitted
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.monotone_fit import checked, made_monotone, monotone_fit
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget, Limit
from milpbn.util.clock import within
from milpbn.util.threads import library_threads

#: Share of the time for the choice of kappa and strength; the rest is for the fit to all rows.
CHOICE_SHARE = 0.7
#: Values of kappa on a path, by method; under ``hybrid`` the most useful ones first, as the time may end the path.
PATH_KAPPAS: Mapping[str, Sequence[float]] = {
    "cll": (0.0,),
    "hybrid": (0.5, 0.25, 0.75, 0.0, 1.0),
    "temperature": (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2),
}


def refit_classifier(
    classifier: Classifier,
    data: Dataset,
    method: str,
    *,
    objection: Callable[[Structure], str | None] | None = None,
    random_state: int = 0,
    budget: Budget | None = None,
    report: Callable[[str], None] = lambda line: None,
    before: str = "generative",
    monotone: Sequence[MonotoneConstraint] = (),
) -> tuple[Classifier, ParameterFit]:
    """Return a classifier with refitted parameters, and the record, which its provenance holds as well.

    A fit that is not over `milpbn.util.clock.GRACE` seconds after it was asked to stop is no longer waited for.
    `InputError` if the method does not exist, or the data have unknown values or another structure.

    Parameters
    ----------
    classifier : Classifier
        Structure, smoothing and provenance; also its parameters where no others can be fitted. Without smoothing
        they are kept, except under ``ml``. Its structure may get more arcs (`ParameterFit.added_arcs`).
    data : Dataset
        Training samples, without unknown values.
    method : str
        What `milpbn.network.parameters.method.ParameterMethod.parse` reads: a name, or a name with kappa and
        strength, which are then not chosen by folds.
    objection : callable, optional
        Says why a structure with added arcs breaks a constraint; see `completed`.
    random_state : int
        Seed of the folds.
    report : callable
        Called with lines about the progress.
    before : str
        Adjective of the previous parameters, for the note that they are kept because no others can be fitted.
    monotone : sequence of MonotoneConstraint
        Features in which the log-odds never fall or never rise. They take deviations; where a method has none, their
        strength is the largest one of `STRENGTHS`. If there is no time for a fit, neighbouring states share weights.
    """
    how, own = ParameterMethod.parse(method), Budget(whole=budget)
    orders = tuple(StateOrder.of(constraint, classifier.variables) for constraint in monotone)
    fit = partial(_fitted, classifier, data, how, objection, random_state, own, report, orders)
    found = None
    try:
        found = within(fit, own.over, name="milpbn-parameters")
        record = give_up(how.name, own.stopped, before) if found is None else found[1]
    except Stopped:
        record = give_up(how.name, own.stopped, before)
    except KeyboardInterrupt:
        record = give_up(how.name, Limit.USER, before)
    except MemoryError:
        record = _kept(how.name, "the memory did not suffice for the fit of the parameters", before)
    except NotFitted as reason:
        record = _kept(how.name, str(reason), before)
    finally:
        own.close()  # a thread that nobody waits for may still fit
    changed = classifier if found is None else found[0]
    if monotone and found is None:
        changed, record = made_monotone(classifier, monotone, record, objection)
    elif monotone:
        record = checked(changed, monotone, record)
    record = replace(record, seconds=time.monotonic() - own.began)
    provenance = {**classifier.provenance, "parameters": record.to_dict()}
    return replace(changed, provenance=provenance), record


def _fitted(
    classifier: Classifier,
    data: Dataset,
    method: ParameterMethod,
    objection: Callable[[Structure], str | None] | None,
    random_state: int,
    budget: Budget,
    report: Callable[[str], None],
    orders: Sequence[StateOrder],
) -> tuple[Classifier, ParameterFit]:
    """Return the classifier with other parameters, and how they were fitted; see `refit_classifier`."""
    structure = classifier.structure
    require_match(data, structure)
    require_states(data)
    if method.name == "ml" and not orders:
        return _generative(classifier, data), ParameterFit()
    model = LogLinear(classifier, data, objection, {i for order in orders for i in order.places})
    if budget.over():
        raise Stopped
    with library_threads(1):  # more threads of BLAS slow down the solver's products of short vectors
        if method.given:
            record = ParameterFit(
                method=method.name, fitted=True, kappa=method.kappa, strength=method.strength
            )
        else:
            record = _chosen(model, method.name, random_state, budget, report)
        if budget.over():
            raise Stopped
        if orders:
            record, weights = monotone_fit(model, orders, classifier, record, random_state, budget.over)
        else:
            kappa, deviations = 1.0 if record.kappa is None else record.kappa, None
            if record.strength is not None:
                deviations = model.deviations(kappa, record.strength, model.origin(), TOLERANCE, budget.over)
            weights = model.weights(kappa, deviations)
        cpts = model.tables(weights, budget.over)
    if cpts is None:
        raise NotFitted("a fitted probability is below the smallest that float64 holds accurately")
    if not record.fitted:
        return _generative(classifier, data), record
    names = structure.names
    record = replace(record, added_arcs=tuple((names[a], names[b]) for a, b in model.added))
    return replace(classifier, structure=model.whole, cpts=cpts), record


def _generative(classifier: Classifier, data: Dataset) -> Classifier:
    cpts = fit_cpts(data, classifier.structure, classifier.smoothing, classifier.smoothing_towards)
    return replace(classifier, cpts=tuple(cpts))


def _chosen(
    model: LogLinear,
    method: str,
    random_state: int,
    budget: Budget,
    report: Callable[[str], None],
) -> ParameterFit:
    """Return kappa and strength that folds choose, within a share of the time."""
    if model.data.n_samples < 2:
        raise NotFitted("folds need at least two rows with a weight above 0")
    folds = make_folds(model.data, model.structure, model.prior, model.design, random_state)
    if method == "temperature":
        return choose_temperature(folds)
    part = budget.share(CHOICE_SHARE)
    kappas = KAPPAS if method == "hybrid" else (0.0,)
    return choose_kappa(folds, method, kappas, model.design.n_columns, stopping=part.over, report=report)


def fitted_path(
    classifier: Classifier,
    data: Dataset,
    method: str,
    *,
    objection: Callable[[Structure], str | None] | None = None,
    stopping: Callable[[], bool] = lambda: False,
    joint: bool = False,
) -> Iterator[tuple[ParameterMethod, Classifier]]:
    """Yield one classifier for each kappa and strength that a method compares, with these values before it.

    The fits are those of `refit_classifier` with given values, to an accuracy that is enough for a comparison. Where
    tables cannot hold fitted parameters, there is only the classifier itself, under ``ml``. `Stopped` ends the path if
    `stopping`, which is asked often, returns True.

    Parameters
    ----------
    classifier : Classifier
        With generative parameters from `data`.
    data : Dataset
        Training samples, without unknown values.
    method : str
        A name in `milpbn.network.parameters.method.METHODS`.
    objection : callable, optional
        As for `milpbn.network.parameters.normalised.completed`.
    joint : bool
        Whether the joint distribution matters, too, because features of the compared rows are missing. It takes a fit
        of its own (`milpbn.network.parameters.nearest`), which changes nothing for complete rows.
    """
    if method != "cll":
        yield ParameterMethod("ml"), classifier
    if method == "ml":
        return
    try:
        model = LogLinear(classifier, data, objection)
    except NotFitted:
        return
    for kappa in PATH_KAPPAS[method]:
        deviations = model.origin()
        strengths: list[float | None] = [] if method == "temperature" else list(STRENGTHS)
        for strength in ([] if method == "cll" or kappa in (0.0, 1.0) else [None]) + strengths:
            if strength is not None:
                with library_threads(1):  # as in `_fitted`
                    deviations = model.deviations(kappa, strength, deviations, PATH_TOLERANCE, stopping)
            weights = model.weights(kappa, None if strength is None else deviations)
            cpts = model.tables(weights, stopping, joint)
            if cpts is not None:
                fitted = replace(classifier, structure=model.whole, cpts=cpts)
                yield ParameterMethod(method, kappa, strength), fitted


def _kept(method: str, why: str, before: str) -> ParameterFit:
    return ParameterFit(method=method, note=f"{why[0].upper()}{why[1:]}; the {before} parameters are kept.")


def give_up(method: str, limit: Limit | None, before: str = "generative") -> ParameterFit:
    """Return the record of a fit that was stopped."""
    what: dict[Limit | None, str]
    what = {Limit.USER: "run was interrupted", Limit.MEMORY: "memory limit was nearly reached"}
    reason = f"the {what.get(limit, 'time limit ended')} before the parameters were fitted"
    return _kept(method, reason, before)
