"""Packages whose public names are imported at first use, because pandas, numba and their like take long to import."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazily() -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of the package that calls this at its top level, and set its ``__all__``.

    Its public names are those that it imports under ``TYPE_CHECKING``. They are read from the compiled module, because
    the source may not be a file: the package may be in a zip archive, or be a part of a compiled program.
    """
    package = sys._getframe(1)
    homes, home = dict[str, str](), ""
    for step in dis.get_instructions(package.f_code):
        if step.opname == "IMPORT_NAME":
            home = step.argval
        elif step.opname == "IMPORT_FROM" and step.argval not in package.f_globals:  # not yet imported
            homes[step.argval] = home

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package.f_globals['__name__']!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    # Type checkers cannot read a computed __all__: with one that they see, ``import *`` imports nothing for them.
    package.f_globals["__all__"] = sorted(homes)
    return get, lambda: sorted(homes)
