"""SQL: a classifier as one standard SQL query, which returns class probabilities and the predicted class of every row.

The query names its steps: rows with numbers, their state codes, a table of log-probabilities per family, one step per
feature that multiplies tables and sums over the states of a missing value, and the posteriors. It needs window
functions, EXP and LN, which SQLite (3.35, with its mathematical functions), PostgreSQL and DuckDB have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from milpbn.data.dataset import MISSING, UNKNOWN, Variable, by_column
from milpbn.data.variables import states_of
from milpbn.errors import InputError
from milpbn.network.decisions import DO_NOT_KNOW
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.scoring_plan import ScoringPlan, TableFactor, ValueRule, plans_of

#: Stands for the logarithm of 0, which SQL has not; and what a sum with such a term is raised to.
IMPOSSIBLE, FLOOR = "-1E100", "-1E99"
#: Most parts of one UNION; SQLite allows 500.
_MOST_PARTS = 100
#: White space that is taken off the texts of values.
_BLANKS = " \t\n\xa0"


class _Relation(NamedTuple):
    """A step of the query: a function of features and possibly the class, for every row (``per_row``) or for all."""

    name: str
    features: tuple[int, ...]
    with_class: bool
    per_row: bool

    @property
    def columns(self) -> list[str]:
        """The columns of its arguments."""
        return [*(f"v{i}" for i in self.features), *(["class"] if self.with_class else [])]


def classifier_to_sql(classifier: AnyClassifier, table: str = "data") -> str:
    """Return the query that predicts the rows of a table.

    The query returns ``milpbn_row`` (1, 2, ...), the table's columns, ``predicted NAME`` with the predicted label, by
    the costs if the classifier has any, and ``P(LABEL)`` of every class. Values are matched by the rule of
    `milpbn.data.labels`, also numbers and truth values in columns of text; of times, and of intervals as texts, only
    the label itself is known. White space around a text may be blanks, tabs, line feeds and no-break spaces. Of an
    average, the query returns the mean of the networks' probabilities. The columns of the table, or view, have the
    names of the features. Raises `InputError` if a name or a label holds the character NUL, which SQL cannot hold, or a
    sum would be too large.
    """
    plans = plans_of(classifier)
    steps = [
        (
            "milpbn_samples",
            f"SELECT ROW_NUMBER() OVER () AS milpbn_row, source.*\nFROM {_name(table)} AS source",
        )
    ]
    for number, plan in enumerate(plans, start=1):
        steps += _network(plan, f"milpbn_{number}_")
    parts = [f"SELECT milpbn_row, class, p FROM milpbn_{k}_posterior" for k in range(1, len(plans) + 1)]
    steps.append(
        (
            "milpbn_posterior",
            f"SELECT milpbn_row, class, AVG(p) AS p\nFROM {_united(parts)}\nGROUP BY milpbn_row, class",
        )
    )
    target, classes = classifier.variables[-1].name, range(len(classifier.classes))
    wide = ", ".join(f"MAX(CASE WHEN class = {c} THEN p END) AS p{c}" for c in classes)
    steps.append(("milpbn_wide", f"SELECT milpbn_row, {wide}\nFROM milpbn_posterior\nGROUP BY milpbn_row"))
    # The number that must be the largest, and by how much another may be larger.
    value, less, best = [f"p{c}" for c in classes], "", ""
    if (decision := classifier.decision) is not None:
        expected = [
            " + ".join(f"p{d} * {_number(0.0 - costs[d])}" for d in classes)
            for costs in decision.differences.T
        ]
        value, less = [f"({sum_})" for sum_ in expected], f" - {_number(decision.tolerance)}"
        if decision.may_abstain:
            silent = " AND ".join(f"{value[-1]}{less} > {value[c]}" for c in classes)
            best = f"    WHEN {silent} THEN {_text(DO_NOT_KNOW)}\n"
    best += "\n".join(
        f"    WHEN {' AND '.join(f'{value[c]} >= {value[d]}{less}' for d in classes if d != c)} "
        f"THEN {_text(classifier.classes[c])}"
        for c in classes
    )
    shown = ",\n".join(f"  p{c} AS {_name(f'P({classifier.classes[c]})')}" for c in classes)
    with_ = ",\n".join(f"{name} AS (\n{query}\n)" for name, query in steps)
    return (
        f"WITH {with_}\n"
        f"SELECT milpbn_samples.*,\n  CASE\n{best}\n  END AS {_name(f'predicted {target}')},\n{shown}\n"
        "FROM milpbn_samples JOIN milpbn_wide ON milpbn_wide.milpbn_row = milpbn_samples.milpbn_row\n"
        "ORDER BY milpbn_samples.milpbn_row;\n"
    )


def _network(plan: ScoringPlan, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the steps of one network, the last of them its posteriors, as names and queries."""
    columns = by_column([plan.variables[i] for i in plan.features])
    codes = "".join(
        f",\n  {_code(plan.variables[i], k)} AS v{i}"
        for k, places in enumerate(columns.values())
        for i in (plan.features[place] for place in places)
    )
    cells = "".join(
        f",\n    {column} AS x{k}, TRIM(CAST({column} AS VARCHAR), {_text(_BLANKS)}) AS t{k}"
        for k, column in enumerate(f"milpbn_samples.{_name(name)}" for name in columns)
    )
    values = f"(\n  SELECT milpbn_row{cells}\n  FROM milpbn_samples\n) AS cells"
    yield f"{prefix}coded", f"SELECT milpbn_row{codes}\nFROM {values}"
    known = []
    for k, factor in enumerate(plan.factors):
        known.append(_Relation(f"{prefix}t{k}", factor.features, factor.table.shape[-1] > 1, False))
        yield f"{known[-1].name} ({', '.join([*known[-1].columns, 'p'])})", _values(factor)
    for k, step in enumerate(plan.steps):
        parts = [known[f] for f in step.factors]
        name = f"{prefix}m{k}"
        # Messages over the same features are added first, since the number of tables in a join is limited.
        alike: dict[tuple[str, ...], list[_Relation]] = {}
        for part in parts:
            alike.setdefault(tuple(part.columns) if part.per_row else (part.name,), []).append(part)
        merged = []
        for number, group in enumerate(alike.values()):
            one = group[0]
            if len(group) > 1:
                one = one._replace(name=f"{name}_{number}")
                yield one.name, _sum_of([_rows(part, prefix) for part in group], one.columns)
            merged.append(one)
        with_class = any(part.with_class for part in parts)
        known.append(_Relation(name, step.left, with_class, True))
        yield name, _summed_out(merged, step.feature, known[-1], prefix)
    # What has no class is the same for all classes.
    ends = [_rows(known[f], prefix) for f in plan.last if known[f].with_class]
    for k, column in enumerate(plan.columns):
        name, code = f"{prefix}c{k}", f"v{column.feature}"
        yield f"{name} ({code}, class, p)", _values(TableFactor((column.feature,), column.table[:-1]))
        ends.append(
            f"SELECT milpbn_row, class, p FROM {prefix}coded JOIN {name} ON {name}.{code} = {prefix}coded.{code}"
        )
    yield f"{prefix}joint", _sum_of(ends, ["class"])
    floor = f"CASE WHEN p < {FLOOR} THEN {FLOOR} ELSE p END"
    below = f"{floor} - MAX({floor}) OVER (PARTITION BY milpbn_row)"
    differences = f"(\n  SELECT milpbn_row, class, {below} AS p FROM {prefix}joint\n) AS differences"
    yield f"{prefix}odds", f"SELECT milpbn_row, class, {_exp('p')} AS p\nFROM {differences}"
    yield (
        f"{prefix}posterior",
        f"SELECT milpbn_row, class, p / SUM(p) OVER (PARTITION BY milpbn_row) AS p\nFROM {prefix}odds",
    )


