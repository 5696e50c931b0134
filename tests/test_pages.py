"""The commands of the README and of docs/: each is run, and the output that a page shows is the output.

A block of ```console has commands behind `$`, each with the notes and the output that it prints; `...` stands for any
text. If the output begins with `Error:`, the command must be refused with it. Blocks of ```python of one page run in
one namespace; what one prints may follow it as ```text. They run in a folder with small tables, `train.csv` and others.
Commands that take more than a few seconds run with --slow. `NOT_RUN` and `ELSEWHERE` have those that are not run here.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_steps import PAGES, ROOT, Block, Step, blocks, steps

import milpbn
from milpbn.network import save_classifier

#: Programs whose commands are not run, and why.
NOT_RUN = {
    "pip": "would change the environment of the tests; .ci/run and test_readme.py install in a new one",
    "podman": "builds on an image from a registry, and takes minutes",
    "cplex": "needs a licence",
    "Rscript": "needs R; test_r_script.py runs the script where R is",
}
#: The files that only these and other programs write; commands that read them are left out.
NOT_WRITTEN = ["cplex.sol", "flood.dne"]
#: Libraries that are not installed; statements that name them are left out.
ABSENT = [name for name in ("pgmpy", "pyagrum") if find_spec(name) is None]
#: The notebook that does not need --slow.
FAST_NOTEBOOK = "proof"
#: Notebooks about tables that are not shipped; every number that their text says is in their output, or in the code.
OF_TABLES = ("adult", "hepatitis")
#: What blocks with nothing to run hold.
NO_COMMANDS = {"text", "bibtex", "{eval-rst}", "{toctree}"}
#: Pages and languages of the blocks that another test runs.
ELSEWHERE = {
    ("README.md", "sh"): "test_readme.py",
    ("docs/adding-a-score.md", "python"): "test_adding_a_score.py",
    ("docs/constraints.md", "json"): "problem/test_constraints.py",
    ("docs/install.md", "sh"): "cli/test_cli_completion.py",
    ("docs/many-machines.md", "sh"): "distributed/test_executor_page.py",
}


def is_run_here(block: Block) -> bool:
    return block.language in ("console", "python") and (block.page, block.language) not in ELSEWHERE


#: The pages with something to run here.
RUN = [page for page in PAGES if any(map(is_run_here, blocks(page)))]


def ward(rng: np.random.Generator) -> pd.DataFrame:
    """Return a table with an identifier, a date and a free text, and four features of an outcome."""
    rows = 196
    outcome = rng.integers(0, 2, rows)
    return pd.DataFrame(
        {
            "PatientID": [f"P{1000 + i}" for i in range(rows)],
            "admitted": [f"2025-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(rows)],
            "remark": [f"seen by nurse {i}, stable" for i in rng.permutation(rows)],
            "fever": np.where(rng.random(rows) < 0.2 + 0.6 * outcome, "yes", "no"),
            "pain": np.where(rng.random(rows) < 0.8, np.array(["none", "strong"])[outcome], "some"),
            "smoker": np.where(rng.random(rows) < 0.4, "yes", "no"),
            "unit": rng.choice(["A", "B"], rows),
            "outcome": outcome,
        }
    )


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the pages name: tables, a network, a result and its classifier."""
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    species = rng.choice(["dog", "fish", "hen"], 90)
    colour = np.where(rng.random(90) < 0.7, np.where(species == "fish", "grey", "brown"), "white")
    length = np.round(rng.normal(np.where(species == "dog", 80.0, 30.0), 9.0), 2)
    home = np.where((colour == "grey") ^ (rng.random(90) < 0.1), "water", "land")
    table = pd.DataFrame({"colour": colour, "length": length, "home": home, "species": species})
    table[:60].to_csv(folder / "train.csv", index=False)
    table[60:].to_csv(folder / "test.csv", index=False)
    new = table[60:].drop(columns="species")
    new.to_csv(folder / "new.csv", index=False)
    gaps = np.random.default_rng(1).random((30, 2)) < 0.2
    new.drop(columns="home").mask(gaps).to_csv(folder / "gaps.csv", index=False)
    (folder / "expert-network.txt").write_text("species -> colour\nspecies -> home\ncolour -> home\n")
    (folder / "docs").mkdir()
    ward(rng).to_csv(folder / "ward.csv", index=False)
    fever = pd.DataFrame({"temp": 36.1 + 0.4 * (np.arange(200) % 10), "bed": np.arange(200) % 2})
    fever["y"] = np.where(fever.temp > 37.3, "sick", "ok")
    fever.round(1).to_csv(folder / "fever.csv", index=False, sep=";", decimal=",")
    result = milpbn.solve(milpbn.read_table(folder / "train.csv", target="species"), verbose=False)
    assert result.classifier is not None
    result.save(folder / "result.json")
    save_classifier(result.classifier, folder / "classifier.json")
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a fresh copy of these files, which is the working folder."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(
        "MILPBN_DATA", raising=False
    )  # a catalog may have other tables of the instances' names
    return tmp_path


def namespace(folder: Path) -> dict[str, object]:
    """Return the names that a page may use without defining them."""
    train, new = pd.read_csv(folder / "train.csv"), pd.read_csv(folder / "new.csv")
    X, y = train.drop(columns="species"), train["species"]
    table = milpbn.read_table(folder / "train.csv", target="species")
    result = milpbn.Result.load(folder / "result.json", classifier=folder / "classifier.json")
    return {
        "milpbn": milpbn,
        "result": result,
        "classifier": result.classifier,
        "table": table,
        "X": X,
        "y": y,
        "X_new": new,
        "frame": new,
        "new_frame": new,
    }


