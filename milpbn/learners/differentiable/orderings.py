"""Orderings of the features, and the parents that they allow (Roth & Pernkopf 2020, R20, sections 4.2, 4.4 and 4.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.heuristics.spanning import tan_structure

#: Names of the learnt and the fixed structures. A pseudo-TAN has no ordering, so that it can have cycles.
STRUCTURES = (
    "subset",
    "all",
    "heuristic-a",
    "heuristic-b",
    "heuristic-c",
    "random",
    "chow-liu",
    "naive-bayes",
    "pseudo-subset",
    "pseudo-all",
    "pseudo-heuristic",
)
#: Structures whose parents are not learnt.
FIXED = ("random", "chow-liu", "naive-bayes")


def random_ordering(n_features: int, number: int) -> NDArray[np.int64]:
    """Return the features in the random ordering of the given number, which is the same for every method."""
    return np.random.default_rng([n_features, number]).permutation(n_features)


def random_parents(
    candidates: Sequence[NDArray[np.int64]], k: int, ordering: int, selection: int
) -> list[list[int]]:
    """Return at most k random ones of every feature's candidates.

    Those for a smaller k are a subset of those for a larger k. The numbers of the ordering and of the selection are the
    seed.
    """
    rng = np.random.default_rng([len(candidates), ordering, selection, 1])
    return [rng.permutation(possible)[:k].tolist() for possible in candidates]


def predecessors(order: Sequence[int] | NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return for every feature its predecessors, in their order."""
    earlier: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)] * len(order)
    for place, i in enumerate(order):
        earlier[i] = np.asarray(order[:place], dtype=np.int64)
    return earlier


def image_side(n_features: int) -> int:
    """Return the side of the square image whose pixels, row by row, are the features; InputError if there is none."""
    side = math.isqrt(n_features)
    if side * side != n_features:
        raise InputError(
            f"The heuristic orderings are for square images, but {n_features} features are not the pixels of one; "
            "choose the structure 'subset' or 'all'."
        )
    return side


def row_ordering(side: int) -> list[tuple[int, int]]:
    """Return ordering A: pixels (row, column), row by row, from left to right."""
    return [(row, column) for row in range(side) for column in range(side)]


def diagonal_ordering(side: int) -> list[tuple[int, int]]:
    """Return ordering B: the lower triangle row by row, each pixel followed by its mirror image."""
    order = []
    for row in range(side):
        for column in range(row + 1):
            order.append((row, column))
            if column < row:
                order.append((column, row))
    return order


def centre_ordering(side: int) -> list[tuple[int, int]]:
    """Return ordering C: from the centre outwards, one frame after the other.

    The order of a frame is the upper edge, the lower edge, the left edge, the right edge, and then the corners.
    """
    order = [(side // 2, side // 2)] if side % 2 else []
    for low in range((side - side % 2) // 2 - 1, -1, -1):
        high = side - 1 - low
        inside = range(low + 1, high)
        order += [(low, column) for column in inside]
        order += [(high, column) for column in inside]
        order += [(row, low) for row in inside]
        order += [(row, high) for row in inside]
        order += [(low, low), (low, high), (high, low), (high, high)]
    return order


_IMAGE_ORDERINGS = {"a": row_ordering, "b": diagonal_ordering, "c": centre_ordering}


def nearest_parents(side: int, candidates: Sequence[NDArray[np.int64]], k: int) -> list[list[int]]:
    """Return for every pixel the k nearest candidates, or all if there are fewer; of equally near ones the first."""
    near = []
    for i, possible in enumerate(candidates):
        distance = (possible // side - i // side) ** 2 + (possible % side - i % side) ** 2
        near.append(possible[np.argsort(distance, kind="stable")][:k].tolist())
    return near


def candidate_choices(
    data: Dataset, structure: str, k: int, ordering: int = 0, selection: int = 0
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return the candidate parent sets of every variable, the class last.

    If the structure is learnt, the first candidate of a feature is the class alone ("no parent"). The class has no
    parents.

    Parameters
    ----------
    structure : str
        One of `STRUCTURES`.
    k : int
        Maximum number of candidate parents of a feature, for ``subset``, ``heuristic-*``, ``pseudo-subset`` and
        ``pseudo-heuristic``.
    ordering, selection : int
        Numbers of the random ordering and of the random selection of parents.

    Raises
    ------
    InputError
        If there is no such structure, a number is out of range, or a heuristic ordering is asked for and the features
        are not the pixels of a square image.
    """
    N = data.n_features
    if structure not in STRUCTURES:
        raise InputError(f"There is no structure {structure!r}; choose one of {', '.join(STRUCTURES)}.")
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}.")
    if ordering < 0 or selection < 0:
        raise InputError(f"ordering and selection must be at least 0, got {ordering} and {selection}.")
    if structure == "chow-liu":
        return tuple((parents,) for parents in tan_structure(data).parents)
    if structure == "naive-bayes":
        return (*(((N,),) for _ in range(N)), ((),))
    if structure.startswith("pseudo"):
        candidates = [np.delete(np.arange(N), i) for i in range(N)]
    elif structure.startswith("heuristic"):
        side = image_side(N)
        pixels = _IMAGE_ORDERINGS[structure[-1]](side)
        candidates = predecessors([row * side + column for row, column in pixels])
    else:
        candidates = predecessors(random_ordering(N, ordering))

    if structure == "random":
        parents = random_parents(candidates, 1, ordering, selection)
        return (*(((*chosen, N),) for chosen in parents), ((),))
    if "subset" in structure:
        parents = random_parents(candidates, k, ordering, selection)
    elif "heuristic" in structure:
        parents = nearest_parents(image_side(N), candidates, k)
    else:
        parents = [possible.tolist() for possible in candidates]
    return _optional_parents(parents)


def _optional_parents(parents: Sequence[Sequence[int]]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return the choices of every variable: for a feature the class alone, or the class and one of its candidates."""
    label = len(parents)
    return (*(((label,), *((j, label) for j in possible)) for possible in parents), ((),))
