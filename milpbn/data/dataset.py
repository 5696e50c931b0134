"""Discrete data: variables with their states, and samples as integer codes.

Everything behind the reading of files works on a `Dataset`: features first,
the class variable last, each value an integer code into its variable's states.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

#: Code of a value without a state: a category that the training rows do not hold, or a missing value.
UNKNOWN = -1


@dataclass(frozen=True)
class Variable:
    """One discrete variable.

    Attributes
    ----------
    name : str
        Column name.
    states : tuple of str
        Label of each code 0, 1, ...; for a discretised variable the intervals, such as ``(2.5, 4]``.
    cuts : tuple of float or None
        Ascending cut points of a discretised continuous variable: the code of a value is the number of
        cuts strictly below it, so that each interval is closed on the right. None for a nominal one.
    numeric : bool
        The labels of a nominal variable are numbers, compared by value ("1", 1 and 1.0 are one state).
    missing_state : bool
        The last state stands for missing values (policy ``state``).
    """

    name: str
    states: tuple[str, ...]
    cuts: tuple[float, ...] | None = None
    numeric: bool = False
    missing_state: bool = False

    @property
    def n_states(self) -> int:
        """Number of states, sp(X) in the papers."""
        return len(self.states)


@dataclass(frozen=True)
class Dataset:
    """Samples over N discrete features and one class variable.

    Attributes
    ----------
    name : str
        Name for reports: the file's stem or the catalog name.
    variables : tuple of Variable, length V = N + 1
        Features in column order, the class variable last.
    codes : int32 array, shape (M, V)
        State codes, `UNKNOWN` (-1) where a value has no state. Training data has none.
    weights : float64 array, shape (M,)
        Sample weights, positive; all 1 without weights.
    notes : tuple of str
        What reading the data decided, one sentence each (types, dropped rows), for the user.
    """

    name: str
    variables: tuple[Variable, ...]
    codes: NDArray[np.int32]
    weights: NDArray[np.float64]
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def n_samples(self) -> int:
        """Number of rows M."""
        return self.codes.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features N, without the class."""
        return len(self.variables) - 1

    @property
    def n_variables(self) -> int:
        """Number of variables V = N + 1."""
        return len(self.variables)

    @property
    def n_classes(self) -> int:
        """Number of states of the class variable."""
        return self.variables[-1].n_states

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all variables, the class last."""
        return tuple(v.name for v in self.variables)

    @property
    def n_states(self) -> NDArray[np.int64]:
        """Numbers of states of all variables, shape (V,)."""
        return np.array([v.n_states for v in self.variables], dtype=np.int64)

    @property
    def X(self) -> NDArray[np.int32]:  # noqa: N802  # the field's name
        """Feature codes, shape (M, N)."""
        return self.codes[:, :-1]

    @property
    def y(self) -> NDArray[np.int32]:
        """Class codes, shape (M,)."""
        return self.codes[:, -1]

    @cached_property
    def sha256(self) -> str:
        """Hash of what the structure depends on: names, states, codes and weights."""
        digest = hashlib.sha256()
        described = [[v.name, list(v.states), v.cuts] for v in self.variables]
        digest.update(json.dumps(described, ensure_ascii=True).encode())
        digest.update(np.ascontiguousarray(self.codes, dtype="<i4").tobytes())
        digest.update(np.ascontiguousarray(self.weights, dtype="<f8").tobytes())
        return digest.hexdigest()

    @cached_property
    def merged(self) -> Dataset:
        """The same data with identical rows merged into one row that carries their total weight.

        Rows come in lexicographic order of their codes. Every score of the project is a weighted sum
        over samples, so that merging changes no score.
        """
        unique, _ = self._different
        return replace(self, codes=unique, weights=self.merged_weights(self.weights))

    def merged_weights(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what weights of the rows, shape (M,), sum up to for every row of `merged`; float64 array."""
        unique, inverse = self._different
        return np.bincount(inverse, weights=weights, minlength=len(unique)).astype(np.float64)

    @cached_property
    def _different(self) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """The different rows in lexicographic order, and which of them each row is."""
        unique, inverse = np.unique(self.codes, axis=0, return_inverse=True)
        return unique, inverse.ravel()

    def take(self, rows: NDArray[np.integer] | Sequence[int]) -> Dataset:
        """Return the given rows, with the same variables."""
        index = np.asarray(rows)
        return replace(self, codes=self.codes[index], weights=self.weights[index])
