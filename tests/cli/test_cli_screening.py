"""``--screen``: what the verbs print and refuse."""

import numpy as np
import pytest
from cli_common import load, outputs, refused, run, succeed, write_csv

SCREENED = ["--screen", 7, "--max-parents", 3, "--p", 0.95, "--no-class-parents", "--threads", 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table of five features, the result of a screened run on it, and its certificate."""
    folder = tmp_path_factory.mktemp("screened")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (90, 5))
    codes[:, 1:] = np.where(rng.random((90, 4)) < 0.5, codes[:, :4], codes[:, 1:])
    target = np.where(rng.random(90) < 0.2, 0, (codes[:, 0] + codes[:, 1] * codes[:, 2]) % 2)
    rows = [[f"s{x}" for x in row] for row in np.column_stack([codes, target]).tolist()]
    write_csv(folder / "toy.csv", rows, "a,b,c,d,e,class")
    files = outputs(folder, output="r.json", certificate="p.npz", classifier="c.json")
    done = succeed("solve", folder / "toy.csv", *SCREENED, *files)
    (folder / "shown.txt").write_text(done.stdout)
    return folder


def test_the_closing_block_says_for_which_sets_the_bound_holds(folder):
    claim = load(folder / "r.json")["screened"]
    shown = (folder / "shown.txt").read_text()
    kept = sum(claim["kept"].values())
    assert f"screened   {kept} of {claim['total']} candidate parent sets were kept, by linear gain" in shown
    assert f"bound {claim['bound']:.6f} (certified)" in shown
    assert "\nbound      -\n" in shown
    assert "status     feasible" in shown
    assert "optimal" not in shown
    info = run("info", folder / "r.json").stdout
    assert f"screened   {kept} of {claim['total']}" in info
    assert "the file says certified; milpbn verify checks it with the certificate" in info


@pytest.mark.parametrize("result", ["r.json", "p.npz"])
def test_verify_says_for_which_sets_the_bound_holds(folder, result):
    claim = load(folder / "r.json")["screened"]
    files = ["--certificate", folder / "p.npz"] if result == "r.json" else []
    done = succeed("verify", folder / result, folder / "toy.csv", *files, "--exact")
    assert done.stdout.startswith("verified   no structure of the kept parent sets within")
    kept = sum(claim["kept"].values())
    assert (
        f"screened   {kept} of {claim['total']} candidate parent sets were kept; the bound is" in done.stdout
    )
    assert f"bound      {claim['bound']:.6f}\n" in done.stdout
    assert "arcs" not in done.stdout


def test_bound_and_its_refusals(folder):
    table = folder / "toy.csv"
    done = succeed("bound", table, *SCREENED, "-q")
    assert "candidate parent sets were kept; the bound is over these only" in done.stdout
    assert "arcs" not in done.stdout
    assert "memory" not in done.stdout
    assert "at least 1" in refused("bound", table, "--screen", 0, "-q").stderr
    assert "leave out --subset" in refused("solve", table, "--screen", 7, "--subset", 10, "-q").stderr
    assert (
        "No such option" in refused("export", table, "--screen", 7, "--output", folder / "m.lp", "-q").stderr
    )


def test_its_bound_says_nothing_about_another_structure(folder):
    assert (
        "its bound holds for structures of these only; solve without --screen"
        in refused("learn", "tan", folder / "toy.csv", "--bound", folder / "r.json", "-q").stderr
    )


def test_nothing_is_said_if_nothing_was_left_out(folder, tmp_path):
    done = succeed(
        "solve", folder / "toy.csv", "--screen", 500, "--p", 0.9, "-q", "--output", tmp_path / "r.json"
    )
    assert "screened" not in done.stdout
    assert load(tmp_path / "r.json")["screened"] is None


def test_selection_with_screening(folder):
    grid = ["--select", "p=.8,.9 max-parents=2", "--screen", 7, "--time-limit", 60, "--threads", 1]
    assert "selection  " in succeed("solve", folder / "toy.csv", *grid, "--no-class-parents", "-q").stdout
