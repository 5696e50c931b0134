"""The classifier file: a JSON object with everything that prediction needs.

Its keys are ``format`` and ``version``, ``variables`` (name, states, cuts, ...; the class last), ``structure``
{variable: [parents...]}, ``smoothing``, ``smoothing_towards``, ``cpts`` {variable: {parents, table, concentration}} and
``provenance``; ``has_class`` (false) if no variable is a class; ``decision`` (costs, and their origin) if the class
of least cost is predicted; and ``conformal`` (calibration rows) if it predicts sets. A table has one axis per parent,
in the listed order, and the axis of the variable's own states last. The file of a pseudo-TAN has another ``format``, no
structure, and in ``cpts`` a list with the positions of parents. The file of an average has a third one, and the
documents of its networks in a list under ``members``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import LABEL_TYPES, Variable
from milpbn.errors import InputError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.checks import check_variables
from milpbn.network.classifier import Classifier
from milpbn.network.conformal import Conformal
from milpbn.network.cpt import Cpt
from milpbn.network.decisions import DecisionRule
from milpbn.network.prior import UNIFORM
from milpbn.network.pseudo import PseudoClassifier
from milpbn.network.structure import Structure
from milpbn.util.atomic import atomic_write_text
from milpbn.util.jsonable import Fields, dump_json, json_safe, parse_object, read_text, unusable
from milpbn.util.raw_files import ending_of

T = TypeVar("T")
C = TypeVar("C", Classifier, PseudoClassifier, AveragedClassifier)
#: Whatever a classifier file can hold.
AnyClassifier: TypeAlias = Classifier | PseudoClassifier | AveragedClassifier
#: Values of the key ``format``: of a network, of a pseudo-TAN, and of an average of networks.
FORMAT, PSEUDO, AVERAGED = "milpbn-classifier", "milpbn-pseudo-classifier", "milpbn-averaged-classifier"
#: Endings of files of other programs that `milpbn.network.formats.registry.read_network` reads, and how to use them.
OF_OTHERS = (".bif", ".xmlbif", ".bifxml", ".xml", ".xdsl", ".net", ".dne", ".dnet")
CONVERTED = "A network of another program becomes one by: milpbn convert FILE classifier.json --target NAME."
#: Version of the format that this module writes and reads.
VERSION = 1
#: That of files with a decision, which a milpbn that knows no decisions would ignore.
DECIDING = 2


def save_classifier(classifier: AnyClassifier, path: str | os.PathLike[str]) -> None:
    """Write a classifier file atomically; the loaded classifier's predictions are identical to the last bit.

    Raises
    ------
    InputError
        If the file cannot be written, or a value of the provenance cannot be written as JSON.
    """
    atomic_write_text(path, dump_json(any_classifier_to_dict(classifier)))


def load_classifier(path: str | os.PathLike[str]) -> Classifier:
    """Read and check the classifier file of a Bayesian network.

    Raises
    ------
    InputError
        If the file cannot be read or is not valid; the message names the file and the first error in it.
    """
    return _load(path, classifier_from_dict)


def load_any_classifier(path: str | os.PathLike[str]) -> AnyClassifier:
    """Read any file that `save_classifier` wrote, with the errors of `load_classifier`."""
    return _load(path, any_classifier_from_dict)


def _load(path: str | os.PathLike[str], read: Callable[[Mapping[str, Any]], T]) -> T:
    text = read_text(path, "classifier file")
    try:
        return read(parse_object(text))
    except InputError as error:
        if ending_of(path, OF_OTHERS) is not None:
            error = InputError(f"{error} {CONVERTED}")
        raise unusable("classifier file", path, error) from None


def any_classifier_to_dict(classifier: AnyClassifier) -> dict[str, Any]:
    """Return any classifier as JSON values; see `classifier_to_dict`."""
    if isinstance(classifier, AveragedClassifier):
        members = list(map(classifier_to_dict, classifier.with_sets(None).members))
        return {"format": AVERAGED, "version": VERSION, "members": members, **_choosing(classifier)}
    if isinstance(classifier, Classifier):
        return classifier_to_dict(classifier)
    return {
        "format": PSEUDO,
        "version": VERSION if classifier.decision is None else DECIDING,
        "variables": _described(classifier.variables),
        "cpts": [{"parents": list(cpt.parents), "table": cpt.table.tolist()} for cpt in classifier.cpts],
        **_choosing(classifier),
    }


def any_classifier_from_dict(document: Mapping[str, Any]) -> AnyClassifier:
    """Return the classifier that `any_classifier_to_dict` described, with the errors of `classifier_from_dict`."""
    if document.get("format") == AVERAGED:
        return _averaged(document)
    if document.get("format") != PSEUDO:
        return classifier_from_dict(document)
    f = _checked_version(document)
    variables = _variables(f)
    cpts = tuple(Cpt(i, tuple(one.wholes("parents")), _table(one)) for i, one in enumerate(f.objects("cpts")))
    return _calibrated(f, PseudoClassifier(variables, cpts, _decision(f, variables)))


def classifier_to_dict(classifier: Classifier) -> dict[str, Any]:
    """Return a classifier as JSON values; NaN and infinity in the provenance become None."""
    names = classifier.structure.names
    return {
        "format": FORMAT,
        "version": VERSION if classifier.decision is None else DECIDING,
        "variables": _described(classifier.variables),
        "structure": classifier.structure.to_mapping(),
        "smoothing": float(classifier.smoothing),
        "smoothing_towards": classifier.smoothing_towards,
        "cpts": {
            names[cpt.variable]: {
                "parents": [names[j] for j in cpt.parents],
                "table": cpt.table.tolist(),
                **({} if cpt.concentration is None else {"concentration": cpt.concentration.tolist()}),
            }
            for cpt in classifier.cpts
        },
        "provenance": json_safe(classifier.provenance),
        **({} if classifier.has_class else {"has_class": False}),
        **_choosing(classifier),
    }


def _choosing(classifier: AnyClassifier) -> dict[str, Any]:
    """Return the costs of decisions, which an average has in its networks, and the calibration of sets."""
    rule, sets = classifier.decision, classifier.conformal
    own = {} if rule is None or isinstance(classifier, AveragedClassifier) else {"decision": rule.to_dict()}
    return own if sets is None else {**own, "conformal": sets.to_dict()}


def _described(variables: Sequence[Variable]) -> list[dict[str, Any]]:
    return [
        {
            "name": v.name,
            "states": list(v.states),
            "cuts": None if v.cuts is None else [float(cut) for cut in v.cuts],
            "numeric": bool(v.numeric),
            "missing_state": bool(v.missing_state),
            "label_type": v.label_type,
            **({} if v.column is None else {"column": v.column}),
        }
        for v in variables
    ]


def classifier_from_dict(document: Mapping[str, Any]) -> Classifier:
    """Return the classifier that `classifier_to_dict` described, after checking every value.

    Raises `InputError` if a key is missing, or a value has the wrong type or is not possible.
    """
    if document.get("format") == PSEUDO:
        raise InputError(
            "It holds a pseudo-TAN, whose graph may have cycles, and one Bayesian network is needed here."
        )
    if document.get("format") == AVERAGED:
        raise InputError(
            "It holds an average of networks, and one Bayesian network is needed here; solve without --average for a "
            "single network."
        )
    if "status" in document and "structure" in document and "format" not in document:
        raise InputError(
            "It holds a result, which has no probability tables; give the file that --classifier wrote in its run."
        )
    if document.get("format") != FORMAT:
        raise InputError(f"Its key 'format' is not {FORMAT!r}, so it is another kind of file.")
    f = _checked_version(document)
    has_class = f.flag("has_class") if "has_class" in f else True
    variables = _variables(f, has_class=has_class)
    names = [v.name for v in variables]
    structure = Structure.from_mapping(names, parents_mapping(f.get("structure")))
    tables = f.fields("cpts")
    tables.known(names)
    cpts = []
    for i, name in enumerate(names):
        entry = tables.fields(name)
        if entry.texts("parents") != [names[j] for j in structure.parents[i]]:
            raise entry.contradiction(
                "its parents are not those of the structure, in the order of the variables"
            )
        known = None if entry.missing("concentration") else _table(entry, "concentration")
        cpts.append(Cpt(i, structure.parents[i], _table(entry), known))
    network = Classifier(
        variables,
        structure,
        tuple(cpts),
        f.number("smoothing", 0.0),
        f.fields("provenance").plain(),
        # Files of versions before this key are of Laplace-smoothed tables.
        f.get("smoothing_towards") if "smoothing_towards" in f else UNIFORM,
        has_class,
        _decision(f, variables),
    )
    return _calibrated(f, network)


def _averaged(document: Mapping[str, Any]) -> AveragedClassifier:
    """Return the average that `save_classifier` described, after checking every value."""
    members = []
    f = _checked_version(document)
    for number, item in enumerate(f.objects("members"), start=1):
        try:
            members.append(classifier_from_dict(item.plain()))
        except InputError as error:
            raise InputError(f"Network {number} in 'members': {error}") from None
    return _calibrated(f, AveragedClassifier(tuple(members)))


def _checked_version(document: Mapping[str, Any]) -> Fields:
    """Return the values of a document, which must have the version that fits its content."""
    version = VERSION if document.get("decision") is None else DECIDING
    if document.get("version") != version:
        raise InputError(
            f"Its format version is {document.get('version')!r}, but this milpbn reads version {version}; "
            "use the milpbn that wrote it."
        )
    return Fields(document, "It")


def parents_mapping(value: Any) -> dict[str, list[str]]:
    """Return a JSON value as ``{variable: [parents...]}``.

    Raises `InputError` if it is something else.
    """
    if not isinstance(value, dict):
        raise InputError("The structure is not an object {variable: [parents...]}.")
    for child, parents in value.items():
        if not isinstance(parents, list) or not all(isinstance(name, str) for name in parents):
            raise InputError(f"The structure's entry for {child!r} is not a list of names.")
    return value


def _variables(f: Fields, *, has_class: bool = True) -> tuple[Variable, ...]:
    variables = tuple(map(_variable, f.objects("variables")))
    check_variables(variables, has_class=has_class)
    return variables


def _variable(f: Fields) -> Variable:
    return Variable(
        f.text("name"),
        tuple(f.texts("states")),
        None if f.missing("cuts") else tuple(f.numbers("cuts")),
        f.flag("numeric"),
        f.flag("missing_state"),
        f.text("label_type", LABEL_TYPES) if "label_type" in f else "text",  # absent in earlier versions
        None if f.missing("column") else f.text("column"),
    )


def _table(f: Fields, key: str = "table") -> NDArray[np.float64]:
    rows = f.items(key) if key == "table" else f.get(key)  # one concentration may be that of all rows
    try:
        table = np.array(rows)
    except ValueError:  # rows of different lengths
        table = np.array(None)
    if table.dtype.kind not in "fiu":
        raise f.contradiction(f"its {key} has rows of different lengths, or values that are not numbers")
    return table.astype(np.float64)


def _decision(f: Fields, variables: Sequence[Variable]) -> DecisionRule | None:
    return None if f.missing("decision") else DecisionRule.read(f.fields("decision"), variables[-1].n_states)


def _calibrated(f: Fields, classifier: C) -> C:
    """Return a classifier with what its sets are calibrated on, if the file says it."""
    if f.missing("conformal"):
        return classifier
    networks = classifier.members if isinstance(classifier, AveragedClassifier) else (classifier,)
    shapes = [[cpt.table.shape for cpt in network.cpts] for network in networks]
    return classifier.with_sets(Conformal.read(f.fields("conformal"), shapes))
