"""Classifiers with few bits per parameter, as in a circuit: Pernkopf, Wohlmayr and Mücke (2011, P11), section 5."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, Dataset, Variable
from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import class_log_joint, occurring
from milpbn.network.evaluation import accuracy
from milpbn.network.inference.queries import Queries
from milpbn.network.predictor import Predictor, Source

#: Largest number of bits of a parameter: P11's Q12.52.
MOST_BITS = 64
#: Number of low bits that are summed apart from the high ones, so that float64 holds both sums exactly.
_LOW_BITS = 32


@dataclass(frozen=True, eq=False)
class FixedPointClassifier(Queries, Predictor):
    """A classifier whose parameters -log theta are unsigned fixed-point numbers, summed without rounding.

    It predicts the class with the smallest sum, the most probable one. Costs or a threshold of the classifier have no
    effect, because the sums of a circuit are not probabilities.

    A parameter is a multiple of 2^-fraction_bits and below 2^integer_bits. With negative fraction_bits the lowest
    integer bits are missing, as in P11 at widths below 12. `InputError` if a parameter has less than 1 or more than
    `MOST_BITS` bits, or no integer bit.
    """

    classifier: Classifier
    integer_bits: int
    fraction_bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.integer_bits + self.fraction_bits <= MOST_BITS or self.integer_bits < 1:
            raise InputError(
                f"A parameter needs 1 to {MOST_BITS} bits, at least one of them an integer bit; got "
                f"{self.integer_bits} integer and {self.fraction_bits} fraction bits."
            )

    @property
    def variables(self) -> tuple[Variable, ...]:  # type: ignore[override]  # frozen, so it is only read
        """Features first, the class variable last."""
        return self.classifier.variables

    def stored(self, probabilities: NDArray[np.float64]) -> NDArray[np.uint64]:
        """Return floor(-log theta 2^fraction_bits), or the largest number if that is smaller; uint64, same shape."""
        width = self.integer_bits + self.fraction_bits
        with np.errstate(divide="ignore"):
            numbers = np.floor(-np.log(probabilities) * 2.0**self.fraction_bits)
        within = numbers < 2.0**width
        return np.where(within, np.where(within, numbers, 0.0).astype(np.uint64), np.uint64(2**width - 1))

    def costs(self, source: Source) -> NDArray[np.object_]:
        """Return the sums of the stored numbers by class, Python integers, shape (M, C); the smallest sum wins.

        `InputError` if a feature's value is missing.
        """
        original = self.classifier
        codes = original.encode(source).codes
        if (codes[:, :-1] == MISSING).any():
            raise InputError(
                "A classifier of fixed-point numbers only adds them up, and cannot sum over the states of a missing "
                "value; leave out rows with missing values, or predict with the original classifier."
            )
        high, low = (
            class_log_joint(codes, original.structure, original.cpts, len(original.classes), bits).astype(
                np.int64
            )
            for bits in (
                lambda table: (self.stored(table) >> _LOW_BITS).astype(np.float64),
                lambda table: (self.stored(table) % 2**_LOW_BITS).astype(np.float64),
            )
        )
        return high.astype(object) * 2**_LOW_BITS + low

    def predict_codes(self, source: Source) -> NDArray[np.intp]:
        """Return the index of each sample's class, shape (M,); ties go to the first class."""
        return self.costs(source).argmin(axis=1)


def enough_integer_bits(classifier: Classifier) -> int:
    """Return the smallest number of integer bits whose range holds -log theta of every parameter theta > 0.

    Only parameters count whose states can occur together.
    """
    tables = [cpt.table[occurring(classifier.variables, cpt)] for cpt in classifier.cpts]
    largest = max(float(-np.log(table[table > 0].min())) for table in tables)
    return max(1, int(np.floor(np.log2(max(largest, 1.0)))) + 1)


def accuracy_by_width(
    classifier: Classifier, data: Dataset, integer_bits: int, widest: int
) -> list[tuple[int, float]]:
    """Return a classifier's accuracy with every number of bits per parameter, from `widest` down to 1, as pairs.

    The lowest bits are removed first; the widest format has `integer_bits` of them before the point (12 in P11). The
    samples have known classes, and are encoded with the classifier's variables. `InputError` if a format has no bits or
    too many, or no sample has a known class.
    """
    if widest < 1:
        raise InputError(f"A parameter needs at least 1 bit, got {widest}.")
    return [
        (width, accuracy(FixedPointClassifier(classifier, integer_bits, width - integer_bits), data))
        for width in range(widest, 0, -1)
    ]
