"""Models are written as .lp and .mps and read back by the solvers."""

from __future__ import annotations

import gzip
import math
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest
import scipy.sparse as sp
from files_common import (
    SOLVERS,
    make_milp,
    optimum,
    random_milp,
    read_with_highs,
    run_cbc,
    run_highs,
    run_scip,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from milpbn.errors import InputError
from milpbn.milp.files.model_files import MPS_OBJECTIVE_SIGN, entry_blocks, write_lp, write_mps
from milpbn.milp.files.solution_files import read_solution
from milpbn.milp.files.text_output import model_stem, number_strings
from milpbn.milp.milp import Milp

WRITERS = {"lp": (write_lp, 1.0), "mps": (write_mps, MPS_OBJECTIVE_SIGN)}


def solve(solver, path, tmp_path):
    if solver == "highs":
        return run_highs(path)
    if solver == "scip":
        return run_scip(path)
    run_cbc(path, tmp_path / "cbc.sol")
    return read_solution(tmp_path / "cbc.sol").objective


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_solvers_find_the_optimum_of_the_arrays(tmp_path, solver, suffix):
    write, sign = WRITERS[suffix]
    for seed in range(15):
        model = random_milp(seed)
        path = tmp_path / f"m{seed}.{suffix}"
        write(model, path)
        found = sign * solve(solver, path, tmp_path) + model.constant
        # CBC prints 8 decimals.
        assert found == pytest.approx(optimum(model)[0], rel=1e-6, abs=1e-6), seed


@pytest.mark.parametrize("suffix", ["lp.gz", "mps.gz"])
def test_compressed_files_hold_the_same_text(tmp_path, suffix):
    if int(version("highspy").split(".")[1]) < 15:
        pytest.skip("this HiGHS does not read compressed models")
    model = random_milp(1)
    write, sign = WRITERS[suffix.removesuffix(".gz")]
    write(model, tmp_path / f"m.{suffix}")
    write(model, tmp_path / f"again.{suffix}")
    write(model, tmp_path / f"m.{suffix.removesuffix('.gz')}")
    packed = (tmp_path / f"m.{suffix}").read_bytes()
    assert packed == (tmp_path / f"again.{suffix}").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / f"m.{suffix.removesuffix('.gz')}").read_bytes()
    value = sign * run_highs(tmp_path / f"m.{suffix}") + model.constant
    assert value == pytest.approx(optimum(model)[0])


# HiGHS drops matrix coefficients up to 1e-9 and reads costs and bounds from 1e20 as infinite.
numbers = st.builds(math.copysign, st.floats(1e-8, 1e14, allow_subnormal=False), st.sampled_from([1.0, -1.0]))


@st.composite
def exact_milps(draw):
    n, m = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    c = draw(st.lists(st.one_of(st.just(0.0), numbers), min_size=n, max_size=n))
    rows = draw(
        st.lists(st.lists(st.one_of(st.just(0.0), numbers), min_size=n, max_size=n), min_size=m, max_size=m)
    )
    bounds = [sorted(draw(st.tuples(numbers, numbers))) for _ in range(n + m)]
    lower = [draw(st.sampled_from([0.0, -math.inf, low])) for low, _ in bounds]
    upper = [
        max(low, draw(st.sampled_from([math.inf, up]))) for low, (_, up) in zip(lower, bounds, strict=True)
    ]
    kinds = [draw(st.sampled_from(["lower", "upper", "both", "equal"])) for _ in range(m)]
    row_lower = [-math.inf if k == "upper" else low for k, (low, _) in zip(kinds, bounds[n:], strict=True)]
    row_upper = [
        {"lower": math.inf, "equal": low}.get(k, up) for k, (low, up) in zip(kinds, bounds[n:], strict=True)
    ]
    return make_milp(c, rows, row_lower, row_upper, lower[:n], upper[:n], np.zeros(n))


