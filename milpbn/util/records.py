"""Records that kernels change: a few numbers with names, in one place of memory that Python and kernels share."""

from __future__ import annotations

from typing import Any, ClassVar, Self, get_type_hints

import numpy as np

_KINDS = {float: np.float64, int: np.int64, bool: np.bool_}
#: NumPy's annotations declare the class final, although `numpy.record` inherits from it.
_SCALAR: Any = np.void


class Record(_SCALAR):
    """Base class of records; the annotations of a subclass (`float`, `int`, `bool`) are its fields.

    numba passes a record to a kernel by its address. So kernels and Python change the same numbers, as they do with
    arrays, and both write ``record.field``. The attributes of `numpy.record` would do as well, but reading one takes
    four times as long.
    """

    layout: ClassVar[np.dtype[np.void]]

    def __init_subclass__(cls) -> None:
        kinds = {name: _KINDS[kind] for name, kind in get_type_hints(cls).items() if kind in _KINDS}
        cls.layout = np.dtype((cls, list(kinds.items())))
        for name in kinds:
            setattr(cls, name, _field(name))

    @classmethod
    def zeros(cls) -> Self:
        """Return a new record with 0 in all fields."""
        made: Any = np.zeros((), dtype=cls.layout)
        record: Self = made[()]
        return record


def _field(name: str) -> property:
    def read(record: Any) -> Any:
        return np.void.__getitem__(record, name)

    def write(record: Any, value: Any) -> None:
        np.void.__setitem__(record, name, value)

    return property(read, write)
