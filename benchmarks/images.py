"""The discretised image data of two papers, as training and test rows.

P11 is Pernkopf, Wohlmayr & Mücke (2011); R20 is Roth & Pernkopf (2020). The folder DIR contains
letter-discretised.npz, satimage-discretised.npz and usps-discretised.npz, with arrays x_tr_foldK, t_tr_foldK,
x_te_foldK and t_te_foldK whose states are numbered from 1, and mnist's four files as they are distributed. Mnist's
images are scaled to 14 x 14 and discretised by MDLP on the training images:

- `mnist` averages 2 x 2 pixels.
- `mnist-subsampled` takes every second pixel of every second row, which reproduces P11.
- `mnist-cubic` is nearest to R20: two thirds of all 70,000 images, taken at random, are the training images; cubic
  convolution over 8 x 8 pixels (an antialiased bicubic filter) gives 13 states per feature, as in R20, where the other
  two give 4 to 7.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from milpbn.data import read_table
from milpbn.data.dataset import Dataset, Variable
from milpbn.data.mdlp import mdlp_cuts
from milpbn.data.variables import interval_labels

#: Number of folds of every data set.
FOLDS = {"letter": 1, "satimage": 5, "usps": 1, "mnist": 1, "mnist-subsampled": 1, "mnist-cubic": 1}
#: The data sets that R20's authors discretised themselves.
DISCRETISED = ("letter", "satimage", "usps")


@cache
def load(folder: Path, name: str, fold: int = 1) -> tuple[Dataset, Dataset]:
    """Return training and test rows of a fold, 1, 2, ..."""
    return _mnist(folder, name) if name.startswith("mnist") else _archive(folder, name, fold)


def _archive(folder: Path, name: str, fold: int) -> tuple[Dataset, Dataset]:
    with np.load(folder / f"{name}-discretised.npz", allow_pickle=False) as archive:
        parts = {
            part: np.column_stack(
                [archive[f"x_{part}_fold{fold}"].astype(np.int32) - 1, archive[f"t_{part}_fold{fold}"]]
            ).astype(np.int32)
            for part in ("tr", "te")
        }
    sizes = np.maximum(parts["tr"].max(axis=0), parts["te"].max(axis=0)) + 1
    names = [*(f"x{i}" for i in range(1, len(sizes))), "class"]
    variables = tuple(
        Variable(n, tuple(map(str, range(size)))) for n, size in zip(names, sizes.tolist(), strict=True)
    )
    train, test = (Dataset(name, variables, codes, np.ones(len(codes))) for codes in parts.values())
    return train, test


@cache
def satimage_values(folder: Path, fold: int, data_dir: str | None) -> NDArray[np.float64]:
    """Return the values of a fold's training rows before they were cut into states; float64, shape (M, N).

    The catalog's satimage has the same rows, in another order. The number of its values below a cut equals the number
    of rows, training and test together, with a lower state. So the states of the catalog's rows follow, and each row is
    found by its states.
    """
    table = read_table("satimage", data_dir=data_dir)
    values = table.frame[list(table.features)].to_numpy(dtype=np.float64)
    train, test = load(folder, "satimage", fold)
    codes = np.concatenate([train.codes, test.codes])[:, :-1]
    found = np.empty(values.shape, dtype=np.int32)
    for j, (own, states) in enumerate(zip(values.T, codes.T, strict=True)):
        below = np.cumsum(np.bincount(states))[:-1]
        found[:, j] = np.searchsorted(below, np.argsort(np.argsort(own, kind="stable")), side="right")
    rows: dict[bytes, list[int]] = {}
    for m, states in enumerate(found):
        rows.setdefault(states.tobytes(), []).append(m)
    at = [rows[states.tobytes()].pop() for states in codes]
    return values[at[: train.n_samples]]


def cut(name: str, values: NDArray[np.float64], y: NDArray[np.int32], fitted: NDArray[np.int64]) -> Dataset:
    """Return all rows, discretised by MDLP; the cuts come from the rows `fitted` alone."""
    classes = tuple(map(str, range(int(y.max()) + 1)))
    variables = []
    codes = np.empty((len(y), values.shape[1] + 1), dtype=np.int32)
    for j, own in enumerate(values.T):
        cuts = tuple(mdlp_cuts(own[fitted], y[fitted], len(classes)).tolist())
        variables.append(Variable(f"x{j + 1}", interval_labels(cuts), cuts))
        codes[:, j] = np.searchsorted(cuts, own, side="left")
    codes[:, -1] = y
    return Dataset(name, (*variables, Variable("class", classes)), codes, np.ones(len(y)))


def _mnist(folder: Path, name: str) -> tuple[Dataset, Dataset]:
    parts = ("train", "t10k")
    images = np.concatenate([_idx(folder / f"{part}-images-idx3-ubyte.gz") for part in parts]).astype(float)
    y = np.concatenate([_idx(folder / f"{part}-labels-idx1-ubyte.gz") for part in parts]).astype(np.int32)
    rows, n_train = np.arange(len(y)), 60_000
    if name == "mnist-cubic":
        rows, n_train = np.random.default_rng(0).permutation(len(y)), 2 * len(y) // 3
        x = _cubic(_cubic(images, 1), 2)
    elif name == "mnist-subsampled":
        x = images[:, ::2, ::2]
    else:
        x = images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    x, y = x.reshape(len(y), -1)[rows], y[rows]
    data = cut(name, x, y, np.arange(n_train))
    return data.take(np.arange(n_train)), data.take(np.arange(n_train, len(y)))


def _cubic(images: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Halve an axis by Keys' cubic convolution (a = -1/2) over eight pixels, mirrored at the borders."""
    distance = np.abs(np.arange(8) - 3.5) / 2
    near = 1.5 * distance**3 - 2.5 * distance**2 + 1
    far = -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2
    weights = np.where(distance <= 1, near, far)
    padded = np.pad(images, [(3, 3) if k == axis else (0, 0) for k in range(images.ndim)], mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 8, axis=axis)
    halved = np.tensordot(np.moveaxis(windows, axis, 0)[::2], weights / weights.sum(), 1)
    return np.moveaxis(halved, 0, axis)


def _idx(path: Path) -> NDArray[np.uint8]:
    """Return the array of a gzipped file in mnist's format: byte 3 is its rank; then follow its sizes and its bytes."""
    content = gzip.decompress(path.read_bytes())
    sizes = np.frombuffer(content, dtype=">u4", count=content[3], offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * len(sizes)).reshape(sizes.astype(int))
