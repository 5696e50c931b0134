"""Arrays of a saved state by name.

A checksum protects their file against accidents, and a certificate proves what a search that goes on from it claims.
So types, shapes and indices are checked here, which another state does not have, and with which a kernel would read
or write outside of its arrays; all other numbers are taken as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class UnfitError(ValueError):
    """Saved arrays do not fit together, or do not fit the data; the text says which."""


class SavedArrays:
    """Named arrays, each taken with the type and the shape that it has to have.

    The methods raise `UnfitError` if there is no such array or it is another one. The names begin with the prefix in
    the mapping, but not in calls.
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
        least: NDArray[Any] | int = 0,
        below: NDArray[Any] | int | None = None,
    ) -> NDArray[Any]:
        """Return an array of this type and shape.

        None in the shape stands for any length. With `below`, it is an array of indices from `least` to `below` - 1.
        """
        found = self._arrays.get(self._prefix + name)
        if found is None or found.dtype != np.dtype(dtype) or found.ndim != len(shape):
            raise UnfitError(f"{self._prefix}{name} is missing, or of another type")
        if not all(want is None or want == have for want, have in zip(shape, found.shape, strict=True)):
            raise UnfitError(f"{self._prefix}{name} has another shape")
        if below is not None and not bool(((found >= least) & (found < below)).all()):
            raise UnfitError(f"{self._prefix}{name} has an index out of range")
        return found

    def number(self, name: str) -> float:
        """Return a floating-point number, an array of shape (1,)."""
        return float(self.array(name, np.float64, 1)[0])

    def count(self, name: str) -> int:
        """Return a number of things, an array of shape (1,)."""
        return int(self.array(name, np.int64, 1)[0])

    def pieces(
        self, sizes: str, name: str, dtype: DTypeLike, *rest: int | None, **limits: Any
    ) -> list[NDArray[Any]]:
        """Return consecutive pieces of an array; their lengths are in another array. `rest` are the further axes."""
        ends = np.cumsum(self.array(sizes, np.int64, None))
        return np.split(self.array(name, dtype, None, *rest, **limits), ends)[: len(ends)]


def number(value: float) -> NDArray[np.float64]:
    """Return a number in the form in which `SavedArrays.number` reads it."""
    return np.array([value], dtype=np.float64)


def count(value: int) -> NDArray[np.int64]:
    """Return a number of things in the form in which `SavedArrays.count` reads it."""
    return np.array([value], dtype=np.int64)
