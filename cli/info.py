"""``milpbn info``: shows the contents of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.archive_info import describe_archive, is_archive
from milpbn.cli.report import say
from milpbn.cli.sections import verb
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA

if TYPE_CHECKING:
    from milpbn.network import Classifier, TableClassifier


@verb(short_help="Show the contents of a file.")
@click.argument("file", type=DATA)
@table_options
def info(file: str, table: TableOptions) -> None:
    """Show the contents of FILE: a classifier, result, certificate, checkpoint, learner's output, or table.

    It may also be the output of compare or stability, a model's sidecar, a catalog name or an embedded instance.

    \b
    Examples:
      milpbn info classifier.json
      milpbn info table.csv --target class
    """
    if is_archive(file):
        say(describe_archive(file))
    else:
        say(_describe_document(file) if _is_object(file) else _describe_table(file, table))


def _is_object(path: str) -> bool:
    """Whether a file holds a JSON object, by its first character."""
    try:
        with open(path, "rb") as opened:
            return opened.read(256).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    except (OSError, ValueError):
        return False


def _describe_document(path: str) -> str | list[str]:
    from milpbn.claims.local_result import FORMAT as LOCAL_SCORES
    from milpbn.claims.other_files import is_comparison
    from milpbn.claims.stability import FORMAT as STABILITY
    from milpbn.errors import InputError
    from milpbn.milp.files.sidecar import FORMAT as SIDECAR
    from milpbn.network.averaged import FORMAT as AVERAGED_CLASSIFIER
    from milpbn.network.formats.classifier_files import FORMAT as CLASSIFIER
    from milpbn.network.pseudo import FORMAT as PSEUDO_CLASSIFIER
    from milpbn.util.jsonable import parse_object, read_text

    try:
        document = parse_object(read_text(path, "file"))
    except InputError as error:
        raise InputError(f"The file {path!r} is unusable: {error}") from None
    if document.get("format") in (CLASSIFIER, PSEUDO_CLASSIFIER, AVERAGED_CLASSIFIER):
        return _describe_classifier(path)
    if document.get("format") == SIDECAR:
        return _describe_sidecar(path)
    if document.get("format") == LOCAL_SCORES:
        from milpbn.claims.local_result import LocalResult
        from milpbn.solving.local_scores import describe

        return describe(LocalResult.from_dict(document, f"The file {path!r}"), read=True)
    if "status" in document and "structure" in document:
        from milpbn.claims.result import Result
        from milpbn.solving.progress import closing_block

        return closing_block(Result.load(path), read=True)
    if document.get("format") == STABILITY:
        from milpbn.claims.stability import Stability

        return str(Stability.from_dict(document, f"The file {path!r}"))
    if is_comparison(document):
        from milpbn.learners.figures_files import read_comparison

        return str(read_comparison(document, f"The file {path!r}"))
    if isinstance(document.get("learner"), dict) and "structure" in document:
        return _describe_learned(path, document)
    raise InputError(
        f"The file {path!r} is neither a classifier, a result, a learner's output, a comparison, a stability run nor a "
        "sidecar of milpbn."
    )


def _describe_learned(path: str, document: Mapping[str, Any]) -> list[str]:
    """Describe what ``milpbn learn --output`` wrote."""
    from milpbn.errors import InputError
    from milpbn.network.classifier import left_out_of
    from milpbn.network.formats.classifier_files import parents_mapping
    from milpbn.network.parameters.record import recorded
    from milpbn.solving.progress import dropped_lines, left_out_lines, parameter_lines
    from milpbn.util.jsonable import finite_number, shorten

    learner = dict(document["learner"])
    name = learner.pop("name", "(unknown)")
    given = "".join(
        f", {key} = {value if isinstance(value, str) else shorten(value)}" for key, value in learner.items()
    )
    data = document.get("data")
    lines = [
        f"learnt    {path}",
        f"learner   {name}{given}",
        f"data      {data.get('name', '(unknown)') if isinstance(data, dict) else '(unknown)'}",
        *left_out_lines(left_out_of(document), 10),
    ]
    shares = document.get("accuracy")
    for rows, value in (shares if isinstance(shares, dict) else {}).items():
        share = finite_number(value)
        if share is not None and 0 <= share <= 1:
            lines.append(f"accuracy  {100 * share:.2f} % of {rows} rows")
    notes = document.get("notes")
    if isinstance(notes, list):
        lines += dropped_lines([note for note in notes if isinstance(note, str)], 10)
    lines += parameter_lines(recorded(document), 10)
    if not isinstance(document["structure"], dict):
        return [*lines, "structure (not an acyclic graph over the variables)"]
    try:
        parents = parents_mapping(document["structure"])
    except InputError as error:
        raise InputError(f"The file {path!r} is unusable: {error}") from None
    lines.append("structure")
    lines += [f"  {child}: {', '.join(members) or '(none)'}" for child, members in parents.items()]
    return lines


def _describe_classifier(path: str) -> list[str]:
    from milpbn.network import AveragedClassifier, PseudoClassifier, load_any_classifier

    classifier = load_any_classifier(path)
    if isinstance(classifier, PseudoClassifier):
        lines = [
            f"classifier  {path}",
            "learnt by   milpbn, as a pseudo-TAN: its graph may have cycles",
            "variables",
        ]
        return lines + _describe_variables(classifier)
    if isinstance(classifier, AveragedClassifier):
        lines = [
            f"classifier  {path}",
            f"average     of {len(classifier.members)} networks with equal weights: the mean of their posteriors",
        ]
        for number, member in enumerate(classifier.members, start=1):
            lines += [f"network     {number}", *_describe_network(member)]
        return lines
    return [f"classifier  {path}", *_describe_network(classifier)]


def _describe_network(classifier: Classifier) -> list[str]:
    """Return what the file says of one network, and a line per variable."""
    from milpbn.network.classifier import left_out_of
    from milpbn.network.parameters.record import recorded
    from milpbn.solving.progress import dropped_lines, left_out_lines, parameter_lines

    source = classifier.provenance
    data: Any = source.get("data")
    data = data if isinstance(data, dict) else {}
    notes = data.get("notes")
    notes = [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    towards = classifier.smoothing_towards
    if isinstance(source.get("read_from"), str):
        lines = [f"read from   {source['read_from']}", "variables"]
        return [*lines, *_describe_variables(classifier)]
    lines = [
        f"learnt by   milpbn {source.get('milpbn', '(unknown version)')}, smoothing {classifier.smoothing:g}"
        + (f" towards {towards}" if towards != "uniform" else ""),
        f"data        {data.get('name', '(unknown)')}: {data.get('samples', 'unknown number of')} samples",
        *dropped_lines(notes, 12),
        *left_out_lines(left_out_of(source), 12),
    ]
    lines += _describe_provenance(source)
    lines += parameter_lines(recorded(source), 12)
    return [*lines, "variables", *_describe_variables(classifier)]


def _describe_provenance(source: Mapping[str, Any]) -> list[str]:
    """Return what a classifier's file says about the run it comes from. The file holds no proof of it."""
    from milpbn.network.classifier import score_of
    from milpbn.util.jsonable import finite_number

    objective, bound = (finite_number(source.get(key)) for key in ("objective", "bound"))
    if objective is not None and bound is not None and bound < objective:
        return ["provenance  (contradicts itself: its bound is below its objective)"]
    shown = {
        "score": score_of(source) or None,
        "objective": objective,
        "bound": bound,
        "gap": None if objective is None or bound is None else f"{bound - objective:.6f} nats",
        "among": source.get("among") if isinstance(source.get("among"), str) else None,
    }
    lines = [f"{key:<12}{value}  (as the file says)" for key, value in shown.items() if value is not None]
    status = source.get("status")
    return [*lines, f"{'status':<12}{status}  (as the file says)"] if isinstance(status, str) else lines


