"""Networks as models of pgmpy (extra ``formats``)."""

from __future__ import annotations

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
    one_network,
    plain_nodes,
)
from milpbn.util.extras import import_extra

if TYPE_CHECKING:
    from pgmpy.models import DiscreteBayesianNetwork


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
    nodes = plain_nodes(one_network(classifier, "A model of pgmpy"))
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
        If a node has no table, or `as_classifier` raises it.
    """
    nodes = []
    for key in model.nodes:
        cpd = model.get_cpds(key)
        if cpd is None:
            raise InputError(f"The variable {key!r} of pgmpy's model has no table; fit the model first.")
        table = np.moveaxis(np.asarray(cpd.values, dtype=np.float64), 0, -1)
        parents = tuple(str(name) for name in cpd.variables[1:])
        names = pd.Series(cpd.state_names[key], name=str(key))
        properties = {LABEL_TYPE: Column.of(names).label_type, **milpbn_properties(model.nodes[key])}
        states = tuple(map(str, cpd.state_names[key]))
        nodes.append(PlainNode(str(key), states, parents, table, properties))
    return as_classifier(nodes, target, "pgmpy")