@pytest.mark.parametrize("suffix", ["lp", "mps"])
@given(model=exact_milps())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_number_survives_bit_by_bit(tmp_path, suffix, model):
    write, sign = WRITERS[suffix]
    write(model, tmp_path / f"m.{suffix}")
    lp = read_with_highs(tmp_path / f"m.{suffix}").getLp()
    assert lp.col_names_ == model.column_names
    np.testing.assert_array_equal(sign * np.array(lp.col_cost_), model.c)
    np.testing.assert_array_equal(lp.col_lower_, model.lower)
    np.testing.assert_array_equal(lp.col_upper_, model.upper)
    matrix = sp.csc_array(
        (lp.a_matrix_.value_, lp.a_matrix_.index_, lp.a_matrix_.start_), shape=(lp.num_row_, lp.num_col_)
    ).toarray()
    read = {
        name: (row, low, up)
        for name, row, low, up in zip(lp.row_names_, matrix, lp.row_lower_, lp.row_upper_, strict=True)
    }
    for i, name in enumerate(model.row_names):
        halves = [read[name]] if name in read else [read[f"{name}.lo"], read[f"{name}.up"]]
        for row, _, _ in halves:
            np.testing.assert_array_equal(row, model.A[[i]].toarray()[0])
        assert max(low for _, low, _ in halves) == model.row_lower[i]
        assert min(up for _, _, up in halves) == model.row_upper[i]


@given(st.lists(st.floats(allow_nan=False)))
def test_numbers_are_read_back_exactly(values):
    texts = number_strings(np.array(values))
    assert [float(text) for text in texts] == values
    assert all(text != "-0" for text in texts)


@given(st.lists(st.integers(0, 30)), st.integers(1, 20))
def test_blocks_partition_the_rows(counts, size):
    indptr = np.r_[0, np.cumsum(counts)].astype(np.int64)
    blocks = list(entry_blocks(indptr, size))
    assert [i for first, last in blocks for i in range(first, last)] == list(range(len(counts)))
    assert all(indptr[last] - indptr[first] <= max(size, counts[first]) for first, last in blocks)


@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_models_of_several_blocks_are_written_whole(tmp_path, suffix):
    rng = np.random.default_rng(0)
    m, n = 1000, 260
    model = make_milp(
        rng.normal(size=n),
        rng.normal(size=(m, n)),
        np.full(m, -np.inf),
        rng.normal(size=m),
        np.zeros(n),
        np.ones(n),
        rng.random(n) < 0.5,
    )
    assert model.A.nnz > 200_000
    WRITERS[suffix][0](model, tmp_path / f"m.{suffix}")
    lp = read_with_highs(tmp_path / f"m.{suffix}").getLp()
    assert lp.row_names_ == model.row_names
    assert [int(kind) for kind in lp.integrality_] == model.integer.astype(int).tolist()
    columns = sp.csc_array(model.A)
    columns.sort_indices()
    read = sp.csc_array((lp.a_matrix_.value_, lp.a_matrix_.index_, lp.a_matrix_.start_), shape=(m, n))
    read.sort_indices()
    np.testing.assert_array_equal(read.data, columns.data)
    np.testing.assert_array_equal(read.indices, columns.indices)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_unused_columns_and_empty_or_unbounded_rows_are_written(tmp_path, solver, suffix):
    """Column 2 occurs nowhere, row 1 is empty, row 2 has no bound, column 3 is an unbounded integer."""
    model = make_milp(
        [1.0, 0.0, 0.0, 1.0],
        [[1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]],
        [-np.inf, -1.0, -np.inf],
        [7.5, 2.0, np.inf],
        [0.0, 0.0, -2.0, -np.inf],
        [0.25, 3.0, -1.0, np.inf],
        [False, True, False, True],
    )
    write, sign = WRITERS[suffix]
    write(model, tmp_path / f"m.{suffix}")
    assert sign * solve(solver, tmp_path / f"m.{suffix}", tmp_path) == pytest.approx(7.25)
    assert read_with_highs(tmp_path / f"m.{suffix}").getLp().col_names_ == model.column_names


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_long_names_give_lines_that_solvers_can_read(tmp_path, solver, suffix):
    model = random_milp(2)
    columns = [f"eta({j},0.5)_".ljust(100, "x") for j in range(model.n_columns)]
    rows = [f"row.{i}_".ljust(97, "y") for i in range(model.n_rows)]
    model = replace(model, column_names=columns, row_names=rows)
    write, sign = WRITERS[suffix]
    write(model, tmp_path / f"m.{suffix}")
    assert max(map(len, (tmp_path / f"m.{suffix}").read_text().splitlines())) <= 510
    found = sign * solve(solver, tmp_path / f"m.{suffix}", tmp_path) + model.constant
    assert found == pytest.approx(optimum(model)[0], rel=1e-6)


