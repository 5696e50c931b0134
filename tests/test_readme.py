"""The README and the pages: the commands are those that CI runs, and named files exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def commands() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert block is not None
    return [line for line in block.group(1).splitlines() if line and not line.startswith("#")]


def test_the_readme_opens_with_two_commands():
    solve, test = commands()
    assert "milpbn solve --score sm --time-limit 60" in solve
    assert "[" not in solve, "the first command needs no extra"
    assert "pytest" in test


@pytest.mark.slow
def test_the_first_command_works_in_a_fresh_clone(tmp_path: Path) -> None:
    """It needs the packages from the index of pip; the clone has what is committed."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "milpbn")], check=True)
    done = subprocess.run(
        ["bash", "-c", commands()[0]], cwd=tmp_path / "milpbn", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "incumbent  1101.40776" in done.stdout  # proved, too, unless the machine is busy


def test_ci_calls_exactly_the_readmes_test_command():
    assert commands()[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_every_picture_and_page_that_is_linked_exists():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_module_that_the_architecture_names_exists():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    under = (
        "",
        "milpbn",
        "milpbn/certificate",
        "milpbn/engine",
        "milpbn/experiments",
        "milpbn/learners/differentiable",
    )
    for module in re.findall(r"`([\w/]+\.py)`", text):
        assert any((ROOT / folder / module).exists() for folder in under), module
