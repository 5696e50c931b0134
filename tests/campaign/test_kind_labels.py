"""Labels across programs: trained on a table in one form, predicted in every other.

Every column is drawn as codes of states, and written as the cells that some program has for them: numbers, texts, truth
values, words for missing values. The expected probabilities are those of naive Bayes by plain counts of these codes.
"""

from __future__ import annotations

import io
import itertools
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import milpbn
from campaign.share import Share
from milpbn.data.writing import write_table
from milpbn.learners.registry import get_learner
from milpbn.network import Classifier, read_network, write_network
from milpbn.network.formats.bif import from_bif
from milpbn.network.formats.onnx_format import classifier_to_onnx
from milpbn.network.formats.sql import classifier_to_sql
from milpbn.network.formats.xmlbif import from_xmlbif

WORDS = ["", "NA", "NaN", "nan", "None", "NULL", "null", "N/A", "n/a", "<NA>", "#N/A"]
#: Cells of each state of a column, and whether a file of text has all of its types.
CELLS: dict[str, Callable[[np.random.Generator], list[Any]]] = {
    "boolean": lambda rng: [False, True],
    "integers": lambda rng: [int(x) for x in rng.choice(50, rng.integers(2, 5), replace=False)],
    "bits": lambda rng: [0, 1],
    "reals": lambda rng: [0.1, 0.5, 1.0, 2.0][: rng.integers(2, 5)],
    "text": lambda rng: ["a b", "täglich", "o'neil", 'say "x"', "x,y", "[z]", "<=5%", "#1"][: rng.integers(2, 9)],
    "codes": lambda rng: ["A1", "01", "1", "x"],
    "capitals": lambda rng: ["FALSE", "TRUE"],
    "letters": lambda rng: ["F", "T"],
    "intervals": lambda rng: ["(-1.5, 0.0]", "(0.0, 2.5]", "(2.5, 7.0]"],
    "big": lambda rng: [2**53 + 1, 2**53 + 3],
}  # fmt: skip


