"""Row numbers in files and frames: the features and the class are those of the frame without its index."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from campaign.share import Share
from milpbn.data import read_table
from milpbn.learners.registry import get_learner

Rng = np.random.Generator
#: Real columns under names that row numbers have elsewhere; none of them holds row numbers.
TRAPS: dict[str, Callable[[Rng, int], Any]] = {
    "X": lambda rng, n: rng.integers(1, 10, n),
    "X.1": lambda rng, n: rng.normal(0, 3, n).round(1),
    "index": lambda rng, n: rng.choice(["low", "mid", "high"], n),
    "row": lambda rng, n: rng.integers(1, 9, n),
    "level_1": lambda rng, n: rng.choice(["food", "tools"], n),
    "obs": lambda rng, n: rng.poisson(2, n),
    "store_id": lambda rng, n: rng.integers(1, 20, n),
    "seq": lambda rng, n: rng.integers(-5, 60, n),
    "Index": lambda rng, n: rng.normal(20, 4, n).round(1),
    "V1": lambda rng, n: rng.integers(0, 300, n),
}

#: Names of row numbers: of pandas, pyarrow, readr and readxl, R, data.table, polars, and of people.
NAMES = (
    "Unnamed: 0", "...1", "X", "X1", "V1", "index", "level_0", "rownames", "row.names", "row_names", "rn", "row",
    "__index_level_0__", "id", "obs", "Row Number", "idx", "#", "patient_id", "s.no", "index.1", "row_nr", "Nr.",
)  # fmt: skip


def plain_frame(rng: Rng, traps: bool) -> pd.DataFrame:
    """Features that tell something of the class, a few real columns under odd names, and the class last."""
    n = int(rng.integers(25, 120))
    y = rng.choice(["no", "yes", "perhaps"][: int(rng.integers(2, 4))], n)
    noise = rng.random(n) < 0.3
    code = pd.factorize(y)[0]
    columns: dict[str, Any] = {
        "h": (code * 2 + rng.normal(0, 1, n)).round(1),
        "colour": np.where(noise, rng.choice(["red", "blue"], n), np.where(code == 0, "red", "blue")),
        "k": (code + noise) % 3,
    }
    if traps:
        for name in rng.choice(list(TRAPS), 2, replace=False).tolist():
            columns[name] = TRAPS[name](rng, n)
    order = rng.permutation(list(columns)).tolist()
    return pd.DataFrame({**{name: columns[name] for name in order}, "class": y})


def numbers(rng: Rng, n: int) -> tuple[str, np.ndarray]:
    """Row numbers as they come about, and how."""
    first = int(rng.integers(0, 2))
    half = n // 2
    ways = {
        "all": np.arange(first, n + first),
        "shuffled": rng.permutation(n) + first,
        "split": rng.permutation(int(n * rng.uniform(1.2, 4)))[:n] + first,
        "filtered": np.sort(rng.permutation(2 * n)[:n]) + first,
        "two tables": np.r_[np.arange(n - half), np.arange(half)] + first,
        "two tables, shuffled": rng.permutation(np.r_[np.arange(n - half), np.arange(half)]) + first,
    }
    if half <= 20:
        del ways["two tables"], ways["two tables, shuffled"]
    name = str(rng.choice(list(ways)))
    return name, ways[name]


def an_index(rng: Rng, n: int) -> tuple[str, pd.Index]:
    """Any index that pandas may have, and what it is."""
    way, plain = numbers(rng, n)
    kinds: dict[str, Callable[[], pd.Index]] = {
        way: lambda: pd.Index(plain),
        "few values": lambda: pd.Index(plain % 8),
        "texts": lambda: pd.Index([f"row {k}" for k in plain]),
        "repeated texts": lambda: pd.Index(rng.choice(["a", "b", "c"], n)),
        "times": lambda: pd.date_range("2024-01-01", periods=n),
        "named": lambda: pd.Index(rng.integers(0, 5, n), name="patient"),
        "levels": lambda: pd.MultiIndex.from_arrays([rng.choice(["a", "b"], n), plain]),
        "named levels": lambda: pd.MultiIndex.from_arrays([plain % 3, plain], names=["site", None]),
        "range": lambda: pd.RangeIndex(5, 5 + 3 * n, 3),
    }
    kind = str(rng.choice(list(kinds)))
    return kind, kinds[kind]()


def as_parquet(frame: pd.DataFrame, path: Path, rng: Rng) -> Any:
    frame.to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def as_arrow(frame: pd.DataFrame, path: Path, rng: Rng) -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.Table.from_pandas(frame)


def as_csv(frame: pd.DataFrame, path: Path, rng: Rng) -> Any:
    """pandas writes the names of an index, if it has any, so that only indices without one are of use here."""
    path = path.with_suffix(".csv" if rng.random() < 0.7 else ".tsv")
    frame.rename_axis(index=[None] * frame.index.nlevels).to_csv(
        path, sep="\t" if path.suffix == ".tsv" else ","
    )
    return path


def as_csv_read_by_pandas(frame: pd.DataFrame, path: Path, rng: Rng) -> Any:
    """Read and written again once or twice, so that the columns are called Unnamed: 0, Unnamed: 0.1 and so on."""
    for _ in range(int(rng.integers(1, 3))):
        text = frame.rename_axis(index=[None] * frame.index.nlevels).to_csv()
        frame = pd.read_csv(io.StringIO(text))
    frame.to_csv(path.with_suffix(".csv"), index=False)
    return frame if rng.random() < 0.5 else path.with_suffix(".csv")


def as_reset(frame: pd.DataFrame, path: Path, rng: Rng) -> Any:
    return frame.rename_axis(index=[None] * frame.index.nlevels).reset_index()


def as_stored_without_types(frame: pd.DataFrame, path: Path, rng: Rng) -> Any:
    """Parquet of a program that keeps the columns and forgets which of them are an index."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.Table.from_pandas(frame.rename_axis(index=[None] * frame.index.nlevels))
    parquet.write_table(table.replace_schema_metadata(None), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


#: Ways in which any index is declared, or has names of its own, and those for which the names do not say so much.
DECLARED = (as_parquet, as_arrow, as_csv, as_csv_read_by_pandas)


def with_numbers(frame: pd.DataFrame, rng: Rng, path: Path) -> tuple[str, Any]:
    """The frame with plain row numbers under a name that programs or people give them, in any format."""
    way, plain = numbers(rng, len(frame))
    name = str(rng.choice(NAMES))
    place = len(frame.columns) if rng.random() < 0.3 else 0
    whole = frame.copy()
    if name in whole:
        return "", None
    whole.insert(place, name, plain)
    form = str(rng.choice(["csv", "arff", "frame", "polars", "floats", "parquet", "short"]))
    what = f"{way} as {name!r} at {place} in {form}"
    if form == "short":  # R's write.table: no name for the row labels
        rows = whole.drop(columns=name).to_csv(index=False, header=False).splitlines()
        head = frame.head(0).to_csv(index=False)
        if way.startswith("two"):  # R has no repeated row names
            return "", None
        path.with_suffix(".csv").write_text(
            head + "".join(f"{k},{row}\n" for k, row in zip(plain, rows, strict=True))
        )
        return what, path.with_suffix(".csv")
    if form == "csv":
        whole.to_csv(path.with_suffix(".csv"), index=False, quoting=csv.QUOTE_NONNUMERIC)
        return what, path.with_suffix(".csv")
    if form == "parquet":
        whole.to_parquet(path.with_suffix(".parquet"), index=False)
        return what, path.with_suffix(".parquet")
    if form == "arff":
        attributes = "".join(
            f"@attribute '{c}' {'numeric' if pd.api.types.is_numeric_dtype(whole[c]) else 'string'}\n"
            for c in whole
        )
        path.with_suffix(".arff").write_text(
            f"@relation r\n{attributes}@data\n" + whole.to_csv(index=False, header=False)
        )
        return what, path.with_suffix(".arff")
    if form == "polars":
        return what, pytest.importorskip("polars").from_pandas(whole)
    return what, whole.astype({name: float}) if form == "floats" else whole


def difference(source: Any, plain: pd.DataFrame) -> str:
    """What differs between a table with an index and the frame without it; empty if nothing does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, found = read_table(plain, target="class"), read_table(source)
        if found.target != "class" or set(found.features) != set(expected.features):
            return f"class {found.target!r}, features {found.features}; without the index {expected.features}"
        if not any("Left out" in note for note in found.notes) and len(found.left_out):
            return "no note"
        model = get_learner("naive-bayes")().fit(expected.dataset()).predictor
        other = get_learner("naive-bayes")().fit(found.dataset()).predictor
        wanted = np.asarray(model.predict(plain)).tolist()
        for classifier, rows in ((model, source), (other, source), (other, plain)):
            if np.asarray(classifier.predict(rows)).tolist() != wanted:
                return "the predictions differ"
    return ""


def test_row_numbers(share: Share, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    first = plain_frame(np.random.default_rng(0), traps=False)
    assert difference(first, first) == ""  # compiles and imports, before the time begins
    for seed in share.seeds():
        rng = np.random.default_rng(seed)
        path = tmp_path / f"t{seed}"
        kind = int(rng.integers(0, 4))
        frame = plain_frame(rng, traps=kind != 2)
        if kind == 0:
            write = DECLARED[int(rng.integers(len(DECLARED)))]
            what, index = an_index(rng, len(frame))
            what = f"{write.__name__}, {what}"
            source = write(frame.set_index(index), path, rng)
        elif kind == 1:
            write = (as_reset, as_stored_without_types)[int(rng.integers(2))]
            way, plain = numbers(rng, len(frame))
            what = f"{write.__name__}, {way}"
            if "index" in frame and write is as_reset:
                frame = frame.rename(columns={"index": "Index.2"})
            source = write(frame.set_index(pd.Index(plain)), path, rng)
        elif kind == 2:
            what, source = with_numbers(frame, rng, path)
        else:
            what, source = "no index", frame
        if source is None:
            continue
        share.tally.tried["tables"] += 1
        try:
            text = difference(source, frame)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        if text:
            share.note(what.split(",")[0].split(" as ")[0], f"seed {seed}", f"{what}: {text}")
        for file in tmp_path.glob(f"t{seed}.*"):
            file.unlink()
    share.finish()