def _describe_variables(classifier: TableClassifier) -> list[str]:
    """Return a line per variable: states, kind and parents."""
    names = [variable.name for variable in classifier.variables]
    lines = []
    for cpt, variable in zip(classifier.cpts, classifier.variables, strict=True):
        kind = "nominal" if variable.cuts is None else "discretised"
        kind += ", not used" if variable.n_states == 1 else ""
        mark = ", the class" if variable is classifier.variables[-1] else ""
        lines.append(
            f"  {variable.name}: {variable.n_states} states, {kind}{mark}; "
            f"parents: {', '.join(names[j] for j in cpt.parents) or '(none)'}"
        )
    return lines


def _describe_sidecar(path: str) -> list[str]:
    from milpbn.milp.files.sidecar import Sidecar
    from milpbn.problem.class_free import among

    sidecar = Sidecar.load(Path(path))
    score = sidecar.score.describe(arc_weights=sidecar.constraints.arc_weights)
    only = among(sidecar.score, sidecar.constraints)
    return [
        f"sidecar  {path}",
        f"data     {sidecar.data.get('name', '(unknown)')}: {len(sidecar.names) - 1} features",
        f"score    {score}",
        *([f"among    {only}"] if only else []),
        f"columns  {len(sidecar.columns)} parent sets, fingerprint {sidecar.fingerprint}",
    ]


def _describe_table(source: str, table: TableOptions) -> list[str]:
    import numpy as np

    read = table.read(source)
    dataset = read.dataset("train")
    test = len(read.test_indices)
    lines = [
        f"data      {dataset.name}: {dataset.n_samples} training samples"
        f"{f' and {test} test samples' if test else ''}, {dataset.merged.n_samples} different, "
        f"{dataset.n_features} features, {dataset.n_classes} classes",
        *(f"note      {note}" for note in dataset.notes),
        "variables",
    ]
    for variable in dataset.variables[:-1]:
        kind = "nominal" if variable.cuts is None else f"{len(variable.cuts)} cuts"
        kind += ", not used" if variable.n_states == 1 else ""
        lines.append(f"  {variable.name}: {variable.n_states} states, {kind}: {_shorten(variable.states)}")
    target = dataset.variables[-1]
    weights = np.bincount(dataset.y, weights=dataset.weights, minlength=target.n_states)
    lines.append(f"class {target.name}")
    lines += [f"  {label}: {weight:g}" for label, weight in zip(target.states, weights, strict=True)]
    return lines


def _shorten(states: tuple[str, ...], shown: int = 8) -> str:
    return ", ".join(states[:shown]) + (", ..." if len(states) > shown else "")
