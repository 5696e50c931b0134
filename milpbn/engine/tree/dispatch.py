"""Dispatchers: they take nodes from a tree search, let them be expanded somewhere, and give the expansions back.

The search decides which node comes next and what its expansion means for bound, proof and checkpoint. A dispatcher
decides only where expansions happen. An expansion depends on `Context`, `NodeTask` and a cutoff, which can be pickled,
as can its result, so that it may happen in another process or on another machine.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

from milpbn.engine.tree.bounding import Context, Worker
from milpbn.engine.tree.expansion import Expansion, NodeTask, expand
from milpbn.engine.tree.primal import PrimalHeuristic
from milpbn.engine.tree.subtree import SubtreeResult, SubtreeTask
from milpbn.util.budget import Budget


class TreeSearch(Protocol):
    """A tree search as dispatchers see it. Any thread may call its methods."""

    #: The data and options that all expansions share; sent to a machine once.
    context: Context
    #: The incumbent; `offer` takes a structure that was found elsewhere.
    primal: PrimalHeuristic
    #: Says whether the search has to stop.
    budget: Budget

    def hand_out(self, *, wait: bool) -> NodeTask | None:
        """Return the node to expand next, which stays open until its expansion is taken back.

        None if the search has ended or has to stop. If no node is open now, `wait` for the expansions of the others;
        without it, that is None, too.
        """

    def take_back(self, task: NodeTask, expansion: Expansion | None) -> None:
        """Take the expansion of a node; with None, for example of a machine that was lost, the node is open again."""

    @property
    def n_open(self) -> int:
        """Number of nodes that are open and not handed out."""

    @property
    def cutoff(self) -> float:
        """The score that a structure must exceed: the incumbent's, or that of the K-th best."""

    def hand_out_subtree(self, most: int, seconds: float, least: float) -> SubtreeTask | None:
        """Return up to `most` nodes to search below for some seconds; they stay open until they are taken back.

        The search may stop after the least seconds where better nodes are open here.

        None if no node is open now, or if the search has to stop.
        """

    def take_back_subtree(self, task: SubtreeTask, result: SubtreeResult | None) -> None:
        """Take what a search below nodes found; with None, for example of a lost machine, the nodes are open again."""

    def climb(self) -> None:
        """Climb for better structures, if such climbs are due; `take_back` does the same, `take_back_subtree` not."""

    def fail(self, task: NodeTask | None, error: BaseException) -> None:
        """Stop the search because of an error; the node stays open."""


class Dispatcher(Protocol):
    """What lets the nodes of a tree search be expanded."""

    @property
    def workers(self) -> int | None:
        """Number of threads of all workers, the most at any time so far; None if there are only threads here."""

    def run(self, search: TreeSearch) -> None:
        """Have nodes expanded until the search hands out no more, and give back every one that it handed out."""


@dataclass(frozen=True)
class ThreadDispatcher:
    """Threads of this process, one of them the caller's; they share the incumbent.

    With one thread, a search can be repeated to the last digit.
    """

    threads: int = 1

    @property
    def workers(self) -> None:
        """None; see `Dispatcher`."""

    def run(self, search: TreeSearch) -> None:
        """Expand nodes until the search hands out no more; see `Dispatcher`."""
        others = [
            threading.Thread(target=_expand_nodes, args=(search,), name=f"milpbn-native-{k}", daemon=True)
            for k in range(1, self.threads)
        ]
        for thread in others:
            thread.start()
        _expand_nodes(search)
        for thread in others:
            thread.join()


def _expand_nodes(search: TreeSearch) -> None:
    """Expand one node after another in this thread."""
    task: NodeTask | None = None
    try:
        worker = Worker(search.context, search.primal, search.budget)
        while (task := search.hand_out(wait=True)) is not None:
            search.take_back(task, expand(worker, task))
            task = None  # it is closed, and must not be opened again by an error in the next `hand_out`
    except BaseException as error:
        search.fail(task, error)
