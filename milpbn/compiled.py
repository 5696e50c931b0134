"""Compiled kernels, kept on disk until a source of the package changes.

numba keeps a compiled function as long as the file that it stands in does not change. But what the function calls is
compiled into it: after an upgrade that changes another file only, the old code would go on running.
"""

from __future__ import annotations

import contextlib
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit


def kernel(function: Any = None, **options: Any) -> Any:
    """Decorate a function that is compiled at its first call, and then read from disk; it releases the interpreter.

    Parameters
    ----------
    function : callable
        What numba can compile.
    **options
        More of `numba.njit`.
    """
    if function is None:
        return lambda function: kernel(function, **options)
    compiled = njit(cache=True, nogil=True, **options)(function)
    # Without the attributes (another numba, no folder to write to) the file's own age is all there is.
    with contextlib.suppress(AttributeError):
        compiled._cache._cache_file._source_stamp = source_stamp()
    return compiled


@cache
def source_stamp() -> str:
    """Return a hash of all sources of the package."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
