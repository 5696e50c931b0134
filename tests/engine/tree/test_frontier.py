"""The open nodes: which one comes next, and the bound on all of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from milpbn.engine.tree.frontier import Frontier
from milpbn.engine.tree.node import Node
from milpbn.engine.tuning import TUNING


def open_node(number: int, bound: float) -> Node:
    return Node(number, bound, b"", None)


@given(st.lists(st.floats(0.0, 100.0), max_size=40), st.floats(0.0, 50.0), st.randoms(use_true_random=False))
def test_the_bound_is_the_largest_of_all_open_nodes(bounds, incumbent, random) -> None:
    frontier, open_ = Frontier(), {}
    for number, bound in enumerate(bounds):
        open_[number] = open_node(number, bound)
        frontier.push(open_[number])
        if random.random() < 0.5:
            frontier.close(taken := frontier.take())
            del open_[taken.number]
        frontier.update(frontier.bound(), incumbent)
        assert len(frontier) == len(open_)
        assert frontier.bound() == max((p.bound for p in open_.values()), default=-np.inf)
        assert frontier.nbytes == sum(p.nbytes for p in open_.values())
    while open_:
        distance = max(0.0, frontier.bound() - incumbent)
        best, taken = frontier.bound(), frontier.take()
        frontier.close(taken)
        # At most three intervals below the best bound: `update` does not follow every change.
        assert best - taken.bound <= 3 * TUNING.tree.bound_step * distance or best <= incumbent
        assert open_.pop(taken.number) is taken
        frontier.update(frontier.bound(), incumbent)
    assert frontier.bound() == -np.inf


def test_a_taken_node_counts_in_the_bound_and_can_be_opened_again() -> None:
    frontier = Frontier()
    frontier.push(open_node(1, 10.0))
    frontier.push(open_node(2, 9.0))
    taken = frontier.take()
    assert (len(frontier), frontier.n_taken, frontier.bound()) == (1, 1, 10.0)
    assert [node.number for node in frontier.nodes()] == [2, 1]
    frontier.reopen(taken)
    assert (len(frontier), frontier.n_taken, frontier.take()) == (2, 0, taken)
    frontier.close(taken)
    assert frontier.bound() == 9.0


def test_of_equal_bounds_the_newest_pair_and_the_first_child_come_first() -> None:
    frontier = Frontier()
    frontier.push(open_node(0, 10.0))
    frontier.update(10.0, 0.0)
    assert frontier.take().number == 0
    for number, bound in ((1, 10.0), (2, 9.99), (3, 9.96), (4, 9.995), (5, 9.5), (6, 9.8)):
        frontier.push(open_node(number, bound))
    assert [frontier.take().number for _ in range(6)] == [3, 4, 1, 2, 6, 5]
