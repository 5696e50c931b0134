"""Elimination orders: complete, with true costs, and good on graphs whose best order is known."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest

from milpbn.network.inference.plan import elimination_order


def costs(graph: nx.Graph, order, sizes) -> list[float]:
    """Return the sizes of the factors of an order."""
    left, found = graph.copy(), []
    for v in order:
        near = list(left[v])
        found.append(math.prod(sizes[u] for u in (v, *near)))
        left.remove_node(v)
        left.add_edges_from((a, b) for a in near for b in near if a != b)
    return found


@pytest.mark.parametrize("seed", range(15))
def test_the_costs_are_those_of_the_order(seed) -> None:
    graph = nx.gnm_random_graph(12, 20, seed=seed)
    rng = np.random.default_rng(seed)
    sizes = {v: int(rng.integers(1, 5)) for v in graph}
    last = [3, 7] if seed % 2 else []
    order = elimination_order([[v] for v in graph] + [list(e) for e in graph.edges], sizes, last)
    assert sorted(order.variables) == sorted(set(graph) - set(last))
    found = costs(graph, order.variables, sizes)
    assert order.total == pytest.approx(sum(found), rel=1e-9)
    assert order.largest == pytest.approx(max(found), rel=1e-9)


def test_trees_and_cycles_get_the_best_orders() -> None:
    tree = nx.random_labeled_tree(60, seed=1)
    order = elimination_order([list(e) for e in tree.edges], dict.fromkeys(tree, 3))
    assert order.largest == pytest.approx(9)
    cycle = nx.cycle_graph(40)
    order = elimination_order([list(e) for e in cycle.edges], dict.fromkeys(cycle, 3))
    assert order.largest == pytest.approx(27)


def test_variables_with_many_states_are_eliminated_last() -> None:
    """A star: the leaves first, whatever they weigh, since the centre would join them all."""
    sizes = {0: 2, **dict.fromkeys(range(1, 30), 10)}
    order = elimination_order([[0, leaf] for leaf in range(1, 30)], sizes)
    assert order.largest == pytest.approx(20)


def test_costs_beyond_every_memory_are_infinite() -> None:
    order = elimination_order([range(300)], dict.fromkeys(range(300), 2))
    assert sorted(order.variables) == list(range(300))
    assert order.largest == math.inf
    assert order.total == math.inf
