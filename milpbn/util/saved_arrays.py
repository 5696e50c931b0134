"""Arrays of a saved state, which come from a file of unknown origin: every one is checked when it is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from milpbn.util.jsonable import LARGEST_NUMBER


class UnfitError(ValueError):
    """Saved arrays do not fit together, or do not fit the data; the text says which."""


class SavedArrays:
    """Named arrays, each taken with the type, the shape and the range that it has to have.

    The methods raise `UnfitError` if there is no such array or it is another one.

    Parameters
    ----------
    arrays : dict from str to array
        The arrays.
    prefix : str
        What the names of the arrays begin with in the mapping, but not in calls.
    """

    def __init__(self, arrays: dict[str, NDArray[Any]], prefix: str = "") -> None:
        self._arrays, self._prefix = arrays, prefix

    def under(self, prefix: str) -> SavedArrays:
        """Return the arrays whose names begin with another prefix, after that of these."""
        return SavedArrays(self._arrays, self._prefix + prefix)

    def drop(self) -> None:
        """Forget all arrays, those with other prefixes as well, once nothing needs them any more."""
        self._arrays.clear()

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._arrays

    def array(
        self,
        name: str,
        dtype: DTypeLike,
        *shape: int | None,
        least: float | NDArray[Any] | None = None,
        below: float | NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """Return an array.

        Parameters
        ----------
        name : str
            Its name.
        dtype : dtype
            Its type. Floating-point numbers may be infinite, but not NaN.
        *shape : int or None
            Its shape; None for any length.
        least, below : number or array, optional
            No number may be smaller than `least`, and all must be smaller than `below`.
        """
        found = self._arrays.get(self._prefix + name)
        if found is None or found.dtype != np.dtype(dtype) or found.ndim != len(shape):
            raise UnfitError(f"{self._prefix}{name} is missing, or of another type")
        fits = all(want is None or want == have for want, have in zip(shape, found.shape, strict=True))
        wrong = (
            not fits
            or (found.dtype.kind == "f" and bool(np.isnan(found).any()))
            or (least is not None and not bool((found >= least).all()))
            or (below is not None and not bool((found < below).all()))
        )
        if wrong:
            raise UnfitError(f"{self._prefix}{name} has another shape, or a number out of range")
        return found

    def finite(self, name: str, dtype: DTypeLike, *shape: int | None, **limits: Any) -> NDArray[Any]:
        """Return an array of numbers whose differences and sums are finite, too; see `array`."""
        found = self.array(name, dtype, *shape, **limits)
        # A float32 array is not compared with a number that only a float64 can be.
        if not float(np.abs(found).max(initial=0.0)) < LARGEST_NUMBER:
            raise UnfitError(f"{self._prefix}{name} is not finite")
        return found

    def number(self, name: str, below: float | None = None) -> float:
        """Return a floating-point number, an array of shape (1,); it may be infinite."""
        return float(self.array(name, np.float64, 1, below=below)[0])

    def count(self, name: str) -> int:
        """Return a number of things, an array of shape (1,)."""
        return int(self.array(name, np.int64, 1, least=0, below=2**62)[0])

    def pieces(
        self, sizes: str, name: str, dtype: DTypeLike, *rest: int | None, **limits: Any
    ) -> list[NDArray[Any]]:
        """Return consecutive pieces of an array; their lengths are in another array. `rest` are the further axes."""
        whole = self.array(name, dtype, None, *rest, **limits)
        lengths = self.array(sizes, np.int64, None, least=0, below=len(whole) + 1)
        ends = np.cumsum(lengths)
        if (int(ends[-1]) if len(ends) else 0) != len(whole):
            raise UnfitError(f"{self._prefix}{name} has another length")
        return [whole[end - n : end] for n, end in zip(lengths.tolist(), ends.tolist(), strict=True)]


def number(value: float) -> NDArray[np.float64]:
    """Return a number in the form in which `SavedArrays.number` reads it."""
    return np.array([value], dtype=np.float64)


def count(value: int) -> NDArray[np.int64]:
    """Return a number of things in the form in which `SavedArrays.count` reads it."""
    return np.array([value], dtype=np.int64)
