"""Cases that once failed, shrunk (``found.json``): rounding, structures outside the constraints, a verifier's crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from campaign.case import Case
from campaign.checks import check

FOUND = json.loads(Path(__file__).with_name("found.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FOUND)
def test_failures_that_were_found_before_do_not_recur(name: str, tmp_path: Path) -> None:
    case = Case(**FOUND[name])
    _, failures = check(case, tmp_path)
    assert failures == []
    _, failures = check(case.but(way="python" if case.way == "command" else "command"), tmp_path)
    assert failures == []
