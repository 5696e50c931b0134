"""Puts the page of a report together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset
from milpbn.data.request import DataRequest
from milpbn.drawing.html import facts, folded, note, words
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import TableClassifier
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.parameters.record import recorded_checks
from milpbn.plotting import (
    draw_choice,
    draw_importances,
    draw_margins,
    draw_prediction,
    draw_structure,
    draw_table,
    draw_trace,
)
from milpbn.report.accuracies import accuracies, figures_of
from milpbn.report.card import checklist, checklist_table, model_card
from milpbn.report.claims import headline, meaning_of_gap
from milpbn.report.command import repeat_commands
from milpbn.report.template import CHART, figure, page
from milpbn.solving.progress import show_gap
from milpbn.util.plurals import counted
from milpbn.version import __version__

#: Number of tables and of single predictions that are drawn.
TABLES, ROWS = 12, 3

#: What is said of networks with two variables of one column.
_COLUMNS = (
    "What a column says by itself is a curve over its intervals. What two columns say only together is a map, whose "
    "rows and columns have the mean 0. "
)

Losses = Mapping[tuple[int, int], float]


def report_page(
    result: Result,
    *,
    classifier: AnyClassifier | None = None,
    train: Dataset | None = None,
    test: Dataset | None = None,
    losses: Losses | None = None,
    version: str | None = None,
    request: DataRequest | None = None,
    rows: Mapping[str, int] | None = None,
) -> str:
    """Return a result as one web page, which has all its pictures and styles inside and no script.

    Parameters
    ----------
    result : Result
        The result.
    classifier : Classifier, PseudoClassifier or AveragedClassifier, optional
        The network with its parameters, for explanations and accuracies. Of an average the first network is explained.
    train, test : Dataset, optional
        Training and test rows, encoded with the classifier's variables.
    losses : mapping of (parent, child) to float, optional
        What the score loses without each arc (`milpbn.solving.gains.arc_losses`).
    version : str, optional
        Version of milpbn that found the result, if it is known.
    request : DataRequest, optional
        How to read the training data; by default as the result says.
    rows : mapping of str to int, optional
        Positions of the test rows (else of the training rows) that are explained, by what they are called; by default
        those with the lowest margins.
    """
    return report(result, classifier, train, test, losses, version, request, rows)[0]


def report(
    result: Result,
    classifier: AnyClassifier | None,
    train: Dataset | None,
    test: Dataset | None,
    losses: Losses | None,
    version: str | None,
    request: DataRequest | None,
    rows: Mapping[str, int] | None,
) -> tuple[str, dict[str, Any]]:
    """Return the page of `report_page`, and the model card beside it as JSON values."""
    has_class = result.data.classes > 0
    classifier = classifier if has_class else None
    figures = figures_of(classifier, train, test)
    read = request or result.request
    items = checklist(
        result,
        classifier=classifier,
        train=train if has_class else None,
        figures=figures,
        commands=repeat_commands(result, request),
        version=version,
        read={} if read is None else read.options,
    )
    sections = {
        "problem": ("The problem", _problem(result)),
        "answer": ("The answer", _answer(result)),
        "gap": (
            "The gap, and what it means",
            "".join(map(note, meaning_of_gap(result))),
        ),
        "network": ("The network", _network(result, losses)),
        "choice": ("The choice of cuts and penalties", _choice(result)),
        "explanations": ("What the network has learnt", _explanations(classifier, train, test, rows)),
        "accuracy": ("Accuracy", accuracies(result, classifier, train, test, figures)),
        "time": ("The search over time", _trace(result)),
        "reproduce": ("How to cite and reproduce", _reproduce(result, version, request)),
        "checklist": ("Checklist for a publication", checklist_table(items)),
    }
    if not sections["choice"][1]:
        del sections["choice"]
    if not has_class:
        del sections["explanations"], sections["accuracy"]
    kind = "classifier" if has_class else "of all variables"
    title = f"{words(result.data.name)}: Bayesian network {kind}"
    links = "".join(f'<a href="#{key}">{words(name)}</a> ' for key, (name, _) in sections.items())
    body = [
        f'<h1>{title}</h1><p class="lead">{words(headline(result))}</p><nav aria-label="Sections">{links}</nav>'
    ]
    body += [
        f'<section id="{key}"><h2>{words(name)}</h2>{content}</section>'
        for key, (name, content) in sections.items()
    ]
    text = page(f"milpbn report: {result.data.name}", "\n".join(body))
    return text, model_card(result, items, classifier, figures)


def _problem(result: Result) -> str:
    data, score = result.data, result.score
    rows = [
        ("data", data.name),
        ("samples", f"{data.samples}, of them {data.unique_samples} different"),
        ("variables", data.variables),
        ("SHA-256 of the data", data.sha256),
        ("score", result.described_score),
        (
            "parents of a variable",
            f"at most {score.max_parents}{', the class among them' if data.classes else ''}",
        ),
        *([("class parents", "allowed" if score.class_parents else "not allowed")] if data.classes else []),
        ("smoothing", f"{score.smoothing:g}"),
        *([("structures", f"only {result.among}")] if result.among else []),
    ]
    if constraints := {k: v for k, v in result.constraints.to_dict().items() if v or v == 0}:
        rows.append(("constraints", json.dumps(constraints, ensure_ascii=False)))
    notes = "".join(f"<li>{words(note)}</li>" for note in result.notes)
    return (
        "<p>Among all directed acyclic graphs within these options, milpbn seeks the one with the highest score. "
        "Scores are in nats, that is, natural logarithms.</p>"
        f"{facts(rows)}{f'<ul>{notes}</ul>' if notes else ''}"
    )


def _answer(result: Result) -> str:
    searched = result.searched
    shown = [
        ("score of the network (nats)", _nats(result.objective)),
        ("bound on every score (nats)", _nats(searched.bound)),
        ("gap (nats)", _nats(searched.gap.absolute)),
        ("gap relative to the bound", show_gap(searched.gap.relative_to_bound)),
        *([] if result.gap_se is None else [("gap in standard errors of the score", f"{result.gap_se:.3g}")]),
    ]
    tiles = "".join(f"<div><b>{words(value)}</b><span>{words(name)}</span></div>" for name, value in shown)
    status = str(result.reason)
    if result.limit is not None:
        status += f", stopped by: {result.limit}"
    rows = [
        ("status", status),
        ("searched by", result.backend.version),
        ("threads", result.backend.threads),
        ("workers", result.backend.workers),
        ("seconds", f"{result.seconds.total:.2f}"),
        ("nodes", result.nodes),
    ]
    return f'<div class="numbers">{tiles}</div>{facts(rows)}'


def _nats(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.6f}"


def _network(result: Result, losses: Losses | None) -> str:
    structure = result.structure
    if structure is None:
        return "<p>The run found no structure.</p>"
    has_class = result.data.classes > 0
    scene = draw_structure(structure, losses=losses, proved=result.proved, has_class=has_class)
    rows = ((name, ", ".join(parents) or "(none)") for name, parents in structure.to_mapping().items())
    what = "Colours say which features depend on the class." if has_class else ""
    if has_class and (losses is not None or result.proved is not None):
        what += " The short arrow in a box is the arc from the class."
    if losses is not None:
        what += " Numbers at arcs are what the score loses without them, in nats."
    if result.proved is not None:
        what += " Arcs that are not proved to be in every optimum are dashed."
    return figure(scene, what) + folded("Parents of every variable, as text", facts(rows))


def _choice(result: Result) -> str:
    fit = None if result.parameters is None else result.parameters.additive
    if fit is None:
        return ""
    said = "Another candidate is chosen if it is better on held-out rows by more than a quarter of a standard error."
    return note(said) + figure(draw_choice(fit)) + folded("In words", "".join(map(note, fit.describe())))


def _explanations(
    classifier: AnyClassifier | None,
    train: Dataset | None,
    test: Dataset | None,
    rows: Mapping[str, int] | None,
) -> str:
    if classifier is None:
        return "<p>Give the data or a classifier to see what the network has learnt.</p>"
    parts = []
    if isinstance(classifier, AveragedClassifier):
        averaged = counted(len(classifier.members), "network")
        parts.append(note(f"The classifier averages {averaged}. This is about the first of them."))
        classifier = classifier.members[0]
        train = test = None  # they are encoded for all networks
    data = train if test is None else test
    found = classifier.explain_global(data)
    which = "training" if test is None else "test"
    if found.importances is not None:
        parts.append(
            "<p>The log-odds of two classes are an exact sum: the base rate of the classes, a term for every feature "
            "that has the class as parent, and one for the parents of the class. "
            f"{_COLUMNS if any(table.form != 'family' for table in found.tables) else ''}The bars are the mean sizes "
            f"of these terms on the {which} rows.</p>{figure(draw_importances(found.importances, width=CHART))}"
        )
    if found.unused:
        few = ", ".join(found.unused[:30]) + (", ..." if len(found.unused) > 30 else "")
        parts.append(note(f"No prediction depends on {few}."))
    order = [
        (each.variable, each.given)
        for each in found.importances or ()
        if each.part in ("feature", "interaction")
    ]
    tables = sorted(
        found.tables,
        key=lambda t: order.index(key) if (key := (t.variable, t.parents)) in order else len(order),
    )
    inner = "".join(figure(draw_table(each, found.target)) for each in tables[:TABLES])
    which_tables = "All tables" if len(tables) <= TABLES else f"The {TABLES} tables that matter most"
    parts.append(folded(which_tables, inner))
    parts += [note(f"{str(check)[0].upper()}{str(check)[1:]}.") for check in recorded_checks(classifier)]
    margins = found.margins
    if margins is not None and data is not None and np.isfinite(margins.log_margins).any():
        parts.append(f"<h3>Margins of the {which} rows</h3>{figure(draw_margins(margins, width=CHART))}")
        lowest = margins.samples[np.argsort(margins.log_margins, kind="stable")[:ROWS]]
        if rows is None:
            drawn = _predictions(classifier, data, [("", int(row)) for row in lowest])
            said = f"The lowest margins, explained: {counted(len(drawn), f'{which} row')}"
            parts += [folded(said, "".join(drawn))] if drawn else []
    if rows and data is not None:
        drawn = _predictions(classifier, data, list(rows.items()))
        parts.append(folded(f"Predictions, explained: {', '.join(rows)}", "".join(drawn), opened=True))
    return "".join(parts)


def _predictions(classifier: TableClassifier, data: Dataset, rows: Sequence[tuple[str, int]]) -> list[str]:
    """Return pictures of predictions, each below the name of its row; none of those with infinite terms."""
    drawn = []
    own = data.take([row for _, row in rows])
    explained = classifier.explain_local(own)
    intervals, found = classifier.intervals_in_words(own, [each.label for each in explained])
    for (name, row), explanation, interval in zip(rows, explained, intervals, strict=True):
        if all(np.isfinite(each.log_odds) for each in explanation.contributions):
            head = f"<h4>{words(name)}</h4>" if name else ""
            said = interval if found is not None else ""
            drawn.append(head + figure(draw_prediction(replace(explanation, sample=row), width=CHART), said))
    return drawn


def _trace(result: Result) -> str:
    if not result.trace:
        return "<p>The result has no trace.</p>"
    integral = result.primal_dual_integral()
    more = "" if integral is None else f"<p>The integral of the gap over time is {integral:.3f} s.</p>"
    return (
        "<p>The incumbent never falls, and the bound never rises. A run that is stopped at any time has both.</p>"
        f"{figure(draw_trace(result, CHART))}{more}"
    )


def _reproduce(result: Result, version: str | None, request: DataRequest | None) -> str:
    found = version or "unknown"
    how = "The commands repeat the run, with the options that it kept."
    if request is None and result.request is None:
        how = (
            "The commands repeat the run; the result does not say how its data were read, so put their file in place "
            "of the name, and add the options of the table if there were any."
        )
    elif result.average is not None:
        how = "The commands repeat the run for the first network of the average, to which all numbers belong."
    elif result.selection is not None:
        how = "The commands repeat the run with the options that validation has chosen."
    commands = "\n".join(words(line) for line in repeat_commands(result, request))
    return (
        f"<p>The result was found by milpbn {words(found)}; this page was written by milpbn {words(__version__)}. "
        f"{how} A run that ends with a proof finds the same score again. A run that a time limit ends depends on the "
        f"machine.</p><pre>{commands}</pre>"
        "<p>The problem, the soft margin and its formulation as a mixed integer linear program are of</p>"
        "<pre>@inproceedings{PeharzPernkopf2012,\n"
        "  author    = {Robert Peharz and Franz Pernkopf},\n"
        "  title     = {Exact Maximum Margin Structure Learning of {Bayesian} Networks},\n"
        "  booktitle = {Proceedings of the 29th International Conference on Machine Learning (ICML)},\n"
        "  year      = {2012}\n}</pre>"
        f"<p>Cite the software as milpbn, version {words(found)}.</p>"
    )
