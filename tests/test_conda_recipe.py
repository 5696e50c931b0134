"""The conda recipe has the version, the dependencies and the build requirements of pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import milpbn

ROOT = Path(__file__).parents[1]
#: Names on conda-forge that differ from those on PyPI.
CONDA = {"ortools": "ortools-python"}


def test_the_recipe_agrees_with_the_project() -> None:
    text = (ROOT / "conda" / "recipe.yaml").read_text()
    _, host, run = re.split(r"\n  (?:host|run):\n", text.partition("\ntests:")[0])
    listed = {part: re.findall(r"- (.+)", lines) for part, lines in (("host", host), ("run", run))}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"]
    spaced = [re.sub(r"^([\w-]+)(.*)", lambda m: f"{CONDA.get(m[1], m[1])} {m[2]}", line) for line in wanted]
    assert listed["run"] == [f"python {project['project']['requires-python']}", *spaced]
    assert set(listed["host"]) - set(spaced) == {"python", "pip", "setuptools >=77"}
    assert project["build-system"]["requires"] == ["setuptools>=77"]
    assert f'version: "{milpbn.__version__}"' in text
