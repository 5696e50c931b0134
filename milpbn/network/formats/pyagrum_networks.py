"""Networks as Bayesian networks of pyAgrum (extra ``formats``)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from milpbn.network.classifier import Classifier
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import (
    PlainNode,
    as_classifier,
    milpbn_properties,
    one_network,
    plain_nodes,
)
from milpbn.util.extras import import_extra

if TYPE_CHECKING:
    from pyagrum import BayesNet

#: Property of the whole network: JSON with milpbn's properties of the nodes, by name.
PROPERTIES = "milpbn"


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
    nodes = plain_nodes(one_network(classifier, "A network of pyAgrum"))
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
