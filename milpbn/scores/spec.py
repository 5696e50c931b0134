"""What is maximised: the score's name and its options, checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from milpbn.checks import convert_fields
from milpbn.errors import InputError

#: Scores on the class margins of the samples: not decomposable, one or more rows per sample in the MILP. The
#: conditional log-likelihood is a smooth function of the margins against every class.
MARGIN_SCORES = ("sm", "sbm", "hard-margin", "cll")
#: Decomposable scores, linear in the parent-set indicators (AICc: up to a convex function of the total).
GENERATIVE_SCORES = ("ll", "mdl", "aic", "aicc", "bdeu")
#: Every score name; ``bic`` is another word for ``mdl``.
SCORES = (*MARGIN_SCORES, *GENERATIVE_SCORES)
#: The values of p that P12 chooses from; gamma = log(p / (1 - p)).
P_GRID = (0.501, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
#: The default of p.
DEFAULT_P = 0.99
#: No log-margin of float64 probabilities comes near it, and far beyond it rounding would eat up the scores.
LARGEST_GAMMA = 1e6


def gamma_from_p(p: float) -> float:
    """Return the desired log-margin gamma = log(p / (1 - p)) in nats (P12, section 6).

    Raises
    ------
    InputError
        If p is not strictly between 0.5 and 1, so that gamma would not be positive and finite.
    """
    if not 0.5 < p < 1:
        raise InputError(
            f"p must lie strictly between 0.5 and 1, got {p}; P12 uses {P_GRID[0]} to {P_GRID[-1]}."
        )
    return math.log(p / (1 - p))


@dataclass(frozen=True, kw_only=True)
class Score:
    """A score and its options.

    Attributes
    ----------
    name : str
        One of `SCORES` (``bic`` is accepted and becomes ``mdl``).
    gamma : float or None
        Desired log-margin in nats, for ``sm`` and ``sbm`` only; None there means that of `p`.
    p : float or None
        The same as a probability, gamma = log(p / (1 - p)); with neither, p is `DEFAULT_P`.
    max_parents : int
        Most parents of a variable, the class among them, as in P12.
    class_parents : bool
        The class variable may have feature parents, as in P12 (19).
    smoothing : float
        Laplace constant a > 0 of the parameters of margin scores and ``cll`` (P12 uses 1).
    parent_sets : {"paper", "all"}
        Candidate sets of the features for generative scores: the margin's ({} and sets with the class) or all.
    equivalent_sample_size : float
        Of the BDeu score.
    penalty : float, "bic" or "aic"
        Nats subtracted per free parameter from a margin score or ``cll``: a number, log(M) / 2, or 1.
    hybrid : float
        Factor of the log-likelihood that is added to a margin score or ``cll``.

    Raises
    ------
    InputError
        If an option is out of range or does not go with the score.
    """

    name: str = "sm"
    gamma: float | None = None
    p: float | None = None
    max_parents: int = 2
    class_parents: bool = True
    smoothing: float = 1.0
    parent_sets: str = "paper"
    equivalent_sample_size: float = 1.0
    penalty: float | str = 0.0
    hybrid: float = 0.0

    def __post_init__(self) -> None:
        convert_fields(self)
        name = {"bic": "mdl"}.get(self.name, self.name)
        object.__setattr__(self, "name", name)
        if name not in SCORES:
            raise InputError(
                f"There is no score {self.name!r}; choose one of {', '.join(SCORES)} (or bic for mdl)."
            )
        if name in ("sm", "sbm"):
            if self.gamma is not None and self.p is not None:
                raise InputError("gamma and p say the same thing; give one of them.")
            given = DEFAULT_P if self.p is None else self.p
            gamma = gamma_from_p(given) if self.gamma is None else self.gamma
            if not 0 < gamma <= LARGEST_GAMMA:
                raise InputError(
                    f"gamma must be a positive number of at most {LARGEST_GAMMA:g} nats, got {self.gamma}."
                )
            object.__setattr__(self, "gamma", gamma)
            object.__setattr__(self, "p", None)
        elif self.gamma is not None or self.p is not None:
            raise InputError(f"gamma and p belong to the scores sm and sbm, not to {name}; leave them out.")
        if self.max_parents < 1:
            raise InputError(
                f"max_parents counts all parents and must be at least 1, got {self.max_parents}."
            )
        if not (self.smoothing > 0 and math.isfinite(self.smoothing)):
            raise InputError(f"smoothing must be a positive finite number, got {self.smoothing}.")
        if self.parent_sets not in ("paper", "all"):
            raise InputError(f"parent_sets must be 'paper' or 'all', got {self.parent_sets!r}.")
        if self.parent_sets == "all" and self.is_margin:
            raise InputError(
                f"parent_sets 'all' is for generative scores: under {name} all sets without the class are alike."
            )
        if not (self.equivalent_sample_size > 0 and math.isfinite(self.equivalent_sample_size)):
            raise InputError(
                f"The equivalent sample size must be a positive finite number, got {self.equivalent_sample_size}."
            )
        if self.equivalent_sample_size != 1.0 and name != "bdeu":
            raise InputError(
                f"The equivalent sample size belongs to the score bdeu, not to {name}; leave it out."
            )
        object.__setattr__(self, "penalty", _parse_penalty(self.penalty))
        penalty = 1.0 if isinstance(self.penalty, str) else self.penalty
        for option, value in (("penalty", penalty), ("hybrid", self.hybrid)):
            if not (value >= 0 and math.isfinite(value)):
                raise InputError(f"{option} must be a finite number of at least 0, got {value}.")
            if value and not self.is_margin:
                raise InputError(
                    f"{option} goes with the margin scores {', '.join(MARGIN_SCORES)}, not with {name}."
                )

    @property
    def is_margin(self) -> bool:
        """Whether the score is made of class margins, as is ``cll`` (else it is generative)."""
        return self.name in MARGIN_SCORES

    @property
    def has_local_terms(self) -> bool:
        """Whether log-likelihood or parameters of single families enter the score."""
        if self.is_margin:
            return bool(self.penalty or self.hybrid)
        return self.name != "bdeu"

    def local_weights(self, total_weight: float) -> tuple[float, float]:
        """Return (factor of the log-likelihood, nats subtracted per free parameter).

        Parameters
        ----------
        total_weight : float
            M, the sum of the sample weights. AICc's correction is not linear and not in the second number.
        """
        bic = 0.5 * math.log(total_weight)
        if not self.is_margin:
            return 1.0, {"mdl": bic, "aic": 1.0}.get(self.name, 0.0)
        if isinstance(self.penalty, str):
            return self.hybrid, {"bic": bic, "aic": 1.0}[self.penalty]
        return self.hybrid, self.penalty

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Score:
        """Read what `to_dict` wrote."""
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return all options as JSON-safe values; gamma speaks for p."""
        return {
            "name": self.name,
            "gamma": self.gamma,
            "max_parents": self.max_parents,
            "smoothing": self.smoothing,
            "class_parents": self.class_parents,
            "parent_sets": self.parent_sets,
            "equivalent_sample_size": self.equivalent_sample_size,
            "penalty": self.penalty,
            "hybrid": self.hybrid,
        }


def _parse_penalty(penalty: float | str) -> float | str:
    if penalty in ("bic", "aic"):
        return penalty
    try:
        return float(penalty)
    except (TypeError, ValueError):
        raise InputError(f"penalty must be bic, aic or a number, got {penalty!r}.") from None
