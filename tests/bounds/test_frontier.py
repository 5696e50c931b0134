"""The open parts: which one comes next, and the bound on all."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from milpbn.bounds.frontier import ALIKE, Frontier
from milpbn.bounds.space import ORPHAN, Decision, Open


def part(number: int, bound: float) -> Open:
    empty = np.zeros(0)
    return Open(
        number,
        bound,
        np.zeros(3, dtype=np.uint8),
        (),
        empty.astype(np.int32),
        empty,
        empty.astype(np.float32),
        1.0,
        Decision(ORPHAN, 0, 0),
        0.5,
        empty,
        None,
    )


@given(st.lists(st.floats(0.0, 100.0), max_size=40), st.floats(0.0, 50.0), st.randoms(use_true_random=False))
def test_the_bound_is_the_largest_of_what_is_open(bounds, incumbent, random) -> None:
    frontier, open_ = Frontier(), {}
    for number, bound in enumerate(bounds):
        open_[number] = part(number, bound)
        frontier.push(open_[number])
        if random.random() < 0.5:
            del open_[frontier.pop().number]
        frontier.near(frontier.bound(), incumbent)
        assert len(frontier) == len(open_)
        assert frontier.bound() == max((p.bound for p in open_.values()), default=-np.inf)
        assert frontier.nbytes == sum(p.nbytes for p in open_.values())
    while open_:
        distance = max(0.0, frontier.bound() - incumbent)
        best, taken = frontier.bound(), frontier.pop()
        # No worse than what the last two notes of the distance call alike.
        assert best - taken.bound <= 3 * ALIKE * distance or best <= incumbent
        assert open_.pop(taken.number) is taken
        frontier.near(frontier.bound(), incumbent)
    assert frontier.bound() == -np.inf


def test_of_equal_bounds_the_newest_pair_and_the_inner_half_come_first() -> None:
    frontier = Frontier()
    frontier.push(part(0, 10.0))
    frontier.near(10.0, 0.0)
    assert frontier.pop().number == 0
    for number, bound in ((1, 10.0), (2, 9.99), (3, 9.96), (4, 9.995), (5, 9.5), (6, 9.8)):
        frontier.push(part(number, bound))
    assert [frontier.pop().number for _ in range(6)] == [3, 4, 1, 2, 6, 5]
