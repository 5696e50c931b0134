"""Shell completion, as the page on installation describes it."""

from __future__ import annotations

from click.testing import CliRunner

from milpbn.cli.app import app


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
