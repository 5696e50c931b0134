"""Row numbers and row labels are no features and not the class, in whatever form they come."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

import milpbn
from milpbn.data import read_table
from milpbn.data.column import Column
from milpbn.data.left_out import looks_like
from milpbn.data.row_index import fit_header, leading_labels, name_unnamed, numbers_rows
from milpbn.errors import DataWarning, InputError
from milpbn.learners.registry import get_learner

RNG = np.random.default_rng(5)
SPLIT = np.random.default_rng(0).permutation(150)


@pytest.fixture
def parts() -> tuple[pd.DataFrame, pd.DataFrame]:
    frame = load_iris(as_frame=True).frame
    frame["target"] = frame["target"].map({0: "a", 1: "b", 2: "c"})
    return tuple(train_test_split(frame, random_state=0))


def read(source: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return read_table(source, **options)


def fitted(table: Any) -> Any:
    return get_learner("naive-bayes")().fit(table.dataset()).predictor


def test_the_index_of_a_parquet_file_is_no_feature(parts: tuple[pd.DataFrame, ...], tmp_path: Path) -> None:
    """The rows of iris are sorted by class, so that their numbers tell it."""
    pytest.importorskip("pyarrow")
    for name, part in zip(("train", "test"), parts, strict=True):
        part.to_parquet(tmp_path / f"{name}.parquet")
    with pytest.warns(
        DataWarning, match=r"'__index_level_0__' looks like a row index .* class is .*'target'"
    ):
        table = read_table(tmp_path / "train.parquet")
    assert (table.features, table.target) == (tuple(parts[0].columns[:-1]), "target")
    assert dict(table.left_out) == {"__index_level_0__": "row index"}
    classifier = fitted(table)
    expected = fitted(read(parts[0]))
    assert classifier.variables == expected.variables
    found = milpbn.evaluate(classifier, tmp_path / "test.parquet")
    assert found.accuracy == milpbn.evaluate(expected, parts[1]).accuracy < 1


@pytest.mark.parametrize("names", [[None], ["patient"], ["site", None], ["target", None]])
def test_any_index_of_a_parquet_file_is_known(
    names: list[str | None], parts: tuple[pd.DataFrame, ...], tmp_path: Path
) -> None:
    """Also one with few values, of several levels, and with the name of a column, which pandas then does not store."""
    pytest.importorskip("pyarrow")
    frame = parts[0]
    levels = [frame.index % 8, frame.index % 3][: len(names)]
    frame = frame.set_index([pd.Index(level, name=name) for level, name in zip(levels, names, strict=True)])
    if "target" in names:
        with pytest.raises(ValueError, match="target"):
            frame.reset_index()
    frame.to_parquet(tmp_path / "t.parquet")
    table = read(tmp_path / "t.parquet")
    assert (table.features, table.target) == (tuple(frame.columns[:-1]), "target")
    assert set(table.left_out.values()) == {"row index"}
    assert len(table.left_out) == len(names)


def test_an_index_may_be_asked_for(parts: tuple[pd.DataFrame, ...], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    parts[0].set_index(pd.Index(parts[0].index % 3, name="site")).to_parquet(path)
    assert read(path, target="site").target == "site"
    assert "site" in read(path, nominal=["site"]).features
    assert read(path, features=["site"], target="target").features == ("site",)
    parts[0].reset_index(drop=True).to_parquet(path)  # numbers from 0 are not stored as a column
    assert not read(path).left_out


@pytest.mark.parametrize(
    ("name", "values", "out"),
    [
        ("Unnamed: 0", SPLIT[:30], True),
        ("Unnamed: 0.1", SPLIT[:30] % 4, True),
        ("unnamed: 3", np.tile([1, 2, 3], 10), False),
        ("...1", range(1, 31), True),
        ("X", range(1, 31), True),
        ("X", SPLIT[:30] + 1, True),
        ("X", range(1, 7), True),
        ("X.1", RNG.permutation(6), True),
        ("X", RNG.integers(1, 10, 500), False),  # a coordinate
        ("X", np.tile(np.arange(10), 10), False),  # the coordinate of a grid
        ("X", RNG.permutation(10**6)[:30], False),
        ("X", RNG.normal(0, 1, 30), False),
        ("X", [3, 1, 0, 2], False),  # too few rows
        ("x", SPLIT[:30], False),
        ("index", SPLIT[:30], True),
        ("index", np.tile(np.arange(8), 20), True),
        ("index", np.r_[np.arange(40), np.arange(30)], True),
        ("index", np.sort(SPLIT[:15]), True),
        ("index", np.repeat(np.arange(30), 3), True),  # as pandas' explode leaves it
        ("X", np.repeat(np.arange(30), 12), False),  # the coordinate of a sorted grid
        ("index", ["low", "high"] * 15, False),
        ("index", RNG.integers(18, 35, 90), False),
        ("level_0", SPLIT[:30] % 5, True),
        ("level_1", ["food", "tools"] * 15, False),
        ("row", RNG.permutation(np.r_[np.arange(30), np.arange(25)]), True),
        ("row", np.tile(np.arange(1, 9), 12), False),  # of a plate
        ("Row Number", SPLIT[:30], True),
        ("__index_level_0__", ["a", "b"] * 15, True),
        ("rownames", [f"car {k}" for k in range(12)], True),
        ("patient_id", np.r_[np.arange(1, 31), np.arange(1, 31)], True),
        ("id", SPLIT[:30].astype(float), True),
        ("store_id", RNG.integers(1, 20, 60), False),
    ],
)
def test_name_and_values_decide(name: str, values: Any, out: bool) -> None:
    found = looks_like(Column.of(pd.Series(values, name=name)))
    assert (found is not None) == out
    as_text = looks_like(Column.of(pd.Series(list(map(str, values)), name=name), untyped=True))
    assert (as_text is not None) == out


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Unnamed: 0", "Unnamed: 1", "h"], 2),
        (["Unnamed: 0.1", "Unnamed: 0", "h"], 2),
        (["level_0", "level_1", "h"], 2),
        (["Unnamed: 0", "level_1", "h"], 1),
        (["Unnamed: 0", "level_0", "h"], 2),
        (["...1", "...2", "h"], 2),
        (["row.names", "h"], 1),
        (["h", "Unnamed: 0"], 0),
        (["level_1", "h"], 0),
        ([], 0),
    ],
)
def test_first_columns_may_be_labels_by_their_names(names: list[str], expected: int) -> None:
    assert leading_labels(names) == names[:expected]


def test_row_numbers_of_tables_that_were_put_together() -> None:
    assert numbers_rows(np.r_[np.arange(50), np.arange(30), np.arange(40)])
    assert not numbers_rows(np.r_[[np.arange(25)] * 11].ravel()[:200] % 20)
    assert not numbers_rows(np.arange(-1, 30))
    assert numbers_rows(RNG.permutation(50_000)[:1000])  # a fiftieth of the rows
    assert not numbers_rows(RNG.permutation(50_000)[:100])
    assert not numbers_rows(RNG.integers(0, 100, 100))
    assert numbers_rows(np.array([10**50 + 1, 10**50 + 2] * 3, dtype=object)) is False


@pytest.fixture
def small() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    y = rng.choice(["p", "q"], 40)
    return pd.DataFrame(
        {"h": rng.normal(0, 1, 40).round(1), "wt": np.where(rng.random(40) < 0.8, y, "p"), "y": y}
    )


@pytest.mark.parametrize(
    "way", ["csv", "tsv", "levels", "texts", "no names", "trailing", "both trailing", "label and end"]
)
def test_columns_without_a_name_are_left_out(way: str, small: pd.DataFrame, tmp_path: Path) -> None:
    """pandas' to_csv, R's write.csv and write.table, and programs that write a separator after the last cell."""
    path = tmp_path / ("t.tsv" if way == "tsv" else "t.csv")
    text = small.to_csv(index=False)
    head, *rows = text.splitlines()
    if way in ("csv", "tsv"):
        small.sample(frac=1, random_state=0).to_csv(path, sep="\t" if way == "tsv" else ",")
    elif way == "levels":
        small.set_index([pd.Index(["a", "b"] * 20), pd.Index(range(40))]).to_csv(path)
    elif way == "texts":
        small.set_index(pd.Index(["a", "b"] * 20)).to_csv(path)
    elif way == "no names":
        path.write_text("\n".join([head, *(f"{k},{row}" for k, row in enumerate(rows, 1))]))
    elif way == "trailing":
        path.write_text("\n".join([head, *(f"{row}," for row in rows)]))
    elif way == "both trailing":
        path.write_text("\n".join([f"{head},", *(f"{row}, " for row in rows)]))
    else:
        path.write_text("\n".join([head, *(f"{k},{row}," for k, row in enumerate(rows, 1))]))
    with pytest.warns(DataWarning, match="Left out: 'Unnamed: "):
        table = read_table(path)
    assert (table.features, table.target) == (("h", "wt"), "y")
    ordered = small.sample(frac=1, random_state=0) if way in ("csv", "tsv") else small
    assert table.frame["wt"].tolist() == ordered["wt"].tolist()
    assert table.frame["h"].astype(float).tolist() == ordered["h"].tolist()
    path.with_name("plain.csv").write_text(text)
    classifier = fitted(read(path.with_name("plain.csv")))
    assert list(classifier.predict(path)) == list(classifier.predict(ordered))


def test_a_frame_that_pandas_read_without_index_col(small: pd.DataFrame) -> None:
    twice = pd.read_csv(io.StringIO(small.to_csv()))
    twice = pd.read_csv(io.StringIO(twice.to_csv()))
    table = read(twice)
    assert table.features == ("h", "wt")
    assert dict(table.left_out) == {"Unnamed: 0.1": "row index", "Unnamed: 0": "row index"}
    assert read(small.set_index("h")).features == ("wt",)  # the index of a data frame is no column
    assert read(small.assign(index=range(40))).target == "y"
    assert read((small[["h", "wt"]], pd.Series(range(10), name="index").repeat(4))).target == "index"


@pytest.mark.parametrize(
    ("header", "rows", "expected"),
    [
        (["a", "y"], [["1", "u", "x"], ["2", "u", "x"]], ["", "a", "y"]),
        (["a", "y"], [["u", "x", ""], ["u", "x", " "]], ["a", "y", ""]),
        (["a", "y", ""], [["u", "x"], ["u", "x"]], ["a", "y"]),
        (["a", "y"], [["1", "u", "x", ""], ["2", "u", "x", ""]], ["", "a", "y", ""]),
        (["a", "y"], [["s", "1", "u", "x"], ["s", "2", "u", "x"]], ["", "", "a", "y"]),
        (["a", "y"], [[str(k % 25), "u", "x"] for k in range(50)], ["", "a", "y"]),  # two tables
        (["t", "y"], [["36", "5", "x"], ["36", "7", "x"]], None),  # decimal commas
        (["id", "t", "y"], [["1", "36", "5", "x"], ["2", "36", "7", "x"]], None),
        (["a", "y"], [["1", "u", ""], ["2", "v", ""]], None),  # row numbers, or a separator after each row?
        (["id", "y"], [["1", "u", ""], ["2", "v", ""]], ["id", "y", ""]),
        (["a", "y"], [["u", "x"], ["u", "x", "v"]], None),
    ],
)
def test_headers_that_lack_names(
    header: list[str], rows: list[list[str]], expected: list[str] | None
) -> None:
    assert fit_header(header, rows) == (header if expected is None else expected)


def test_other_columns_need_a_name() -> None:
    assert name_unnamed(["", "", "h", ""], [False, False, False, True], "t") == [
        *("Unnamed: 0", "Unnamed: 1", "h", "Unnamed: 3")
    ]
    assert name_unnamed(["", "Unnamed: 0", "h"], [False] * 3, "t")[0] == "Unnamed: 0.1"
    with pytest.raises(InputError, match="Column 2 of t has no name"):
        name_unnamed(["h", "", "y"], [False] * 3, "t")


def test_a_kept_column_that_may_number_the_rows_gets_a_remark(small: pd.DataFrame) -> None:
    odd = small.assign(index=np.random.default_rng(0).permutation(40) % 8)[["index", "h", "wt", "y"]]
    with pytest.warns(DataWarning, match="Integers under a name that programs give to row numbers.*'index'"):
        assert "index" in read_table(odd).features
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(odd, nominal=["index"])
