"""A spreadsheet (.xlsx) that predicts the rows typed into it, by formulas that Excel and LibreOffice know.

The sheet Rows has values and probabilities; Steps, for each row, the codes of its values and the numbers of
`ScoringPlan.cells`; Codes, texts and ranges with their codes; Tables, the classes and logarithms by code. States have
the codes 1, 2, ..., in their order. A missing value has the code after the last state, one that training never saw 0.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

import numpy as np

from milpbn.data.dataset import Variable, by_column
from milpbn.errors import InputError
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.scoring_plan import (
    FLOOR,
    IMPOSSIBLE,
    ScoringPlan,
    ValueRule,
    check_results,
    plans_of,
)
from milpbn.network.formats.xmlbif import FORBIDDEN
from milpbn.util.extras import import_extra

#: Most rows that can be typed in, formulas of them all, and formulas of a row.
MOST_ROWS, MOST_FORMULAS, MOST_COLUMNS = 200, 200_000, 16_000


def classifier_to_xlsx(classifier: AnyClassifier) -> bytes:
    """Return a spreadsheet with the probability of each class for up to `MOST_ROWS` rows; the first is an example.

    An empty cell is missing, and so are words such as NA. Values are matched as in an ONNX file, but texts have no
    white space around them. Unless the classifier has costs, the last column is the most probable class. Raises
    `InputError` if openpyxl is missing, a name or label holds a character that XML cannot, there is no class, or the
    network is too large.
    """
    openpyxl = import_extra("openpyxl", "formats", "A spreadsheet")
    check_results(classifier)
    plans, features = plans_of(classifier), classifier.variables[:-1]
    columns, classes = by_column(features), [f"{label}" for label in classifier.classes]
    book = _Book(openpyxl, list(columns))
    shares = [f"P({label})" for label in classes]
    predicted = [f"predicted {classifier.variables[-1].name}"] * (classifier.decision is None)
    book.append("Rows", [*columns, *shares, *predicted])
    book.append("Rows", [_example(features[places[0]]) for places in columns.values()])
    labels = book.append("Tables", classes)
    networks = [book.network(plan) for plan in plans]
    if len(book.steps) > MOST_COLUMNS:
        raise InputError(
            f"The spreadsheet would have {len(book.steps)} formulas for each row, more than {MOST_COLUMNS}; learn a "
            "network with fewer parents (--max-parents) or states."
        )
    letter = openpyxl.utils.get_column_letter
    first, last = letter(len(columns) + 1), letter(len(columns) + len(classes))
    results = [f"({'+'.join(own)})/{len(networks)}" for own in zip(*networks, strict=True)]
    if predicted:
        probabilities = f"{first}{{r}}:{last}{{r}}"
        results.append(f"INDEX({labels},1,MATCH(MAX({probabilities}),{probabilities},0))")
    # A program would read 5-9, typed into a cell without this format, as a day in September.
    texts = [
        k
        for k, places in enumerate(columns.values(), start=1)
        if not any(ValueRule.of(features[place]).ranges for place in places)
    ]
    filled = f"COUNTA($A{{r}}:${letter(len(columns))}{{r}})=0"
    for r in range(2, 2 + max(1, min(MOST_ROWS, MOST_FORMULAS // (len(book.steps) + 1)))):
        for k, formula in enumerate(book.steps, start=1):
            book.file["Steps"].cell(r, k, f'=IF({filled.replace("$", "Rows!$", 1)},"",{formula})'.format(r=r))
        for k, formula in enumerate(results, start=len(columns) + 1):
            book.file["Rows"].cell(r, k, f'=IF({filled},"",{formula})'.format(r=r))
        for k in texts:
            book.file["Rows"].cell(r, k).number_format = "@"
    content = BytesIO()
    book.file.save(content)
    return content.getvalue()


class _Book:
    """The sheets of a file, and the formulas of the sheet Steps, in which {r} is the row."""

    def __init__(self, openpyxl: Any, columns: list[str]) -> None:
        self.letter = openpyxl.utils.get_column_letter
        self.file = openpyxl.Workbook()
        self.file.active.title = "Rows"
        self.file["Rows"].freeze_panes = "A2"
        self.columns, self.steps = columns, list[str]()
        self.used = dict.fromkeys(["Rows", "Steps", "Codes", "Tables"], 0)
        for name in ("Steps", "Codes", "Tables"):
            self.file.create_sheet(name)

    def append(self, sheet: str, values: list[Any]) -> str:
        """Write values into the next row of a sheet, texts as texts, and return their range."""
        self.used[sheet] += 1
        for k, value in enumerate(values, start=1):
            if isinstance(value, str) and (found := FORBIDDEN.search(value)):
                raise InputError(
                    f"A name or label holds the character {found[0]!r}, which a spreadsheet cannot hold; rename it."
                )
            if isinstance(value, str):  # a program reads _x0041_ as A
                value = re.sub("_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", value)
            cell = self.file[sheet].cell(self.used[sheet], k, value)
            cell.data_type = "s" if isinstance(value, str) else cell.data_type  # not a formula
        return f"{sheet}!$A${self.used[sheet]}:${self.letter(len(values))}${self.used[sheet]}"

    def step(self, formula: str) -> str:
        """Add a formula for each row, and return the place of its result."""
        self.steps.append(formula)
        return f"{self.letter(len(self.steps))}{{r}}"

    def code(self, variable: Variable) -> str:
        """Add the code of a value, and return its place."""
        rule, n = ValueRule.of(variable), variable.n_states
        missing = n if variable.missing_state else n + 1
        texts = {text: k for k, own in enumerate(rule.texts, start=1) for text in own}
        # A program takes #N/A, typed or read, as an error.
        codes = {**{text: missing for text in rule.markers if text and text[0] != "#"}, **texts}
        value = f"Rows!{self.letter(self.columns.index(variable.raw_column) + 1)}{{r}}"
        known, places = self.append("Codes", list(codes)), self.append("Codes", list(codes.values()))
        text, number = f'SUMPRODUCT(EXACT({known},{value}&"")*{places})', "0"
        if rule.ranges:
            ends = [
                (*_end(float(np.nextafter(low, -np.inf)), above=True), *_end(high), k + 1)
                for low, high, k in rule.ranges
            ]
            low, has_low, high, has_high, own = (
                self.append("Codes", list(row)) for row in zip(*ends, strict=True)
            )
            above = f"(({value}>{low})+({value}={low})*{has_low})"
            number = f"SUMPRODUCT({above}*(({value}<{high})+({value}={high})*{has_high})*{own})"
        return self.step(f'IF({value}="",{missing},MAX({text},IF(ISNUMBER({value}),{number},0)))')

    def network(self, plan: ScoringPlan) -> list[str]:
        """Add the steps of one network, and return the places of its probabilities on other sheets."""
        codes = {i: self.code(plan.variables[i]) for i in plan.features}
        cells, constants, ends = plan.cells()
        numbers: list[str] = []
        for i, logs, sources in cells:
            if not sources:
                table = self.append("Tables", [logs[-1], *logs[:-1]])
                numbers.append(self.step(f"INDEX({table},1,{codes[i]}+1)"))
                continue
            terms, n = [], len(logs) - 1
            for s, others in enumerate(sources):
                own = f"OR({codes[i]}={s + 1},{codes[i]}={n + 1})" if s < n else f"{codes[i]}=0"
                total = "+".join([f"({logs[s]!r})", *(numbers[k] for k in others)])
                terms.append(self.step(f"IF({own},{total},{IMPOSSIBLE!r})"))
            span = f"{terms[0]}:{terms[-1]}"
            numbers.append(self.step(f"MAX({span})+LN(SUMPRODUCT(EXP({span}-MAX({span}))))"))
        logs_ = [
            self.step(f"MAX({FLOOR!r},{'+'.join([f'({constant!r})', *(numbers[k] for k in places)])})")
            for constant, places in zip(constants, ends, strict=True)
        ]
        span = f"{logs_[0]}:{logs_[-1]}"
        shares = [self.step(f"EXP({log}-MAX({span}))/SUMPRODUCT(EXP({span}-MAX({span})))") for log in logs_]
        return [f"Steps!{share}" for share in shares]


def _end(below: float, *, above: bool = False) -> tuple[float, int]:
    """Return where a range ends, and whether this number is in the range below it (or `above` it), as 0 or 1.

    Of the last number below the end and the first one above, it is the shorter: cells hold 15 or 16 digits, and
    programs compare no more of them.
    """
    first_above = float(np.nextafter(below, np.inf))
    is_below = len(repr(below)) <= len(repr(first_above))
    return min(max(below if is_below else first_above, -1e300), 1e300), int(is_below != above)


def _example(variable: Variable) -> Any:
    """Return a value of a column."""
    if variable.cuts is not None:
        return variable.cuts[0] if variable.cuts else 0.0
    return float(variable.states[0]) if variable.numeric and variable.states[0] != "?" else variable.states[0]
