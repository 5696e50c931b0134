"""Networks as objects of other libraries (extra ``formats``): of networkx, pgmpy and pyAgrum."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from milpbn.data.column import Column
from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import (
    LABEL_TYPE,
    PlainNode,
    as_classifier,
    milpbn_properties,
    plain_nodes,
)
from milpbn.network.structure import Structure
from milpbn.util.extras import import_extra

if TYPE_CHECKING:
    import networkx as nx
    from pgmpy.models import DiscreteBayesianNetwork
    from pyagrum import BayesNet

#: Property of a whole network of pyAgrum: JSON with milpbn's properties of the nodes, by name.
PROPERTIES = "milpbn"


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
    nodes = plain_nodes(network, "A graph of networkx")
    for node in nodes:
        own = {"states": list(node.states), "parents": list(node.parents), "table": node.table.copy()}
        graph.add_node(node.name, **own, **node.properties)
    graph.add_edges_from((parent, node.name) for node in nodes for parent in node.parents)
    return graph


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
    _require(graph, "A DiGraph of networkx", "predecessors")
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
    _require(graph, "A DiGraph of networkx", "predecessors")
    names = [str(key) for key in graph.nodes if str(key) != target]
    if len(names) == len(graph.nodes):
        raise InputError(f"The graph has no node {target!r}, which is to be the class variable.")
    parents = {str(key): [str(parent) for parent in graph.predecessors(key)] for key in graph.nodes}
    return Structure.from_mapping([*names, target], parents)


def to_pgmpy(classifier: AnyClassifier) -> DiscreteBayesianNetwork:
    """Return a classifier as pgmpy's model, with the labels as names of states.

    milpbn's properties (the class, cuts, ...) become attributes of the nodes, so that `from_pgmpy` gives the same
    classifier back.

    Raises
    ------
    InputError
        If pgmpy is not installed, or the classifier is not one network.
    """
    models = import_extra("pgmpy.models", "formats", "This conversion")
    factors = import_extra("pgmpy.factors.discrete", "formats", "This conversion")
    nodes = plain_nodes(classifier, "A model of pgmpy")
    model = models.DiscreteBayesianNetwork()
    for node in nodes:
        model.add_node(node.name)
        model.nodes[node.name].update(node.properties)
    states = {node.name: list(node.states) for node in nodes}
    for node in nodes:
        model.add_edges_from((parent, node.name) for parent in node.parents)
        table = factors.TabularCPD(
            node.name,
            len(node.states),
            node.table.reshape(-1, len(node.states)).T,
            evidence=list(node.parents) or None,
            evidence_card=[len(states[parent]) for parent in node.parents] or None,
            state_names={name: states[name] for name in (node.name, *node.parents)},
        )
        model.add_cpds(table)
    return model


def from_pgmpy(model: DiscreteBayesianNetwork, target: str | None = None) -> Classifier:
    """Return pgmpy's model as a classifier.

    Parameters
    ----------
    model : DiscreteBayesianNetwork
        A discrete network with a table for every node. Names of states other than text are converted with ``str``;
        predicted labels have their type.
    target : str, optional
        Name of the class variable; models of `to_pgmpy` name it themselves.

    Raises
    ------
    InputError
        If a node has no table, or one that does not fit the graph or the other tables, or `as_classifier` raises it.
    """
    _require(model, "A DiscreteBayesianNetwork of pgmpy", "get_cpds")
    cpds = {key: model.get_cpds(key) for key in model.nodes}
    missing = [key for key, cpd in cpds.items() if not hasattr(cpd, "state_names")]
    if missing:
        raise InputError(f"The variable {missing[0]!r} of pgmpy's model has no table; fit the model first.")
    states = {key: tuple(map(str, cpd.state_names[key])) for key, cpd in cpds.items()}
    nodes = []
    for key, cpd in cpds.items():
        if set(cpd.variables[1:]) != set(model.predecessors(key)):
            raise InputError(
                f"The table of {key!r} does not have the parents of pgmpy's graph; fit the model again."
            )
        table = np.moveaxis(np.asarray(cpd.values, dtype=np.float64), 0, -1)
        for axis, parent in enumerate(cpd.variables[1:]):
            here = list(map(str, cpd.state_names[parent]))  # each table of pgmpy has an order of its own
            if sorted(here) != sorted(states[parent]):
                raise InputError(
                    f"The table of {key!r} has other states of {parent!r} than this variable's own table."
                )
            table = np.take(table, [here.index(state) for state in states[parent]], axis)
        names = pd.Series(cpd.state_names[key], name=str(key))
        properties = {LABEL_TYPE: Column.of(names).label_type, **milpbn_properties(model.nodes[key])}
        parents = tuple(str(name) for name in cpd.variables[1:])
        nodes.append(PlainNode(str(key), states[key], parents, table, properties))
    return as_classifier(nodes, target, "pgmpy")


def to_pyagrum(classifier: AnyClassifier) -> BayesNet:
    """Return a classifier as pyAgrum's Bayesian network, with the labels as labels.

    milpbn's properties (the class, cuts, ...) are in the network's property ``milpbn``, so that `from_pyagrum` gives
    the same classifier back.

    Raises
    ------
    InputError
        If pyAgrum is not installed, or the classifier is not one network.
    """
    gum = import_extra("pyagrum", "formats", "This conversion")
    nodes = plain_nodes(classifier, "A network of pyAgrum")
    network = gum.BayesNet("milpbn")
    for node in nodes:
        network.add(gum.LabelizedVariable(node.name, node.name, list(node.states)))
    for node in nodes:
        for parent in node.parents:
            network.addArc(parent, node.name)
    for node in nodes:
        tensor = network.cpt(node.name)
        # A tensor lists its values with its first variable, the node itself, fastest.
        axes = [node.parents.index(name) for name in reversed(tensor.names[1:])]
        tensor.fillWith(node.table.transpose([*axes, len(axes)]).ravel().tolist())
    network.setProperty(PROPERTIES, json.dumps({node.name: dict(node.properties) for node in nodes}))
    return network


def from_pyagrum(network: BayesNet, target: str | None = None) -> Classifier:
    """Return pyAgrum's Bayesian network as a classifier.

    Parameters
    ----------
    network : pyagrum.BayesNet
        The network. Labels of range and integer variables are taken as numbers, others as text.
    target : str, optional
        Name of the class variable; networks of `to_pyagrum` name it themselves.

    Raises
    ------
    InputError
        If `as_classifier` raises it.
    """
    _require(network, "A BayesNet of pyAgrum", "propertyWithDefault")
    try:
        properties = json.loads(network.propertyWithDefault(PROPERTIES, "{}"))
    except json.JSONDecodeError:
        properties = {}
    nodes = []
    for number in sorted(network.nodes()):
        tensor = network.cpt(number)
        own, *parents = tensor.names
        # Arrays of tensors have the axes in reverse order.
        table = np.asarray(tensor.toarray(), dtype=np.float64)
        found = properties.get(own) if isinstance(properties, dict) else None
        kept = milpbn_properties(found) if isinstance(found, dict) else {}
        states = tuple(network.variable(number).labels())
        nodes.append(PlainNode(own, states, tuple(reversed(parents)), table, kept))
    return as_classifier(nodes, target, "pyAgrum")


def _require(network: object, what: str, method: str) -> None:
    """Refuse an object that lacks a method of the kind that is expected."""
    if not hasattr(network, method):
        raise InputError(f"{what} is expected, not a {type(network).__name__}.")
