"""The base class of all scores: the facts that other modules read, and the formulas of the score.

Each score is one class in one file. The class declares facts (class variables), has the options of the score (fields),
and defines two kinds of formulas: the coefficients, which a search maximises, and the value of one structure computed
from the data, which checks every structure that a search returns. Other modules read the facts; they do not compare
names.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.sums import EPS
from milpbn.network.prior import Prior


class Shape(Enum):
    """The shape of a score as a function of eta, the indicators of the parent sets. All shapes are concave."""

    #: A sum of one term per variable and its parent set: the score is decomposable, and a MILP needs no rows for it.
    LINEAR = "linear"
    #: A minimum of linear functions, or a sum of such minima: rows of a MILP describe it exactly.
    PIECEWISE_LINEAR = "piecewise linear"
    #: Smooth: a MILP approximates it from above by tangent rows that are added in rounds. A margin score of this shape
    #: is the soft minimum of the margins at temperature 1, which is the log-posterior of the true class.
    CONCAVE = "concave"


class LocalValue(NamedTuple):
    """The part of a structure's score that its families add: terms in nats, whose sum is the value.

    `sizes` are the summed sizes of the terms' summands, which bound the rounding error
    (`ScoreKind.term_error`), and `error` bounds any further rounding error, in nats.
    """

    parts: list[float]
    sizes: list[float]
    error: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ScoreKind:
    """One score. Its fields are its own options; `milpbn.Score` has the options of all scores."""

    #: Name on the command line and in files.
    name: ClassVar[str]
    shape: ClassVar[Shape]
    #: The score is a function of the samples' log-margins (Peharz & Pernkopf 2012, P12, section 3), plus local terms.
    is_margin: ClassVar[bool] = False
    #: The samples' part is a weighted sum over the samples. Dual weights bound such a score, so the native engine can
    #: maximise it, and a weighted subset of the samples can stand for all.
    sums_samples: ClassVar[bool] = False
    #: The margins compare each class with the rest, the class variable re-read as {c, not c} (P12 (20)-(23)). There is
    #: one row of coefficients per sample, instead of one per competing class.
    binary: ClassVar[bool] = False
    #: `milpbn.certificate` has its own definition of this score, so a search can write a certificate.
    certified: ClassVar[bool] = False
    #: The class of the convex function of the total number of parameters that is subtracted, such as `AiccCurve`.
    curve: ClassVar[Any] = None
    #: Name of a similar score that takes less memory, or an empty string.
    lighter: ClassVar[str] = ""

    @classmethod
    def takes(cls, option: str) -> bool:
        """Return whether the score has an own option of this name."""
        return option in (item.name for item in fields(cls))

    @property
    def has_local_terms(self) -> bool:
        """Whether the score has terms of single families."""
        return True

    @property
    def class_free_alike(self) -> bool:
        """Whether all parent sets of a feature without the class add the same, so that one candidate represents them.

        They do if the score consists of margins alone (P12, footnote 1). Arc weights, which are not part of the score,
        make them differ.
        """
        return self.is_margin and not self.has_local_terms

    @property
    def smallest_class_free_suffices(self) -> bool:
        """Whether a parent set of a feature without the class never adds more than a smaller one inside it."""
        return self.class_free_alike

    @property
    def smooths(self) -> bool:
        """Whether the score counts with smoothed parameters."""
        return self.is_margin or self.unit > 0

    @property
    def unit(self) -> float:
        """The weight of a sample that is left out of its own parameters, 0 or 1."""
        return 0.0

    @property
    def cap(self) -> float:
        """The most that a sample adds per unit of weight, in nats; inf if there is no limit."""
        return 0.0

    def local_weights(self, total_weight: float) -> tuple[float, float]:
        """Return the factor of the log-likelihood and the nats subtracted per free parameter; 0 for a missing term.

        `total_weight` is M, the sum of the sample weights.
        """
        return 0.0, 0.0

    def sums_of_joint_states(self, total_weight: float) -> tuple[float, float] | None:
        """Return alpha of `milpbn.problem.joint_counts.WeightedRows`, and the nats subtracted per free parameter.

        None if the local terms are no differences of such sums.
        """
        return None

    def term_error(self, data: Dataset, prior: Prior) -> float:
        """Return a bound on the error of a term linear in eta, relative to the summed sizes of its summands.

        The relative error of a log-likelihood is at most `table_error` and some eps for its sum. That of penalties, arc
        weights and logarithms of the gamma function is smaller: implementations of the latter promise some ulp.
        """
        from milpbn.problem.rounding import table_error  # not above: processes of solvers start without numba

        return table_error(data, prior) + 64 * EPS

    def family(self, data: Dataset, child: int, parents: tuple[int, ...]) -> tuple[float, float]:
        """Return the local term of a variable with its parents (a coefficient of eta), and its size, in nats.

        The parents are ascending. The size is the sum of the absolute values of the term's summands. It bounds the
        rounding error (`ScoreKind.term_error`).
        """
        raise NotImplementedError

    def local_value(self, data: Dataset, parents: tuple[tuple[int, ...], ...]) -> LocalValue:
        """Return the part of one structure's score that its families add, computed from the data alone, merged or not.

        `parents` has the parents of each of the V variables.
        """
        terms = [self.family(data, i, s) for i, s in enumerate(parents)]
        return LocalValue([value for value, _ in terms], [size for _, size in terms])

    def sample_values(
        self, log_joint: NDArray[np.float64], true: NDArray[np.integer], share: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what every sample adds per unit of weight, computed from the data alone, and bounds on the errors.

        Both are nats, shape (M,). If `sums_samples` is false, the smallest value counts. `log_joint`, shape (M, Q), is
        log P(c, z_m) in nats of all Q = C classes; with `binary`, of the sample's class and of the rest, Q = 2. `true`,
        shape (M,), has the column of each sample's true class, and `share` bounds the relative error of `log_joint`.
        """
        raise NotImplementedError
