"""Shell completion, as the page on installation describes it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from milpbn.cli.app import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "install.md"
#: What a shell needs before the line of the page, and what says afterwards that it completes milpbn.
AROUND = {
    "bash": ("", "complete -p milpbn"),
    "zsh": ("autoload -Uz compinit; compinit -u -d /dev/null", "echo $_comps[milpbn]"),
    "fish": ("", "complete --command milpbn"),
}


@pytest.mark.parametrize("shell", AROUND)
def test_the_line_of_the_page_makes_the_shell_complete(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (line,) = re.findall(rf"^.*={shell}_source.*$", PAGE.read_text(encoding="utf-8"), re.M)
    before, after = AROUND[shell]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", f"{before}\n{line}\n{after}"],
        env=os.environ | {"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "_milpbn_completion" in done.stdout, done.stderr


def complete(line: str) -> list[str]:
    found = CliRunner().invoke(
        app,
        [],
        prog_name="milpbn",
        env={
            "_MILPBN_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        },
    )
    return [word.partition(",")[2] for word in found.output.splitlines()]


def test_verbs_and_options_are_completed() -> None:
    assert complete("milpbn so") == ["solve"]
    assert "--time-limit" in complete("milpbn solve --time")
