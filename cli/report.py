"""Exit codes, and the one sentence that an error becomes."""

from __future__ import annotations

import contextlib
import traceback
from typing import TYPE_CHECKING

import click

from milpbn import interrupts
from milpbn.errors import MilpbnError

if TYPE_CHECKING:
    from milpbn.result import Result

#: Unusable options or data; nothing found within the limits; the solver (or milpbn) failed; interrupted.
USAGE, NOTHING, FAILED, INTERRUPTED = 2, 3, 4, 130


def report(error: BaseException, *, debug: bool = False) -> int:
    """Print ``Error: `` and a sentence on stderr, and return the exit code.

    Parameters
    ----------
    error : BaseException
        Whatever ended a verb.
    debug : bool
        Print the traceback first.
    """
    if debug:
        traceback.print_exception(error)
    code, sentence = explain(error)
    sentence = " ".join(sentence.split())
    end = "" if sentence.endswith((".", "?", "!")) else "."
    with contextlib.suppress(OSError):  # nobody may be listening any more
        click.echo(f"Error: {sentence}{end}", err=True)
    return code


def explain(error: BaseException) -> tuple[int, str]:
    """Return the exit code and the sentence of an error."""
    if isinstance(error, MilpbnError):
        return error.exit_code, str(error)
    # An interrupt in the middle of compiling a kernel comes out as some error of the compiler.
    known = isinstance(error, click.ClickException | MemoryError | OSError)
    if isinstance(error, click.Abort | KeyboardInterrupt) or (interrupts.raised() and not known):
        return INTERRUPTED, "Interrupted before there was anything to keep."
    if isinstance(error, click.ClickException):
        return USAGE, error.format_message()
    if isinstance(error, MemoryError):
        return USAGE, (
            "The machine ran out of memory; reduce --max-parents, use --score sbm or --no-class-parents, or "
            "fewer features or rows."
        )
    if isinstance(error, OSError) and error.strerror:
        culprit = "A file" if error.filename is None else f"The file {str(error.filename)!r}"
        return USAGE, f"{culprit} cannot be read or written ({error.strerror}); choose another one."
    described = f"{type(error).__name__}: {error}".rstrip(".")
    return FAILED, (
        f"milpbn failed unexpectedly ({described}); please report this with what milpbn --debug shows of the "
        "same command."
    )


def exit_code(result: Result) -> int:
    """Return the exit code of a run: 0 with any structure, else why there is none."""
    if result.structure is not None:
        return 0
    if result.limit == "user":
        return INTERRUPTED
    return {"infeasible": USAGE, "error": FAILED}.get(result.reason, NOTHING)


def no_structure(result: Result) -> str:
    """Return the sentence on a run without a structure."""
    if result.limit == "user":
        return "Interrupted before a structure was found."
    if result.reason == "infeasible":
        return "No structure obeys the constraints; relax them."
    if result.reason == "error":
        return f"{result.backend.version} failed ({result.detail or 'without a word'})."
    limit = result.limit or "time"
    return f"No structure was found within the {limit} limit; raise it, or reduce --max-parents."
