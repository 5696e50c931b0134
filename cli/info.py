"""``milpbn info``: shows the contents of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.archive_info import describe_archive, is_archive
from milpbn.cli.report import say
from milpbn.cli.sections import verb
from milpbn.cli.steps import read_document
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.data.dataset import Variable
    from milpbn.network import Classifier, TableClassifier
    from milpbn.network.formats.classifier_files import AnyClassifier


@verb(short_help="Show the contents of a file.")
@click.argument("file", type=DATA)
@table_options
def info(file: str, table: TableOptions) -> None:
    """Show the contents of FILE: a classifier, result, certificate, checkpoint, learner's output, or table.

    It may also be the output of compare or stability, a model's sidecar, a network of another program (--target names
    its class), a catalog name or an embedded instance.

    \b
    Examples:
      milpbn info classifier.json
      milpbn info table.csv --target class
    """
    from milpbn.network.formats.classifier_files import OF_OTHERS
    from milpbn.network.formats.registry import read_network
    from milpbn.util.raw_files import ending_of

    if is_archive(file):
        say(describe_archive(file))
    elif _is_object(file):
        say(_describe_document(file))
    elif ending_of(file, OF_OTHERS):
        network = read_network(file, table.settings.get("target"))
        say([f"network     {file}", *_describe_any(network)])
    else:
        say(_describe_table(file, table))


def _is_object(path: str) -> bool:
    """Whether a file holds a JSON object, by its first character; a pipe can be read only once, as a table."""
    if not Path(path).is_file():
        return False
    try:
        with open(path, "rb") as opened:
            return opened.read(256).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    except (OSError, ValueError):
        return False


def _describe_document(path: str) -> str | list[str]:
    from milpbn.claims.other_files import is_comparison
    from milpbn.claims.stability import FORMAT as STABILITY
    from milpbn.claims.stability import Stability
    from milpbn.milp.files.sidecar import FORMAT as SIDECAR
    from milpbn.network import load_any_classifier
    from milpbn.network.formats.classifier_files import AVERAGED, PSEUDO
    from milpbn.network.formats.classifier_files import FORMAT as CLASSIFIER

    document, where = read_document(path), f"The file {path!r}"
    written = document.get("format")
    if written in (CLASSIFIER, PSEUDO, AVERAGED):
        return [f"classifier  {path}", *_describe_any(load_any_classifier(path))]
    if written == SIDECAR:
        return _describe_sidecar(path)
    if "status" in document and "structure" in document:
        from milpbn.claims.local_result import result_kind
        from milpbn.solving.progress import closing_block

        return closing_block(result_kind(document).load(path), read=True)
    if written == STABILITY:
        return str(Stability.from_dict(document, where))
    if is_comparison(document):
        from milpbn.learners.figures import Comparison

        return str(Comparison.read(document, where))
    if isinstance(document.get("learner"), dict) and "structure" in document:
        return _describe_learned(path, document)
    raise InputError(
        f"{where} is neither a classifier, a result, a learner's output, a comparison, a stability run nor a "
        "sidecar of milpbn."
    )


def _texts(value: Any) -> list[str]:
    """Return the texts in a list; a file may hold anything in its place."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return a JSON object; a file may hold anything in its place."""
    return value if isinstance(value, dict) else {}


def _describe_learned(path: str, document: Mapping[str, Any]) -> list[str]:
    """Describe what ``milpbn learn --output`` wrote."""
    from milpbn.data.left_out import left_out_of
    from milpbn.network.formats.classifier_files import parents_mapping
    from milpbn.network.parameters.record import recorded
    from milpbn.solving.progress import dropped_lines, left_out_lines, parameter_lines
    from milpbn.util.jsonable import finite_number, shorten

    options = {
        key: value if isinstance(value, str) else shorten(value) for key, value in document["learner"].items()
    }
    name = document["learner"].get("name", "(unknown)")
    given = "".join(f", {key} = {value}" for key, value in options.items() if key != "name")
    lines = [
        f"learnt     {path}",
        f"learner    {name}{given}",
        f"data       {_mapping(document.get('data')).get('name', '(unknown)')}",
        *left_out_lines(left_out_of(document)),
    ]
    unweighted = _mapping(document.get("unweighted_accuracy"))
    for rows, value in _mapping(document.get("accuracy")).items():
        share, once = finite_number(value), finite_number(unweighted.get(rows))
        if share is not None and 0 <= share <= 1:
            weighted = "" if once is None else f", weighted; {100 * once:.2f} % where each row counts once"
            lines.append(f"accuracy   {100 * share:.2f} % of {rows} rows{weighted}")
    lines += dropped_lines(_texts(document.get("notes")))
    lines += parameter_lines(recorded(document))
    if not isinstance(document["structure"], dict):
        return [*lines, "structure (not an acyclic graph over the variables)"]
    try:
        parents = parents_mapping(document["structure"])
    except InputError as error:
        raise InputError(f"The file {path!r} is unusable: {error}") from None
    lines.append("structure")
    return lines + [f"  {child}: {', '.join(members) or '(none)'}" for child, members in parents.items()]


