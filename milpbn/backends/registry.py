"""Find a backend by its name."""

from __future__ import annotations

from milpbn.backends.base import Backend
from milpbn.backends.cbc import CbcBackend
from milpbn.backends.highs import HighsBackend
from milpbn.backends.scip import ScipBackend
from milpbn.backends.cpsat import CpSatBackend
from milpbn.errors import InputError


def get_backend(name: str) -> Backend:
    return {"highs": HighsBackend, "cbc": CbcBackend, "cpsat": CpSatBackend, "scip": ScipBackend}[name]()
