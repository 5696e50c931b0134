"""``milpbn plot``: draws results, networks, margins, tables, explanations and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli import completion
from milpbn.cli.explain import check_row
from milpbn.cli.sections import option, options, verb
from milpbn.cli.steps import read_document
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import CLASS, COUNT, NAME, OUTPUT, Parsed
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.drawing.scene import Scene
    from milpbn.network import Structure

#: The kinds of `milpbn.plotting.CURVES`, whose modules take a second to import.
CURVES = ("roc", "precision-recall", "gain", "calibration")
#: What can be drawn, and whether it takes DATA: never, if it is given, or always.
KINDS = {
    "result": "may",
    "network": "may",
    "trace": "never",
    "choice": "never",
    "margins": "must",
    "cpt": "never",
    "explain": "must",
    "compare": "never",
    **dict.fromkeys(CURVES, "must"),
    "sets": "must",
}


def _complete(context: click.Context, incomplete: str) -> completion.Items:
    """Complete a kind or a file, then files, and the table after the file."""
    given = context.params.get("what") or ()
    if not given:
        return [*completion.files(context, incomplete), *completion.words(*KINDS)(context, incomplete)]
    first = len(given) == 1 and given[0] in KINDS
    return (completion.files if first else completion.tables)(context, incomplete)


@verb(short_help="Draw a result, a network, margins, tables, explanations or a comparison.")
@click.argument(
    "what",
    type=Parsed("text", str, _complete, "input"),
    nargs=-1,
    required=True,
    metavar="[KIND] FILE [DATA]",
)
@options(
    option("--output", OUTPUT, "Picture: .svg, .png or .pdf.", required=True),
    option("--variable", NAME, "cpt: the variable whose table is drawn."),
    option("--row", COUNT, "explain: the row whose prediction is drawn, from 1.", metavar="K"),
    option("--positive", CLASS, "Curves: the class to detect; default the rarest of two, or all of more."),
)
@table_options
def plot(
    what: tuple[str, ...],
    output: str,
    variable: str | None,
    row: int | None,
    positive: str | None,
    table: TableOptions,
) -> None:
    """Draw FILE.

    \b
    KIND     FILE                                     picture
    result   result.json                              the network, and incumbent and bound over time (the default)
    network  result.json, classifier or arc list      the network
    trace    result.json                              incumbent and bound over time
    choice   result.json                              what the recipe accurate compared, and what it chose
    margins  classifier                               the histogram of the margins on DATA
    cpt      classifier                               the table of --variable
    explain  classifier                               what the variables contribute on DATA, or to --row K of it
    sets     calibrated classifier                    how often prediction sets hold the class of DATA, and their sizes
    compare  output of milpbn compare                 the accuracies of the learners
    roc, precision-recall, gain, calibration: of a classifier on DATA, how well a class is told from the others

    With DATA, the training data of the result, the kinds result and network also show what the score loses without
    each arc; give the same options of the table as in the run. The kinds margins and explain and the curves use the
    test rows where the catalog splits the data. An arc list names no class: --target does; without it, the class is the
    parent of the most variables. Of an average (milpbn solve --average), the first network is drawn, and the curves of
    the average.

    SVG needs nothing else; PNG and PDF need the extra [plot]: pip install 'milpbn[plot]'.

    \b
    Examples:
      milpbn solve tic-tac-toe --time-limit 60 --output result.json --classifier classifier.json
      milpbn plot result.json --output result.png
      milpbn plot network result.json tic-tac-toe --output network.svg
      milpbn plot explain classifier.json tic-tac-toe --row 3 --output row.svg
      milpbn plot roc classifier.json tic-tac-toe --output roc.svg
    """
    kind, file, data = _parts(what)
    if variable is not None and kind != "cpt":
        raise InputError("--variable is for the kind cpt; leave it out.")
    if variable is None and kind == "cpt":
        raise InputError("Name the variable whose table is drawn: --variable NAME.")
    if row is not None and kind != "explain":
        raise InputError("--row is for the kind explain; leave it out.")
    if positive is not None and kind not in CURVES:
        raise InputError(f"--positive is for the kinds {', '.join(CURVES)}; leave it out.")

    from milpbn.plotting import check_picture, save

    check_picture(output)
    if kind in ("result", "network", "trace", "choice"):
        scene = _of_result(kind, file, data, table)
    elif kind == "compare":
        scene = _of_comparison(file)
    elif kind in CURVES or kind == "sets":
        scene = _of_curve(kind, file, str(data), table, positive)
    elif data is None:
        scene = _of_table(file, str(variable))
    else:
        scene = _of_classifier(kind, file, data, table, row)
    save(scene, output)


def _parts(what: tuple[str, ...]) -> tuple[str, str, str | None]:
    """Return kind, file and data; a file comes first where the kind is left out."""
    kind, *rest = what if what[0] in KINDS and len(what) > 1 else ("result", *what)
    left_out = len(rest) == len(what)
    if len(rest) > 2 or (len(rest) == 2 and left_out and not Path(rest[0]).exists()):
        raise InputError(
            f"Give [KIND] FILE [DATA], where KIND is one of {', '.join(KINDS)}; got {' '.join(what)}."
        )
    data = rest[1] if len(rest) == 2 else None
    if KINDS[kind] == "must" and data is None:
        raise InputError(f"The kind {kind} needs data: milpbn plot {kind} CLASSIFIER DATA.")
    if KINDS[kind] == "never" and data is not None:
        raise InputError(f"The kind {kind} takes no data; leave out {data!r}.")
    return kind, rest[0], data


def _of_result(kind: str, file: str, data: str | None, table: TableOptions) -> Scene:
    from milpbn.claims.local_result import LocalResult, result_kind
    from milpbn.plotting import draw_choice, draw_result, draw_structure, draw_trace
    from milpbn.solving.gains import arc_losses
    from milpbn.util import stages

    target = table.settings.get("target")
    document = _object(file) or {}
    if kind == "network" and "status" not in document:
        if data is not None:
            raise InputError(
                f"The file {file!r} is not a result, so that nothing says by which score its arcs are to be weighed; "
                "leave out DATA, or give a result.json."
            )
        has_class = document.get("has_class") is not False
        return draw_structure(_structure(file, document, target), has_class=has_class)
    result = result_kind(document).load(file)
    if kind == "trace":
        return draw_trace(result)
    if kind == "choice":
        fit = getattr(result, "parameters", None)
        if fit is None or fit.additive is None:
            raise InputError(f"The result {file!r} has no choice of the recipe accurate to draw.")
        return draw_choice(fit.additive)
    if result.structure is None:
        raise InputError(f"The result {file!r} has no structure to draw.")
    _check_target(target, result.structure.names[-1], file)
    losses = None
    if data is not None and isinstance(result, LocalResult):
        raise InputError(f"The result {file!r} is of local scores, which have no data; leave out {data!r}.")
    if data is not None:
        _, dataset = table.read_of(result, data)
        with stages.shown():
            losses = arc_losses(dataset, result.structure, result.score)
    if kind == "result":
        return draw_result(result, losses)
    has_class = result.data.classes > 0
    return draw_structure(result.structure, losses=losses, proved=result.proved, has_class=has_class)


def _object(path: str) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if the file holds another text."""
    from milpbn.util.jsonable import read_text

    is_json = read_text(path, "file").lstrip().startswith("{")
    return read_document(path, verdict="cannot be used") if is_json else None


