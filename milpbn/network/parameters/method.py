"""The ways to fit parameters to a structure, as a user writes them: ``hybrid``, or with values ``hybrid:0.5:10``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from milpbn.errors import InputError

#: The ways to fit parameters, with a line of help each.
METHODS: Mapping[str, str] = {
    "ml": "Laplace-smoothed relative frequencies, the parameters that the scores use",
    "cll": "maximum conditional likelihood with a penalty whose strength is chosen by folds",
    "hybrid": "the same, shrunk towards a share of the generative log-joint that is chosen by folds",
    "temperature": "the generative log-joint times one factor, fitted to held-out rows",
}


@dataclass(frozen=True)
class ParameterMethod:
    """One of `METHODS`, with or without its values.

    `kappa` is the given share of the generative log-joint, from 0 to 1, or its factor under ``temperature``; None if
    folds choose. `strength` is that of the penalty; None if folds choose, or if there are no deviations from the share
    of the generative log-joint.
    """

    name: str
    kappa: float | None = None
    strength: float | None = None

    @property
    def given(self) -> bool:
        """Whether the values are given, so that nothing is left to choose."""
        return self.name == "ml" or self.kappa is not None

    @classmethod
    def parse(cls, text: str) -> ParameterMethod:
        """Read ``NAME``, ``cll:STRENGTH``, ``hybrid:KAPPA``, ``hybrid:KAPPA:STRENGTH`` or ``temperature:FACTOR``.

        `InputError` if there is no such method, or a value is missing or out of range.
        """
        name, *values = str(text).split(":")
        if name not in METHODS:
            raise InputError(f"There are no parameters {text!r}; choose one of {', '.join(METHODS)}.")
        if not values:
            return cls(name)
        try:
            numbers = [float(value) for value in values]
        except ValueError:
            raise cls._refusal(text) from None
        if name == "cll":
            numbers.insert(0, 0.0)
        least, most = {"ml": (0, 0), "cll": (2, 2), "hybrid": (1, 2), "temperature": (1, 1)}[name]
        kappa, strength = numbers[0], (numbers[1] if len(numbers) > 1 else None)
        in_range = 0 <= kappa <= 1 or (name == "temperature" and 0 <= kappa < math.inf)
        if not (least <= len(numbers) <= most and in_range and (strength is None or 0 < strength < math.inf)):
            raise cls._refusal(text)
        return cls(name, kappa, strength)

    @staticmethod
    def _refusal(text: str) -> InputError:
        return InputError(
            f"The parameters {text!r} cannot be read; write cll:STRENGTH, hybrid:KAPPA, hybrid:KAPPA:STRENGTH or "
            "temperature:FACTOR, with a kappa from 0 to 1 and a strength above 0, or the name alone."
        )

    def __str__(self) -> str:
        """Return what `parse` reads."""
        if self.kappa is None:
            return self.name
        values = [self.strength] if self.name == "cll" else [self.kappa, self.strength]
        return ":".join([self.name, *(f"{value:g}" for value in values if value is not None)])
