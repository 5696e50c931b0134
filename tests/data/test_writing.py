from __future__ import annotations

import pandas as pd
import pytest

from milpbn.data import read_table
from milpbn.data.writing import WRITERS, write_table
from milpbn.errors import InputError
from milpbn.util.raw_files import ending_of

FRAME = pd.DataFrame(
    {
        "a b": ["it's", "x, y", None, "{1}", "%", '"q"', "back\\slash", "tab\there"] * 2,
        "length": [1.5, 2.25, 1e-300, None, -3.0, 0.1, 7.0, 1e17] * 2,
        "n": [1, 2, 3, 1, 2, 3, 1, 2] * 2,
        "class": ["good one", "bad"] * 8,
    }
)


@pytest.mark.parametrize("ending", [".arff", ".csv"])
def test_a_table_comes_back_with_the_same_data(tmp_path, ending):
    table = read_table(FRAME, missing="state")
    write_table(table, tmp_path / f"t{ending}")
    back = read_table(tmp_path / f"t{ending}", missing="state")
    assert back.kinds == table.kinds
    assert back.dataset("all").sha256 == table.dataset("all").sha256


def test_the_data_of_a_dat_file_are_the_discretised_rows(tmp_path):
    table = read_table(FRAME.assign(**{"a b": ["u", "v"] * 8}).dropna())
    write_table(table, tmp_path / "t.dat")
    expected, back = table.dataset("all"), read_table(tmp_path / "t.dat").dataset("all")
    assert (back.codes == expected.codes).all()
    assert [v.n_states for v in back.variables] == [v.n_states for v in expected.variables]


def test_what_cannot_be_written_is_refused(tmp_path):
    table = read_table(FRAME.assign(w=2.0), weights="w", target="class", missing="state")
    for ending in WRITERS:
        with pytest.raises(InputError, match=r"[Ww]eights"):
            write_table(table, tmp_path / f"t{ending}")
    with pytest.raises(InputError, match=r"choose one of \.arff, \.csv, \.dat"):
        write_table(table, tmp_path / "t.xls")
    assert not list(tmp_path.iterdir())
    assert ending_of("A.ARFF", WRITERS) == ".arff"
