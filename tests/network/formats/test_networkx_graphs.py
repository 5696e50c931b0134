from __future__ import annotations

import networkx as nx
import pytest
from format_cases import assert_same, random_classifier

from milpbn.errors import InputError
from milpbn.network.formats.networkx_graphs import from_networkx, structure_from_networkx, to_networkx


@pytest.mark.parametrize("seed", range(20))
def test_a_graph_comes_back(seed):
    classifier = random_classifier(seed)
    graph = to_networkx(classifier)
    assert tuple(graph.nodes) == classifier.structure.names
    assert_same(from_networkx(graph), classifier)
    assert_same(from_networkx(nx.DiGraph(graph)), classifier)


def test_structures_come_back():
    structure = random_classifier(1).structure
    graph = to_networkx(structure)
    assert structure_from_networkx(graph, structure.names[-1]) == structure
    with pytest.raises(InputError, match="no node 'k'"):
        structure_from_networkx(graph, "k")


def test_incomplete_graphs_are_refused():
    with pytest.raises(InputError, match="'a' of the graph lacks the attribute 'states'"):
        from_networkx(nx.DiGraph([("a", "b")]), "b")
    graph = to_networkx(random_classifier(2))
    graph.remove_edge(*next(iter(graph.edges)))
    with pytest.raises(InputError, match="does not list the parents"):
        from_networkx(graph)
