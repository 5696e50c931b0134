"""The fixture of the campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.share import Share


@pytest.fixture
def share(request: pytest.FixtureRequest, tmp_path: Path) -> Share:
    mine = Share(request, tmp_path)
    print(
        f"reproduce with: pytest {request.node.nodeid} --campaign-seed {mine.seed} --campaign-aim {mine.aim}"
    )
    return mine
