"""Packages whose public names are imported at first use, because pandas, numba and their like take long to import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(
    package: str, names: Mapping[str, Sequence[str]], modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, and set its ``__all__``; `names` has those of each module.

    `modules` of the package are attributes without an import of their own, and no part of ``import *``.

    The package imports the same names under ``TYPE_CHECKING``, for type checkers. They cannot read a computed
    ``__all__``: with one that they see, ``import *`` imports nothing for them.
    """
    homes = {name: module for module, own in names.items() for name in own}

    def get(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"milpbn.{homes[name]}"), name)

    vars(sys.modules[package])["__all__"] = sorted(homes)
    return get, lambda: sorted([*homes, *modules])
