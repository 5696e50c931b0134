"""Explanations of an average of networks, which has no exact sum over families: one per network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from milpbn.network.explanation.local import LocalExplanation, Prediction
from milpbn.network.explanation.overall import GlobalExplanation
from milpbn.util.jsonable import json_safe

#: Begins the text of every such explanation.
NOTE = (
    "The probabilities are the mean of {count} networks' probabilities. Such a mean is no sum over families, so each "
    "network is explained by itself."
)


@dataclass(frozen=True, kw_only=True)
class SeveralLocalExplanations(Prediction):
    """The prediction of an average for one sample, and the explanations of its networks for the same two classes.

    `Prediction` has the other attributes; the probabilities are those of the average.

    Attributes
    ----------
    members : tuple of LocalExplanation
        One per network, in their order.
    """

    members: tuple[LocalExplanation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; infinite numbers are None."""
        return json_safe({**vars(self), "members": [member.to_dict() for member in self.members]})

    def to_text(self, shown: int = 30) -> str:
        """Return the explanations as lines of text; each network's has at most this many contributions."""
        lines = [
            f"{self.heading}; {self.share}",
            NOTE.format(count=len(self.members)),
        ]
        for number, member in enumerate(self.members, start=1):
            lines += [f"network {number}", member.to_text(shown)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True, eq=False)
class SeveralGlobalExplanations:
    """What the networks of an average have learnt.

    Attributes
    ----------
    members : tuple of GlobalExplanation
        One per network, in their order.
    """

    members: tuple[GlobalExplanation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; infinite numbers are None."""
        return {"members": [member.to_dict() for member in self.members]}

    def to_text(self, shown: int = 20) -> str:
        """Return the explanations as lines of text, each as `GlobalExplanation.to_text` writes it."""
        lines = [NOTE.format(count=len(self.members))]
        for number, member in enumerate(self.members, start=1):
            lines += [f"network {number}", member.to_text(shown)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()
