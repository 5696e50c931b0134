"""Discretised image data."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
from experiments_common import write_digits

from milpbn.data import read_table
from milpbn.errors import InputError
from milpbn.experiments import images
from milpbn.experiments.images import IMAGES, files_hash, image_folder, part_names, read_images


def test_the_folds_of_an_archive(tmp_path):
    write_digits(tmp_path, "satimage-discretised", folds=5)
    found = read_images("satimage-discretised", tmp_path)
    assert list(found) == part_names("satimage-discretised") == [f"fold-{k}" for k in range(1, 6)]
    train, test = found["fold-2"].train, found["fold-2"].test
    with np.load(tmp_path / "satimage-discretised.npz") as arrays:
        assert (arrays["x_tr_fold2"].astype(int) - 1 == train.X).all()
        assert (test.y == arrays["t_te_fold2"]).all()
        assert train.variables == test.variables
        highest = np.maximum(arrays["x_tr_fold2"].max(axis=0), arrays["x_te_fold2"].max(axis=0))
    assert [len(v.states) for v in train.variables[:-1]] == highest.tolist()
    assert found["fold-2"].training is train


def test_a_damaged_or_absent_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"needs usps-discretised\.npz in the folder --data-dir"):
        image_folder("usps-discretised", tmp_path)
    (tmp_path / "usps-discretised.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"'usps-discretised' in .* cannot be read .*; restore them"):
        read_images("usps-discretised", tmp_path)


def test_files_of_mnist_and_their_hash(tmp_path):
    for k, name in enumerate(IMAGES["mnist-cubic"][0]):
        shape = (2, 3, 3) if k % 2 == 0 else (2,)
        values = np.arange(np.prod(shape), dtype=np.uint8) + k
        head = struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape)
        (tmp_path / name).write_bytes(gzip.compress(head + values.tobytes()))
        assert (images._idx(tmp_path / name) == values.reshape(shape)).all()
    before = files_hash("mnist-cubic", tmp_path)
    assert before == files_hash("mnist-subsampled", tmp_path)


def test_cubic_convolution_keeps_a_plane_and_halves_the_axis():
    plane = np.add.outer(np.arange(28.0), 3.0 * np.arange(28.0))[None]
    halved = images.halved(plane)
    assert halved.shape == (1, 14, 14)
    expected = plane.reshape(1, 14, 2, 14, 2).mean(axis=(2, 4))
    assert np.abs(halved - expected)[:, 2:-2, 2:-2].max() < 1e-9  # mirrored at the borders


def test_an_archive_is_no_table(tmp_path):
    write_digits(tmp_path, "usps-discretised")
    with pytest.raises(InputError):
        read_table("usps-discretised", data_dir=tmp_path)
