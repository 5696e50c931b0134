"""Networks as directed graphs of networkx (extra ``formats``), with states and tables as attributes of the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import (
    PlainNode,
    as_classifier,
    milpbn_properties,
    one_network,
    plain_nodes,
)
from milpbn.network.structure import Structure
from milpbn.util.extras import import_extra

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(network: AnyClassifier | Structure) -> nx.DiGraph:
    """Return a classifier or a structure as a directed graph whose nodes are the variables' names.

    Parameters
    ----------
    network : Classifier or Structure
        The nodes have the order of its variables, the class last.

    Returns
    -------
    networkx.DiGraph
        The nodes of a classifier have the attributes ``states`` (list of str), ``parents`` (list of str) and ``table``
        (float64 array of shape (states of each parent..., own states)), and milpbn's properties
        (`milpbn.network.formats.plain_network`) as text. Those of a structure have none.

    Raises
    ------
    InputError
        If networkx is not installed, or the classifier is not one network.
    """
    nx = import_extra("networkx", "formats", "This conversion")
    graph = nx.DiGraph()
    if isinstance(network, Structure):
        graph.add_nodes_from(network.names)
        graph.add_edges_from((network.names[a], network.names[b]) for a, b in network.arcs)
        return graph
    classifier = one_network(network, "A graph of networkx")
    for node in plain_nodes(classifier):
        graph.add_node(
            node.name,
            states=list(node.states),
            parents=list(node.parents),
            table=node.table.copy(),
            **node.properties,
        )
        graph.add_edges_from((parent, node.name) for parent in node.parents)
    # Arcs may name a parent before its own turn; the nodes are to have the order of the variables.
    ordered = nx.DiGraph()
    ordered.add_nodes_from((name, graph.nodes[name]) for name in classifier.structure.names)
    ordered.add_edges_from(graph.edges)
    return ordered


def from_networkx(graph: nx.DiGraph, target: str | None = None) -> Classifier:
    """Return the classifier in a graph whose nodes have the attributes that `to_networkx` writes.

    Parameters
    ----------
    graph : networkx.DiGraph
        The names of the nodes become names of variables; others than text are converted with ``str``.
    target : str, optional
        Name of the class variable; graphs of `to_networkx` name it themselves.

    Raises
    ------
    InputError
        If a node lacks ``states``, ``parents`` or ``table``, its parents are not those of the arcs, or `as_classifier`
        raises it.
    """
    nodes = []
    for key, attributes in graph.nodes(data=True):
        missing = [name for name in ("states", "parents", "table") if name not in attributes]
        if missing:
            raise InputError(f"The node {key!r} of the graph lacks the attribute {missing[0]!r}.")
        parents = tuple(str(parent) for parent in attributes["parents"])
        if sorted(parents) != sorted(str(parent) for parent in graph.predecessors(key)):
            raise InputError(
                f"The attribute 'parents' of the node {key!r} does not list the parents in the graph."
            )
        table = np.asarray(attributes["table"], dtype=np.float64)
        states = tuple(str(state) for state in attributes["states"])
        nodes.append(PlainNode(str(key), states, parents, table, milpbn_properties(attributes)))
    return as_classifier(nodes, target, "networkx")


def structure_from_networkx(graph: nx.DiGraph, target: str) -> Structure:
    """Return the structure of a directed graph, the class variable last; attributes are not read.

    Raises
    ------
    InputError
        If the target is not a node, or the graph has a cycle.
    """
    names = [str(key) for key in graph.nodes if str(key) != target]
    if len(names) == len(graph.nodes):
        raise InputError(f"The graph has no node {target!r}, which is to be the class variable.")
    parents = {str(key): [str(parent) for parent in graph.predecessors(key)] for key in graph.nodes}
    return Structure.from_mapping([*names, target], parents)
