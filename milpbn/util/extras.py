"""Packages that are installed with an extra only."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from milpbn.errors import InputError


def import_extra(module: str, extra: str, what: str, otherwise: str = "") -> ModuleType:
    """Import a module that an extra of milpbn installs.

    If that fails, raise InputError: `what` is the subject of its sentence, and `otherwise` a last one, which says what
    to do without the package.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        # A package that is there may lack one of its own requirements.
        cause = "" if error.name == package else f" ({error})"
        advice = f"install it with: pip install 'milpbn[{extra}]'. {otherwise}".rstrip()
        raise InputError(f"{what} needs the package {package}{cause}; {advice}") from None