def _values(factor: TableFactor) -> str:
    """Return a table with a row per entry; the code of a value without a state is `UNKNOWN`."""
    rows = []
    for codes, logs in factor.cells():
        for c, value in enumerate(logs):
            own = (*codes, *([c] if len(logs) > 1 else []))
            number = _number(value) if math.isfinite(value) else IMPOSSIBLE
            rows.append(f"({', '.join([*map(str, own), number])})")
    return "VALUES " + ", ".join(rows)


def _rows(relation: _Relation, prefix: str) -> str:
    """Return a query of a relation's rows for every sample."""
    columns = ", ".join(["milpbn_row", *relation.columns, "p"])
    source = relation.name if relation.per_row else f"{prefix}coded CROSS JOIN {relation.name}"
    return f"SELECT {columns} FROM {source}"


def _summed_out(parts: Sequence[_Relation], feature: int, result: _Relation, prefix: str) -> str:
    """Return the query of the sum over a feature of a product, as a logarithm."""
    coded = f"{prefix}coded"
    home: dict[str, str] = {}  # where a column is first
    joins = []
    for part in parts:
        conditions = [f"{part.name}.milpbn_row = {coded}.milpbn_row"] if part.per_row else []
        for column in part.columns:
            if column in home:
                conditions.append(f"{part.name}.{column} = {home[column]}")
            else:
                home[column] = f"{part.name}.{column}"
                if column != "class" and not part.per_row:
                    conditions.append(_agrees(f"{part.name}.{column}", f"{coded}.{column}"))
        joins.append(f"  JOIN {part.name} ON {' AND '.join(conditions) or '1 = 1'}")
    product = " + ".join(f"{part.name}.p" for part in parts)
    keys = [f"{coded}.milpbn_row", *(home[column] for column in result.columns)]
    names = ["milpbn_row", *result.columns]
    inner = ", ".join(f"{key} AS {name}" for key, name in zip(keys, names, strict=True))
    largest = f"MAX({product}) OVER (PARTITION BY {', '.join(keys)})"
    below = _exp("p - largest")
    return (
        f"SELECT {', '.join(names)}, MAX(largest) + LN(SUM({below})) AS p\nFROM (\n"
        f"  SELECT {inner}, {product} AS p, {largest} AS largest\n  FROM {coded}\n"
        + "\n".join(joins)
        + f"\n) AS products\nGROUP BY {', '.join(names)}"
    )


