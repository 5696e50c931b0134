"""Certificates of small problems that tests have verified pass the exact checker, too: every 48th, with --slow all.

`milpbn.certificate.verify.check.verify` is replaced before tests import it by a function that also runs the exact
checker, and refuses what that refuses. The summary of a run states the number of certificates.
"""

from __future__ import annotations

from collections import Counter
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import milpbn.certificate.verify.check as ordinary
from milpbn.certificate.exact import arithmetic
from milpbn.certificate.exact.check import check
from milpbn.certificate.exact.local import check_local
from milpbn.certificate.format import load_proof
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError

#: Largest numbers of features and of steps of the certificates that are checked, which takes seconds.
MOST_FEATURES, MOST_WORK = 8, 300_000_000
#: What the exact checker reads of a claim; it gets nothing else.
READ = (
    "alternatives",
    "bound",
    "constraints",
    "data",
    "objective",
    "proved",
    "run",
    "score",
    "screened",
    "status",
    "structure",
    "subset",
    "tolerance",
)
#: One certificate of so many is checked; 1 with --slow.
OF = 48
counted: Counter[str] = Counter()
_plain = ordinary.verify


@wraps(_plain)
def verify(result: Any, certificate: Any, data: Dataset) -> ordinary.Verification:
    """Verify with both checkers."""
    shown = _plain(result, certificate, data)
    if data.n_features <= MOST_FEATURES and next(_turns) % OF == 0:
        most, arithmetic.LARGEST_WORK = arithmetic.LARGEST_WORK, MOST_WORK
        try:
            (low, _), bound = _check_exactly(result, certificate, data)
        except arithmetic.NotProvedError as error:
            if "too large" not in str(error).lower():
                raise InputError(f"The exact check: {error}") from None
            counted["too large"] += 1
        else:
            counted["passed"] += 1
            # Two ways to one number; of that of the bound, the exact maxima may be smaller. Heavy rows with margins
            # near 0 leave the rounding errors of a unit times their weight.
            rounding = 2.0**-51 * data.total_weight
            assert abs(float(low) - shown.objective) <= max(1e-9, rounding, 1e-9 * abs(shown.objective))
            assert float(bound) <= shown.bound + max(1e-9, rounding, 1e-9 * abs(shown.bound))
        finally:
            arithmetic.LARGEST_WORK = most
    return shown


def _check_exactly(result: Any, certificate: Any, data: Dataset) -> Any:
    """Return the answer of the exact checker; the last one if the claims, the file and the data are the same.

    Tests often verify a result, and then the same claims in the header of its certificate.
    """
    told = result.to_dict() if isinstance(result, Result) else result
    told = load_proof(certificate)[0] if told is None else told
    asked = {key: told[key] for key in READ if key in told}, Path(certificate).read_bytes(), data
    if not _last or _last[0][:2] != asked[:2] or _last[0][2] is not data:
        _last[:] = []
        local = getattr(data, "local", None)
        answer = (
            check(asked[0], certificate, data) if local is None else check_local(asked[0], certificate, local)
        )
        _last[:] = [asked, answer]
    return _last[1]


#: Numbers the verified certificates of small problems.
_turns = count()
#: The last question to the exact checker, and its answer.
_last: list[Any] = []
ordinary.verify = verify


def pytest_configure(config: pytest.Config) -> None:
    global OF
    if config.getoption("--slow", default=False):
        OF = 1


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