def test_every_block_is_run_or_holds_no_commands() -> None:
    """A new kind of block fails here, until it is run or listed above."""
    for page in PAGES:
        for block in blocks(page):
            if (page, block.language) in ELSEWHERE:
                test = ROOT / "tests" / ELSEWHERE[page, block.language]
                assert Path(page).name in test.read_text(encoding="utf-8"), f"{test} does not read {page}"
            elif is_run_here(block):
                assert block.language == "python" or block.text.startswith("$ "), f"{page}:{block.first}"
            else:
                assert block.language in NO_COMMANDS, f"{page}:{block.first} is not run: {block.language}"


def test_what_is_not_run_is_on_a_page() -> None:
    programs = {step.program for page in RUN for step in steps(page)}
    assert programs == {"milpbn", "python", *NOT_RUN}
    assert {(block.page, block.language) for page in PAGES for block in blocks(page)} >= set(ELSEWHERE)


def agrees(shown: list[str], printed: str) -> str | None:
    """Return the first line of a page that the command did not print, in order; None if there is none."""
    lines = iter(" ".join(line.split()) for line in printed.splitlines())
    for line in shown:
        pattern = ".*".join(re.escape(part) for part in " ".join(line.split()).split("..."))
        if pattern.strip(".*") and not any(re.fullmatch(pattern, other) for other in lines):
            return line
    return None


@pytest.mark.parametrize(
    ("page", "slow"),
    [pytest.param(page, False, id=page) for page in RUN]
    + [pytest.param(page, True, id=f"{page}-slow", marks=pytest.mark.slow) for page in RUN],
)
def test_commands_run_and_print_what_the_page_shows(
    page: str, slow: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = namespace(folder)
    skipped = list(NOT_WRITTEN)
    for step in steps(page):
        absent = step.program in NOT_RUN or any(name in step.text for name in ABSENT)
        if absent or (step.slow and not slow) or step.needs(skipped):
            skipped += [name for name in step.written if not (folder / name).exists()]
        else:
            run(step, page, names, capsys)


def run(step: Step, page: str, names: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    """Run a step; a command must print what the page shows."""
    from milpbn.cli.app import app

    capsys.readouterr()
    if step.language == "python":
        exec(compile(step.text, page, "exec"), names)
        printed = capsys.readouterr().out
        assert (line := agrees(step.output, printed)) is None, (
            f"{step.text}\ndid not print: {line}\n{printed}"
        )
        return
    program, *words = shlex.split(step.text, comments=True)
    assert program in ("milpbn", "python"), f"{page} has a command of an unknown program: {step.text}"
    if program == "python":
        line = f"{shlex.quote(sys.executable)} {step.text.removeprefix('python')}"  # may read and write files
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        code = app.run(words)
        out, err = capsys.readouterr()
    refused = bool(step.output) and step.output[0].startswith("Error:")
    assert code == (2 if refused else 0), f"{step.text}\n{err}"
    line = agrees(step.output, err + out)
    assert line is None, f"{step.text}\ndid not print: {line}\n{err}{out}"


@pytest.mark.parametrize(
    "notebook",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem == FAST_NOTEBOOK else pytest.mark.slow)
        for path in sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
    ],
)
def test_notebooks_run_from_top_to_bottom(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    client = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    if notebook.stem in OF_TABLES:
        monkeypatch.setenv("MILPBN_DATA", str(request.getfixturevalue("uci").resolve()))
    done = client.NotebookClient(
        nbformat.read(notebook, as_version=4),
        timeout=900,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    if notebook.stem in OF_TABLES:
        said = [cell.source for cell in done.cells if cell.cell_type == "markdown"]
        code = [cell for cell in done.cells if cell.cell_type == "code"]
        shown = [one.get("text", "") for cell in code for one in cell.outputs] + [
            cell.source for cell in code
        ]
        assert (found := numbers(said)) <= numbers(shown), found - numbers(shown)


def numbers(texts: list[str]) -> set[str]:
    """Return the numbers in some texts, as they are written; those of file names left out."""
    return {found for text in texts for found in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", text)}


def test_every_page_is_in_a_table_of_contents() -> None:
    """Sphinx warns of one that is not, in the test below."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    results = {page.relative_to(ROOT) for page in (ROOT / "results").rglob("*.md")}
    parts = {page for page in results if page.name == "remarks.md"} | {Path("results/gaps/table.md")}
    pictures = {page for page in results if page.parent.parent.name == "gaps"}
    for page in results - parts - pictures:
        assert f"\n../{page.with_suffix('').as_posix()}\n" in index, page
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem == "index" or f"\n{page.stem}\n" in index, page


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    for name in ("sphinx", "myst_nb", "latex2mathml", "sphinx_copybutton"):
        pytest.importorskip(name)
    # Without -P, the package in the working folder would hide the installed one, of which the command line is a part.
    # The theme of the site writes a tree of all pages into every page, which takes long and adds no warning; nor do
    # curly quotes.
    plain = ["-D", "html_theme=basic", "-D", "smartquotes=0"]
    command = [sys.executable, "-P", "-m", "sphinx", "-q", "-W", *plain, "-c", ROOT / "docs", ROOT, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "docs" / "index.html").exists()
    assert 'url=docs/index.html"' in (tmp_path / "index.html").read_text(encoding="utf-8")
