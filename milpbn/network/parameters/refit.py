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
from milpbn.network.prior import Prior
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


class Until(NamedTuple):
    """How long a fit may go on: until a `time.monotonic` value, or until the user interrupts it."""

    deadline: float | None = None
    interrupted: Callable[[], bool] = lambda: False

    def over(self) -> bool:
        """Return whether to give up now."""
        return self.interrupted() or (self.deadline is not None and time.monotonic() >= self.deadline)


def refit_classifier(
    classifier: Classifier,
    data: Dataset,
    method: str,
    *,
    objection: Callable[[Structure], str | None] | None = None,
    random_state: int = 0,
    until: Until = Until(),  # noqa: B008  # immutable
    report: Callable[[str], None] = lambda line: None,
    before: str = "generative",
) -> tuple[Classifier, ParameterFit]:
    """Return a classifier with refitted parameters, and the record, which its provenance holds as well.

    A fit that is not over `milpbn.util.clock.GRACE` seconds after it was asked to stop is no longer waited for.

    Parameters
    ----------
    classifier : Classifier
        Structure, smoothing and provenance; also its parameters where no others can be fitted. Without smoothing they
        are kept, except under ``ml``. Its structure may get more arcs (`ParameterFit.added_arcs`).
    data : Dataset
        Training samples, without unknown values.
    method : str
        What `milpbn.network.parameters.method.ParameterMethod.parse` reads: a name, or a name with kappa and strength,
        which are then not chosen by folds.
    objection : callable, optional
        Says why a structure with added arcs breaks a constraint; see `completed`.
    random_state : int
        Seed of the folds.
    until : Until
        When to give up.
    report : callable
        Called with lines about the progress.
    before : str
        Adjective of the previous parameters, for the note that they are kept because no others can be fitted.

    Raises
    ------
    InputError
        If the method does not exist, or the data have unknown values or another structure.
    """
    begun, how, abandoned = time.monotonic(), ParameterMethod.parse(method), threading.Event()
    limit = until._replace(interrupted=lambda: abandoned.is_set() or until.interrupted())
    fit = _Fit(classifier, data, how, objection, random_state, limit, report)
    found = None
    try:
        found = within(fit.run, limit.over, name="milpbn-parameters")
        record = give_up(how.name, before, interrupted=until.interrupted()) if found is None else found[1]
    except Stopped:
        record = give_up(how.name, before, interrupted=until.interrupted())
    except KeyboardInterrupt:
        record = give_up(how.name, before, interrupted=True)
    except MemoryError:
        record = _kept(how.name, "the memory did not suffice for the fit of the parameters", before)
    except _NotFitted as reason:
        record = _kept(how.name, str(reason), before)
    finally:
        abandoned.set()
    record = replace(record, seconds=time.monotonic() - begun)
    provenance = {**classifier.provenance, "parameters": record.to_dict()}
    return replace(classifier if found is None else found[0], provenance=provenance), record


class _NotFitted(Exception):  # noqa: N818  # no error: the previous parameters are kept
    """Raised if no parameters can be fitted; the text is the reason, a clause."""


