"""Errors that carry a sentence for the user.

The command line prints the sentence and exits with the class's ``exit_code``;
nothing in milpbn shows a user a traceback on purpose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from milpbn.result import Result


class MilpbnError(Exception):
    """Base of all errors milpbn raises on purpose; its text is a full sentence."""

    exit_code = 2


class InputError(MilpbnError, ValueError):
    """A file, column, row or option is unusable; the text says which one and what to do."""

    exit_code = 2


class MilpbnWarning(UserWarning):
    """Something went wrong that does not end the work; its text is a full sentence."""


class NotSavedError(MilpbnError):
    """A file could not be written at the end of a search; `result` holds what was found."""

    exit_code = 2

    def __init__(self, text: str, result: Result) -> None:
        super().__init__(text)
        self.result = result


class NoIncumbentError(MilpbnError):
    """No structure was found within the limits."""

    exit_code = 3


class SolverError(MilpbnError, RuntimeError):
    """A solver failed or returned something that does not survive re-scoring."""

    exit_code = 4
