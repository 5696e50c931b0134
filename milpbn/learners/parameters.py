"""Learners whose structures get other parameters than the learners' own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from milpbn.data.dataset import Dataset
from milpbn.learners.base import Control, Learned, Learner
from milpbn.network.classifier import Classifier
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.parameters.refit import refit_classifier
from milpbn.util.budget import Budget
from milpbn.util.clock import PARAMETERS_SHARE

#: Adjective of the parameters that are kept where no others can be fitted; see `refit_classifier`.
BEFORE = "learner's"


def learn_with_parameters(
    learner: Learner, data: Dataset, control: Control, budget: Budget | None = None
) -> Learned:
    """Learn, and fit the structure's parameters anew if the control asks for it.

    Except under ``ml``, the fit has `PARAMETERS_SHARE` of a time limit, and what the learner left of the rest. The
    budget is as for `Learner.fit`.

    Returns
    -------
    Learned
        With the record (`ParameterFit.to_dict`) as ``parameters`` in the details, if parameters were asked for. Its
        structure is the learner's; that of the classifier may have more arcs (`ParameterFit.added_arcs`).

    Raises
    ------
    InputError, NoIncumbentError
        As `Learner.fit`.
    """
    method = control.parameters
    if method is None:
        return learner.fit(data, control, budget)
    budget = budget or control.budget()
    learned = learner.fit(data, control, budget if method == "ml" else budget.share(1.0 - PARAMETERS_SHARE))
    if method == "ml" and getattr(learned.predictor, "smoothing", None) == 0:
        return learned  # its own relative frequencies, with a small number instead of zeros
    if not isinstance(learned.predictor, Classifier):
        note = "The model is not an acyclic graph over the variables; the learner's parameters are kept."
        return _recorded(learned, ParameterFit(method=ParameterMethod.parse(method).name, note=note))
    classifier, record = refit_classifier(
        learned.predictor,
        data,
        method,
        random_state=control.random_state,
        budget=budget,
        report=control.report,
        before=BEFORE,
    )
    return _recorded(replace(learned, predictor=classifier), record)


def _recorded(learned: Learned, record: ParameterFit) -> Learned:
    return replace(learned, details={**learned.details, "parameters": record.to_dict()})


def note_on_parameters(details: Mapping[str, Any]) -> str:
    """Return a note for a table on the parameters in the details of a learner or an exact search; empty without any."""
    record = details.get("parameters")
    if not record or record["method"] == "ml":
        return ""
    if not record["fitted"]:
        return str(record["note"]).rstrip(".")
    arcs = "".join(f", with {parent} -> {child}" for parent, child in record["added_arcs"])
    strength = "" if record["strength"] is None else f", strength {record['strength']:g}"
    return f"parameters {record['method']}, kappa {record['kappa']:.4g}{strength}{arcs}"
