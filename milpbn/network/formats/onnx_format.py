"""ONNX: a classifier as a graph from raw columns to the predicted class and class probabilities.

The graph holds everything: the states of text and numbers, the cuts of continuous columns, the tables, and the sums
over missing values. It needs the extra ``[formats]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Variable
from milpbn.network.decisions import DO_NOT_KNOW, DecisionRule
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.scoring_plan import (
    FLOOR,
    IMPOSSIBLE,
    ScoringPlan,
    ValueRule,
    columns_of_numbers,
    is_number,
    plans_of,
)
from milpbn.util.extras import import_extra
from milpbn.version import __version__

#: Versions of the operators, and of the file: those of onnxruntime 1.17 (2024) and later.
OPSET, OPSET_ML, IR_VERSION = 20, 3, 9
#: The regular expression of what `str.strip` takes off a text.
_BLANKS = r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*"

#: The regular expression of a number that onnxruntime's Cast takes; others end a whole batch with an error.
_NUMBER = r"[\t-\r ]*[+-]?(?:[0-9]{1,200}(?:\.[0-9]{0,200})?|\.[0-9]{1,200})(?:[eE][+-]?[0-9]{1,2})?[\t-\r ]*"


def classifier_to_onnx(classifier: AnyClassifier) -> bytes:
    """Return an ONNX model that predicts rows.

    Its inputs have the names of the raw columns and the shape (M, 1): ``tensor(double)`` for columns of numbers, with
    NaN as the missing value, and ``tensor(string)`` for all others. Values are matched by the rule of
    `milpbn.data.labels`, but of times only the usual texts are known, and of intervals as texts only the label itself.
    Truth values are texts such as True and FALSE, or the numbers 0 and 1 where the labels are. The outputs are
    ``label``, shape (M,), and ``probabilities``, shape (M, C), in double precision. Of an average, the model returns
    the mean of the networks' probabilities. Raises `InputError` if the package onnx is missing, the networks of an
    average read a column in different ways, or a sum would be too large.
    """
    onnx = import_extra("onnx", "formats", "An ONNX file")
    plans = plans_of(classifier)
    graph = _OnnxGraph(onnx)
    types = {True: onnx.TensorProto.DOUBLE, False: onnx.TensorProto.STRING}
    inputs = [
        onnx.helper.make_tensor_value_info(name, types[numbers], ["rows", 1])
        for name, numbers in columns_of_numbers(plans, "an ONNX model").items()
    ]
    # One zero per row gives results of constant tables the right shape, too.
    first = graph.node("Shape", [inputs[0].name])
    rows = graph.node("Gather", [first, graph.constant(np.array([0]))], axis=0)
    shape = graph.node("Concat", [rows, graph.constant(np.array([1]))], axis=0)
    zeros = graph.node("Expand", [graph.constant(np.zeros((1, 1))), shape])
    posteriors = [_posterior(graph, plan, zeros) for plan in plans]
    total = graph.sum(posteriors)
    graph.node("Div", [total, graph.constant(np.array(float(len(plans))))], output="probabilities")
    preferred, labels = _preferred(graph, classifier.decision), list(classifier.classes)
    if classifier.decision is not None and classifier.decision.may_abstain:
        labels.insert(0, DO_NOT_KNOW)
    best = graph.node("ArgMax", [preferred], axis=1, keepdims=0)
    graph.node(
        "LabelEncoder",
        [best],
        output="label",
        domain="ai.onnx.ml",
        keys_int64s=list(range(len(labels))),
        values_strings=labels,
    )
    outputs = [
        onnx.helper.make_tensor_value_info("label", onnx.TensorProto.STRING, ["rows"]),
        onnx.helper.make_tensor_value_info(
            "probabilities", onnx.TensorProto.DOUBLE, ["rows", len(classifier.classes)]
        ),
    ]
    made = onnx.helper.make_graph(graph.nodes, "classifier", inputs, outputs, graph.constants)
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", OPSET_ML)]
    model = onnx.helper.make_model(
        made,
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="milpbn",
        producer_version=__version__,
    )
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


class _OnnxGraph:
    """Nodes and constants of a graph, with names that are given in order."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self.int64, self.double = onnx.TensorProto.INT64, onnx.TensorProto.DOUBLE
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        *,
        output: str | None = None,
        domain: str = "",
        **options: Any,
    ) -> str:
        """Add a node and return the name of its output."""
        name = f"milpbn.{len(self.nodes)}" if output is None else output
        self.nodes.append(self._onnx.helper.make_node(operator, inputs, [name], domain=domain, **options))
        return name

    def constant(self, value: NDArray[Any]) -> str:
        """Add a constant and return its name."""
        name = f"milpbn.constant.{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def sum(self, terms: Sequence[str]) -> str:
        """Add the sum of tensors, whose shapes broadcast, and return its name."""
        total = terms[0]
        for term in terms[1:]:
            total = self.node("Add", [total, term])
        return total


def _preferred(graph: _OnnxGraph, decision: DecisionRule | None) -> str:
    """Return numbers, shape (M, C), the first largest at the answer; "do not know" comes first if it may be."""
    if decision is None:
        return "probabilities"
    of_classes, of_silence = np.split(decision.differences, [len(decision.costs)], axis=1)
    expected = graph.node("MatMul", ["probabilities", graph.constant(of_classes)])
    least = graph.node("ReduceMin", [expected, graph.constant(np.array([1]))], keepdims=1)
    tolerance = graph.constant(np.array(decision.tolerance))
    parts = [graph.node("LessOrEqual", [expected, graph.node("Add", [least, tolerance])])]
    if decision.may_abstain:
        silent = graph.node("MatMul", ["probabilities", graph.constant(of_silence)])
        parts.insert(0, graph.node("Less", [silent, graph.node("Sub", [least, tolerance])]))
    return graph.node("Cast", [graph.node("Concat", parts, axis=1)], to=graph.int64)


