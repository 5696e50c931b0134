"""Files of milpbn that are not results, and what is said of them where a result is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from milpbn.claims.stability import FORMAT as STABILITY
from milpbn.network.formats.classifier_files import AVERAGED, PSEUDO
from milpbn.network.formats.classifier_files import FORMAT as CLASSIFIER

#: Value of the key ``format`` of results over local scores.
LOCAL = "milpbn-local-scores-result"
_OUTPUT = "give the file that --output wrote in its run"
_KINDS = {
    LOCAL: "it is of local scores (.jkl), which have no data and no classifier; milpbn info shows it, and milpbn plot "
    "draws it",
    STABILITY: "it is of milpbn stability; milpbn info shows it",
    CLASSIFIER: f"it is a classifier; {_OUTPUT}",
    PSEUDO: f"it is a classifier; {_OUTPUT}",
    AVERAGED: f"it is a classifier, the average of several networks; {_OUTPUT}",
}


def is_comparison(document: Mapping[str, Any]) -> bool:
    """Return whether ``milpbn compare --output`` wrote a document."""
    return "test_samples" in document and "rows" in document


def other_kind(document: Mapping[str, Any]) -> str | None:
    """Return what kind of file a document is, and what to do with it; None if it may be a result."""
    if is_comparison(document):
        return "it is of milpbn compare; milpbn info shows it, and milpbn plot compare draws it"
    if "learner" in document:
        return "it is of milpbn learn; milpbn info shows it"
    written = document.get("format")
    return _KINDS.get(written) if isinstance(written, str) else None
