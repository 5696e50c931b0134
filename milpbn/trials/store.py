"""A store of cells: JSON objects by key, kept in one archive that several processes may extend.

The archive is a gzip file of several members. Each member has lines of JSON, one cell a line, and is appended as a
whole. If a process is killed meanwhile, the part of the member at the end is ignored, and removed by the next one that
writes.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from milpbn.errors import InputError
from milpbn.util.jsonable import json_safe, parse_object
from milpbn.util.locks import is_at, lock

#: Name of an archive; each experiment has one in its folder.
ARCHIVE = "cells.jsonl.gz"
#: First bytes of every member, and of its text.
_PACKED, _TEXT = b"\x1f\x8b\x08", b'{"key": '
#: Files are not inherited by other programs, and line ends stay as they are.
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Store(Mapping[str, dict[str, Any]]):
    """The cells of an experiment by their keys, in the order in which their keys were first written.

    What other processes append is seen at the next look-up. Where a key was written several times, the last cell
    counts. Looking a key up raises InputError if the archive cannot be read. The archive is made, with its folder, when
    the first cell is written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._cells: dict[str, dict[str, Any]] = {}
        #: Device and inode of the file that was read, and its number of bytes up to the last complete member.
        self._file, self._end = (0, 0), 0

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        return Store, (self.path,)  # another process reads the archive itself

    def __getitem__(self, key: str) -> dict[str, Any]:
        self._refresh()
        return self._cells[key]

    def __iter__(self) -> Iterator[str]:
        self._refresh()
        return iter(list(self._cells))

    def __len__(self) -> int:
        self._refresh()
        return len(self._cells)

    def add(self, cells: Mapping[str, Mapping[str, Any]]) -> None:
        """Append cells as one member: after a kill, the archive has all of them or none.

        Values are written as `milpbn.util.jsonable.json_safe` returns them; a cell has no value ``key`` of its own.
        `InputError` if the archive cannot be read or written, or a value cannot be written as JSON.
        """
        lines = [json.dumps(json_safe({"key": key, **cell}), allow_nan=False) for key, cell in cells.items()]
        member = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self._open_locked()
            try:
                self._read(file)
                os.ftruncate(file, self._end)  # what a killed process left
                try:
                    _append(file, member)
                except BaseException:
                    os.ftruncate(file, self._end)
                    raise
            finally:
                os.close(file)
        except OSError as error:
            raise InputError(
                f"Cannot write the cells {str(self.path)!r} ({error.strerror or error}); choose another path."
            ) from None

    def _open_locked(self) -> int:
        """Open the archive for writing, and wait for its lock; without locks, only one process may write."""
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _FLAGS, 0o666)
            lock(file, wait=True)
            if is_at(file, self.path):  # another process may have put a new archive in its place
                return file
            os.close(file)

    def _refresh(self) -> None:
        """Read what is new in the archive."""
        try:
            now = os.stat(self.path)
            if (now.st_dev, now.st_ino) == self._file and now.st_size == self._end:
                return
            file = os.open(self.path, os.O_RDONLY | _FLAGS)
            try:
                self._read(file)
            finally:
                os.close(file)
        except FileNotFoundError:
            self._cells, self._file, self._end = {}, (0, 0), 0
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None

    def _read(self, file: int) -> None:
        """Read the members after the last one that was read; all of them if the archive is another file."""
        now = os.fstat(file)
        if (now.st_dev, now.st_ino) != self._file or now.st_size < self._end:
            self._cells, self._file, self._end = {}, (now.st_dev, now.st_ino), 0
        with open(file, "rb", closefd=False) as stream:
            stream.seek(self._end)
            data = stream.read()
        while data:
            unpacked = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            try:
                if not _begins(data, _PACKED):
                    raise InputError("it is not a gzip file")
                text = unpacked.decompress(data)
                if not unpacked.eof and _begins(text, _TEXT):
                    break  # another process is writing the member, or was killed
                if not unpacked.eof:
                    raise InputError("it is cut off")
                for line in text.splitlines():
                    cell = parse_object(line.decode("utf-8"))
                    self._cells[str(cell.pop("key"))] = cell
            except KeyError:
                raise self._unreadable("a cell has no key") from None
            except (InputError, ValueError, zlib.error) as error:
                raise self._unreadable(str(error).rstrip(".")) from None
            self._end += len(data) - len(unpacked.unused_data)
            data = unpacked.unused_data

    def _unreadable(self, reason: str) -> InputError:
        return InputError(
            f"The file {str(self.path)!r} cannot be read as an archive of cells ({reason}); restore it, remove it, or "
            "name another."
        )


def _begins(content: bytes, beginning: bytes) -> bool:
    """Whether content, which may be shorter, begins like this."""
    return content[: len(beginning)] == beginning[: len(content)]


def _append(file: int, content: bytes) -> None:
    """Write all bytes at the end of an open file."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