def _describe_any(classifier: AnyClassifier) -> list[str]:
    from milpbn.network import AveragedClassifier, PseudoClassifier

    if isinstance(classifier, PseudoClassifier):
        learnt = "learnt by   milpbn, as a pseudo-TAN: its graph may have cycles"
        return [learnt, *_describe_variables(classifier)]
    if not isinstance(classifier, AveragedClassifier):
        return _describe_network(classifier)
    count = len(classifier.members)
    lines = [f"average     of {count} networks with equal weights: the mean of their posteriors"]
    for number, member in enumerate(classifier.members, start=1):
        lines += [f"network     {number}", *_describe_network(member)]
    return lines


def _describe_network(classifier: Classifier) -> list[str]:
    """Return what the file says of one network, and a line per variable."""
    from milpbn.data.left_out import left_out_of
    from milpbn.network.parameters.record import recorded
    from milpbn.solving.progress import dropped_lines, left_out_lines, parameter_lines

    source = classifier.provenance
    if isinstance(source.get("read_from"), str):
        return [f"read from   {source['read_from']}", *_describe_variables(classifier)]
    data, towards = _mapping(source.get("data")), classifier.smoothing_towards
    return [
        f"learnt by   milpbn {source.get('milpbn', '(unknown version)')}, smoothing {classifier.smoothing:g}"
        + (f" towards {towards}" if towards != "uniform" else ""),
        f"data        {data.get('name', '(unknown)')}: {data.get('samples', 'unknown number of')} samples",
        *dropped_lines(_texts(data.get("notes")), 12),
        *left_out_lines(left_out_of(source), 12),
        *_describe_provenance(source),
        *parameter_lines(recorded(source), 12),
        *(
            []
            if (rule := classifier.decision) is None
            else [f"decision    {rule.described(classifier.classes)}"]
        ),
        *([] if (sets := classifier.conformal) is None else [f"sets        calibrated on {sets.origin}"]),
        *_describe_variables(classifier),
    ]


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


def _kind(variable: Variable, cut: str) -> str:
    """Return the kind of a variable, where `cut` is that of one with cuts."""
    kind = "nominal" if variable.cuts is None else cut
    return f"{kind}, not used" if variable.n_states == 1 else kind


def _describe_variables(classifier: TableClassifier) -> list[str]:
    """Return a heading, and a line per variable: states, kind and parents."""
    names = [variable.name for variable in classifier.variables]
    lines = ["variables"]
    for cpt, variable in zip(classifier.cpts, classifier.variables, strict=True):
        mark = ", the class" if classifier.has_class and variable is classifier.variables[-1] else ""
        mark = mark if variable.column is None else f", of the column {variable.column}"
        lines.append(
            f"  {variable.name}: {variable.n_states} states, {_kind(variable, 'discretised')}{mark}; "
            f"parents: {', '.join(names[j] for j in cpt.parents) or '(none)'}"
        )
    return lines


def _describe_sidecar(path: str) -> list[str]:
    from milpbn.milp.files.sidecar import Sidecar
    from milpbn.problem.class_free import among

    sidecar = Sidecar.load(Path(path))
    score = sidecar.score.describe(arc_weights=sidecar.constraints.arc_weights)
    only, size = among(sidecar.score, sidecar.constraints), len(sidecar.names)
    return [
        f"sidecar  {path}",
        f"data     {sidecar.data.get('name', '(unknown)')}: "
        + (f"{size - 1} features" if sidecar.data.get("classes") != 0 else f"{size} variables, no class"),
        f"score    {score}",
        *([f"among    {only}"] if only else []),
        f"columns  {len(sidecar.columns)} parent sets, fingerprint {sidecar.fingerprint}",
    ]


def _describe_table(source: str, table: TableOptions) -> list[str]:
    import numpy as np

    from milpbn.claims.about import DataSummary

    read = table.read(source)
    dataset = read.dataset("train")
    test = len(read.test_indices)
    features, target = dataset.variables, dataset.variables[-1]
    if dataset.has_class:
        features = features[:-1]
    lines = [
        f"data      {dataset.name}: {dataset.n_samples} training samples"
        f"{f' and {test} test samples' if test else ''}, {dataset.merged.n_samples} different, "
        + DataSummary.of(dataset).variables,
        *(f"note      {note}" for note in dataset.notes),
        "variables",
    ]
    for variable in features:
        kind = _kind(variable, f"{len(variable.cuts or ())} cuts")
        states = ", ".join(variable.states[:8]) + (", ..." if variable.n_states > 8 else "")
        lines.append(f"  {variable.name}: {variable.n_states} states, {kind}: {states}")
    if not dataset.has_class:
        return lines
    weights = np.bincount(dataset.y, weights=dataset.weights, minlength=target.n_states)
    lines.append(f"class {target.name}")
    return lines + [f"  {label}: {weight:g}" for label, weight in zip(target.states, weights, strict=True)]