@dataclass(frozen=True)
class _Fit:
    """A fit of the parameters of a classifier's structure; the attributes are parameters of `refit_classifier`."""

    classifier: Classifier
    data: Dataset
    method: ParameterMethod
    objection: Callable[[Structure], str | None] | None
    random_state: int
    until: Until
    report: Callable[[str], None]

    @property
    def structure(self) -> Structure:
        """The classifier's structure."""
        return self.classifier.structure

    @property
    def prior(self) -> Prior:
        """The prior of the generative parameters."""
        return Prior(self.classifier.smoothing, self.classifier.smoothing_towards)

    def run(self) -> tuple[Classifier, ParameterFit]:
        """Return the classifier with other parameters, and how they were fitted."""
        begun, data = time.monotonic(), self.data
        require_match(data, self.structure)
        require_states(data)
        if self.method.name == "ml":
            return self._generative(), ParameterFit()
        whole, added = self._completed()
        if self.until.over():
            raise Stopped
        rows = np.flatnonzero(data.weights > 0)
        used = data if len(rows) == data.n_samples else data.take(rows)
        with library_threads(1):  # more threads of BLAS slow down the solver's products of short vectors
            weights, record = self._weights(used, begun)
            cpts = self._tables(widened(weights, whole, used.n_states), whole, used)
        if not record.fitted:
            return self._generative(), record
        names = self.structure.names
        record = replace(record, added_arcs=tuple((names[a], names[b]) for a, b in added))
        return replace(self.classifier, structure=whole, cpts=cpts), record

    def _generative(self) -> Classifier:
        return replace(self.classifier, cpts=tuple(fit_cpts(self.data, self.structure, *self.prior)))

    def _completed(self) -> tuple[Structure, list[tuple[int, int]]]:
        """Return the structure whose tables hold the parameters, and the arcs that it has in addition."""
        if not self.prior.smoothing > 0:
            raise _NotFitted("without smoothing some probabilities may be 0, and their logarithms infinite")
        whole, added, reason = completed(self.structure, self.data.n_states, self.objection)
        if reason is not None:
            raise _NotFitted(
                f"probability tables cannot hold the fitted parameters of this structure: {reason}"
            )
        return whole, added

    def _weights(self, data: Dataset, begun: float) -> tuple[list[Cpt], ParameterFit]:
        """Choose by folds unless the values are given, fit to all rows, and return the weights of the families."""
        design = Design(data, self.structure)
        if self.method.given:
            kappa, strength = self.method.kappa, self.method.strength
            record = ParameterFit(method=self.method.name, fitted=True, kappa=kappa, strength=strength)
        else:
            record = self._chosen(data, design, begun)
        if self.until.over():
            raise Stopped
        kappa = 1.0 if record.kappa is None else record.kappa
        deviations = None
        if record.strength is not None:
            rows = design.rows(data)
            deviations = fit_deviations(
                rows,
                kappa * generative_log_joint(rows, data, self.structure, self.prior),
                record.strength,
                np.zeros((design.n_columns, data.n_classes)),
                tolerance=TOLERANCE,
                stopping=self.until.over,
            )
        return design.tables(log_cpts(data, self.structure, *self.prior), kappa, deviations), record

    def _chosen(self, data: Dataset, design: Design, begun: float) -> ParameterFit:
        """Return kappa and strength that the folds choose; no fit where generative parameters are the best."""
        if data.n_samples < 2:
            raise _NotFitted("folds need at least two rows with a weight above 0")
        folds = make_folds(data, self.structure, self.prior, design, self.random_state)
        method, limit = self.method.name, self.until
        if limit.deadline is not None:
            limit = limit._replace(deadline=begun + CHOICE_SHARE * (limit.deadline - begun))
        if method == "temperature":
            choice = choose_temperature(folds)
        else:
            choice = choose_kappa(
                folds,
                KAPPAS if method == "hybrid" else (0.0,),
                design.n_columns,
                with_generative=method == "hybrid",
                stopping=limit.over,
                report=self.report,
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

    def _tables(self, weights: list[Cpt], structure: Structure, data: Dataset) -> tuple[Cpt, ...]:
        """Return normalised tables of the weights, nearest to the generative ones of all that have their posteriors."""
        generative = log_cpts(data, structure, *self.prior)
        cpts = normalised(structure, nearest(structure, weights, generative, stopping=self.until.over))
        if cpts is None:
            raise _NotFitted("a fitted probability is below the smallest that float64 holds accurately")
        return tuple(cpts)


def _kept(method: str, why: str, before: str) -> ParameterFit:
    return ParameterFit(method=method, note=f"{why[0].upper()}{why[1:]}; the {before} parameters are kept.")


def give_up(method: str, before: str = "generative", *, interrupted: bool) -> ParameterFit:
    """Return the record of a fit that was stopped by the user, or by the time limit."""
    what = "run was interrupted" if interrupted else "time limit ended"
    return _kept(method, f"the {what} before the parameters were fitted", before)
