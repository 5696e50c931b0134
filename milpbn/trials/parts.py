"""The rows on which a selection trains and validates, as Peharz and Pernkopf (2012, P12) draw them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from milpbn.data import Dataset, Table, validation_split
from milpbn.data.dataset import require_class
from milpbn.data.discretisation import Discretisation
from milpbn.data.folds import FEW_ROWS, Split, repeated_folds, repeats_of, rows_of_others
from milpbn.errors import InputError

#: Above this many training rows, one validation set decides, of this share of the rows; else cross-validation with this
#: many folds (P12, section 6).
LARGE, VALIDATION_SHARE, FOLDS = 1000, 0.2, 5


def validation_splits(
    classes: NDArray[np.integer], random_state: int, *, for_rare: bool = False
) -> list[Split]:
    """Return (training, validation) rows as in P12, section 6: one split if there are many rows, else folds.

    The class codes are those of the training rows, shape (M,). With `for_rare`, the split needs `FEW_ROWS` rows of
    other classes than the most frequent one, too, and folds are repeated until so many were held out.
    """
    large = len(classes) > LARGE
    if large and not (for_rare and VALIDATION_SHARE * rows_of_others(classes) < FEW_ROWS):
        return [validation_split(classes, VALIDATION_SHARE, random_state)]
    repeats = repeats_of(classes) if for_rare else 1
    return repeated_folds(classes, min(FOLDS, len(classes)), repeats, random_state)


def validation_datasets(source: Table | Dataset, random_state: int) -> list[tuple[Dataset, Dataset]]:
    """Return the (training, validation) samples on which a selection compares settings (P12, section 6).

    States and cuts of a table are learnt on the training rows of each split; a dataset keeps its own.
    """
    return [datasets_of(source, split) for split in splits_of(source, random_state)[0]]


def splits_of(
    source: Table | Dataset, random_state: int, *, for_rare: bool = False
) -> tuple[list[Split], str]:
    """Return (training, validation) positions within the source, and how they were drawn, in words.

    See `validation_splits`. `InputError` if the training rows of a split have only one class.
    """
    if isinstance(source, Table):
        rows = source.train_indices
        require_class(source, "Validation")
        classes = source.dataset(rows).y
    else:
        rows, classes = np.arange(source.n_samples), source.y
    parts = validation_splits(classes, random_state, for_rare=for_rare)
    # The classes of a table are learnt anew on the training rows of each split.
    if isinstance(source, Table) and any(len(np.unique(classes[train])) < 2 for train, _ in parts):
        raise InputError(
            f"{len(classes)} training rows are too few to choose by validation: the training rows of a split have one "
            "class only; give p and max_parents as numbers."
        )
    if len(parts) == 1:
        protocol = f"validation set of {100 * VALIDATION_SHARE:.0f} %"
    else:
        folds = min(FOLDS, len(classes))
        times = f", {len(parts) // folds} times" if len(parts) > folds else ""
        protocol = f"{folds}-fold cross-validation{times}"
    return [(rows[a], rows[b]) for a, b in parts], protocol


def may_drop(source: Table, splits: Sequence[Split]) -> bool:
    """Return whether rows with missing values may be dropped: each class is left, and two in every split."""
    classes = source.columns[source.target].codes
    rows = source.train_indices
    kept = rows[source.complete[rows]]
    whole = len(np.unique(classes[kept])) == len(np.unique(classes[rows]))
    return whole and all(len(np.unique(classes[train[source.complete[train]]])) > 1 for train, _ in splits)


def datasets_of(
    source: Table | Dataset,
    split: Split,
    discretisation: Discretisation | None = None,
    missing: str | None = None,
) -> tuple[Dataset, Dataset]:
    """Return the training and the held-out rows of a split. Cuts and states of a table come from its training rows.

    With ``missing="drop"`` training rows with missing values are left out. No held-out row is: what they lack is
    `milpbn.data.dataset.MISSING` then, and is summed over. So all policies are compared on the same rows.
    """
    train_rows, held_out_rows = split
    if isinstance(source, Dataset):
        return source.take(train_rows), source.take(held_out_rows)
    if missing == "drop":
        train_rows = train_rows[source.complete[train_rows]]
        source = source.changed(missing="drop")
    if discretisation is not None:
        source = source.changed(discretisation=discretisation)
    train = source.dataset(train_rows)
    return train, source.encode(train.variables, held_out_rows)
