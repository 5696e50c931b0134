"""What a result or a certificate claims of itself, and the parts of it that need no tree: data, options, incumbent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """What a result, or the header of a certificate, says of itself; of a subset of samples, if that was searched."""

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
    #: Samples of a subset, and the score over all; None without one.
    samples: int | None
    whole: float | None


def read_claim(values: Mapping[str, Any], what: str) -> Claim:
    """Read a claim, or say what it lacks."""
    subset = values.get("subset")
    numbers = values if subset is None else subset
    if not isinstance(numbers, Mapping):
        raise InputError(f"{what} does not say what it claims in the known form (subset is no mapping).")
    if numbers.get("objective") is None or values.get("structure") is None:
        raise InputError(f"{what} holds no structure, so that there is nothing to verify.")
    if numbers.get("bound") is None:
        raise InputError(f"{what} holds no bound, so that there is nothing to verify.")
    try:
        reason = values.get("status", {}).get("reason")
        claim = Claim(
            str(values["data"]["sha256"]),
            Score.from_dict(values["score"]),
            Constraints.from_dict(values["constraints"]),
            {str(k): [str(j) for j in v] for k, v in values["structure"].items()},
            float(numbers["objective"]),
            float(numbers["bound"]),
            reason == "optimal" or bool(numbers.get("optimal")),
            {
                key: [(str(j), str(i)) for j, i in (values.get("proved") or {}).get(key, ())]
                for key in ("in", "out")
            },
            str(values.get("run") or ""),
            dict(numbers.get("gap") or {}),
            None if subset is None else int(subset["samples"]),
            None if subset is None else float(values["objective"]),
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
    if header.samples != claim.samples:
        raise InputError("The certificate is for another subset of the samples than the result.")


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


def counted_samples(
    claim: Claim, arrays: Mapping[str, NDArray[Any]], data: Dataset
) -> NDArray[np.float64] | None:
    """Return what the samples of merged data count, shape (M,), where a subset stands for all; else None.

    Raises
    ------
    InputError
        If the certificate's subset has not the weight of the data in every class, or another size than claimed.
    """
    if claim.samples is None:
        return None
    nothing = np.empty(0, dtype=bool)
    rows, weights = arrays.get("subset_row", nothing), arrays.get("subset_weight", nothing)
    fits = (
        rows.dtype.kind == "i"
        and weights.dtype.kind == "f"
        and rows.shape == weights.shape == np.unique(rows).shape
        and bool(((rows >= 0) & (rows < data.n_samples)).all())
        and bool((weights > 0).all())
    )
    if not fits:
        raise InputError("The certificate is damaged: it does not say which samples stand for all.")
    found = np.zeros(data.n_samples)
    found[rows] = weights
    own, whole = (np.bincount(data.y, w, data.n_classes) for w in (found, data.weights))
    if len(rows) != claim.samples or not (np.abs(own - whole) <= TOLERANCE * np.maximum(1.0, whole)).all():
        raise InputError(
            f"The certificate's samples do not stand for all: they are not {claim.samples}, or the weights of a class "
            "do not add up to those of its rows."
        )
    return found


def score_of_structure(
    claim: Claim,
    candidates: Candidates,
    rules: Rules,
    data: Dataset,
    sample_weights: NDArray[np.float64] | None = None,
) -> float:
    """Return the structure's score; refuse one that the bound does not speak of, or that scores otherwise.

    With `sample_weights`, shape (M,), it is the score over the subset, and the one over all rows is checked, too.
    """
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
    value = float(rescore(data, structure, claim.score, rules, sample_weights))
    claimed = [(value, claim.objective)]
    if claim.whole is not None:
        claimed.append((float(rescore(data, structure, claim.score, rules)), claim.whole))
    for found, told in claimed:
        if not abs(found - told) <= tolerance(found):
            raise InputError(f"The structure scores {found!r}, not {told!r} as the result claims.")
    if claim.bound < claim.objective:
        raise InputError(
            f"The claimed bound {claim.bound!r} is below the score {claim.objective!r} of the structure."
        )
    return value
