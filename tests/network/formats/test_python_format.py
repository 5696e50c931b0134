"""Files of Python, run without milpbn: they return the probabilities of `predict_proba`."""

from __future__ import annotations

import ast
import csv
import io
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scored_elsewhere import TARGET, expected, fitted, networks, new_rows

from milpbn.data import read_table
from milpbn.data.dataset import Dataset, Variable
from milpbn.network import Classifier, Structure
from milpbn.network.formats.python_format import classifier_to_python


def loaded(classifier) -> dict:
    functions = {"__name__": "scorer"}
    exec(compile(classifier_to_python(classifier), "scorer.py", "exec", dont_inherit=True), functions)
    return functions


def scored(classifier, frame: pd.DataFrame):
    own = loaded(classifier)
    records = frame.to_dict("records")
    shares = np.array([list(own["predict_proba"](row).values()) for row in records])
    return np.array([own["predict"](row) for row in records], dtype=object), shares


@pytest.mark.parametrize(
    ("states", "numeric"),
    [(("0.1", "2", "30"), True), (("01", "1", "0.5", "x"), False), (("0", "1"), True), (("f", "t"), False),
     (("(0.5, 1.5]", "(2, 3]", "None"), False)],
)  # fmt: skip
def test_every_value_has_the_state_that_milpbn_gives_it(states, numeric):
    variables = (Variable("x", states, numeric=numeric), Variable("c", ("u", "v", "w")))
    codes = np.array([[s, c] for s in range(len(states)) for c in range(3) for _ in range(1 + (s + c) % 3)])
    data = Dataset("values", variables, codes.astype(np.int32), np.arange(1.0, len(codes) + 1))
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names))
    texts = [
        "0.1",
        " .10",
        "1e-1",
        "2.0",
        "01",
        "1.0",
        "0.50",
        "3E1",
        "1E5",
        "T",
        "false",
        "TRUE",
        "x",
        "",
        "NaN",
        "None",
    ]
    values = [
        *texts,
        None,
        0.1,
        np.float32(0.1),
        1,
        1.0,
        2,
        True,
        False,
        np.int64(30),
        0.75,
        2.5,
        1e300,
        float("nan"),
        pd.NA,
        pd.NaT,
        Decimal("NaN"),
        b"x",
        timedelta(seconds=2),
        pd.Timedelta(30, "s"),
    ]
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    one = [classifier.predict_proba(frame.iloc[[k]])[0] for k in range(len(frame))]
    assert scored(classifier, frame)[1] == pytest.approx(np.array(one), abs=1e-12)


def test_words_in_a_column_of_numbers_are_refused():
    with pytest.raises(ValueError, match=r"The value 'abc' of 'x y' is not a number\."):
        loaded(networks()["chain"])["predict_proba"]({"x y": "abc"})


def test_a_hundred_features_with_tiny_probabilities_do_not_underflow():
    n, rng = 120, np.random.default_rng(0)
    variables = (*(Variable(f"x{i}", tuple("abcd")) for i in range(n)), Variable("c", ("u", "v")))
    data = Dataset("wide", variables, rng.integers(0, 2, (30, n + 1)).astype(np.int32), np.ones(30))
    parents = ((n,), *[(0, n)] * (n - 1), ())
    classifier = Classifier.fit(data, Structure(data.names, parents), 1e-9)
    frame = pd.DataFrame({f"x{i}": ["c", "d"] for i in range(n)}).assign(x0=None)
    assert scored(classifier, frame)[1] == pytest.approx(classifier.predict_proba(frame), abs=1e-12)


def test_the_file_is_a_program_that_needs_no_packages(tmp_path):
    classifier = networks("state")["average"]
    file = tmp_path / "scorer.py"
    file.write_text(classifier_to_python(classifier), encoding="utf-8")
    frame = new_rows()
    run = [sys.executable, "-I", "-S", "-X", "utf8", str(file)]
    done = subprocess.run(
        run,
        input="\ufeff" + frame.to_csv(index=False),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )  # with the byte order mark of Excel
    found = pd.DataFrame(list(csv.DictReader(io.StringIO(done.stdout))))
    assert list(found["x y"]) == list(frame["x y"].map(lambda x: "" if pd.isna(x) else str(x)))
    assert list(found[f"predicted {TARGET}"]) == list(classifier.predict(frame))
    shares = found[[f"P({label})" for label in classifier.classes]].astype(float).to_numpy()
    np.testing.assert_allclose(shares, expected(classifier, frame), rtol=0, atol=1e-12)
    for table, sentence in (
        ("n\n1\n", "The table lacks the column 'flag'."),
        (",".join([*frame, "n"]) + "\n", "The first line of the table has a name twice."),
        (",".join(frame) + "\n1,1,\udce4,T\n", "The table is not UTF-8 text; save it in UTF-8."),
        (",".join(frame) + "\n1,1\n", "Row 1 has another number of cells than the first line."),
        (",".join(frame) + "\nabc,1,x,T\n", "Row 1: The value 'abc' of 'x y' is not a number."),
    ):
        refused = subprocess.run(run, input=table, capture_output=True, text=True, errors="surrogateescape")
        assert refused.returncode
        assert refused.stderr.strip() == sentence
    many = frame.to_csv(index=False) + frame.iloc[:1].to_csv(index=False, header=False) * 2000
    (tmp_path / "many.csv").write_text(many, encoding="utf-8")
    with (
        open(tmp_path / "many.csv", encoding="utf-8") as rows,
        subprocess.Popen(run, stdin=rows, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as piped,
    ):
        piped.stdout.readline()
        piped.stdout.close()
        assert not piped.stderr.read()


def test_the_program_writes_numbers_of_classes_as_predict_does(tmp_path):
    frame = pd.DataFrame({"a": ["x", "y", "x", "z"] * 5, "y": [1.0, 2.5, 1.0, 2.5] * 5})
    classifier = fitted(read_table(frame, target="y").dataset(), ((1,), ()))
    file = tmp_path / "scorer.py"
    file.write_text(classifier_to_python(classifier), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(file)], input="a\nx\n", capture_output=True, text=True, check=True
    )
    head, row = done.stdout.splitlines()
    assert head == "a,predicted y,P(1),P(2.5)"
    assert row.startswith("x,1,0.")


def test_the_file_imports_nothing_and_is_read_by_python_3_8():
    tree = ast.parse(classifier_to_python(networks()["chain"]), feature_version=(3, 8))
    program = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "_main")
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert found == [node for node in ast.walk(program) if isinstance(node, ast.Import)]
