"""The sizes of the parts that workers get."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed")

from milpbn.distributed.dispatcher import FIRST_SECONDS, MOST_NODES, PARTS, part_size


def test_the_first_node_is_a_short_part() -> None:
    assert part_size(1, 2, 1.0) == (1, FIRST_SECONDS, FIRST_SECONDS)
    assert part_size(1, 0, 1.0) == (1, FIRST_SECONDS, FIRST_SECONDS)
    assert part_size(1, 1024, 1.0)[1] < 1.0


@pytest.mark.parametrize("workers", [1, 2, 16, 64, 256, 1024])
@pytest.mark.parametrize("rate", [1.0, 12.0, 1000.0])
def test_parts_leave_nodes_for_all_workers_and_the_calling_process_keeps_up(
    workers: int, rate: float
) -> None:
    before = 0.0
    for n_open in (1, 10, 100, 10_000, 1_000_000):
        most, seconds, least = part_size(n_open, workers, rate)
        assert 1 <= most <= MOST_NODES
        assert most == 1 or most * PARTS * workers <= n_open / 2
        assert least <= seconds
        assert seconds >= before
        # Fifty parts a second, and one every quarter of a second from each worker that gets one of a few nodes.
        assert min(workers, n_open) / least <= 50.001 or least == FIRST_SECONDS
        before = seconds
