"""The base class of all scores: the facts that other modules read, and the formulas of the score.

Each score is one class in one file. The class declares facts (class variables), has the options of the score (fields),
and defines two kinds of formulas: the coefficients, which a search maximises, and the value of one structure computed
from the data, which checks every structure that a search returns. Other modules read the facts; they do not compare
names.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.problem.scores.curve import AiccCurve


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
    """The part of a structure's score that its families add.

    Attributes
    ----------
    parts : list of float
        Terms, in nats; their sum is the value.
    sizes : list of float
        Summed sizes of the terms' summands, which bound the rounding error (`milpbn.problem.rounding.linear_error`).
    error : float
        Bound on any further rounding error, in nats.
    """

    parts: list[float]
    sizes: list[float]
    error: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ScoreKind:
    """One score. Its fields are its own options; `milpbn.Score` has the options of all scores.

    Attributes
    ----------
    name : str
        Name on the command line and in files.
    shape : Shape
        Shape as a function of eta.
    is_margin : bool
        The score is a function of the samples' log-margins (Peharz & Pernkopf 2012, P12, section 3), plus local terms.
    sums_samples : bool
        The samples' part is a weighted sum over the samples. Dual weights bound such a score, so the native engine can
        maximise it, and a weighted subset of the samples can stand for all.
    binary : bool
        The margins compare each class with the rest, the class variable re-read as {c, not c} (P12 (20)-(23)). There is
        one row of coefficients per sample, instead of one per competing class.
    certified : bool
        `milpbn.certificate` has its own definition of this score, so a search can write a certificate.
    curve : type or None
        The convex function of the total number of parameters that is subtracted.
    lighter : str
        Name of a similar score that takes less memory, or an empty string.
    """

    name: ClassVar[str]
    shape: ClassVar[Shape]
    is_margin: ClassVar[bool] = False
    sums_samples: ClassVar[bool] = False
    binary: ClassVar[bool] = False
    certified: ClassVar[bool] = False
    curve: ClassVar[type[AiccCurve] | None] = None
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
    def cap(self) -> float:
        """The most that a sample adds per unit of weight, in nats; inf if there is no limit."""
        return 0.0

    def local_weights(self, total_weight: float) -> tuple[float, float]:
        """Return the factor of the log-likelihood and the nats subtracted per free parameter; 0 for a missing term.

        Parameters
        ----------
        total_weight : float
            M, the sum of the sample weights.
        """
        return 0.0, 0.0

    def family(self, data: Dataset, child: int, parents: tuple[int, ...]) -> tuple[float, float]:
        """Return the local term of a variable with its parents (a linear coefficient of eta), and its size.

        Parameters
        ----------
        data : Dataset
            Training data.
        child : int
            The variable.
        parents : tuple of int
            Its parents, ascending.

        Returns
        -------
        value, size : float
            Nats. The size is the sum of the absolute values of the term's summands. It bounds the rounding error
            (`milpbn.problem.rounding.linear_error`).
        """
        raise NotImplementedError

    def local_value(self, data: Dataset, parents: tuple[tuple[int, ...], ...]) -> LocalValue:
        """Return the part of one structure's score that its families add, computed from the data alone.

        Parameters
        ----------
        data : Dataset
            Training data, merged or not.
        parents : tuple of tuples of int, length V
            Parents of every variable.
        """
        terms = [self.family(data, i, s) for i, s in enumerate(parents)]
        return LocalValue([value for value, _ in terms], [size for _, size in terms])

    def sample_values(
        self, log_joint: NDArray[np.float64], true: NDArray[np.integer], share: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what every sample adds per unit of weight, computed from the data alone.

        Parameters
        ----------
        log_joint : float64 array, shape (M, Q)
            log P(c, z_m) in nats of all Q = C classes; with `binary`, of the sample's class and of the rest, Q = 2.
        true : integer array, shape (M,)
            The column of the sample's true class.
        share : float
            Bound on the relative error of `log_joint`.

        Returns
        -------
        values, errors : float64 arrays, shape (M,)
            Values and bounds on their rounding errors, in nats. If `sums_samples` is false, the smallest value counts.
        """
        raise NotImplementedError
