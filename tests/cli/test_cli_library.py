"""``milpbn library``."""

from __future__ import annotations

from cli_common import refused, succeed


def test_the_library_is_listed() -> None:
    lines = succeed("library", "list").stdout.splitlines()
    assert lines[0].split()[:2] == ["data", "score"]
    corral = next(line for line in lines if line.startswith("instance:corral"))
    assert "proved" in corral
    assert any(line.endswith("outlook") for line in lines)


def test_a_result_is_checked_against_the_library(tmp_path) -> None:
    files = "--output", tmp_path / "r.json", "--certificate", tmp_path / "c.npz"
    succeed("solve", "corral", *files, "-q")
    shown = succeed(
        "library", "check", tmp_path / "r.json", "corral", "--certificate", tmp_path / "c.npz"
    ).stdout
    assert "(verified)" in shown
    assert shown.splitlines()[-1] == "adds       nothing"
    assert "other data" in refused("library", "check", tmp_path / "r.json", "monks-1").stderr


def test_wrong_uses_are_refused(tmp_path) -> None:
    assert "takes no result" in refused("library", "list", tmp_path / "r.json").stderr
    assert "RESULT DATA" in refused("library", "check").stderr
    assert "no library" in refused("library", "list", "--library", tmp_path / "none.gz").stderr
