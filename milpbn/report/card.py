"""What a publication of a Bayesian network should say, filled in as far as the result knows it; and a model card.

The items are this project's own list; journals may ask for others ("Reporting Standards for Bayesian Network
Modelling", Entropy 27(1):69, 2025, is such a standard). What only the author knows is left open.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from milpbn.claims.about import COMPILED, ONLY_SMALL
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset, Variable, finest
from milpbn.drawing.html import words
from milpbn.network.evaluation import Evaluation
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.report.claims import headline
from milpbn.util.plurals import counted

#: What a checklist says of each item by section; None where only the author can say it.
Checklist: TypeAlias = "dict[str, dict[str, str | None]]"
#: Most columns whose states the page names, and most states of one.
_MOST = 12
#: Value of the key ``format`` of the file.
FORMAT = "milpbn-model-card"


def checklist(
    result: Result,
    *,
    classifier: AnyClassifier | None,
    train: Dataset | None,
    figures: Sequence[tuple[str, Evaluation]],
    commands: Sequence[str],
    version: str | None,
    read: Mapping[str, Any],
) -> Checklist:
    """Return the items to report; `figures` are of training and test rows, `read` has the options of the table."""
    data, score, selection, fit = result.data, result.score, result.selection, result.parameters
    variables: tuple[Variable, ...] = () if classifier is None else classifier.variables
    rule = None if classifier is None else classifier.decision
    chosen = {**read, **({} if selection is None else selection.options)}
    cut = {v.raw_column for v in variables if v.cuts is not None}
    rules = {k: v for k, v in result.constraints.to_dict().items() if v or v == 0}
    counts = (
        []
        if train is None
        else [f"{c} {np.count_nonzero(train.y == k)}" for k, c in enumerate(train.variables[-1].states)]
    )
    about = [note for note in result.notes if not note.startswith((COMPILED, ONLY_SMALL))]
    states = []
    for column, i in finest(variables).items():
        own = variables[i].states
        states.append(f"{column}: {', '.join(own) if len(own) <= _MOST else f'{len(own)} states'}")
    return {
        "Purpose": {
            "question and intended use": None,
            "who may use it, and for what it must not be used": None,
            "decisions": None if rule is None else f"chooses {rule.described(variables[-1].states)}",
        },
        "Data": {
            "where, when and by whom collected; consent": None,
            "name and hash": f"{data.name}, SHA-256 {data.sha256}",
            "training rows": _joined([f"{data.samples}", *about]),
            "variables": f"{data.variables}",
            "class frequencies": ", ".join(counts) or None,
            "missing values": f"in training: {chosen.get('missing', 'drop')}; marginalised in predictions",
        },
        "Discretisation": {
            "method": f"{chosen.get('discretise', 'mdl')}, of {counted(len(cut), 'column')}, on the training rows",
            "states": "; ".join(states[:_MOST] + ["..."] * (len(states) > _MOST)) or None,
        },
        "Structure": {
            "expert knowledge": json.dumps(rules, ensure_ascii=False)
            if rules
            else "no arc was required or forbidden",
            "learnt by": f"{result.described_score}, {score.max_parents} parents at most; {result.backend.version}",
            "chosen among": None
            if selection is None
            else f"{len(selection.trials)} settings, {selection.protocol}",
            "how far from the best": headline(result),
            "causal meaning of the arcs": None,
        },
        "Parameters": {
            "estimated by": _joined(() if fit is None else fit.describe())
            or f"frequencies, smoothed by {score.smoothing:g}",
            "number of free parameters": f"{getattr(classifier, 'n_parameters', 'unknown')}",
        },
        "Validation": {
            **{f"on {which} rows": repr(one)[1:-1] for which, one in figures},
            **({} if len(figures) > 1 else {"on rows that training did not see": None}),
            "by experts, or in use": None,
        },
        "Availability": {
            "software": f"milpbn {version or 'unknown'}",
            "commands": "; ".join(commands),
            "where model, data and code can be had; licence": None,
        },
    }


def _joined(sentences: Iterable[str]) -> str:
    return "; ".join(sentence.rstrip(".") for sentence in sentences)


def checklist_table(found: Checklist) -> str:
    """Return the checklist as a table of the page."""
    rows = ""
    for section, items in found.items():
        rows += f'<tr><th colspan="2"><b>{words(section)}</b></th></tr>'
        for item, value in items.items():
            told = '<span class="muted">to be written by the author</span>' if value is None else words(value)
            rows += f'<tr><th scope="row">{words(item)}</th><td>{told}</td></tr>'
    return (
        "<p>What a publication of a Bayesian network should say, by milpbn's own list. Compare it with the list of a "
        "reporting standard, such as Entropy 27(1):69 (2025). What the result knows is filled in.</p>"
        f'<div class="mb-scroll"><table><tbody>{rows}</tbody></table></div>'
    )


def model_card(
    result: Result,
    found: Checklist,
    classifier: AnyClassifier | None,
    figures: Sequence[tuple[str, Evaluation]],
) -> dict[str, Any]:
    """Return the checklist, the variables and the figures as JSON values."""
    variables: tuple[Variable, ...] = () if classifier is None else classifier.variables
    return {
        "format": FORMAT,
        "version": 1,
        "name": result.data.name,
        "reporting": found,
        "variables": [{"name": v.name, "column": v.raw_column, "states": list(v.states)} for v in variables],
        "evaluation": {which: one.to_dict() for which, one in figures},
    }