def test_lp_lines_stay_short_and_say_the_constant(tmp_path):
    n = 1000
    model = make_milp(
        np.full(n, -1 / 3),
        np.full((1, n), -1e-300 / 3),
        [1.0],
        [np.inf],
        np.zeros(n),
        np.ones(n),
        np.ones(n),
        np.float64(0.1 + 0.2),
    )
    write_lp(model, tmp_path / "m.lp")
    text = (tmp_path / "m.lp").read_text()
    assert max(map(len, text.splitlines())) <= 510
    assert "constant 0.30000000000000004" in text
    assert "Maximize" in text


@pytest.mark.parametrize("write", [write_lp, write_mps])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"column_names": ["x_0", "a b"]}, "'a b'"),
        ({"column_names": ["x_0", "e12"]}, "'e12'"),
        ({"column_names": ["x_0", "Free"]}, "'Free'"),
        ({"column_names": ["x_0", "3x"]}, "'3x'"),
        ({"column_names": ["x_0", "x" * 101]}, "100 letters"),
        ({"column_names": ["x_0", "x_0"]}, "same name"),
        ({"row_names": ["obj"]}, "same name"),
        ({"row_names": ["r:1"]}, "'r:1'"),
        ({"c": np.array([1.0, np.nan])}, "objective"),
        ({"A": sp.csr_array(np.array([[1.0, np.inf]]))}, "row"),
        ({"row_upper": np.array([np.nan])}, "right-hand side"),
        ({"row_upper": np.array([-np.inf])}, "right-hand side"),
        ({"lower": np.array([np.nan, 0.0])}, "bound"),
    ],
)
def test_unwritable_models_are_refused(tmp_path, write, change, words):
    model = make_milp([1, 1], [[1, 1]], [-np.inf], [1], [0, 0], [1, 1], [1, 1])
    with pytest.raises(InputError, match=words):
        write(replace(model, **change), tmp_path / "m.lp")
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_columns_is_refused(tmp_path):
    empty = np.zeros(0)
    model = Milp(empty, 0.0, sp.csr_array((0, 0)), empty, empty, empty, empty, empty.astype(bool), [], [])
    with pytest.raises(InputError, match="no column"):
        write_lp(model, tmp_path / "m.lp")


@pytest.mark.parametrize("write", [write_lp, write_mps])
@pytest.mark.parametrize("name", ["m.lp", "m.lp.gz"])
def test_an_interrupted_write_keeps_the_old_file(tmp_path, monkeypatch, write, name):
    (tmp_path / name).write_text("old")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("milpbn.milp.files.model_files.number_strings", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(random_milp(0), tmp_path / name)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "old")]


@pytest.mark.parametrize("write", [write_lp, write_mps])
def test_a_missing_folder_is_named(tmp_path, write):
    with pytest.raises(InputError, match="nowhere"):
        write(random_milp(0), tmp_path / "nowhere" / "m.lp")


@pytest.mark.parametrize("name", ["d.1/m.v2.lp", "d.1/m.v2.LP.gz", "d.1/m.v2.mps"])
def test_the_stem_drops_the_model_endings(name):
    assert model_stem(name).as_posix() == "d.1/m.v2"
