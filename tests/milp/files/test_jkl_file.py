from __future__ import annotations

import numpy as np
import pytest

from milpbn.errors import InputError
from milpbn.milp.files.jkl_file import read_jkl, write_jkl
from milpbn.problem.candidates import Candidates
from milpbn.problem.local import LocalScores

TEXT = """# three variables
3
0 3
-195.5 2 1 2
-1.9e2 1 1

-193.25 0
1 1
-517 0
2 2
-600 0
-580.5 2 0 1
"""


def test_a_file_is_read(tmp_path):
    (tmp_path / "s.jkl").write_text(TEXT)
    local = read_jkl(tmp_path / "s.jkl")
    assert local.candidates.names == ("0", "1", "2")
    assert local.candidates.sets == (((1, 2), (1,), ()), ((),), ((), (0, 1)))
    assert local.scores.tolist() == [-195.5, -190.0, -193.25, -517.0, -600.0, -580.5]


@pytest.mark.parametrize("word", ["-inf", "-Infinity", "-INF"])
def test_a_parent_set_without_a_finite_score_is_excluded(tmp_path, word):
    (tmp_path / "s.jkl").write_text(TEXT.replace("-193.25", word))
    assert read_jkl(tmp_path / "s.jkl").candidates.sets[0] == ((1, 2), (1,))
    (tmp_path / "s.pss").write_text(PSS.replace("-6e0 C B", f"{word} C B"))
    assert read_jkl(tmp_path / "s.pss").candidates.sets[0] == ((), (1,))


PSS = """META pss_version = 0.1
META num_records=500

VAR A
META arity=2
META values=0 1
-2.5
-9 B
-6e0 C B

VAR B
-9
VAR C
-10
-10.25 A
"""


def test_a_file_of_urlearning_is_read(tmp_path):
    (tmp_path / "s.pss").write_text(PSS)
    local = read_jkl(tmp_path / "s.pss")
    assert local.candidates.names == ("A", "B", "C")
    assert local.candidates.sets == (((), (1,), (1, 2)), ((),), ((), (0,)))
    assert local.scores.tolist() == [-2.5, -9.0, -6.0, -9.0, -10.0, -10.25]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("-9 B", "-9 D", "line 8 has a parent of 'A' that is no other variable: 'D'"),
        ("-9 B", "B -9", "line 8 begins with 'B', which is not a finite score"),
        ("VAR B", "VAR A", "line 11 does not have the name of another variable"),
        ("VAR B\n-9\n", "VAR B\n", "'B' has no parent set"),
        ("VAR A", "-1", "line 4 comes before the first variable"),
    ],
)
def test_errors_in_a_file_of_urlearning_name_the_line(tmp_path, old, new, said):
    (tmp_path / "s.pss").write_text(PSS.replace(old, new, 1))
    with pytest.raises(InputError, match=said):
        read_jkl(tmp_path / "s.pss")


def test_what_is_written_is_read_back_to_the_last_bit(tmp_path):
    sets = (((), (1,), (1, 2)), ((),), ((), (0,)))
    scores = np.random.default_rng(0).normal(0, 1e3, 6)
    write_jkl(LocalScores(Candidates(("a b", "é", "c"), sets), scores), tmp_path / "s.jkl")
    back = read_jkl(tmp_path / "s.jkl")
    assert back.candidates == Candidates(("a_b", "é", "c"), sets)
    assert np.array_equal(back.scores, scores)


@pytest.mark.parametrize("names", [("a b", "a_b"), ("", "x"), ("#1", "x")])
def test_names_that_are_no_words_are_refused(tmp_path, names):
    with pytest.raises(InputError, match="rename"):
        write_jkl(LocalScores(Candidates(names, (((),), ((),))), np.zeros(2)), tmp_path / "s.jkl")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("3\n0", "x\n0"), "line 2 does not have the number of variables"),
        (("0 3", "0"), "line 3 does not have a variable"),
        (("0 3", "blood pressure 3"), "line 3 does not have a variable, without white space,"),
        (("2 2\n", "2 1\n"), "line 12 comes after the last"),
        (("2 2\n", "2 3\n"), "cut off"),
        (("-195.5", "nan"), "line 4 begins with 'nan'"),
        (("-195.5 2", "-195.5 1"), "line 4 does not have a score"),
        (("2 0 1", "2 0 7"), "line 12 has a parent of '2' that is no other variable: '7'"),
        (("2 0 1", "2 0 2"), "line 12 has a parent of '2' that is no other variable: '2'"),
        (("2 0 1", "2 0 0"), "line 12 names a parent of '2' twice"),
        (("-1.9e2 1 1", "-1.9e2 2 2 1"), "line 5 has a parent set of '0' a second time"),
        (("1 1\n-517 0", "1 0"), "no parent set"),
        (("1 1\n-517", "0 1\n-517"), "a second time"),
        (("-517", "-1e200"), "begins with the score -1e200; its size must be below 1e"),
        (
            ("-517", "1e999"),
            "begins with '1e999', which is not a finite score; give a number, or -inf to exclude",
        ),
        (("-517", "inf"), "line 9 begins with 'inf', which is not a finite score"),
        (("-517", "-inf"), "all parent sets of '1' have the score -inf"),
    ],
)
def test_errors_name_file_and_line(tmp_path, change, said):
    (tmp_path / "s.jkl").write_text(TEXT.replace(*change))
    with pytest.raises(InputError, match=f"s.jkl' is unusable: .*{said}"):
        read_jkl(tmp_path / "s.jkl")


@pytest.mark.parametrize(
    "text",
    [
        "# by hand\nMETA version = 1\n2\nA 2\n-3 0\n-1 1 B\nB 1\n-2 0\n",
        "# by hand\nMETA version = 1\n\nVAR A\nMETA arity=2\n-3\n-1 B\n\nVAR B\n-2\n",
        "# by hand\nVAR A\n-3\n-1 B\nVAR B\n-2\n",
    ],
)
def test_comments_and_meta_lines_may_come_first_in_both_formats(tmp_path, text):
    (tmp_path / "s.jkl").write_text(text)
    found = read_jkl(tmp_path / "s.jkl")
    assert found.candidates.names == ("A", "B")
    assert found.candidates.sets == (((), (1,)), ((),))
    assert found.scores.tolist() == [-3, -1, -2]