def table(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a table's cells and the codes of their states, -1 for a missing one; the class is the last column."""
    n = int(rng.integers(60, 120))
    kinds = [str(k) for k in rng.choice(list(CELLS), rng.integers(2, 6))]
    classes = [["no", "yes"], [False, True], [0, 1], ["TRUE", "FALSE"], [1.5, 2.0, 3.0]][rng.integers(5)]
    y = rng.integers(0, len(classes), n)
    cells: dict[str, list[Any]] = {}
    codes: dict[str, np.ndarray] = {}
    for number, kind in enumerate(kinds):
        states = CELLS[kind](rng)
        drawn = np.where(rng.random(n) < 0.5, y % len(states), rng.integers(0, len(states), n))
        drawn[: len(states)] = range(len(states))
        if kind != "big" and rng.random() < 0.4:
            drawn[len(states) :][rng.random(n - len(states)) < 0.1] = -1
        name = f"{kind} {number}"
        codes[name] = drawn
        cells[name] = [states[k] if k >= 0 else None for k in drawn]
    frame = pd.DataFrame({**cells, "y": [classes[k] for k in y]})
    return frame, pd.DataFrame({**codes, "y": y})


def naive_bayes(codes: pd.DataFrame) -> np.ndarray:
    """Return P(class | row) by counts plus 1, shape (M, C); a missing value is one more state."""
    y = codes["y"].to_numpy()
    classes = np.arange(y.max() + 1)
    log = np.repeat(np.log([[(y == c).sum() + 1 for c in classes]]), len(y), axis=0)
    for name in codes.columns[:-1]:
        x = codes[name].to_numpy()
        states = len(np.unique(x))
        for c in classes:
            counts = np.array([((x == v) & (y == c)).sum() for v in x])
            log[:, c] += np.log((counts + 1) / ((y == c).sum() + states))
    share = np.exp(log - log.max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)


def text_of(frame: pd.DataFrame, rng: np.random.Generator) -> str:
    """Return a CSV file, with the spelling of truth values and of missing ones of some program."""
    yes, no = [("True", "False"), ("TRUE", "FALSE"), ("true", "false")][rng.integers(3)]
    word = WORDS[rng.integers(len(WORDS))]
    as_real = rng.random() < 0.5

    def cell(value: Any) -> Any:
        if value is None or value is pd.NA or value != value:
            return word
        if isinstance(value, bool):
            return yes if value else no
        if isinstance(value, int) and as_real and abs(value) < 2**53:
            return f"{value}.0"
        return f" {value} " if isinstance(value, str) and rng.random() < 0.1 else value

    return frame.astype(object).map(cell).to_csv(index=False)


def forms(frame: pd.DataFrame, rng: np.random.Generator, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the table in every form that holds labels: frames of several types, and files."""
    plain = frame.astype(object)
    yield "objects", plain
    yield "pandas", plain.convert_dtypes()
    yield "inferred", frame.infer_objects()
    text = text_of(frame, rng)
    file = folder / "table.csv"
    file.write_text(text, encoding="utf-8")
    yield "csv", str(file)
    yield "read_csv", pd.read_csv(io.StringIO(text))
    yield "read_csv pyarrow", pd.read_csv(io.StringIO(text), dtype_backend="pyarrow")
    texts = plain.map(lambda v: None if v is None or v is pd.NA or v != v else str(v))
    yield "texts", texts
    yield "categories", texts.fillna(WORDS[rng.integers(1, len(WORDS))]).astype("category")
    yield "single precision", frame.astype({c: "float32" for c in frame if frame[c].dtype == float})
    inferred = frame.convert_dtypes()
    inferred.to_parquet(folder / "table.parquet")
    yield "parquet", str(folder / "table.parquet")
    yield "arrow", pa.Table.from_pandas(inferred).to_pandas()
    with sqlite3.connect(":memory:") as connection:  # truth values come back as 0 and 1
        inferred.to_sql("data", connection, index=False)
        yield "sqlite", pd.read_sql("SELECT * FROM data", connection)


def networks(classifier: Classifier, folder: Path) -> Iterator[tuple[str, Classifier]]:
    """Yield the classifier as other programs would hold it."""
    for name, read in (("net.bif", from_bif), ("net.xmlbif", from_xmlbif)):
        write_network(classifier, folder / name)
        yield name, read((folder / name).read_text(encoding="utf-8"))
    write_network(classifier, folder / "net.json")
    yield "json", read_network(folder / "net.json")


def queried(classifier: Classifier, frame: pd.DataFrame) -> np.ndarray:
    """Return the probabilities that SQLite computes from a table."""
    with sqlite3.connect(":memory:") as connection:
        frame.to_sql("data", connection, index=False)
        found = pd.read_sql(classifier_to_sql(classifier), connection)
    return found[[f"P({label})" for label in classifier.classes]].to_numpy(float)


def run_onnx(classifier: Classifier, frame: pd.DataFrame) -> np.ndarray:
    """Return the probabilities that onnxruntime computes."""
    session = pytest.importorskip("onnxruntime").InferenceSession(classifier_to_onnx(classifier))
    feed = {}
    for each in session.get_inputs():
        column = frame[each.name].astype(object)
        gone = column.isna()
        if "double" in each.type:
            values = column.where(~gone, np.nan).to_numpy(float)
        else:
            values = np.array(["" if g else f" {v}" for v, g in zip(column, gone, strict=True)], dtype=object)
        feed[each.name] = values[:, None]
    return session.run(["probabilities"], feed)[0]


def test_a_classifier_of_one_form_predicts_every_other_form(share: Share, tmp_path: Path) -> None:
    warnings.simplefilter("ignore", milpbn.DataWarning)
    for seed in share.seeds():
        rng = np.random.default_rng(seed)
        frame, codes = table(rng)
        expected = naive_bayes(codes)
        kept = dict(forms(frame, rng, tmp_path))
        trained = str(rng.choice(list(kept)))
        nominal = list(frame.columns)
        try:
            read = milpbn.read_table(kept[trained], nominal=nominal, missing="state")
            classifier = get_learner("naive-bayes")(smoothing=1.0).fit(read.dataset("all")).predictor
            order = [classifier.encode(frame).y[list(codes["y"]).index(c)] for c in range(expected.shape[1])]
            arff = tmp_path / "table.arff"
            write_table(read, arff)
            kept["arff"] = str(arff)
            found = {name: classifier.predict_proba(source) for name, source in kept.items()}
            for name, other in networks(classifier, tmp_path):
                form = str(rng.choice(list(kept)))
                found[f"{name} of {form}"] = other.predict_proba(kept[form])
            found["sql"] = queried(classifier, frame.convert_dtypes())
            found["sql of texts"] = queried(classifier, kept["texts"])
            found["onnx"] = run_onnx(classifier, frame)
            accuracies = {
                milpbn.evaluate(classifier, kept[name]).accuracy for name in ("csv", "read_csv", "pandas")
            }
        except milpbn.errors.MilpbnError as error:
            share.note("refused", f"seed {seed}", f"trained on {trained}: {error}")
            continue
        if len(accuracies) > 1:
            share.note("accuracies", f"seed {seed}", f"trained on {trained}: {accuracies}")
        for name, probabilities in found.items():
            share.tally.tried["forms"] += 1
            gap = np.abs(probabilities[:, order] - expected).max()
            if not gap <= 1e-9:
                share.note("probabilities", f"seed {seed}", f"trained on {trained}, predicted {name}: {gap}")
        share.tally.tried["tables"] += 1
    share.finish()


def spelled(rng: np.random.Generator, edges: np.ndarray) -> tuple[list[str], bool]:
    """Return intervals between edges in the spelling of one program, and whether they are closed on the right."""
    e = [f"{x:g}" for x in edges]
    pairs = list(itertools.pairwise(e))
    program = rng.integers(7)
    if program == 0:
        return [f"({a}, {b}]" for a, b in pairs], True
    if program == 1:
        return [f"[{a}, {b})" for a, b in pairs], False
    if program == 2:
        return [f"({a},{b}]" for a, b in pairs], True  # R
    if program == 3:
        return [f"_{a}_{b}]" for a, b in pairs], True  # bnlearn's file
    if program == 4:
        return [f"[{a};{b}[" for a, b in pairs], False  # pyAgrum
    if program == 5:
        return [f"]{a};{b}]" for a, b in pairs], True
    return [f"'({a}-{b}]'" for a, b in pairs], True  # Weka


def test_numbers_find_the_intervals_of_other_programs(share: Share) -> None:
    warnings.simplefilter("ignore", milpbn.MilpbnWarning)
    for seed in share.seeds():
        rng = np.random.default_rng(seed)
        edges = np.unique(rng.normal(size=rng.integers(3, 7)).round(2) * 10.0 ** rng.integers(-3, 5))
        edges = np.array([float(f"{x:g}") for x in edges])
        if len(edges) < 3:
            continue
        if rng.random() < 0.5:
            edges[0], edges[-1] = -np.inf, np.inf
        labels, right = spelled(rng, edges)
        k = len(labels)
        order = rng.permutation(k) if rng.random() < 0.3 else np.arange(k)  # pgmpy sorts labels as text
        table = rng.dirichlet(np.ones(k), 2)
        rows = "".join(
            f"  ({c}) {', '.join(map(repr, table[j][order].tolist()))};\n" for j, c in enumerate("ab")
        )
        listed = ", ".join(f'"{labels[j]}"' for j in order)
        text = (
            f"network n {{\n}}\nvariable x {{\n  type discrete [ {k} ] {{ {listed} }};\n}}\n"
            "variable c {\n  type discrete [ 2 ] { a, b };\n}\n"
            f"probability ( c ) {{\n  table 0.5, 0.5;\n}}\nprobability ( x | c ) {{\n{rows}}}\n"
        )
        classifier = from_bif(text, "c")
        inner = edges[np.isfinite(edges)]
        x = np.concatenate(
            [
                inner,
                np.nextafter(inner, np.inf),
                np.nextafter(inner, -np.inf),
                rng.normal(size=20) * np.abs(inner).max(),
            ]
        )
        place = np.searchsorted(edges, x, side="left" if right else "right") - 1
        inside = (place >= 0) & (place < k)
        expected = np.full((len(x), 2), 0.5)
        expected[inside] = (table / table.sum(axis=0))[:, place[inside]].T
        gaps = {
            "numbers": classifier.predict_proba(pd.DataFrame({"x": x})) - expected,
            "labels": classifier.predict_proba(pd.DataFrame({"x": labels})) - (table / table.sum(axis=0)).T,
            "sql": queried(classifier, pd.DataFrame({"x": x})) - expected,
            "onnx": run_onnx(classifier, pd.DataFrame({"x": x})) - expected,
        }
        for name, gap in gaps.items():
            share.tally.tried["intervals"] += 1
            if not np.abs(gap).max() <= 1e-9:
                share.note("intervals", f"seed {seed}", f"{name} of {labels}: {np.abs(gap).max()}")
    share.finish()
