"""Errors and warnings whose text is a full sentence for the user.

The command line prints the sentence and exits with the class's ``exit_code``. It shows no traceback for
these errors.
"""

from __future__ import annotations

import sys
import warnings


class MilpbnError(Exception):
    """Base of all errors that milpbn raises on purpose; the text is a full sentence."""

    exit_code = 2


class InputError(MilpbnError, ValueError):
    """A file, column, row or option is unusable; the text names it and says what to do."""

    exit_code = 2


class MilpbnWarning(UserWarning):
    """A problem that does not stop the work; the text is a full sentence."""


class DataWarning(MilpbnWarning):
    """The data may not be read as meant: rows dropped, columns left out or absent, numbers that may be codes."""


class BoundWarning(MilpbnWarning):
    """A result's bound differs from what the solver's status suggests; the text says which bound is used."""


#: scikit-learn is among them because it may call this package on behalf of its user.
_PACKAGES = ("milpbn", "sklearn")


def warn(text: str, category: type[Warning]) -> None:
    """Issue a warning that points at the nearest calling line outside this package and scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PACKAGES:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


class NoIncumbentError(MilpbnError):
    """No structure was found within the limits."""

    exit_code = 3


class SolverError(MilpbnError, RuntimeError):
    """A solver failed, or its result contradicts the score that the data give its structure."""

    exit_code = 4
