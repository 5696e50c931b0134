"""Formats of networks by the ending of a file's name, and conversion between them.

A reader takes the text of a file and the name of the class variable, or None, and returns a classifier. A writer takes
a classifier and returns the whole content of a file: text, or bytes. To add a format, write a file beside this one and
register its functions here; `milpbn convert` has it at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.formats.bif import from_bif, to_bif
from milpbn.network.formats.classifier_files import (
    AnyClassifier,
    any_classifier_from_dict,
    any_classifier_to_dict,
)
from milpbn.network.formats.hugin_netica import read_dne, read_net, to_net
from milpbn.network.formats.onnx_format import classifier_to_onnx
from milpbn.network.formats.plain_network import as_classifier, plain_nodes, reader_of
from milpbn.network.formats.pmml import classifier_to_pmml
from milpbn.network.formats.python_format import classifier_to_python
from milpbn.network.formats.r_script import classifier_to_r
from milpbn.network.formats.scorecard import classifier_to_scorecard
from milpbn.network.formats.spreadsheet import classifier_to_xlsx
from milpbn.network.formats.sql import classifier_to_sql
from milpbn.network.formats.structure_files import classifier_to_dot
from milpbn.network.formats.xdsl import read_xdsl, to_xdsl
from milpbn.network.formats.xmlbif import from_xmlbif, to_xmlbif
from milpbn.util.atomic import atomic_path
from milpbn.util.jsonable import dump_json, parse_object, read_text, unusable
from milpbn.util.raw_files import ending_of

Reader: TypeAlias = Callable[[str, str | None], AnyClassifier]
Writer: TypeAlias = Callable[[AnyClassifier], str | bytes]


def _read_json(text: str, target: str | None) -> AnyClassifier:
    classifier = any_classifier_from_dict(parse_object(text))
    if target is None or (target == classifier.variables[-1].name and getattr(classifier, "has_class", True)):
        return classifier
    if not isinstance(classifier, Classifier):
        raise InputError(
            "It holds no single network, so its class variable cannot be changed; leave the target out."
        )
    found = as_classifier(plain_nodes(classifier, "A file"), target, "a classifier of another variable")
    # How tables are read is no matter of the class.
    form = {key: value for key, value in classifier.provenance.items() if key == "form"}
    return replace(found, provenance={**found.provenance, **form})


#: Readers by the ending of the file's name.
READERS: dict[str, Reader] = {
    ".json": _read_json,
    ".bif": from_bif,
    **dict.fromkeys((".xmlbif", ".bifxml", ".xml"), from_xmlbif),
    ".xdsl": reader_of(read_xdsl, "GeNIe"),
    ".net": reader_of(read_net, "Hugin"),
    **dict.fromkeys((".dne", ".dnet"), reader_of(read_dne, "Netica")),
}
#: Writers by the ending of the file's name.
WRITERS: dict[str, Writer] = {
    ".json": lambda classifier: dump_json(any_classifier_to_dict(classifier)),
    ".bif": to_bif,
    **dict.fromkeys((".xmlbif", ".bifxml", ".xml"), to_xmlbif),
    ".xdsl": to_xdsl,
    ".net": to_net,
    **dict.fromkeys((".dot", ".gv"), classifier_to_dot),
    ".sql": classifier_to_sql,
    ".onnx": classifier_to_onnx,
    ".r": classifier_to_r,
    ".pmml": classifier_to_pmml,
    ".py": classifier_to_python,
    ".html": classifier_to_scorecard,
    ".xlsx": classifier_to_xlsx,
}
#: Endings of files with a node per variable of the network.
OF_NODES = (".bif", ".xmlbif", ".bifxml", ".xml", ".xdsl", ".net", ".dot", ".gv")
#: Endings of files that hold costs and thresholds, too; all others hold probabilities only.
WITH_DECISIONS = (".json", ".sql", ".onnx", ".py", ".html")
#: Endings of files that programs of Windows write, in its encodings where they are not UTF-8.
_OF_WINDOWS = (".xdsl", ".net", ".dne", ".dnet")


def read_network(path: str | os.PathLike[str], target: str | None = None) -> AnyClassifier:
    """Read a classifier from a file of any format in `READERS`.

    Parameters
    ----------
    path : str or path-like
        The file; the ending of its name determines the format.
    target : str, optional
        Name of the class variable. Files of milpbn name it themselves.

    Raises
    ------
    InputError
        If the ending is unknown, or the file cannot be read or holds no network; the message names the file.
    """
    ending = ending_of(path, READERS)
    if ending is None:
        raise InputError(
            f"The ending of {str(path)!r} is not one of a network; rename the file to one of {', '.join(READERS)}."
        )
    text = read_text(path, "network file", windows=ending in _OF_WINDOWS)
    try:
        return READERS[ending](text, target)
    except InputError as error:
        raise unusable("network file", path, error) from None


def write_network(
    classifier: AnyClassifier, path: str | os.PathLike[str], *, worst_error: float | None = None
) -> None:
    """Write a classifier atomically to a file of any format in `WRITERS`; the ending of its name determines the format.

    Raises
    ------
    InputError
        If the ending is unknown, the format cannot hold this kind of classifier, the file cannot be written, or
        `worst_error`, that of a scorecard, is given for another format.
    """
    ending = check_network_ending(path, worst_error)
    content = (
        WRITERS[ending](classifier)
        if worst_error is None
        else classifier_to_scorecard(classifier, worst_error)
    )
    with atomic_path(path) as temporary:
        temporary.write_bytes(content if isinstance(content, bytes) else content.encode())


def check_network_ending(path: str | os.PathLike[str], worst_error: float | None = None) -> str:
    """Return the ending of a file, which is one of those that `write_network` knows.

    Raises `InputError` if it is another one; the message lists the known ones. Only a scorecard has a `worst_error`.
    """
    ending = ending_of(path, WRITERS)
    if worst_error is not None and ending != ".html":
        raise InputError("The worst error (--worst-error) is that of a scorecard (.html); leave it out.")
    if ending is None:
        raise InputError(
            f"The ending of {str(path)!r} is not one of a network; choose one of {', '.join(WRITERS)}."
        )
    return ending
