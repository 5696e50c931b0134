"""Files of pictures."""

from __future__ import annotations

import os
from pathlib import Path

from milpbn.drawing.scene import Scene
from milpbn.drawing.svg import to_svg
from milpbn.errors import InputError
from milpbn.plotting.canvas import require_matplotlib, write_with_matplotlib
from milpbn.util.atomic import atomic_path, atomic_write_text

#: Picture formats that can be written.
SUFFIXES = (".png", ".svg", ".pdf")


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if a file's suffix is not one of `SUFFIXES`, or needs the extra ``[plot]`` and lacks it."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"A picture file ends in {', '.join(SUFFIXES)}; {os.fspath(path)!r} does not.")
    if suffix != ".svg":
        require_matplotlib()


def save(scene: Scene, path: str | os.PathLike[str]) -> None:
    """Write a picture, whole or not at all.

    Parameters
    ----------
    scene : Scene
        What one of the functions ``draw_...`` returned.
    path : path
        ``.png``, ``.svg`` or ``.pdf``.

    Raises
    ------
    InputError
        If the suffix is another, the file cannot be written, or the extra ``[plot]`` is missing for a PNG or PDF.
    """
    check_picture(path)
    if Path(path).suffix.lower() == ".svg":
        atomic_write_text(path, to_svg(scene))
        return
    with atomic_path(path) as temporary:
        write_with_matplotlib(scene, temporary)
