"""SQL: a classifier as one standard SQL query, which returns class probabilities and the predicted class of every row.

The query names its steps: rows with numbers, their state codes, a table of log-probabilities per family, one step per
feature that multiplies tables and sums over the states of a missing value, and the posteriors. It needs window
functions, EXP and LN, which SQLite (3.35, with its mathematical functions), PostgreSQL and DuckDB have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from milpbn.data.dataset import MISSING, UNKNOWN, Variable, by_column
from milpbn.data.variables import states_of
from milpbn.errors import InputError
from milpbn.network.decisions import DO_NOT_KNOW
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.scoring_plan import (
    FLOOR,
    ScoringPlan,
    SumStep,
    ValueRule,
    check_results,
    plans_of,
)

#: Most parts of one UNION; SQLite allows 500.
_MOST_PARTS = 100
#: Names, in lower case, that SQLite takes off the columns of a derived table: it reads them as truth values.
_TRUTHS = ("false", "true")
#: White space that is taken off the texts of values.
_BLANKS = " \t\n\r\xa0\u2002\u2003\u2009\u202f\u3000"


def classifier_to_sql(classifier: AnyClassifier, table: str = "data") -> str:
    """Return the query that predicts the rows of a table.

    The query returns ``milpbn_row`` (1, 2, ...), the table's columns, ``predicted NAME`` with the predicted label, by
    the costs if the classifier has any, and ``P(LABEL)`` of every class. Values are matched by the rule of
    `milpbn.data.labels`, also numbers and truth values in columns of text; of times only the usual texts are known
    (`milpbn.data.labels.StateLabels.spellings`), and of intervals as texts only the label itself. White space around a
    text may be blanks (wide, thin and no-break ones, too), tabs and ends of lines. Of an average, the query returns the
    mean of the networks' probabilities. The columns of the table, or view, have the names of the features. The values
    of a feature called ``true`` or ``false`` are also returned as ``milpbn_true`` or ``milpbn_false``. Raises
    `InputError` if a name or a label holds the character NUL, which SQL cannot hold, names differ in case only or are
    those of results, or a sum would be too large.
    """
    check_results(classifier)
    plans = plans_of(classifier)
    own = ("milpbn_row", *map(_column, _TRUTHS))
    known = {name: f"{name} of the query" for name in own}
    names = [variable.raw_column for plan in plans for variable in plan.variables[:-1]]
    for name in names:
        if (other := known.setdefault(name.lower(), name)) != name:
            raise InputError(
                f"SQL does not tell the columns {other!r} and {name!r} apart; rename one of them."
            )
    copies = [
        f", source.{_name(name)} AS {_column(name)}" for name in dict.fromkeys(names) if _is_truth(name)
    ]
    numbered = f"SELECT ROW_NUMBER() OVER () AS milpbn_row, source.*{''.join(copies)}"
    steps = [("milpbn_samples", f"{numbered}\nFROM {_name(table)} AS source")]
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
    value, less, best = [f"milpbn_wide.p{c}" for c in classes], "", ""
    if (decision := classifier.decision) is not None:
        expected = [
            " + ".join(f"milpbn_wide.p{d} * {_number(0.0 - costs[d])}" for d in classes)
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
    shown = ",\n".join(f"  milpbn_wide.p{c} AS {_name(f'P({classifier.classes[c]})')}" for c in classes)
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
        for k, column in enumerate(f"milpbn_samples.{_column(name)}" for name in columns)
    )
    values = f"(\n  SELECT milpbn_row{cells}\n  FROM milpbn_samples\n) AS cells"
    known = [states_of(plan.variables[plan.features[places[0]]]) for places in columns.values()]
    wanted = [_number_of(k, known[k].are_truth_values) for k in range(len(columns)) if f" n{k} " in codes]
    if numbers := "".join(f",\n    {number}" for number in wanted):
        # Without a window function, SQLite would put these expressions in place of each of their names.
        values = f"(\n  SELECT cells.*, ROW_NUMBER() OVER () AS once{numbers}\n  FROM {values}\n) AS cells"
    yield f"{prefix}coded", f"SELECT milpbn_row{codes}\nFROM {values}"
    steps = plan.steps
    for k, step in enumerate(steps):
        yield f"{prefix}t{k} ({', '.join([f'v{step.feature}', *_columns(step), 'p'])})", _values(step)
        # Results over the same features are added first, since the number of tables in a join is limited.
        alike: dict[tuple[int, ...], list[int]] = {}
        for r in step.results:
            alike.setdefault(steps[r].left, []).append(r)
        parts = []
        for number, group in enumerate(alike.values()):
            columns_ = _columns(steps[group[0]])
            parts.append((f"{prefix}m{k}_{number}", columns_))
            queries = [f"SELECT {', '.join(['milpbn_row', *columns_, 'p'])} FROM {prefix}m{r}" for r in group]
            yield parts[-1][0], _sum_of(queries, columns_)
        yield f"{prefix}m{k}", _result(step, parts, prefix, k)
    ends = [f"SELECT milpbn_row, class, p FROM {prefix}m{k}" for k, step in enumerate(steps) if not step.left]
    ends += [
        f"SELECT milpbn_row, {c} AS class, {_number(value)} AS p FROM {prefix}coded"
        for c, value in enumerate(plan.constants.tolist())
    ]
    yield f"{prefix}joint", _sum_of(ends, ["class"])
    floor = f"CASE WHEN p < {_number(FLOOR)} THEN {_number(FLOOR)} ELSE p END"
    below = f"{floor} - MAX({floor}) OVER (PARTITION BY milpbn_row)"
    differences = f"(\n  SELECT milpbn_row, class, {below} AS p FROM {prefix}joint\n) AS differences"
    yield f"{prefix}odds", f"SELECT milpbn_row, class, {_exp('p')} AS p\nFROM {differences}"
    yield (
        f"{prefix}posterior",
        f"SELECT milpbn_row, class, p / SUM(p) OVER (PARTITION BY milpbn_row) AS p\nFROM {prefix}odds",
    )


def _columns(step: SumStep) -> list[str]:
    """Return the columns of the arguments of a step's result."""
    return [*(f"v{i}" for i in step.left), "class"]


