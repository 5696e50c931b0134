"""Explanations of an average of networks, which has no exact sum over families: one per network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from milpbn.network.explanation.local import LocalExplanation
from milpbn.network.explanation.overall import GlobalExplanation
from milpbn.util.jsonable import json_safe

#: Begins the text of every such explanation.
NOTE = (
    "The probabilities are the mean of {count} networks' probabilities. Such a mean is no sum over families, so each "
    "network is explained by itself."
)


@dataclass(frozen=True)
class SeveralLocalExplanations:
    """The prediction of an average for one sample, and the explanations of its networks for the same two classes.

    Attributes
    ----------
    sample : int
        Position of the sample in the data, from 0.
    target : str
        Name of the class variable.
    classes : tuple of str, length C
        Class labels.
    actual : str or None
        The sample's own class, if it is known.
    predicted : str
        The most probable class of the average.
    label, against : str
        The two classes that every network's log-odds compare.
    probabilities : tuple of float, length C
        P(c | z) of the average.
    members : tuple of LocalExplanation
        One per network, in their order.
    """

    sample: int
    target: str
    classes: tuple[str, ...]
    actual: str | None
    predicted: str
    label: str
    against: str
    probabilities: tuple[float, ...]
    members: tuple[LocalExplanation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; infinite numbers are None."""
        return json_safe({**vars(self), "members": [member.to_dict() for member in self.members]})

    def to_text(self, shown: int = 30) -> str:
        """Return the explanations as lines of text; each network's has at most this many contributions."""
        own = self.probabilities[self.classes.index(self.label)]
        lines = [
            f"sample {self.sample + 1}: {self.target} = {self.predicted}; P({self.label}) = {own:.4g}",
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
