"""Packages whose public names are imported at first use, because pandas, numba and their like take long to import."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazily(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, by what its file imports for type checkers."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))  # that of TYPE_CHECKING
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: str(node.module) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return get, lambda: sorted(homes), sorted(homes)
