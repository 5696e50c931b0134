"""A Bayesian network as files and other libraries hold it: nodes with states, parents and a table, and no more.

The formats of networks convert between this form and a `Classifier`. What a classifier has besides (which variable is
the class, exact cuts, what kind of labels a variable has) is kept in properties of the nodes, whose names begin with
``milpbn_``. Without them, a network still becomes a classifier: the caller names the class, and labels that are
intervals from -inf to inf become cuts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Variable
from milpbn.data.labels import StateLabels, cuts_of_labels, number_label, number_of
from milpbn.data.variables import MISSING_LABEL
from milpbn.errors import InputError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import MAX_TABLE_ENTRIES, Cpt, require_table
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.prior import TOWARDS, UNIFORM
from milpbn.network.structure import Structure
from milpbn.version import __version__

#: Names of the properties that milpbn writes.
CLASS, CUTS, NUMERIC, MISSING_STATE = "milpbn_class", "milpbn_cuts", "milpbn_numeric", "milpbn_missing_state"
SMOOTHING, TOWARDS_NAME = "milpbn_smoothing", "milpbn_smoothing_towards"
#: Property with the type of the class labels in predictions (`milpbn.data.dataset.LABEL_TYPES`).
LABEL_TYPE = "milpbn_label_type"
#: Property with the raw column of a variable that has not the column's name (`Variable.column`), as by `encode_words`.
COLUMN = "milpbn_column"
#: Property of a variable with one state that has got a second one, with the probability 0, because a program refuses
#: variables with one state.
UNUSED = "milpbn_unused_state"
#: Properties with the original name and labels of a variable, where a format cannot hold them (`encode_words`).
NAME, STATES = "milpbn_name", "milpbn_states"
#: How far a row of a table may be from the sum 1; many published networks have few digits. It is then normalised,
#: unless it is as close as rounded float64 values are.
LARGEST_DEFICIT, ROUNDING = 0.02, 1e-12

#: Value of the property `CUTS` of a nominal variable whose labels look like intervals.
NOMINAL = "nominal"
_YES_NO = {True: "yes", False: "no"}
#: The table of a node whose table is still to come; and a table as files list it: the variable, its parents, values
#: (the own states fastest, the first parent slowest), and the place for a sentence, such as " (line 12)".
NO_TABLE = np.empty(0)
TableList: TypeAlias = tuple[str, Sequence[str], Sequence[float], str]


@dataclass(frozen=True, eq=False)
class PlainNode:
    """A discrete variable with its parents and its table.

    The parents are given by their names, in any order. The table has the shape (states of each parent..., states of the
    variable) and holds P(variable | parents), with the parents in this order. The properties, such as ``milpbn_cuts``,
    have values without white space, equals sign or semicolon.
    """

    name: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    table: NDArray[np.float64]
    properties: Mapping[str, str] = field(default_factory=dict)


def one_network(classifier: AnyClassifier, what: str) -> Classifier:
    """Return a classifier that is a single Bayesian network.

    `what` is to hold it, and begins the sentence of an error, such as "A BIF file". Raises `InputError` if it is an
    average or a pseudo-TAN.
    """
    if isinstance(classifier, AveragedClassifier):
        raise InputError(
            f"{what} holds one Bayesian network, but the classifier is an average of {len(classifier.members)}; "
            "solve without --average for a single network."
        )
    if not isinstance(classifier, Classifier):
        raise InputError(
            f"{what} holds a Bayesian network, but the classifier is a pseudo-TAN, which is none."
        )
    return classifier


def plain_nodes(classifier: AnyClassifier, what: str) -> tuple[PlainNode, ...]:
    """Return the nodes of a classifier: features first, the class last; `what` is that of `one_network`."""
    network = one_network(classifier, what)
    names = network.structure.names
    found = []
    for v, cpt in zip(network.variables, network.cpts, strict=True):
        parents = tuple(names[j] for j in cpt.parents)
        found.append(PlainNode(v.name, v.states, parents, cpt.table, _properties(network, cpt.variable)))
    return tuple(found)


def _properties(classifier: Classifier, index: int) -> dict[str, str]:
    """Return the properties of a variable that its labels do not show, and those of the class."""
    variable = classifier.variables[index]
    shown = _variable(PlainNode(variable.name, variable.states, (), np.empty(0)))
    properties = {}
    if variable.cuts is None and shown.cuts is not None:
        properties[CUTS] = NOMINAL
    elif variable.cuts is not None and variable.cuts != shown.cuts:
        properties[CUTS] = ",".join(repr(float(cut)) for cut in variable.cuts) or "none"
    if variable.numeric != shown.numeric:
        properties[NUMERIC] = _YES_NO[variable.numeric]
    if variable.missing_state != shown.missing_state:
        properties[MISSING_STATE] = _YES_NO[variable.missing_state]
    if variable.column is not None:
        properties[COLUMN] = encode_words([variable.column])
    if index == len(classifier.variables) - 1:
        properties[CLASS] = _YES_NO[classifier.has_class]
        properties[SMOOTHING] = repr(float(classifier.smoothing))
        properties[TOWARDS_NAME] = classifier.smoothing_towards
        properties |= {} if variable.label_type == "text" else {LABEL_TYPE: variable.label_type}
    return properties


def as_classifier(nodes: Sequence[PlainNode], target: str | None, origin: str) -> Classifier:
    """Return the classifier that predicts one variable of a network.

    The nodes may have any order; names and labels are those of the properties `NAME` and `STATES` where they have them.
    Rows of the tables are normalised if they are within `LARGEST_DEFICIT` of 1. Without a target, the class is the
    variable that has the property ``milpbn_class``. The provenance says where the network comes from (`origin`, such as
    "BIF"). If a variable has that property with the value "no", the network has no class. Raises `InputError` if there
    is no such variable, or the nodes do not make up a network: names or states that occur twice, unknown parents,
    cycles, tables of another shape or without probabilities.
    """
    if not nodes:
        raise InputError("It has no variables.")
    nodes = _with_original_texts(_without_unused_states(nodes))
    has_class = target is not None or all(node.properties.get(CLASS) != "no" for node in nodes)
    names = [node.name for node in nodes]
    if len(set(names)) < len(names):
        raise InputError(f"It has the variable {next(n for n in names if names.count(n) > 1)!r} twice.")
    marked = [node.name for node in nodes if node.properties.get(CLASS) == _YES_NO[has_class]]
    chosen = marked if target is None else [target]
    if len(chosen) != 1 or chosen[0] not in names:
        listed = ", ".join(repr(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
        no_class = "It does not say which variable is the class"
        said = no_class if target is None else f"It has no variable {target!r}"
        raise InputError(f"{said}; name it with --target (in Python: target), one of {listed}.")
    last = nodes[names.index(chosen[0])]
    ordered = [*(node for node in nodes if node is not last), last]
    # The class is compared by its labels, so it has no cuts.
    target_variable = replace(_variable(last), label_type=last.properties.get(LABEL_TYPE, "text"))
    if has_class:
        target_variable = replace(target_variable, cuts=None)
    variables = (*map(_variable, ordered[:-1]), target_variable)
    index = {node.name: i for i, node in enumerate(ordered)}
    structure = Structure.from_mapping(list(index), {node.name: node.parents for node in ordered})
    cpts = tuple(_cpt(node, variables, structure.parents[i], index) for i, node in enumerate(ordered))
    provenance = {"milpbn": __version__, "read_from": origin}
    towards = last.properties.get(TOWARDS_NAME, UNIFORM)
    towards = towards if towards in TOWARDS else UNIFORM
    smoothing = number_of(last.properties.get(SMOOTHING, "0"))
    smoothing = smoothing if 0 <= smoothing < math.inf else 0.0
    return Classifier(variables, structure, cpts, smoothing, provenance, towards, has_class)


def reader_of(nodes: Callable[[str], list[PlainNode]], origin: str) -> Callable[..., Classifier]:
    """Return the reader of a format of nodes: it takes the text, and the class where the file does not name it."""

    def read(text: str, target: str | None = None) -> Classifier:
        return as_classifier(nodes(text), target, origin)

    return read


def _without_unused_states(nodes: Sequence[PlainNode]) -> list[PlainNode]:
    """Return the network without states that have the property `UNUSED`."""
    padded = {node.name for node in nodes if UNUSED in node.properties and len(node.states) == 2}
    trimmed = []
    for node in nodes:
        table = node.table
        for axis, name in enumerate((*node.parents, node.name)[: table.ndim]):
            table = table.take([0], axis) if name in padded else table
        states = node.states[:1] if node.name in padded else node.states
        trimmed.append(replace(node, states=states, table=table))
    return trimmed


def _with_original_texts(nodes: Sequence[PlainNode]) -> list[PlainNode]:
    """Return the network with the names and labels that the properties `NAME` and `STATES` have."""
    names = {n.name: decode_words(n.properties[NAME])[0] if NAME in n.properties else n.name for n in nodes}
    restored = []
    for node in nodes:
        states = decode_words(node.properties[STATES]) if STATES in node.properties else node.states
        if len(states) != len(node.states):
            raise InputError(
                f"The property {STATES} of {node.name!r} does not have {len(node.states)} labels."
            )
        parents = tuple(names.get(parent, parent) for parent in node.parents)
        restored.append(replace(node, name=names[node.name], states=states, parents=parents))
    return restored


def _variable(node: PlainNode) -> Variable:
    """Return a variable, by its properties where it has them, else by its labels."""
    states, said = node.states, node.properties
    # No value of a table can be the marker of missing values, so this label is the state of those.
    missing = len(states) > 1 and states[-1] == MISSING_LABEL
    missing = said[MISSING_STATE] == "yes" if MISSING_STATE in said else missing
    present = states[:-1] if missing else states
    cuts = cuts_of_labels(present)
    if CUTS in said:
        texts = said[CUTS].split(",") if said[CUTS] not in (NOMINAL, "none") else []
        cuts = None if said[CUTS] == NOMINAL else tuple(number_of(text) for text in texts)
    numeric = cuts is None and bool(present) and None not in StateLabels(present, numeric=True).ranges
    numeric = said[NUMERIC] == "yes" if NUMERIC in said else numeric
    column = decode_words(said[COLUMN])[0] if COLUMN in said else None
    return Variable(node.name, states, cuts, numeric, missing, column=column)


def _cpt(
    node: PlainNode, variables: Sequence[Variable], parents: tuple[int, ...], index: Mapping[str, int]
) -> Cpt:
    """Return the node's table with its parents in ascending order."""
    i = index[node.name]
    given = [index[name] for name in node.parents]
    if len(set(given)) < len(given):
        raise InputError(f"The variable {node.name!r} has a parent twice.")
    shape = require_table(variables, i, given)
    if node.table.shape != shape:
        raise InputError(f"The table of {node.name!r} has the shape {node.table.shape}, but needs {shape}.")
    table = node.table.transpose([*(given.index(j) for j in parents), len(given)])
    if not np.isfinite(table).all() or (table < 0).any():
        raise InputError(f"The table of {node.name!r} holds a value that is no probability.")
    totals = table.sum(axis=-1, keepdims=True)
    if len(odd := totals[abs(totals - 1) > LARGEST_DEFICIT]):
        sums = f"has a row with the sum {odd[0]:.6g}; probabilities sum to 1"
        raise InputError(f"The table of {node.name!r} {sums}.")
    return Cpt(i, parents, np.where(abs(totals - 1) > ROUNDING, table / totals, table))