def _posterior(graph: _OnnxGraph, plan: ScoringPlan, zeros: str) -> str:
    """Add the computation of one network, and return the name of its probabilities, shape (M, C)."""
    codes = {i: _code(graph, plan.variables[i]) for i in plan.features}
    steps = plan.steps
    results: list[str] = []
    for step in steps:
        # Codes of missing values and of values without a state count from a table's end.
        flat = graph.node("Squeeze", [codes[step.feature], graph.constant(np.array([1]))])
        table = graph.constant(step.table)
        if not step.results:
            results.append(graph.node("Gather", [table, flat], axis=0))
            continue
        # By a code, 0 for the states that it allows.
        allowed = np.insert(np.eye(len(step.table), dtype=bool), -1, True, axis=0)
        allowed[-2, -1] = False
        evidence = graph.node("Gather", [graph.constant(np.where(allowed, 0.0, IMPOSSIBLE)), flat], axis=0)
        scope = (step.feature, *step.left)
        own = _aligned(graph, evidence, (step.feature,), scope, class_axis=False)
        others = [_aligned(graph, results[k], steps[k].left, scope) for k in step.results]
        axis = graph.constant(np.array([1]))
        results.append(graph.node("ReduceLogSumExp", [graph.sum([table, *others, own]), axis], keepdims=0))
    ends = [result for step, result in zip(steps, results, strict=True) if not step.left]
    joint = graph.sum([zeros, graph.constant(plan.constants[None]), *ends])
    raised = graph.node("Max", [joint, graph.constant(np.array(FLOOR))])
    return graph.node("Softmax", [raised], axis=1)


def _aligned(
    graph: _OnnxGraph,
    name: str,
    features: tuple[int, ...],
    scope: tuple[int, ...],
    *,
    class_axis: bool = True,
) -> str:
    """Return a tensor with an axis per row and feature, and possibly the class, with all axes of a scope."""
    if (first := features.index(scope[0])) > 0:
        axes = [0, 1 + first, *(1 + k for k in range(len(features)) if k != first), 1 + len(features)]
        name = graph.node("Transpose", [name], perm=axes)
    absent = [1 + k for k, i in enumerate(scope) if i not in features]
    absent += [] if class_axis else [1 + len(scope)]
    return graph.node("Unsqueeze", [name, graph.constant(np.array(absent))]) if absent else name


def _code(graph: _OnnxGraph, variable: Variable) -> str:
    """Return the state codes of a column, shape (M, 1), by the rule of `milpbn.data.labels`."""
    rule, name = ValueRule.of(variable), variable.raw_column
    if not is_number(variable):
        # One comparison for each binary digit of the position, since there may be thousands of states.
        spellings = list(enumerate(rule.texts, start=1))
        bits = 2 ** np.arange(len(spellings).bit_length() or 1)  # missing values may be the only state
        matched = [
            _equals(graph, name, [text for k, texts in spellings if k & bit for text in texts])
            for bit in bits
        ]
        code = _position(graph, graph.node("Concat", matched, axis=1), bits)
        if rule.ranges:  # they come after the texts: 01 may be a state beside an interval that holds 1
            usual = graph.node("RegexFullMatch", [name], pattern=_NUMBER)
            text = graph.node("Where", [usual, name, graph.constant(np.array("0", dtype=object))])
            number = graph.node("Cast", [text], to=graph.double)
            within = graph.node("And", [usual, _within(graph, number, rule.ranges)])
            other = _position(graph, within, np.array([k + 1 for *_, k in rule.ranges]))
            known = graph.node("GreaterOrEqual", [code, graph.constant(np.array(0))])
            code = graph.node("Where", [known, code, other])
        absent = _equals(graph, name, rule.markers)
    else:
        codes = np.array([code for *_, code in rule.ranges])
        code = _position(graph, _within(graph, name, rule.ranges), codes + 1)
        absent = graph.node("IsNaN", [name])
    return graph.node("Where", [absent, graph.constant(np.array(rule.missing)), code])


def _within(graph: _OnnxGraph, number: str, ranges: Sequence[tuple[float, float, int]]) -> str:
    """Return whether numbers, shape (M, 1), are in each range, shape (M, n)."""
    low, high, _ = map(np.array, zip(*ranges, strict=True))
    at_least = graph.node("GreaterOrEqual", [number, graph.constant(low[None])])
    at_most = graph.node("LessOrEqual", [number, graph.constant(high[None])])
    return graph.node("And", [at_least, at_most])


def _position(graph: _OnnxGraph, matched: str, places: NDArray[np.int64]) -> str:
    """Return codes, shape (M, 1), from matches, shape (M, n), that add up to positions from 1; 0 is `UNKNOWN`."""
    one = graph.node("Cast", [matched], to=graph.int64)
    terms = graph.node("Mul", [one, graph.constant(places[None])])
    total = graph.node("ReduceSum", [terms, graph.constant(np.array([1]))], keepdims=1)
    return graph.node("Sub", [total, graph.constant(np.array(1))])


def _equals(graph: _OnnxGraph, name: str, texts: Sequence[str]) -> str:
    """Return whether the text of a column is one of several, but for white space around it, shape (M, 1)."""
    written = (
        "".join(c if c.isascii() and c.isalnum() else f"\\x{{{ord(c):x}}}" for c in text) for text in texts
    )
    return graph.node("RegexFullMatch", [name], pattern=f"{_BLANKS}(?:{'|'.join(written)}){_BLANKS}")
