"""The smaller and the larger of two numbers in kernels, so that loops over classes are vectorised.

numba turns `min` and `max` into a comparison and a choice, which LLVM does not vectorise in a loop: a number that is
not comparable would make the order matter. These are LLVM's own instructions, with the promise that no number is NaN.
The result is the same number in any order.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic, overload


def minimum(a: float, b: float) -> float:
    """Return the smaller of two float64 numbers, neither of which is NaN."""
    return min(a, b)


def maximum(a: float, b: float) -> float:
    """Return the larger of two float64 numbers, neither of which is NaN."""
    return max(a, b)


def _instruction(name: str) -> Any:
    """Return LLVM's instruction of two float64 numbers with this name, for kernels."""

    @intrinsic
    def instruction(typing_context, a, b):  # type: ignore[no-untyped-def]  # numba passes the types
        def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            number = ir.DoubleType()
            function = get_or_insert_function(builder.module, ir.FunctionType(number, [number, number]), name)
            return builder.call(function, arguments, fastmath=("nnan", "nsz"))

        return types.float64(types.float64, types.float64), build

    return instruction


_smaller, _larger = _instruction("llvm.minnum.f64"), _instruction("llvm.maxnum.f64")


@overload(minimum)
def _minimum(a, b):  # type: ignore[no-untyped-def]
    return lambda a, b: _smaller(a, b)


@overload(maximum)
def _maximum(a, b):  # type: ignore[no-untyped-def]
    return lambda a, b: _larger(a, b)
