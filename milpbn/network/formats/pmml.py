"""PMML 4.4: a classifier as a regression with softmax over derived fields, since evaluators know no Bayesian networks.

Tables (``MapValues``) and intervals (``Discretize``) turn each value into a code: the position of its state, then that
of a missing value and that of one that training never saw. Further tables turn codes into logarithms. Where a feature
that may be missing has relatives, a derived field for each of their states sums over its states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from milpbn.data.dataset import Variable
from milpbn.errors import InputError
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.scoring_plan import (  # fmt: skip
    FLOOR,
    IMPOSSIBLE,
    ScoringPlan,
    ValueRule,
    check_results,
    columns_of_numbers,
    is_number,
    plans_of,
)
from milpbn.network.formats.xmlbif import FORBIDDEN


def classifier_to_pmml(classifier: AnyClassifier) -> str:
    """Return a PMML document that predicts rows.

    Its fields have the names of the raw columns: ``double`` for columns of numbers, ``string`` for all others. A field
    without a value is missing. Values are matched as in an ONNX file, but texts have no white space around them, and
    numbers belong to no intervals that are texts.
    Outputs are ``P(LABEL)`` of every class, and ``predicted NAME`` unless the classifier has costs. An average is a
    ``MiningModel`` that averages. Raises `InputError` if a name or label holds a character that XML cannot hold, the
    networks of an average read a column in different ways, there is no class, or a sum would be too large.
    """
    check_results(classifier)
    plans = plans_of(classifier)
    target, labels = quoteattr(classifier.variables[-1].name), list(map(quoteattr, classifier.classes))
    numbers = columns_of_numbers(plans, "PMML")
    kinds = {name: _kind("double" if number else "string") for name, number in numbers.items()}
    fields = [f"<DataField name={quoteattr(name)} {kind}/>" for name, kind in kinds.items()]
    values = "".join(f"<Value value={label}/>" for label in labels)
    fields.append(f"<DataField name={target} {_kind('string')}>{values}</DataField>")
    used = [f"<MiningField name={quoteattr(name)}/>" for name in numbers]
    schema = _block("MiningSchema", [*used, f'<MiningField name={target} usageType="target"/>'])
    outputs = _block("Output", _outputs(classifier))
    kind, average = 'functionName="classification"', len(plans) > 1
    models = [
        _block(
            f'RegressionModel {kind} normalizationMethod="softmax"',
            [schema, *([] if average else [outputs]), *_network(plan, f"n{k}", labels)],
        )
        for k, plan in enumerate(plans)
    ]
    if average:
        segments = [_block(f'Segment id="{k}"', ["<True/>", model]) for k, model in enumerate(models)]
        parts = [schema, outputs, _block('Segmentation multipleModelMethod="average"', segments)]
        models = [_block(f"MiningModel {kind}", parts)]
    header = '<Header><Application name="milpbn"/></Header>'
    whole = _block(
        'PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4"',
        [header, _block("DataDictionary", fields), *models],
    )
    if found := FORBIDDEN.search(whole):
        raise InputError(
            f"A name or label holds the character {found[0]!r}, which XML cannot hold; rename it."
        )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'


def _network(plan: ScoringPlan, prefix: str, labels: Sequence[str]) -> list[str]:
    """Return the derived fields of one network, and the regression of each class, whose only term is one of them."""
    fields = [_code(plan.variables[i], f"{prefix}v{i}") for i in plan.features]

    def add(name: str, expression: str) -> str:
        fields.append(_derived(f"{prefix}{name}", expression))
        return _field(f"{prefix}{name}")

    cells, constants, ends = plan.cells()
    found: list[str] = []
    for k, (i, logs, sources) in enumerate(cells):
        expression, terms = _mapped({f"{s}": log for s, log in enumerate(logs)}, f"{prefix}v{i}"), []
        for s, others in enumerate(sources):
            unknown = len(logs) - 1  # the code of a missing value; that of one without a state is the next
            codes = (s, unknown) if s < unknown else (unknown + 1,)
            allowed = _apply("isIn", _field(f"{prefix}v{i}"), *(_constant(f"{code}") for code in codes))
            value = _apply("sum", _constant(logs[s]), *(found[place] for place in others))
            terms.append(add(f"t{k}_{s}", _apply("if", allowed, value, _constant(IMPOSSIBLE))))
        if terms:
            most = add(f"m{k}", _apply("max", *terms))
            shares = [_apply("exp", _apply("-", term, most)) for term in terms]
            expression = _apply("+", most, _apply("ln", _apply("sum", *shares)))
        found.append(add(f"n{k}", expression))
    joint, tables = [], []
    for c, (constant, places) in enumerate(zip(constants, ends, strict=True)):
        total = _apply("sum", _constant(constant), *(found[k] for k in places))
        joint.append(add(f"log{c}", _apply("max", total, _constant(FLOOR))))
    for c, label in enumerate(labels):
        add(f"odds{c}", _apply("-", joint[c], _apply("max", *joint)))
        term = f'<NumericPredictor name="{prefix}odds{c}" coefficient="1"/>'
        tables.append(_block(f'RegressionTable intercept="0" targetCategory={label}', [term]))
    return [_block("LocalTransformations", fields), *tables]


def _outputs(classifier: AnyClassifier) -> Iterable[str]:
    """Yield the probabilities, and the answer."""
    for label in map(str, classifier.classes):
        name, kind = quoteattr(f"P({label})"), _kind("double")
        yield f'<OutputField name={name} feature="probability" value={quoteattr(label)} {kind}/>'
    if classifier.decision is None:
        name = quoteattr(f"predicted {classifier.variables[-1].name}")
        yield f'<OutputField name={name} feature="predictedValue" {_kind("string")}/>'


def _code(variable: Variable, name: str) -> str:
    """Return the derived field of a variable's code."""
    rule, n = ValueRule.of(variable), variable.n_states
    missing, unknown = n - 1 if variable.missing_state else n, n + 1
    if not is_number(variable):
        codes = dict.fromkeys(rule.markers, missing)
        codes.update((text, code) for code, texts in enumerate(rule.texts) for text in texts)
        return _derived(name, _mapped(codes, variable.raw_column, "string", missing, unknown), "string")
    # Numbers between the ranges are listed, too, since some evaluators take them as missing.
    bins, end = [], -np.inf
    for low, high, code in [*rule.ranges, (np.inf, np.inf, unknown)]:
        if np.nextafter(end, np.inf) < low:
            bins.append(_bin("openOpen", end, low, unknown))
        if low < np.inf:
            bins.append(_bin("closedClosed", low, high, code))
        end = high
    head = f"Discretize field={quoteattr(variable.raw_column)} {_others('string', missing, unknown)}"
    return _derived(name, _block(head, bins), "string")


