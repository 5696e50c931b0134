"""SQL queries, run by SQLite: they return the probabilities of `predict_proba`."""

from __future__ import annotations

import re
import sqlite3

import numpy as np
import pandas as pd
import pytest
from fine import fine_classifier
from scored_elsewhere import TARGET, expected, networks, rows

from milpbn.data import read_table
from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError
from milpbn.network import Classifier, Structure
from milpbn.network.formats import sql
from milpbn.network.formats.sql import classifier_to_sql


def queried(classifier, frame: pd.DataFrame, table: str = "data") -> pd.DataFrame:
    with sqlite3.connect(":memory:") as connection:
        frame.to_sql(table, connection, index=False)
        return pd.read_sql(classifier_to_sql(classifier, table), connection)


def scored(classifier, frame: pd.DataFrame):
    found = queried(classifier, frame)
    assert found["milpbn_row"].tolist() == list(range(1, len(frame) + 1))
    if "x y" in frame:  # older versions of pandas store such a column as text
        assert found["x y"].dropna().astype(float).tolist() == frame["x y"].dropna().astype(float).tolist()
    shares = found[[f"P({label})" for label in classifier.classes]].to_numpy()
    return found[f"predicted {classifier.variables[-1].name}"], shares


def test_only_states_that_occur_together_are_written():
    classifier = fine_classifier(0, n_columns=4, n_classes=2, coarse=8, fine=64)
    numbers = len(re.findall(r"E-?\d+\)", classifier_to_sql(classifier)))
    entries = sum(cpt.table.size for cpt in classifier.cpts)
    assert numbers < 3 * 64 * 2 + 3 * 9 * 9 * 2 + 8 < entries / 2


def test_many_features_and_messages_fit_into_the_limits_of_sqlite(monkeypatch):
    """SQLite joins 64 tables at most; most features have the first one as a parent."""
    monkeypatch.setattr(sql, "_MOST_PARTS", 20)
    n = 75
    rng = np.random.default_rng(0)
    variables = (*(Variable(f"x{i}", ("0", "1"), numeric=True) for i in range(n)), Variable("c", ("a", "b")))
    codes = rng.integers(0, 2, (30, n + 1)).astype(np.int32)
    data = Dataset("wide", variables, codes, np.ones(30))
    parents = ((n,), *[(0, n)] * 70, *[(n,)] * (n - 71), ())
    classifier = Classifier.fit(data, Structure(data.names, tuple(parents)))
    frame = pd.DataFrame(codes[:3, :-1], columns=list(data.names[:-1]))
    found = queried(classifier, frame)[["P(a)", "P(b)"]]
    np.testing.assert_allclose(found, classifier.predict_proba(frame), rtol=0, atol=1e-9)


def test_text_is_trimmed_and_names_of_tables_are_quoted():
    classifier = networks()["chain"]
    frame = rows(2, 6)
    spaced = frame.assign(**{"it's; text": "  " + frame["it's; text"] + " "})
    plain = queried(classifier, frame)[f"predicted {TARGET}"].tolist()
    assert queried(classifier, spaced, 'my "own" table')[f"predicted {TARGET}"].tolist() == plain


def test_nul_is_refused():
    data = Dataset(
        "nul",
        (Variable("a\0b", ("x", "y")), Variable("c", ("u", "v"))),
        np.eye(2, dtype=np.int32),
        np.ones(2),
    )
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names))
    with pytest.raises(InputError, match="NUL"):
        classifier_to_sql(classifier)


def test_columns_of_text_hold_numbers_and_truth_values_as_well():
    """As SQLite's .import makes them: all columns are text, and numbers compare as numbers."""
    classifier = networks("state")["chain"]
    frame = rows(2, 40).drop(columns=TARGET)
    texts = frame.astype(str)
    changed = texts.assign(
        n=frame["n"].map("{}.0 ".format), flag=frame["flag"].map({True: "t", False: "FALSE"})
    )
    changed["x y"] = " " + changed["x y"]
    words = texts.assign(**{"x y": "NULL", "n": "n/a", "it's; text": "\tNone ", "flag": "#N/A"})
    missing = frame.astype(object).assign(**dict.fromkeys(frame.columns))
    strange = texts.assign(n="1x")
    for asked, same in (
        (texts, frame),
        (changed, frame),
        (frame.assign(flag=frame["flag"] * 1.0), frame),
        (words, missing),
        (strange, strange.assign(**{"x y": frame["x y"]})),
    ):
        shares = queried(classifier, asked)[[f"P({label})" for label in classifier.classes]].to_numpy()
        assert shares == pytest.approx(expected(classifier, same), abs=1e-9)


