"""Runs cells: what one method finds on one part of the data is computed once, kept in a store, and never again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from milpbn.trials.executors import Inline

#: Cells one after the other, in this process.
INLINE = Inline()

C = TypeVar("C")
F = TypeVar("F")
K = TypeVar("K", contravariant=True)


class CellStore(Protocol[K, F]):
    """A store of what cells hold. It decides what is worth being kept."""

    def get(self, cell: K, /) -> F | None:
        """Return what a cell holds; None if it has to be computed."""

    def add(self, cell: K, found: F, /) -> None:
        """Keep what a cell holds."""


def run_cells(
    cells: Iterable[C],
    compute: Callable[[C], F | None],
    store: CellStore[C, F],
    spread: Inline = INLINE,
    *,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[C, F]]:
    """Yield each cell with what it holds: what the store has, and what is computed now.

    A cell stands for one method on one part. Under `Inline` it is asked for when the one before has been yielded, so
    that it may depend on that. `compute` returns what the method finds, or why it fails; None if it was stopped, so
    that nothing is kept. `spread` is where cells are computed. `stopping` is asked often; what is not finished when it
    returns True is computed the next time.
    """
    for batch in ([cell] for cell in cells) if spread.in_turn else [list(cells)]:
        if stopping():
            return
        missing = []
        for cell in batch:
            found = store.get(cell)
            if found is None:
                missing.append(cell)
            else:
                yield cell, found
        for cell, found in spread.run(compute, missing, stopping):
            if found is not None:
                store.add(cell, found)
                yield cell, found
            elif spread.in_turn:
                return
