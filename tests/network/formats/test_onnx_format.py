"""ONNX models, run by onnxruntime: they return the probabilities of `predict_proba`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scored_elsewhere import fitted, rows

from milpbn.data import read_table
from milpbn.errors import InputError
from milpbn.network import AveragedClassifier, Classifier, Structure
from milpbn.network.formats.onnx_format import classifier_to_onnx

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def scored(classifier, frame: pd.DataFrame):
    session = runtime.InferenceSession(classifier_to_onnx(classifier), providers=["CPUExecutionProvider"])
    feed = {}
    for wanted in session.get_inputs():
        column = frame[wanted.name]
        if wanted.type == "tensor(double)":
            feed[wanted.name] = column.to_numpy(dtype=np.float64, na_value=np.nan)[:, None]
        else:
            feed[wanted.name] = column.map(lambda v: "" if pd.isna(v) else str(v)).to_numpy(dtype=object)[
                :, None
            ]
    return session.run(["label", "probabilities"], feed)


def test_networks_that_read_a_column_in_two_ways_are_refused():
    frame = rows()
    read = [
        read_table(frame.assign(n=values), target=frame.columns[-1]).dataset("train")
        for values in (frame["n"], "t" + frame["n"].astype(str))
    ]
    members = tuple(Classifier.fit(data, Structure.naive_bayes(data.names)) for data in read)
    with pytest.raises(InputError, match="'n' as numbers and as text"):
        classifier_to_onnx(AveragedClassifier(members))


def test_text_is_stripped_and_truth_values_are_found():
    """By the rule of labels, which the classifier itself and SQL follow."""
    frame = pd.DataFrame(
        {"t": ["NULL x", "b.c", "täg[lich]", "1"] * 10, "f": [True, False, False, True] * 10}
    )
    frame["y"] = np.where(np.arange(40) % 3 == 0, "p", np.where(frame["f"], "q", "p"))
    classifier = fitted(read_table(frame).dataset(), ((2,), (2,), ()))
    expected = classifier.predict_proba(frame)
    spaced = frame.assign(t=" \t" + frame["t"] + "\u00a0\n", f=frame["f"].map({True: " TRUE", False: "f "}))
    assert classifier.predict_proba(spaced) == pytest.approx(expected, abs=1e-12)
    assert scored(classifier, spaced)[1] == pytest.approx(expected, abs=1e-12)
    words = frame.assign(t=[" NULL ", "None", "n/a", " ", "NUL", "b?c", "1.0", "01"] * 5)
    assert scored(classifier, words)[1] == pytest.approx(classifier.predict_proba(words), abs=1e-12)


def test_a_column_of_missing_values_only():
    frame = pd.DataFrame({"v": [None] * 8, "w": list("aabbbbba"), "y": list("pqppqppp")}, dtype=object)
    table = read_table(frame, nominal=["v"], missing="state")
    classifier = fitted(table.dataset(), ((2,), (0, 2), ()))
    assert classifier.variables[0].states == ("?",)
    asked = pd.DataFrame({"v": ["c", None], "w": ["a", "b"]})
    wanted = classifier.predict_proba(classifier.encode(asked, ignore_unseen=True))
    assert scored(classifier, asked)[1] == pytest.approx(wanted)