def test_texts_that_only_begin_like_numbers_were_never_seen():
    """SQLite casts 1-1 to 1 and - to 0, and a no-break space before a number to 0."""
    classifier = networks()["chain"]
    kinds = ["-", "1-1", "2024-05-31", ".", "1e", "E", "1.0.0", "-1-", "1e2.0", "--1", "1E5E1", "e1"]
    frame = rows(2, len(kinds)).drop(columns=TARGET).astype(str).assign(n=kinds)
    numbers = frame.assign(
        n=["+1", "1.", "1e0", "10E-1", "1.0e+0", "\u00a01", "-0", ".0", "2", "01", "1", "\t2"]
    )
    numbers["x y"] = "\u00a0" + numbers["x y"]
    for asked in (frame, numbers):
        shares = queried(classifier, asked)[[f"P({label})" for label in classifier.classes]].to_numpy()
        read = asked.assign(**{"x y": asked["x y"].str.strip()})
        assert shares == pytest.approx(
            classifier.predict_proba(classifier.encode(read, ignore_unseen=True)), abs=1e-9
        )


def test_duckdb_returns_the_same_for_every_type_of_column():
    duckdb = pytest.importorskip("duckdb")
    classifier = networks("state")["chain"]
    frame = rows(2, 40).drop(columns=TARGET)
    wanted = expected(classifier, frame)
    forms = [
        frame,
        frame.astype(str),
        frame.astype({"n": "float32", "flag": int}),
        frame.astype({"n": float, "flag": float}),
        frame.astype({"n": float, "flag": float}).replace({"n": {0.0: -0.0}, "flag": {0.0: -0.0}}),
    ]
    for form in forms:
        with duckdb.connect() as connection:
            connection.register("data", form)
            found = connection.execute(classifier_to_sql(classifier)).df()
        shares = found[[f"P({label})" for label in classifier.classes]].to_numpy()
        assert shares == pytest.approx(wanted, abs=1e-9)


def named(*names: str) -> Classifier:
    """Return a classifier with columns of these names."""
    rng = np.random.default_rng(0)
    variables = (*(Variable(name, ("u", "v")) for name in names), Variable("y", ("a", "b")))
    codes = rng.integers(0, 2, (30, len(variables))).astype(np.int32)
    data = Dataset("named", variables, codes, np.ones(30))
    return Classifier.fit(data, Structure.naive_bayes(data.names))


@pytest.mark.parametrize("names", [("Age", "age"), ("milpbn_row",), ("milpbn_true",)])
def test_names_that_sql_does_not_tell_apart_are_refused(names):
    """DuckDB would read another column, without a word."""
    with pytest.raises(InputError, match=r"SQL does not tell the columns .* apart"):
        classifier_to_sql(named(*names))


def test_times_are_read_as_pandas_and_files_write_them():
    """A column of pandas has the label 2024-01-01 00:00:00, and its CSV file 2024-01-01."""
    days = pd.to_datetime(["2024-01-01", "2024-01-02"] * 9)
    frame = pd.DataFrame({"day": days, "y": list("pqqppq") * 3})
    data = read_table(frame).dataset()
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names))
    for texts in (frame["day"].astype(str), frame["day"].dt.strftime("%Y-%m-%dT%H:%M:%S")):
        shares = queried(classifier, pd.DataFrame({"day": texts}))[["P(p)", "P(q)"]]
        np.testing.assert_allclose(shares, classifier.predict_proba(frame), rtol=0, atol=1e-9)


def test_columns_called_true_and_false_are_read():
    """SQLite takes these names off the columns of a derived table."""
    classifier = named("true", "False", "x")
    frame = pd.DataFrame(np.random.default_rng(1).choice(["u", "v"], (9, 3)), columns=["true", "False", "x"])
    shares = queried(classifier, frame)[["P(a)", "P(b)"]]
    np.testing.assert_allclose(shares, classifier.predict_proba(frame), rtol=0, atol=1e-9)


def test_names_of_the_querys_own_columns_are_free():
    names = (
        "p0",
        "p1",
        "class",
        "p",
        "v0",
        "x0",
        "t0",
        "n0",
        "once",
        "largest",
        "source",
        "data",
        "select",
        "order",
    )
    classifier = named(*names)
    frame = pd.DataFrame(np.random.default_rng(1).choice(["u", "v"], (9, len(names))), columns=list(names))
    shares = queried(classifier, frame)[["P(a)", "P(b)"]]
    np.testing.assert_allclose(shares, classifier.predict_proba(frame), rtol=0, atol=1e-9)
