"""Classifiers of one structure with parameters for every kappa and strength, from which held-out rows choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from milpbn.data.dataset import Dataset
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import log_cpts
from milpbn.network.parameters.conditional import fit_deviations
from milpbn.network.parameters.design import Design
from milpbn.network.parameters.folds import STRENGTHS, TOLERANCE, generative_log_joint
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.nearest import nearest
from milpbn.network.parameters.normalised import completed, normalised, widened
from milpbn.network.prior import Prior
from milpbn.network.structure import Structure
from milpbn.util.threads import library_threads

#: Values of kappa by method. Those of ``hybrid`` are those of `milpbn.network.parameters.folds`, the most useful ones
#: first, since the time of a trial may end the path.
KAPPAS: Mapping[str, Sequence[float]] = {
    "ml": (1.0,),
    "cll": (0.0,),
    "hybrid": (0.5, 0.25, 0.75, 0.0, 1.0),
    "temperature": (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2),
}


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

    The fits are those of `milpbn.network.parameters.refit` with given values, to an accuracy that is enough for a
    comparison. Where tables cannot hold fitted parameters, there is only the classifier itself, under ``ml``. The path
    ends with `Stopped` if `stopping`, which is asked often, returns True.

    Parameters
    ----------
    classifier : Classifier
        With generative parameters from `data`.
    data : Dataset
        Training samples, without unknown values.
    method : str
        A name in `milpbn.network.parameters.method.METHODS`.
    objection, stopping : callable
        As for `milpbn.network.parameters.normalised.completed`, and as above.
    joint : bool
        Whether the joint distribution matters, too, because features of the compared rows are missing. It takes a
        fit of its own (`milpbn.network.parameters.nearest`), which changes nothing for complete rows.
    """
    if method in ("ml", "hybrid", "temperature"):
        yield ParameterMethod("ml"), classifier
    if method == "ml" or not classifier.smoothing > 0:
        return
    structure = classifier.structure
    prior = Prior(classifier.smoothing, classifier.smoothing_towards)
    whole, _, reason = completed(structure, data.n_states, objection)
    if reason is not None:
        return
    rows = np.flatnonzero(data.weights > 0)
    used = data if len(rows) == data.n_samples else data.take(rows)
    logs = log_cpts(used, structure, *prior)
    design = Design(used, structure)
    samples = design.rows(used)
    generative = generative_log_joint(samples, used, structure, prior)
    for kappa in KAPPAS[method]:
        deviations = np.zeros((design.n_columns, used.n_classes))
        strengths: list[float | None] = [] if method == "temperature" else list(STRENGTHS)
        for strength in ([] if method == "cll" or kappa in (0.0, 1.0) else [None]) + strengths:
            if strength is not None:
                with library_threads(1):  # as in `milpbn.network.parameters.refit`
                    deviations = fit_deviations(
                        samples,
                        kappa * generative,
                        strength,
                        deviations,
                        tolerance=TOLERANCE,
                        stopping=stopping,
                    )
            weights = design.tables(logs, kappa, None if strength is None else deviations)
            weights = widened(weights, whole, used.n_states)
            if joint:
                weights = nearest(whole, weights, log_cpts(used, whole, *prior), stopping=stopping)
            cpts = normalised(whole, weights)
            if cpts is not None:
                fitted = replace(classifier, structure=whole, cpts=tuple(cpts))
                yield ParameterMethod(method, kappa, strength), fitted
