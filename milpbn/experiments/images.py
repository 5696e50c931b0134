"""The discretised image data of two papers: training and test rows that are encoded already.

P11 is Pernkopf, Wohlmayr & Mücke (2011); R20 is Roth & Pernkopf (2020). ``NAME-discretised.npz`` are R20's own splits:
arrays x_tr_foldK, t_tr_foldK, x_te_foldK and t_te_foldK, whose states are numbered from 1. Mnist's four files are as
they are distributed. Its images are scaled to 14 x 14 and discretised by MDLP on the training images:

- ``mnist-subsampled`` takes every second pixel of every second row, which reproduces P11.
- ``mnist-cubic`` is nearest to R20: two thirds of all 70,000 images, taken at random, are the training images; cubic
  convolution over 8 x 8 pixels (an antialiased bicubic filter) gives 13 states per feature, as in R20, where
  subsampling gives 4.
"""

from __future__ import annotations

import gzip
import hashlib
import zipfile
import zlib
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

from milpbn.data.catalog import find_folder
from milpbn.data.dataset import Dataset, Variable
from milpbn.data.mdlp import mdlp_cuts
from milpbn.data.variables import interval_labels
from milpbn.errors import InputError
from milpbn.experiments.protocol import TEST_SET, Encoded

#: Mnist's files, images before labels.
MNIST = tuple(
    f"{part}-{what}-ubyte.gz" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")
)
#: The files of every data set, and its number of folds; with one there is a test set.
IMAGES: dict[str, tuple[tuple[str, ...], int]] = {
    "letter-discretised": (("letter-discretised.npz",), 1),
    "satimage-discretised": (("satimage-discretised.npz",), 5),
    "usps-discretised": (("usps-discretised.npz",), 1),
    "mnist-subsampled": (MNIST, 1),
    "mnist-cubic": (MNIST, 1),
}


def known_name(name: str) -> str:
    """Return the name under which `milpbn.data.known` has a data set: both forms of mnist are of the same files."""
    return "mnist" if name.startswith("mnist-") else name


def image_folder(name: str, data_dir: Path | None) -> Path:
    """Return the folder that has all files of a data set; InputError if there is none."""
    folder = find_folder(data_dir, IMAGES[name][0])
    if folder is None:
        raise InputError(
            f"The data set {name!r} needs {', '.join(IMAGES[name][0])} in the folder --data-dir; milpbn data list says "
            "where they can be had."
        )
    return folder


def part_names(name: str) -> list[str]:
    """Return the names of a data set's parts."""
    folds = IMAGES[name][1]
    return [TEST_SET] if folds == 1 else [f"fold-{k + 1}" for k in range(folds)]


@cache
def files_hash(name: str, folder: Path) -> str:
    """Return the SHA-256 of the files of a data set, one after the other."""
    digest = hashlib.sha256()
    for file in IMAGES[name][0]:
        digest.update((folder / file).read_bytes())
    return digest.hexdigest()


def read_images(name: str, folder: Path) -> dict[str, Encoded]:
    """Return the parts of a data set; InputError if a file is damaged."""
    try:
        if name.startswith("mnist"):
            return {TEST_SET: Encoded(TEST_SET, *_mnist(folder, name))}
        with np.load(folder / IMAGES[name][0][0], allow_pickle=False) as archive:
            arrays = dict(archive)
        return {part: Encoded(part, *_fold(name, arrays, k + 1)) for k, part in enumerate(part_names(name))}
    except (OSError, EOFError, KeyError, ValueError, IndexError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"The files of {name!r} in {str(folder)!r} cannot be read ({type(error).__name__}: {error}); restore them."
        ) from None


def _fold(name: str, arrays: dict[str, NDArray], fold: int) -> tuple[Dataset, Dataset]:
    """Return training and test rows of a fold, 1, 2, ..."""
    train, test = (
        np.column_stack(
            [arrays[f"x_{part}_fold{fold}"].astype(np.int32) - 1, arrays[f"t_{part}_fold{fold}"]]
        ).astype(np.int32)
        for part in ("tr", "te")
    )
    sizes = np.maximum(train.max(axis=0), test.max(axis=0)) + 1
    names = [*(f"x{i}" for i in range(1, len(sizes))), "class"]
    variables = tuple(
        Variable(n, tuple(map(str, range(size)))) for n, size in zip(names, sizes.tolist(), strict=True)
    )
    return (
        Dataset(name, variables, train, np.ones(len(train))),
        Dataset(name, variables, test, np.ones(len(test))),
    )


def _mnist(folder: Path, name: str) -> tuple[Dataset, Dataset]:
    images, labels = (
        np.concatenate([_idx(folder / file) for file in MNIST[k::2]]).astype(np.float64) for k in (0, 1)
    )
    y, rows, n_train = labels.astype(np.int32), np.arange(len(labels)), 60_000
    if name == "mnist-cubic":
        rows, n_train = np.random.default_rng(0).permutation(len(y)), 2 * len(y) // 3
        x = halved(images)
    else:
        x = images[:, ::2, ::2]
    x, y = x.reshape(len(y), -1)[rows], y[rows]
    classes = tuple(map(str, range(int(y.max()) + 1)))
    variables, codes = [], np.empty((len(y), x.shape[1] + 1), dtype=np.int32)
    for j, own in enumerate(x.T):
        cuts = tuple(mdlp_cuts(own[:n_train], y[:n_train], len(classes)).tolist())
        variables.append(Variable(f"x{j + 1}", interval_labels(cuts), cuts))
        codes[:, j] = np.searchsorted(cuts, own, side="left")
    codes[:, -1] = y
    data = Dataset(name, (*variables, Variable("class", classes)), codes, np.ones(len(y)))
    return data.take(np.arange(n_train)), data.take(np.arange(n_train, len(y)))


def halved(images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Halve both sides of images by Keys' cubic convolution (a = -1/2) over eight pixels, mirrored at the borders."""
    for axis in (1, 2):
        weights = np.array([-3, -9, 29, 111, 111, 29, -9, -3]) / 256
        smooth = correlate1d(images, weights, axis, mode="reflect")
        images = smooth.take(np.arange(1, smooth.shape[axis], 2), axis)
    return images


def _idx(path: Path) -> NDArray[np.uint8]:
    """Return the array of a gzipped file in mnist's format: byte 3 is its rank; then follow its sizes and its bytes."""
    content = gzip.decompress(path.read_bytes())
    sizes = np.frombuffer(content, dtype=">u4", count=content[3], offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * len(sizes)).reshape(sizes.astype(int))
