"""Spreadsheets, whose formulas the package formulas evaluates."""

from __future__ import annotations

import zipfile

import numpy as np
import pandas as pd
import pytest
from scored_elsewhere import expected, fitted, networks, new_rows

from milpbn.data import read_table
from milpbn.errors import InputError
from milpbn.network.formats import spreadsheet
from milpbn.network.formats.spreadsheet import classifier_to_xlsx

openpyxl = pytest.importorskip("openpyxl")
formulas = pytest.importorskip("formulas")


def scored(classifier, frame: pd.DataFrame, folder):
    """Return the probabilities and labels that the formulas find for a frame typed into the sheet."""
    path = folder / "scorer.xlsx"
    path.write_bytes(classifier_to_xlsx(classifier))
    book = openpyxl.load_workbook(path)
    names = [cell.value for cell in book["Rows"][1]]
    for r, row in enumerate(frame.to_dict("records"), start=2):
        for name, value in row.items():
            book["Rows"].cell(r, names.index(name) + 1).value = None if pd.isna(value) else value
    book.save(path)
    cells = formulas.ExcelModel().loads(str(path)).finish().calculate()

    def value(name: str, r: int):
        letter = openpyxl.utils.get_column_letter(names.index(name) + 1)
        return cells[f"'[scorer.xlsx]ROWS'!{letter}{r}"].value[0, 0]

    places = range(2, len(frame) + 2)
    shares = [[float(value(f"P({label})", r)) for label in classifier.classes] for r in places]
    return [value(names[-1], r) for r in places], np.array(shares), value(names[-1], len(frame) + 2)


def test_the_formulas_find_the_classifiers_probabilities(tmp_path, monkeypatch):
    monkeypatch.setattr(spreadsheet, "MOST_ROWS", 5)  # the package takes a second for a row
    classifier = networks()["chain"]
    frame = new_rows().iloc[[1, 7, 12, 17]]
    labels, shares, empty = scored(classifier, frame, tmp_path)
    np.testing.assert_allclose(shares, expected(classifier, frame), rtol=0, atol=1e-9)
    assert labels == list(classifier.predict(frame))
    assert empty == ""


def test_numbers_at_cuts_that_have_more_digits_than_a_cell(tmp_path, monkeypatch):
    """The number after the cut 1.7 is 1.7 for openpyxl and for spreadsheets."""
    monkeypatch.setattr(spreadsheet, "MOST_ROWS", 9)
    frame = pd.DataFrame({"x": [0.1, 1.1, 2.3, 7.7] * 20, "y": list("ppqq" * 10 + "pqpq" * 10)})
    table = read_table(frame, continuous=["x"], discretise="quantile:4")
    classifier = fitted(table.dataset(), ((1,), ()))
    cuts = classifier.variables[0].cuts
    assert 1.7 in cuts
    asked = pd.DataFrame({"x": [*cuts, 0.6, 1.69, 1.71, 1e10, -1e10]})
    shares = scored(classifier, asked, tmp_path)[1]
    np.testing.assert_allclose(shares, classifier.predict_proba(asked), rtol=0, atol=1e-9)


def test_characters_that_a_file_cannot_hold_are_refused():
    data = read_table(pd.DataFrame({"x": ["\ufffe", "b"] * 9, "y": list("pqpqpp") * 3}))
    with pytest.raises(InputError, match=r"holds the character '.ufffe', which a spreadsheet cannot hold"):
        classifier_to_xlsx(fitted(data.dataset(), ((1,), ())))


def test_a_label_that_a_program_would_decode_is_escaped(tmp_path):
    """Spreadsheets read ``_x0041_`` as A, which is another label here."""
    data = read_table(pd.DataFrame({"x": ["_x0041_", "A"] * 9, "y": list("pqpqpp") * 3}))
    (tmp_path / "c.xlsx").write_bytes(classifier_to_xlsx(fitted(data.dataset(), ((1,), ()))))
    with zipfile.ZipFile(tmp_path / "c.xlsx") as packed:
        texts = "".join(packed.read(name).decode() for name in packed.namelist() if name.endswith(".xml"))
    assert "<t>_x005F_x0041_</t>" in texts
    assert "<t>_x0041_</t>" not in texts


def test_cells_for_texts_have_the_format_of_texts(tmp_path):
    """Otherwise a program reads 5-9 as a day in September."""
    frame = pd.DataFrame(
        {"age": ["5-9", "10-14"] * 9, "z": np.arange(18.0), "n": [1, 2, 3] * 6, "y": list("pqq") * 6}
    )
    data = read_table(frame, continuous=["z"], discretise="quantile:2").dataset()
    (tmp_path / "c.xlsx").write_bytes(classifier_to_xlsx(fitted(data, ((3,), (3,), (3,), ()))))
    rows = openpyxl.load_workbook(tmp_path / "c.xlsx")["Rows"]
    for r in (2, 9):
        assert [rows.cell(r, k).number_format for k in (1, 2, 3)] == ["@", "General", "General"]
