"""The parts of a data set on which a classifier is learnt and tested (Peharz & Pernkopf 2012, P12, section 6).

A data set with a split of its own has one part, `TEST_SET`. Any other has the parts of a 5-fold cross-validation. All
that is learnt (states, cuts, gamma, the number of parents) is learnt from the training rows of a part.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from milpbn.data import Dataset, Table, stratified_folds

#: Name of the only part of a data set with a split of its own.
TEST_SET = "test"
#: Number of parts of any other data set.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Encoded:
    """Training and test rows that are encoded already."""

    name: str
    train: Dataset
    test: Dataset

    @property
    def training(self) -> Dataset:
        """The training rows."""
        return self.train


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a table."""

    #: `TEST_SET`, or ``fold-1`` to ``fold-5``.
    name: str
    table: Table
    #: Positions in the table's frame.
    train_rows: NDArray[np.int64]
    test_rows: NDArray[np.int64]

    @cached_property
    def training(self) -> Table:
        """A table of the training rows only, so that nothing can be learnt from others."""
        return replace(self.table.of_rows(self.train_rows), train_rows=None)

    @cached_property
    def train(self) -> Dataset:
        """The training rows, with states and cuts learnt from them."""
        return self.training.dataset("all")

    @cached_property
    def test(self) -> Dataset:
        """The test rows, encoded with the states of the training rows."""
        return self.table.encode(self.train.variables, self.test_rows)


#: Training and test rows of one part of a data set, whatever it is. `training` is what all is learnt from.
PartRows = Part | Encoded


def part_names(table: Table) -> list[str]:
    """Return the names of a data set's parts."""
    return [TEST_SET] if table.test_indices.size else [f"fold-{i + 1}" for i in range(FOLDS)]


def parts(table: Table, random_state: int) -> list[Part]:
    """Return the parts of a data set: its own split if it has one, else folds, which are stratified by class."""
    names = part_names(table)
    if names == [TEST_SET]:
        return [Part(TEST_SET, table, table.train_indices, table.test_indices)]
    folds = stratified_folds(table.dataset("all").y, FOLDS, random_state)
    return [Part(name, table, *rows) for name, rows in zip(names, folds, strict=True)]


def table_hash(table: Table) -> str:
    """Return the SHA-256 of everything that results depend on: cells, kinds, weights, missing values, split."""
    digest = hashlib.sha256()
    described = [dict(table.kinds), table.missing, table.train_rows, table.states]
    digest.update(json.dumps(described, ensure_ascii=True).encode())
    digest.update(table.frame.to_csv(lineterminator="\n").encode("utf-8", "surrogatepass"))
    digest.update(np.ascontiguousarray(table.weights, dtype="<f8").tobytes())
    return digest.hexdigest()
