"""Rows that are encoded in several ways."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fine import codes_of, fine_classifier, raw_rows

from milpbn.data import read_encodings, read_samples, read_table
from milpbn.data.dataset import UNKNOWN
from milpbn.data.encodings import Encodings, encodings_of, missing_values, unknown_values
from milpbn.errors import DataWarning, InputError

FRAME = pd.DataFrame(
    {"size": np.arange(40) / 7, "colour": list("rgbr") * 10, "kind": ["a"] * 20 + ["b"] * 20}
)


def variables_of(discretise):
    return read_table(FRAME, discretise=discretise).dataset().variables


SETS = (variables_of("quantile:3"), variables_of("uniform:4"))


def test_every_set_has_the_codes_of_its_own_reading():
    both = read_encodings(FRAME, SETS)
    assert isinstance(both, Encodings)
    for one, variables in zip(encodings_of(both), SETS, strict=True):
        alone = read_samples(FRAME, variables)
        assert one.variables == variables
        assert (one.codes == alone.codes).all()
    assert (both.y == read_samples(FRAME, SETS[0]).y).all()


def test_one_set_is_a_plain_dataset():
    data = read_encodings(FRAME, SETS[:1])
    assert type(data).__name__ == "Dataset"
    assert encodings_of(data) == (data,)


def test_rows_are_taken_from_all_encodings():
    both = read_encodings(FRAME, SETS)
    taken = both.take([3, 30, 3])
    assert taken.n_samples == 3
    for one, whole in zip(encodings_of(taken), encodings_of(both), strict=True):
        assert (one.codes == whole.codes[[3, 30, 3]]).all()


def test_the_file_is_read_once(tmp_path, monkeypatch):
    from milpbn.data import api

    FRAME.to_csv(tmp_path / "t.csv", index=False)
    calls, real = [], api.load_source
    monkeypatch.setattr(api, "load_source", lambda *a, **k: calls.append(a) or real(*a, **k))
    read_encodings(tmp_path / "t.csv", SETS)
    assert len(calls) == 1


def test_a_value_counts_that_is_unknown_to_one_set():
    first, second = encodings_of(read_encodings(FRAME, SETS))
    codes = second.codes.copy()
    codes[5, 1] = UNKNOWN
    other = replace(first, codes=np.where(np.arange(40)[:, None] == [7, 99, 99], UNKNOWN, first.codes))
    both = Encodings.of([other, replace(second, codes=codes)])
    assert unknown_values(both) == {"size": 1, "colour": 1}


def test_notes_are_told_once():
    frame = FRAME.assign(colour="new")
    both = read_encodings(frame, SETS)
    assert len(both.notes) == len(set(both.notes)) == 1
    assert "never saw" in both.notes[0]


def test_other_rows_are_refused():
    first, second = encodings_of(read_encodings(FRAME, SETS))
    for other in (second.take(range(39)), second.take(range(39, -1, -1))):
        with pytest.raises(InputError, match="not of the same rows"):
            Encodings.of([first, other])


@pytest.mark.parametrize("missing", [False, True])
def test_two_variables_code_one_column(missing, tmp_path):
    classifier = fine_classifier(5, missing=missing)
    frame = raw_rows(classifier, 50, 6, missing=0.2)
    expected = codes_of(classifier, frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    pair = (frame.drop(columns="kind"), frame["kind"])
    table = read_table(frame, missing="state")
    for source in (frame, tmp_path / "t.csv", pair, frame.to_numpy(dtype=object), table):
        data = classifier.encode(source)
        assert (data.codes == expected).all()
    assert "x2 (fine)" not in "".join(data.notes)
    with pytest.warns(DataWarning, match=r"^1 of 4 columns is absent \('x2'\)"):
        absent = classifier.encode(frame.drop(columns="x2"))
    assert (absent.codes == codes_of(classifier, frame.drop(columns="x2"))).all()
    counted = missing_values(absent)
    assert counted["x2"] == 50
    assert set(counted) <= {"x0", "colour", "x2", "x3"}


def test_the_column_is_part_of_a_variable():
    data = fine_classifier(1).encode(raw_rows(fine_classifier(1), 20, 2))
    others = tuple(replace(v, column=None) for v in data.variables)
    assert data.variables != others
    assert data.sha256 != replace(data, variables=others).sha256
