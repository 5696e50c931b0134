"""Exit codes, and the one sentence that is printed for an error."""

from __future__ import annotations

import contextlib
import traceback
from typing import TYPE_CHECKING

import click

from milpbn.errors import MilpbnError
from milpbn.util import interrupts
from milpbn.util.printing import printable
from milpbn.util.progress_line import LINE

if TYPE_CHECKING:
    from milpbn.claims.result import Result

#: Exit codes: unusable options or data; no structure within the limits; the solver (or milpbn) failed; interrupted.
USAGE, NOTHING, FAILED, INTERRUPTED = 2, 3, 4, 130
#: Maximum length of a sentence in characters; names from a file can have any length.
MAX_SENTENCE = 2000


def report(error: BaseException, *, debug: bool = False) -> int:
    """Print ``Error: `` and a sentence on stderr, after the traceback with `debug`, and return the exit code."""
    with contextlib.suppress(OSError):
        LINE.end()
    if debug:
        traceback.print_exception(error)
    code, sentence = explain(error)
    sentence = presentable(sentence)
    end = "" if sentence.endswith((".", "?", "!")) else "."
    with contextlib.suppress(OSError):  # stderr may be closed
        click.echo(f"Error: {sentence}{end}", err=True)
    return code


def say(text: str | list[str], *, err: bool = False) -> None:
    """Print a text, or a list of lines, for a person; unprintable characters of names in it are escaped."""
    if not isinstance(text, str):
        text = "\n".join(printable(line) for line in text)
    click.echo(printable(text, keep="\n"), err=err)


def presentable(sentence: str) -> str:
    """Return a sentence on one line, safe to print whatever names it contains.

    Control characters and other characters that a terminal cannot show are escaped. The middle of a sentence of more
    than `MAX_SENTENCE` characters is left out.
    """
    shown = printable(" ".join(sentence.split()))
    if len(shown) <= MAX_SENTENCE:
        return shown
    return f"{shown[: MAX_SENTENCE // 2]} [...] {shown[-MAX_SENTENCE // 2 :]}"


def explain(error: BaseException) -> tuple[int, str]:
    """Return the exit code and the sentence of an error."""
    if isinstance(error, MilpbnError):
        return error.exit_code, str(error)
    # Ctrl-C while a kernel is compiled can surface as an error of the compiler.
    explained = isinstance(error, click.ClickException | MemoryError | OSError)
    if isinstance(error, click.Abort | KeyboardInterrupt) or (interrupts.raised() and not explained):
        return INTERRUPTED, "Interrupted before there was anything to keep."
    if isinstance(error, click.ClickException):
        return USAGE, error.format_message()
    if isinstance(error, MemoryError):
        return USAGE, (
            "The machine ran out of memory; reduce --max-parents, use --score sbm or --no-class-parents, or "
            "fewer features or rows."
        )
    if isinstance(error, OSError) and error.strerror:
        file = "A file" if error.filename is None else f"The file {str(error.filename)!r}"
        return USAGE, f"{file} cannot be read or written ({error.strerror}); choose another one."
    described = f"{type(error).__name__}: {error}".rstrip(".")
    return FAILED, (
        f"milpbn failed unexpectedly ({described}); please run the same command with milpbn --debug, and report "
        "what it shows."
    )


def exit_code(result: Result) -> int:
    """Return the exit code of a run: 0 with a structure; without one, the code says why."""
    if result.structure is not None:
        return 0
    if result.limit == "user":
        return INTERRUPTED
    return {"infeasible": USAGE, "error": FAILED}.get(result.reason, NOTHING)


def no_structure(result: Result) -> str:
    """Return the sentence that explains why a run has no structure."""
    if result.limit == "user":
        return "Interrupted before a structure was found."
    if result.reason == "infeasible":
        return "No structure obeys the constraints; relax them."
    if result.reason == "error":
        return f"{result.backend.version} failed ({result.detail or 'without a message'})."
    limit = result.limit or "time"
    return f"No structure was found within the {limit} limit; raise it, or reduce --max-parents."
