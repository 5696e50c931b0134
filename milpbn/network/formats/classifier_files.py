"""The classifier file: a JSON object with everything that prediction needs.

Its keys are ``format`` and ``version``, ``variables`` (name, states, cuts, ...; the class last), ``structure``
{variable: [parents...]}, ``smoothing``, ``smoothing_towards``, ``cpts`` {variable: {parents, table, concentration}} and
``provenance``; ``has_class`` (false) if no variable is a class; ``decision`` (costs, and their origin) if the class
of least cost is predicted; and ``conformal`` (calibration rows) if it predicts sets. A table has one axis per parent,
in the listed order, and the axis of the variable's own states last. The file of a pseudo-TAN has another ``format``;
see `PseudoClassifier`. The file of an average has a third one, and the documents of its networks in a list under
``members``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Variable
from milpbn.errors import InputError
from milpbn.network.averaged import FORMAT as AVERAGED_FORMAT
from milpbn.network.averaged import VERSION as AVERAGED_VERSION
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.checks import check_variables
from milpbn.network.classifier import Classifier
from milpbn.network.conformal import Conformal
from milpbn.network.cpt import Cpt
from milpbn.network.decisions import DecisionRule
from milpbn.network.prior import UNIFORM
from milpbn.network.pseudo import FORMAT as PSEUDO_FORMAT
from milpbn.network.pseudo import PseudoClassifier
from milpbn.network.structure import Structure
from milpbn.util.atomic import atomic_write_text
from milpbn.util.jsonable import (
    Fields,
    dump_json,
    finite_number,
    json_safe,
    parse_object,
    read_text,
    unusable,
)

T = TypeVar("T")
#: Whatever a classifier file can hold.
AnyClassifier: TypeAlias = Classifier | PseudoClassifier | AveragedClassifier
#: Value of the key ``format``.
FORMAT = "milpbn-classifier"
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
        raise unusable("classifier file", path, error) from None


def any_classifier_to_dict(classifier: AnyClassifier) -> dict[str, Any]:
    """Return any classifier as JSON values; see `classifier_to_dict`."""
    if isinstance(classifier, PseudoClassifier):
        return classifier.to_dict()
    if isinstance(classifier, AveragedClassifier):
        members = [classifier_to_dict(replace(member, conformal=None)) for member in classifier.members]
        whole = {"format": AVERAGED_FORMAT, "version": AVERAGED_VERSION, "members": members}
        return (
            whole if classifier.conformal is None else {**whole, "conformal": classifier.conformal.to_dict()}
        )
    return classifier_to_dict(classifier)


def any_classifier_from_dict(document: Mapping[str, Any]) -> AnyClassifier:
    """Return the classifier that `any_classifier_to_dict` described, with the errors of `classifier_from_dict`."""
    if document.get("format") == PSEUDO_FORMAT:
        return PseudoClassifier.from_dict(document)
    if document.get("format") == AVERAGED_FORMAT:
        return _averaged_from_dict(document)
    return classifier_from_dict(document)


def classifier_to_dict(classifier: Classifier) -> dict[str, Any]:
    """Return a classifier as JSON values; NaN and infinity in the provenance become None."""
    names = classifier.structure.names
    return {
        "format": FORMAT,
        "version": VERSION if classifier.decision is None else DECIDING,
        "variables": [
            {
                "name": v.name,
                "states": list(v.states),
                "cuts": None if v.cuts is None else [float(cut) for cut in v.cuts],
                "numeric": bool(v.numeric),
                "missing_state": bool(v.missing_state),
                "label_type": v.label_type,
                **({} if v.column is None else {"column": v.column}),
            }
            for v in classifier.variables
        ],
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
        **({} if classifier.decision is None else {"decision": classifier.decision.to_dict()}),
        **({} if classifier.conformal is None else {"conformal": classifier.conformal.to_dict()}),
    }


def classifier_from_dict(document: Mapping[str, Any]) -> Classifier:
    """Return the classifier that `classifier_to_dict` described, after checking every value.

    Raises `InputError` if a key is missing, or a value has the wrong type or is not possible.
    """
    if document.get("format") == PSEUDO_FORMAT:
        raise InputError(
            "It holds a pseudo-TAN, whose graph may have cycles, and one Bayesian network is needed here."
        )
    if document.get("format") == AVERAGED_FORMAT:
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
    _require_version(document, VERSION if document.get("decision") is None else DECIDING)
    variables = tuple(_variable(item) for item in _get(document, "variables", list, "the file"))
    has_class = _get(document, "has_class", bool, "the file") if "has_class" in document else True
    check_variables(variables, has_class=has_class)
    names = [v.name for v in variables]
    structure = Structure.from_mapping(names, parents_mapping(_get(document, "structure", dict, "the file")))

    tables = _get(document, "cpts", dict, "the file")
    unknown = [name for name in tables if name not in names]
    if unknown:
        raise InputError(f"The key 'cpts' names {unknown[0]!r}, which is not a variable.")
    cpts = []
    for i, name in enumerate(names):
        entry = _get(tables, name, dict, "'cpts'")
        where = f"the table of {name!r}"
        if _get(entry, "parents", list, where) != [names[j] for j in structure.parents[i]]:
            raise InputError(
                f"The parents of {where} are not those of the structure, in the order of the variables."
            )
        known = None if entry.get("concentration") is None else _table(entry["concentration"], where)
        cpts.append(Cpt(i, structure.parents[i], _table(_get(entry, "table", list, where), where), known))

    smoothing = finite_number(document.get("smoothing"))
    if smoothing is None or smoothing < 0:
        raise InputError("Its key 'smoothing' is missing or not a number of at least 0.")
    provenance = _get(document, "provenance", dict, "the file")
    # Files of versions before this key are of Laplace-smoothed tables.
    towards = document.get("smoothing_towards", UNIFORM)
    decision = None
    if document.get("decision") is not None:
        read = Fields(_get(document, "decision", dict, "the file"), "Its decision")
        decision = DecisionRule.read(read, len(variables[-1].states))
    sets = _conformal(document, [cpts])
    return Classifier(
        variables, structure, tuple(cpts), smoothing, provenance, towards, has_class, decision, sets
    )


def _conformal(document: Mapping[str, Any], networks: Sequence[Sequence[Cpt]]) -> Conformal | None:
    """Return what the sets of a classifier with these tables are calibrated on, if the file says it."""
    if document.get("conformal") is None:
        return None
    shapes = [[cpt.table.shape for cpt in cpts] for cpts in networks]
    return Conformal.read(Fields(document["conformal"], "Its key 'conformal'"), shapes)


def _averaged_from_dict(document: Mapping[str, Any]) -> AveragedClassifier:
    """Return the average that `save_classifier` described, after checking every value."""
    _require_version(document, AVERAGED_VERSION)
    members = []
    for number, item in enumerate(_get(document, "members", list, "the file"), start=1):
        if not isinstance(item, dict):
            raise InputError(f"Network {number} in 'members' is not an object.")
        try:
            members.append(classifier_from_dict(item))
        except InputError as error:
            raise InputError(f"Network {number} in 'members': {error}") from None
    sets = _conformal(document, [member.cpts for member in members])
    return AveragedClassifier((replace(members[0], conformal=sets), *members[1:]) if sets else tuple(members))


def _require_version(document: Mapping[str, Any], version: int) -> None:
    if document.get("version") != version:
        raise InputError(
            f"Its format version is {document.get('version')!r}, but this milpbn reads version {version}; "
            "use the milpbn that wrote it."
        )


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


def _variable(item: Any) -> Variable:
    if not isinstance(item, dict):
        raise InputError("An entry of 'variables' is not an object.")
    name = _get(item, "name", str, "a variable")
    where = f"the variable {name!r}"
    states = _get(item, "states", list, where)
    if not all(isinstance(state, str) for state in states):
        raise InputError(f"The states of {where} are not all text.")
    cuts = item.get("cuts")
    if cuts is not None:
        if not isinstance(cuts, list) or any(finite_number(cut) is None for cut in cuts):
            raise InputError(f"The cuts of {where} are not a list of finite numbers.")
        cuts = tuple(float(cut) for cut in cuts)
    numeric = _get(item, "numeric", bool, where)
    missing_state = _get(item, "missing_state", bool, where)
    column = None if item.get("column") is None else _get(item, "column", str, where)
    # Files of versions before this key have labels of text.
    label_type = item.get("label_type", "text")
    return Variable(name, tuple(states), cuts, numeric, missing_state, label_type, column)


def _table(value: Any, where: str) -> NDArray[np.float64]:
    try:
        table = np.array(value)
    except ValueError:  # rows of different lengths
        table = np.array(None)
    if table.dtype.kind not in "fiu":
        raise InputError(f"The rows of {where} have different lengths, or values that are not numbers.")
    return table.astype(np.float64)


def _get(document: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    """Return the value of a required key, which must have the given type."""
    if key not in document:
        raise InputError(f"The key {key!r} is missing in {where}.")
    value = document[key]
    if not isinstance(value, kind):
        named = {list: "a list", dict: "an object", str: "text", bool: "true or false"}[kind]
        raise InputError(f"The key {key!r} in {where} is not {named}.")
    return value
