"""Every certificate of a small problem that a test has verified passes the exact checker, too.

`milpbn.certificate.verify.check.verify` is replaced before tests import it by a function that also runs the exact
checker, and refuses what that refuses. The summary of a run states the number of certificates.
"""

from __future__ import annotations

from collections import Counter
from functools import wraps
from typing import Any

import pytest

import milpbn.certificate.verify.check as ordinary
from milpbn.certificate import exact
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError

#: Largest numbers of features and of steps of the certificates that are checked, which takes seconds.
MOST_FEATURES, MOST_WORK = 8, 300_000_000
counted: Counter[str] = Counter()
_plain = ordinary.verify


@wraps(_plain)
def verify(result: Any, certificate: Any, data: Dataset) -> ordinary.Verification:
    """Verify with both checkers."""
    shown = _plain(result, certificate, data)
    if data.n_features <= MOST_FEATURES:
        most, exact.LARGEST_WORK = exact.LARGEST_WORK, MOST_WORK
        try:
            (low, _), bound = exact.check(
                result.to_dict() if isinstance(result, Result) else result, certificate, data
            )
        except exact.NotProvedError as error:
            if "too large" not in str(error).lower():
                raise InputError(f"The exact check: {error}") from None
            counted["too large"] += 1
        else:
            counted["passed"] += 1
            # Two ways to one number; of that of the bound, the exact maxima may be smaller.
            assert abs(float(low) - shown.objective) <= 1e-9 * max(1.0, abs(shown.objective))
            assert float(bound) <= shown.bound + 1e-9 * max(1.0, abs(shown.bound))
        finally:
            exact.LARGEST_WORK = most
    return shown


ordinary.verify = verify


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # with pytest-xdist
        session.config.workeroutput["exact"] = dict(counted)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    counted.update(getattr(node, "workeroutput", {}).get("exact", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if counted:
        shown = ", ".join(f"{number} {what}" for what, number in sorted(counted.items()))
        terminalreporter.write_line(f"exact checks of certificates: {shown}")