def with_tables(
    declared: Sequence[PlainNode], lists: Iterable[TableList], *, weights: bool = False
) -> list[PlainNode]:
    """Return the nodes of a file with the tables that it gives as lists, in the order of their declarations.

    Rows of weights are normalised. Raises `InputError` if a variable is not declared or has not one table, or a list
    has another length.
    """
    known = {node.name: node for node in declared}
    if bare := [node.name for node in declared if not node.states]:
        raise InputError(f"The variable {bare[0]!r} has no states.")
    tables: dict[str, PlainNode] = {}
    for name, parents, values, place in lists:
        where = f"The table of {name!r}{place}"
        for other in (name, *parents):
            if other not in known:
                raise InputError(f"{where} names {other!r}, which is not a declared variable.")
        shape = [len(known[other].states) for other in (*parents, name)]
        if name in tables:
            raise InputError(f"{where} is its second one.")
        if math.prod(shape) > MAX_TABLE_ENTRIES or len(values) != math.prod(shape):
            raise InputError(f"{where} has {len(values)} values, but needs {float(math.prod(shape)):.0f}.")
        table = np.array(values, dtype=np.float64).reshape(shape)
        if weights and np.isfinite(table).all():
            totals = table.sum(axis=-1, keepdims=True)
            np.divide(table, totals, out=table, where=(totals > 0) & (abs(totals - 1) > ROUNDING))
        tables[name] = replace(known[name], parents=tuple(parents), table=table)
    missing = [name for name in known if name not in tables]
    if missing or not known:
        raise InputError(f"It has no table of {missing[0]!r}." if missing else "It declares no variable.")
    return [tables[node.name] for node in declared]


