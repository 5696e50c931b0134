"""Names with the characters that control a terminal: what a person reads has them escaped, data keep them."""

import pytest
from cli_common import QUICK, outputs, succeed, toy_rows, write_csv

#: Rings the bell, sets the window's title, and breaks a line.
NAME = "x\x07\x1b]0;t\x07\ny"
SHOWN = r"x\x07\x1b]0;t\x07"  # a line break is kept where texts have several lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table whose column, states and classes have such names, and what was learnt from it."""
    folder = tmp_path_factory.mktemp("unprintable")
    rows = [[f"{NAME}{value}" if value == "good" else value for value in row] for row in toy_rows()]
    rows = [[f'"{value}"' for value in row] for row in rows]
    write_csv(folder / "t.csv", rows, f'"{NAME}",b,c,class')
    files = outputs(folder, output="r.json", certificate="p.npz", classifier="c.json")
    succeed("solve", folder / "t.csv", "--threads", 1, *files)
    return folder


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("info", "t.csv"), True),
        (("info", "c.json"), True),
        (("info", "r.json"), True),
        (("explain", "c.json", "t.csv", "--row", "1"), True),
        (("evaluate", "c.json", "t.csv"), True),
        (("score", "r.json", "t.csv"), False),
        (("verify", "r.json", "t.csv", "--certificate", "p.npz"), False),
        (("learn", "tan", "t.csv"), False),
        (("compare", "t.csv", "--learners", "tan"), False),
        (("solve", "t.csv", *QUICK, "--forbid", f'b,"{NAME}"'), False),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_control_characters_are_escaped(folder, words, named):
    text = succeed(
        *(folder / word if word.endswith((".csv", ".json", ".npz")) else word for word in words)
    ).output
    assert "\x07" not in text
    assert "\x1b" not in text
    assert not named or SHOWN in text


def test_predictions_keep_the_labels(folder):
    assert f"{NAME}good" in succeed("predict", folder / "c.json", folder / "t.csv").output