def _values(step: SumStep) -> str:
    """Return a table with a row per entry, with the codes of values that are missing or without a state."""
    rows = []
    sizes = [len(step.table) - (not step.results), *step.table.shape[1:-1]]
    for index in np.ndindex(step.table.shape):
        codes = [k if k < size - 1 else UNKNOWN for k, size in zip(index[:-1], sizes, strict=True)]
        if not step.results and index[0] == len(step.table) - 2:
            codes[0] = MISSING
        rows.append(f"({', '.join([*map(str, codes), str(index[-1]), _number(float(step.table[index]))])})")
    return "VALUES " + ", ".join(rows)


def _result(step: SumStep, parts: Sequence[tuple[str, list[str]]], prefix: str, k: int) -> str:
    """Return the query of a step's result for every row; `parts` are names and columns of what it multiplies."""
    coded, table, code = f"{prefix}coded", f"{prefix}t{k}", f"v{step.feature}"
    names = ["milpbn_row", *_columns(step)]
    agree = [_agrees(f"{table}.v{i}", f"{coded}.v{i}") for i in step.left]
    keys = [f"{coded}.milpbn_row", *(f"{table}.{name}" for name in names[1:])]
    if not step.results:
        on = " AND ".join([f"{table}.{code} = COALESCE({coded}.{code}, {MISSING})", *agree])
        return f"SELECT {', '.join(keys)}, p\nFROM {coded} JOIN {table} ON {on}"
    joins = [f"  JOIN {table} ON {' AND '.join([_agrees(f'{table}.{code}', f'{coded}.{code}'), *agree])}"]
    for part, columns in parts:
        same = [f"{part}.{column} = {table}.{column}" for column in columns]
        joins.append(f"  JOIN {part} ON {' AND '.join([f'{part}.milpbn_row = {coded}.milpbn_row', *same])}")
    product = " + ".join(f"{part}.p" for part in (table, *(part for part, _ in parts)))
    inner = ", ".join(f"{key} AS {name}" for key, name in zip(keys, names, strict=True))
    largest = f"MAX({product}) OVER (PARTITION BY {', '.join(keys)})"
    return (
        f"SELECT {', '.join(names)}, MAX(largest) + LN(SUM({_exp('p - largest')})) AS p\nFROM (\n"
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
    """Return the expression of the code of the value ``x{k}``, with text ``t{k}`` and number ``n{k}``."""
    rule = ValueRule.of(variable)
    missing = "NULL" if rule.missing == MISSING else rule.missing
    cases = [f"WHEN x{k} IS NULL OR t{k} IN ({', '.join(map(_text, rule.markers))}) THEN {missing}"]
    for code, texts in enumerate(rule.texts):
        cases.append(f"WHEN t{k} IN ({', '.join(map(_text, texts))}) THEN {code}")
    if rule.ranges:
        chosen = " ".join(
            f"WHEN {_within(f'n{k}', low, high)} THEN {code}" for low, high, code in rule.ranges
        )
        cases.append(f"WHEN n{k} IS NOT NULL THEN CASE {chosen} ELSE {UNKNOWN} END")
    return f"CASE {' '.join(cases)} ELSE {UNKNOWN} END"


def _number_of(k: int, bits: bool) -> str:
    """Return the column ``n{k}``: the number that a value is, else NULL; with `bits`, only 0 and 1 matter.

    SQLite casts 10-20 to 10 and - to 0, so the form of the text is checked, without the signs of exponents.
    """
    form = f"REPLACE(REPLACE(UPPER(t{k}), 'E-', 'E'), 'E+', 'E')"
    forms = [f"TRIM({form}, '+-.E0123456789') = ''", f"TRIM({form}, '+-.') NOT LIKE 'E%'"]
    forms += [f"TRIM({form}, '+-.') <> ''"]
    forms += [f"{form} NOT LIKE '{bad}'" for bad in ("_%-%", "_%+%", "%.%.%", "%E%.%", "%E%E%", "%E")]
    # The text of a number may have fewer digits than the number; white space may hinder a cast. PostgreSQL does not
    # cast its truth values.
    number = f"CAST(t{k} AS DOUBLE PRECISION)"
    if not bits:
        exact = f"CAST(x{k} AS DOUBLE PRECISION)"
        number = f"CASE WHEN t{k} = CAST(x{k} AS VARCHAR) THEN {exact} ELSE {number} END"
    return f"CASE WHEN {' AND '.join(forms)} THEN {number} END AS n{k}"


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


def _is_truth(name: str) -> bool:
    """Return whether SQLite reads a name as a truth value."""
    return name.lower() in _TRUTHS


def _column(name: str) -> str:
    """Return the name that a feature's column has in the query's first step."""
    return f"milpbn_{name.lower()}" if _is_truth(name) else _name(name)


def _name(name: str) -> str:
    """Return a name as a delimited identifier."""
    return _quoted(name, '"')


def _text(label: str) -> str:
    """Return text as a literal."""
    return _quoted(label, "'")


def _quoted(text: str, mark: str) -> str:
    if "\0" in text:
        raise InputError(
            f"The name or label {text!r} holds the character NUL, which SQL cannot hold; rename it."
        )
    return mark + text.replace(mark, 2 * mark) + mark