def _structure(path: str, document: Mapping[str, Any], target: str | None) -> Structure:
    """Return the structure of a classifier, a learner's output or an arc list, the class last.

    In an arc list, which names no class and whose `document` is empty, `target` is the class. Without one it is the
    parent of the most variables. Raise InputError if the file is unusable, or `target` is not one of its variables, or
    another class than the file's.
    """
    from milpbn.network import read_structure
    from milpbn.network.formats.structure_files import read_parents

    if "variables" in document or "members" in document:
        structure: Structure | None = getattr(_first_network(path), "column_structure", None)
        if structure is None:
            raise InputError(
                f"The classifier {path!r} is a pseudo-TAN, whose graph may have cycles, and only acyclic networks "
                "can be drawn."
            )
        _check_target(target, structure.names[-1], path)
        return structure
    parents = read_parents(path)
    names = list(dict.fromkeys([*parents, *(name for above in parents.values() for name in above)]))
    if not names:
        raise InputError(f"The file {path!r} has no arcs to draw.")
    own = document.get("class")
    if own in names:
        _check_target(target, own, path)
    elif target is not None:
        own = target
    elif document:
        own = names[-1]
    else:
        # The class is the parent of most features, and usually has none itself.
        children = {child for child, above in parents.items() if above}
        count = {name: sum(name in above for above in parents.values()) for name in names}
        own = max(names, key=lambda name: (count[name], name not in children))
    if own not in names:
        shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
        raise InputError(f"--target {own!r} is not a node of {path!r}, whose nodes are {shown}.")
    return read_structure(path, [*(name for name in names if name != own), own])