def _agrees(column: str, code: str) -> str:
    """Return the condition that a state is the sample's; a missing value, NULL, allows all but `UNKNOWN`."""
    return f"({column} = {code} OR ({code} IS NULL AND {column} >= 0))"


def _sum_of(queries: Sequence[str], columns: Sequence[str]) -> str:
    """Return the query that adds the values of several ones with the same columns."""
    keys = ", ".join(["milpbn_row", *columns])
    return f"SELECT {keys}, SUM(p) AS p\nFROM {_united(queries)}\nGROUP BY {keys}"


def _united(queries: Sequence[str]) -> str:
    """Return all rows of several queries as a derived table."""
    if len(queries) > _MOST_PARTS:
        parts = [queries[k : k + _MOST_PARTS] for k in range(0, len(queries), _MOST_PARTS)]
        queries = [f"SELECT * FROM {_united(part)}" for part in parts]
    return "(\n  " + "\n  UNION ALL ".join(queries) + "\n) AS parts"


def _code(variable: Variable, k: int) -> str:
    """Return the expression of the code of the value ``x{k}`` with the text ``t{k}``; see `milpbn.data.labels`."""
    rule = ValueRule.of(variable)
    missing = "NULL" if rule.missing == MISSING else rule.missing
    cases = [f"WHEN x{k} IS NULL OR t{k} IN ({', '.join(map(_text, rule.markers))}) THEN {missing}"]
    for code, texts in enumerate(rule.texts):
        cases.append(f"WHEN t{k} IN ({', '.join(map(_text, texts))}) THEN {code}")
    number = f"CAST(x{k} AS DOUBLE PRECISION)"
    numbers, other = [], UNKNOWN
    if variable.cuts is not None:
        numbers = [(f"{number} <= {_number(cut)}", code) for code, cut in enumerate(variable.cuts)]
        other = len(variable.cuts)
    elif variable.numeric and not states_of(variable).are_truth_values:
        numbers = [(_within(number, low, high), code) for low, high, code in rule.ranges]
    if numbers or other != UNKNOWN:
        whens = "".join(f" WHEN {condition} THEN {code}" for condition, code in numbers)
        chosen = f"CASE{whens} ELSE {other} END" if whens else str(other)
        cases.append(f"WHEN TRIM(t{k}, '+-.0123456789eE') = '' THEN {chosen}")
    return f"CASE {' '.join(cases)} ELSE {UNKNOWN} END"


def _within(number: str, low: float, high: float) -> str:
    """Return the condition that a number is in a range."""
    if low == high:
        return f"{number} = {_number(low)}"
    bounds = [f"{number} >= {_number(low)}"] * math.isfinite(low) + [
        f"{number} <= {_number(high)}"
    ] * math.isfinite(high)
    return " AND ".join(bounds) or "1 = 1"


def _exp(difference: str) -> str:
    """Return the exponential of a number of at most 0; PostgreSQL refuses EXP where it underflows."""
    return f"CASE WHEN {difference} < -700 THEN 0E0 ELSE EXP({difference}) END"


def _number(value: float) -> str:
    """Return a number with all digits, in the form of an approximate numeric literal."""
    mantissa, _, exponent = repr(float(value)).partition("e")
    return f"{mantissa}E{int(exponent or 0)}"


def _name(name: str) -> str:
    """Return a name as a delimited identifier."""
    _refuse_nul(name)
    return '"' + name.replace('"', '""') + '"'


def _text(label: str) -> str:
    """Return text as a literal."""
    _refuse_nul(label)
    return "'" + label.replace("'", "''") + "'"


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise InputError(
            f"The name or label {text!r} holds the character NUL, which SQL cannot hold; rename it."
        )
