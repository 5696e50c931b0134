"""The place of a cut between two neighbouring values; apart from the methods, of which one takes long to import."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def midpoints(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return midpoints m with low <= m < high; both are halved before they are added, to avoid overflow."""
    middle = 0.5 * low + 0.5 * high
    return np.where((low <= middle) & (middle < high), middle, low)