def _bin(closure: str, low: float, high: float, code: int) -> str:
    ends = {"leftMargin": low, "rightMargin": high}
    own = " ".join(f'{key}="{end!r}"' for key, end in ends.items() if np.isfinite(end))
    return f'<DiscretizeBin binValue="{code}"><Interval closure="{closure}" {own}/></DiscretizeBin>'


def _mapped(
    values: Mapping[str, float], field: str, kind: str = "double", missing: int = 0, other: int = 0
) -> str:
    """Return a table from the texts of a field to codes or numbers."""
    texts = ((escape(key, {"\r": "&#13;"}), value) for key, value in values.items())
    rows = [f"<row><from>{text}</from><to>{value!r}</to></row>" for text, value in texts]
    pair = f'<FieldColumnPair field={quoteattr(field)} column="from"/>'
    head = f'MapValues outputColumn="to" {_others(kind, missing, other)}'
    return _block(head, [pair, _block("InlineTable", rows)])


def _others(kind: str, missing: int, other: int) -> str:
    return f'dataType="{kind}" mapMissingTo="{missing}" defaultValue="{other}"'


def _derived(name: str, expression: str, kind: str = "double") -> str:
    return f'<DerivedField name="{name}" {_kind(kind)}>{expression}</DerivedField>'


def _kind(kind: str) -> str:
    return f'optype="{"continuous" if kind == "double" else "categorical"}" dataType="{kind}"'


def _apply(function: str, *arguments: str) -> str:
    return f'<Apply function="{function}">{"".join(arguments)}</Apply>'


def _field(name: str) -> str:
    return f"<FieldRef field={quoteattr(name)}/>"


def _constant(value: float | str) -> str:
    kind = "string" if isinstance(value, str) else "double"
    return f'<Constant dataType="{kind}">{escape(f"{value}")}</Constant>'


def _block(head: str, parts: Iterable[str]) -> str:
    """Return an element with one of its parts in each line."""
    return "\n".join([f"<{head}>", *parts, f"</{head.split()[0]}>"])
