"""The files that a run writes, during the search and at its end: trace, result, certificate and checkpoint."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from milpbn.certificate.format import certificate_header, save_certificate
from milpbn.claims.result import NotSavedError, Result, TracePoint
from milpbn.errors import InputError, MilpbnWarning, warn
from milpbn.solving.checkpoint import CheckpointFile
from milpbn.solving.options import Options
from milpbn.util.atomic import check_writable
from milpbn.util.clock import Pause

#: Seconds between two updates of the output file: at most, and at the beginning, from which they double.
SAVE_EVERY, SAVE_FIRST = 15.0, 0.5
#: A result, and the arrays of its proof, or None without a proof.
ResultAndProof = tuple[Result, dict[str, Any] | None]


def check_files(options: Options) -> None:
    """Raise InputError if result or certificate cannot be written."""
    for path in (options.output, options.certificate):
        if path is not None:
            check_writable(path)


def remove_certificate(options: Options) -> None:
    """Remove the certificate of an earlier run; beside the result of this one it would prove nothing."""
    if options.certificate is not None:
        with suppress(OSError):
            os.unlink(options.certificate)


class TraceFile:
    """A file with the any-time trace as JSON lines, written during the run; nothing without a path.

    The methods raise InputError if the file cannot be written, or no longer.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path, self._written = path, 0
        self._file = None
        if path is not None:
            with self._refusing():
                self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115  # open for the whole run

    def update(self, trace: Sequence[TracePoint]) -> None:
        """Append the points that are not in the file yet."""
        if self._file is None:
            return
        with self._refusing():
            for seconds, objective, bound in trace[self._written :]:
                line = {"seconds": round(seconds, 6), "incumbent": objective, "bound": bound}
                self._file.write(json.dumps(line) + "\n")
            self._written = len(trace)
            self._file.flush()

    def close(self) -> None:
        """Close the file, which must be there still."""
        if self._file is None or self._path is None:
            return
        with self._refusing():
            written = os.fstat(self._file.fileno())
            self._file.close()
            if not os.path.samestat(written, os.stat(self._path)):
                raise FileNotFoundError(errno.ENOENT, "it was removed or replaced while the search ran")

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            assert self._path is not None
            name = os.fspath(self._path)
            raise InputError(f"The trace file {name} cannot be written ({error.strerror}).") from None


class RunFiles:
    """Writes the files that the options name; raises InputError if one cannot be written when the run begins.

    A file that cannot be written later does not end the search.
    """

    def __init__(self, options: Options, checkpoint: CheckpointFile | None = None) -> None:
        self._options, self._checkpoint = options, checkpoint
        check_files(options)
        self._trace = TraceFile(options.trace)
        if options.log is not None:
            try:
                Path(options.log).touch()
            except OSError as error:
                raise InputError(
                    f"The log {os.fspath(options.log)!r} cannot be written ({error.strerror})."
                ) from None
        self._pause = Pause(SAVE_FIRST, SAVE_EVERY)
        self._warned = False
        #: Whether this run has written result and certificate before.
        self._begun = False

    def update(self, trace: Sequence[TracePoint], current: Callable[[], ResultAndProof]) -> None:
        """Append new points to the trace file, and from time to time write result and certificate.

        If a file cannot be written, there is one warning, and the next call tries again.
        """
        failures = _try(lambda: self._trace.update(trace))
        wanted = self._options.output is not None or self._options.certificate is not None
        if wanted and self._pause.over():
            with self._pause.after():
                failures += self._save(*current())
        if self._checkpoint is not None:
            failures += _try(self._checkpoint.update)
        if failures and not self._warned:
            self._warned = True
            warn(f"{failures[0]} The search goes on.", MilpbnWarning)

    def finish(self, trace: Sequence[TracePoint], result: Result, arrays: dict[str, Any] | None) -> list[str]:
        """Write everything for the last time; return a sentence for each file that could not be written."""
        failures = self._save(result, arrays) + _try(lambda: self._trace.update(trace), self._trace.close)
        return failures if self._checkpoint is None else failures + _try(self._checkpoint.finish)

    def _save(self, result: Result, arrays: dict[str, Any] | None) -> list[str]:
        """Write certificate and result, so that a run that is killed in between leaves two that belong together."""
        output, certificate = self._options.output, self._options.certificate
        actions: list[Callable[[], None]] = []
        if certificate is not None and arrays is not None:
            header = certificate_header(result)
            actions.append(lambda: save_certificate(certificate, header, arrays))
        if output is not None:
            actions.append(lambda: result.save(output))
        # A certificate that is newer than its result proves it, and an older one does not; so the certificate comes
        # first. But beside the result of an earlier run it would prove nothing. The first time, the result therefore
        # takes its place alone.
        if not self._begun and certificate is not None:
            actions.reverse()
            remove_certificate(self._options)
        self._begun = True
        return _try(*actions)


def saved(result: Result, options: Options, failures: Sequence[str] = ()) -> Result:
    """Write a result where the options want it, and return it.

    Raise NotSavedError, with the result, if that is impossible, or with the first of earlier `failures`.
    """
    output = options.output
    failures = [*failures, *([] if output is None else _try(lambda: result.save(output)))]
    if failures:
        raise NotSavedError(failures[0], result)
    return result


def _try(*actions: Callable[[], None]) -> list[str]:
    """Run all actions, even if some fail; return a sentence for each file that could not be written."""
    failures = []
    for action in actions:
        try:
            action()
        except InputError as error:
            failures.append(str(error))
    return list(dict.fromkeys(failures))
