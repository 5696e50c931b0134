"""Find a backend by its name."""

from __future__ import annotations

from collections.abc import Callable

from milpbn.backends.base import Backend
from milpbn.backends.cbc import CbcBackend
from milpbn.backends.cpsat import CpSatBackend
from milpbn.backends.highs import HighsBackend
from milpbn.backends.native import SCORES, NativeBackend
from milpbn.backends.pulp_solvers import PulpBackend, solver_names
from milpbn.backends.scip import ScipBackend
from milpbn.errors import InputError
from milpbn.options import Options
from milpbn.scores.spec import Score

_BACKENDS: dict[str, Callable[[], Backend]] = {
    "native": NativeBackend,
    "highs": HighsBackend,
    "cbc": CbcBackend,
    "cpsat": CpSatBackend,
    "scip": ScipBackend,
}
_PULP = "pulp:"


def automatic(name: str, score: Score) -> str:
    """Return which backend ``auto`` stands for, the native one for its scores; other names as they are."""
    if name.lower() != "auto":
        return name
    return "native" if score.name in SCORES else "highs"


def backend_names() -> list[str]:
    """Return the names that `get_backend` takes, whether their solvers are installed or not."""
    return [*_BACKENDS, *(_PULP + name for name in solver_names())]


def get_backend(name: str) -> Backend:
    """Return a backend by its name: ``native``, ``highs``, ``cbc``, ``cpsat``, ``scip`` or ``pulp:NAME``.

    Raises
    ------
    InputError
        If there is none of that name. Whether its solver is installed only `Backend.version` or
        `Backend.solve` tells.
    """
    if name.lower().startswith(_PULP):
        return PulpBackend(name[len(_PULP) :])
    make = _BACKENDS.get(name.lower())
    if make is None:
        raise InputError(
            f"There is no backend {name!r}; choose one of auto, {', '.join(_BACKENDS)} or pulp:NAME."
        )
    return make()


def checked_backend(options: Options, score: Score) -> tuple[Backend, str]:
    """Return the backend that a search asks for, and its version in words, after it has accepted what is asked.

    Raises
    ------
    InputError
        If there is none of that name, its solver is missing, or it has no use for an option or the score.
    """
    backend = get_backend(automatic(options.backend, score))
    version = backend.version()
    backend.check_options(options.solver_options)
    if isinstance(backend, NativeBackend):
        backend.check_score(score)
        backend.check_search(options)
    elif options.certificate is not None:
        raise InputError(
            f"A certificate comes with the backend native, not with {backend.name}; leave one of them out."
        )
    return backend, version


def available_backends() -> dict[str, str]:
    """Return for each backend the version of its solver, or a sentence that says what is missing."""
    answers = {}
    for name in backend_names():
        try:
            answers[name] = get_backend(name).version()
        except InputError as error:
            answers[name] = str(error)
    return answers
