"""A classifier as one file of Python that imports nothing: `python_scorer`, with the classifier's tables in it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import numpy as np

from milpbn.data.dataset import MISSING, Variable
from milpbn.data.labels import MISSING_MARKERS
from milpbn.network.decisions import DO_NOT_KNOW
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.scoring_plan import ScoringPlan, ValueRule, check_results, plans_of

#: The lines of `python_scorer` before and after those that are replaced.
_BEFORE, _AFTER = "# The next lines are replaced", "# End of the lines that are replaced.\n"
#: The largest number; the file has no infinity.
LARGEST = float(np.finfo(float).max)


def classifier_to_python(classifier: AnyClassifier) -> str:
    """Return the text of a Python file that predicts rows, without milpbn or any other package (Python 3.8 or later).

    Its functions ``predict_proba(row)`` and ``predict(row)`` take a mapping by the names of raw columns. Values are
    matched by the rule of `milpbn.data.labels`, but of times only the usual texts are known, and of intervals as texts
    only the label itself. The file also runs as a program, which predicts the rows of a CSV file. Of an average, the
    file returns the mean of the networks' probabilities. Raises `InputError` if there is no class, or a sum would be
    too large.
    """
    decision = None
    if (rule := classifier.decision) is not None:
        silent = DO_NOT_KNOW if rule.may_abstain else None
        decision = (rule.differences.tolist(), rule.tolerance, silent)
    target = classifier.variables[-1]
    classes = target.states if target.label_type == "datetime" else target.labels.tolist()
    check_results(classifier)
    networks = ",\n".join(map(_network, plans_of(classifier)))
    tables = f"""TARGET = {target.name!r}
CLASSES = {tuple(classes)!r}
MARKERS = {tuple(sorted(MISSING_MARKERS))!r}
# None, or three things: the costs by true class (rows) and answer, less the least cost of the row; the difference up
# to which two expected costs count as equal; and the answer of abstaining, or None.
DECISION = {decision!r}
# values: for each feature, its column, the codes of texts, ranges (least, greatest, code), kind, code if missing
# numbers: a feature and logarithms by its code; or by its states, and for each state the positions of numbers to add
# classes: for each class a constant, and the positions of the numbers to add to it, which gives its log-joint
NETWORKS = [
{networks},
]
"""
    scorer = files(__package__).joinpath("python_scorer.py").read_text(encoding="utf-8")
    before, _, rest = scorer.partition(_BEFORE)
    return before + tables + rest.partition(_AFTER)[2]


def _network(plan: ScoringPlan) -> str:
    """Return the literal of one network, with a line for each item."""
    cells, constants, ends = plan.cells()
    values = (f"{i}: {_value_rule(plan.variables, i)!r}" for i in plan.features)
    parts = {
        "values": _lines("{}", values),
        "numbers": _lines("[]", (repr(tuple(cell)) for cell in cells)),
        "classes": _lines("[]", map(repr, zip(constants, ends, strict=True))),
    }
    return _lines("{}", (f"{key!r}: {value}" for key, value in parts.items()))


def _lines(ends: str, items: Iterable[str]) -> str:
    return "\n".join([ends[0], *(f"{item}," for item in items), ends[1]])


def _value_rule(variables: tuple[Variable, ...], i: int) -> tuple[Any, ...]:
    """Return the arguments of the file's function ``_code`` but the value."""
    variable = variables[i]
    rule = ValueRule.of(variable)
    texts = {text: code for code, own in enumerate(rule.texts) for text in own}
    # What only another variable of the column knows, wider intervals, is not known here.
    others = [other for other in variables if other.raw_column == variable.raw_column]
    missing = {text: MISSING for other in others for own in ValueRule.of(other).texts for text in own}
    kind = "continuous" if variable.cuts is not None else "number" if variable.numeric else "text"
    ranges = [(max(low, -LARGEST), min(high, LARGEST), code) for low, high, code in rule.ranges]
    return (variable.raw_column, {**missing, **texts}, ranges, kind, rule.missing)