def _check_target(target: str | None, own: str, path: str) -> None:
    """Refuse a target that is not the class that a file names."""
    if target is not None and target != own:
        raise InputError(f"--target is {target!r}, but the class of {path!r} is {own!r}; leave --target out.")


def _first_network(path: str) -> Any:
    """Return a classifier from its file; of an average the first network."""
    from milpbn.network import load_any_classifier

    classifier = load_any_classifier(path)
    return getattr(classifier, "members", (classifier,))[0]


def _of_comparison(path: str) -> Scene:
    from milpbn.plotting import draw_comparison

    document = read_document(path, verdict="cannot be used")
    try:
        return draw_comparison(document)
    except InputError as error:
        raise InputError(f"The file {path!r}: {error}") from None


def _of_table(file: str, variable: str) -> Scene:
    from milpbn.plotting import draw_table

    found = _first_network(file).explain_global()
    tables = {each.variable: each for each in found.tables}
    if variable not in tables:
        unused = f"; the class is in no family of {variable!r}" if variable in found.unused else ""
        raise InputError(
            f"--variable {variable!r} is not one of {', '.join(map(repr, list(tables)[:20]))}{unused}."
        )
    return draw_table(tables[variable], found.target)


def _of_curve(kind: str, file: str, data: str, table: TableOptions, positive: str | None) -> Scene:
    from milpbn.network import load_any_classifier
    from milpbn.network.evaluation import positive_class
    from milpbn.plotting import draw_curve, draw_sets
    from milpbn.trials.judged import Judged

    classifier = load_any_classifier(file)
    samples, _ = table.for_rows("all" if table.rows == "all" else None).read(classifier, data)
    if kind == "sets":
        return draw_sets(classifier, samples, name=samples.name)
    one = positive_class(classifier.classes, samples, positive)
    rows = Judged.of(classifier, samples)
    return draw_curve(kind, rows, classifier.classes, positive=one, name=samples.name)


def _of_classifier(kind: str, file: str, data: str, table: TableOptions, row: int | None) -> Scene:
    from milpbn.plotting import draw_importances, draw_margins, draw_prediction

    classifier = _first_network(file)
    samples, _ = table.for_rows("all" if table.rows == "all" else None).read(classifier, data)
    if row is not None:
        check_row(row, samples)
        [explanation] = classifier.explain_local(samples.take([row - 1]))
        return draw_prediction(replace(explanation, sample=row - 1))
    found = classifier.explain_global(samples)
    if kind == "explain":
        if found.importances is None:
            raise InputError(f"The data {samples.name!r} have no rows to explain.")
        return draw_importances(found.importances)
    if found.margins is None:
        raise InputError(
            f"No row of {samples.name!r} has a known class, so that there are no margins to draw."
        )
    return draw_margins(found.margins, samples.name)