def interval_states(
    edges: Sequence[float], names: Sequence[str], refusal: Callable[[str], InputError]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return labels and properties of a variable that is cut at edges into intervals that are closed on the left.

    The outer edges are included. If there are names, and the edges ascend, values beyond them are in the outer
    intervals; else the labels are the intervals. Raises `refusal` unless the edges ascend or descend, and there are as
    many names.
    """
    ordered = sorted(set(edges))
    if len(edges) < 2 or list(edges) not in (ordered, ordered[::-1]):
        raise refusal("has no edges of intervals that ascend or descend")
    if names and len(names) != len(edges) - 1:
        raise refusal(f"has {len(names)} states, but {len(edges) - 1} intervals")
    if names and edges[0] == ordered[0]:
        cuts = [repr(math.nextafter(edge, -math.inf)) for edge in edges[1:-1]]
        return tuple(names), {CUTS: ",".join(cuts) or "none"}
    left, right = {-math.inf: "("}, {ordered[-1]: "]", math.inf: ")"}
    pairs = map(sorted, pairwise(edges))
    intervals = ((left.get(a, "["), number_label(a), number_label(b), right.get(b, ")")) for a, b in pairs)
    return tuple(map("{0[0]}{0[1]}, {0[2]}{0[3]}".format, intervals)), {}


def milpbn_properties(attributes: Mapping[str, object]) -> dict[str, str]:
    """Return those of a node's attributes that are milpbn's properties."""
    return {str(k): str(v) for k, v in attributes.items() if str(k).startswith("milpbn_")}


def encode_words(texts: Iterable[str]) -> str:
    """Return texts as one word that every format can hold: percent-encoded, separated by commas."""
    return ",".join(quote(text, safe="") for text in texts)


def decode_words(word: str) -> tuple[str, ...]:
    """Return the texts of which `encode_words` made a word."""
    return tuple(unquote(part) for part in word.split(","))
