"""What a result or a certificate claims of itself, and the parts of it that need no tree: data, options, incumbent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.result import Gap
from milpbn.scores.candidates import Candidates, class_free_alike
from milpbn.scores.constraints import Constraints, Rules
from milpbn.scores.rescore import rescore
from milpbn.scores.spec import Score

#: Relative to max(1, its size), what a number may differ from its claim.
TOLERANCE = 1e-9
#: The scores that certificates speak of.
SCORES = ("sm", "sbm", "cll")


class Claim(NamedTuple):
    """What a result, or the header of a certificate, says of itself."""

    sha256: str
    score: Score
    constraints: Constraints
    structure: Mapping[str, Any]
    objective: float
    bound: float
    optimal: bool
    arcs: Mapping[str, list[tuple[str, str]]]
    #: Name of the run; empty where a result does not say.
    run: str
    gap: Mapping[str, Any]


def read_claim(values: Mapping[str, Any], what: str) -> Claim:
    """Read a claim, or say what it lacks."""
    if values.get("objective") is None or values.get("structure") is None:
        raise InputError(f"{what} holds no structure, so that there is nothing to verify.")
    if values.get("bound") is None:
        raise InputError(f"{what} holds no bound, so that there is nothing to verify.")
    try:
        claim = Claim(
            str(values["data"]["sha256"]),
            Score.from_dict(values["score"]),
            Constraints.from_dict(values["constraints"]),
            {str(k): [str(j) for j in v] for k, v in values["structure"].items()},
            float(values["objective"]),
            float(values["bound"]),
            values.get("status", {}).get("reason") == "optimal",
            {
                key: [(str(j), str(i)) for j, i in (values.get("proved") or {}).get(key, ())]
                for key in ("in", "out")
            },
            str(values.get("run") or ""),
            dict(values.get("gap") or {}),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{what} does not say what it claims in the known form ({error}).") from None
    if claim.score.name not in SCORES:
        raise InputError(f"There are no certificates for the score {claim.score.name}.")
    if not (np.isfinite(claim.objective) and np.isfinite(claim.bound)):
        raise InputError(f"{what} claims numbers that are not finite.")
    return claim


def tolerance(value: float) -> float:
    """Return by how much a number may differ from its claim."""
    return TOLERANCE * max(1.0, abs(value))


def check_same(claim: Claim, header: Claim, data: Dataset) -> None:
    """Refuse other data, and another run's certificate."""
    if claim.sha256 != data.sha256:
        raise InputError(
            "The result is of other data than these; give the data, rows and options of reading of that run."
        )
    if header.sha256 != claim.sha256:
        raise InputError("The certificate is of other data than the result.")
    for key in ("score", "constraints"):
        if getattr(header, key).to_dict() != getattr(claim, key).to_dict():
            raise InputError(f"The certificate is for another choice of {key} than the result.")


def check_run(claim: Claim, header: Claim) -> None:
    """Refuse a result that is not of the certificate's run, or that says more than the certificate.

    It may say less: a run that was killed may leave a certificate that is a moment newer.

    Raises
    ------
    InputError
        In a sentence.
    """
    if claim.run != header.run:
        raise InputError("The certificate is of another run than the result.")
    for what, more in (
        (f"the bound {claim.bound!r}", claim.bound < header.bound),
        (f"the score {claim.objective!r}", claim.objective > header.objective),
    ):
        if more:
            raise InputError(f"The result claims {what}, and its certificate less.")
    for key, value in vars(Gap.between(claim.objective, claim.bound)).items():
        told = claim.gap.get(key, value)
        if (told is None) != (value is None) or (value is not None and abs(told - value) > tolerance(value)):
            raise InputError(f"The result's gap ({key}: {told!r}) is not that of its score and bound.")


def score_of_structure(claim: Claim, candidates: Candidates, rules: Rules, data: Dataset) -> float:
    """Return the structure's score; refuse one that the bound does not speak of, or that scores otherwise."""
    structure = Structure.from_mapping(data.names, claim.structure)
    alike = class_free_alike(claim.score, rules)
    if candidates.choice(structure, class_free_alike=alike) is None:
        raise InputError(
            "The structure has a parent set that the score's options or the constraints rule out."
        )
    crowded = rules.crowded(structure.parents)
    if crowded is not None:
        raise InputError(
            f"The structure gives {data.names[crowded]!r} more children than the constraints allow."
        )
    value = float(rescore(data, structure, claim.score, rules))
    if not abs(value - claim.objective) <= tolerance(value):
        raise InputError(f"The structure scores {value!r}, not {claim.objective!r} as the result claims.")
    if claim.bound < claim.objective:
        raise InputError(
            f"The claimed bound {claim.bound!r} is below the score {claim.objective!r} of the structure."
        )
    return value
