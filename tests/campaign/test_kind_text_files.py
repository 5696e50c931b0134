"""Tables in random dialects of text files: read back cell by cell, or a sentence says what may be wrong.

The writer below knows nothing of the reader: it groups digits, quotes cells and encodes text by itself and by the csv
module.
"""

from __future__ import annotations

import csv
import io
import math
import random
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from campaign.share import Share
from milpbn import read_table
from milpbn.data import Dataset, Table, read_samples
from milpbn.errors import InputError, MilpbnWarning

NAMES = [
    "dose", "Groesse, cm", "größe", "1st", "a b", "x-1", "Temp. (°C)", "it's", "2001", "id code", "P|Q", "n;m",
]  # fmt: skip
WORDS = [
    "low", "high", "A1", "B2", "1.2.3", "1.2.2020", "12:30", "5+", "ja, sehr", "größer", "it's", 'say "no"', "2-",
]  # fmt: skip
#: Words of the sentences about lines and separators.
STRUCTURE = ("separated by", "The first line", "seems to hold units")
MISSING = ["", "?", "NA"]


@dataclass
class Dialect:
    """How a table is written."""

    separator: str
    decimal: str
    thousands: str
    encoding: str
    line_end: str
    quoting: Literal[0, 1]
    header: bool
    sep_line: bool
    minus: str
    plus: bool
    repeated: bool

    @classmethod
    def draw(cls, rng: random.Random) -> Dialect:
        decimal = rng.choice(".,")
        separator = rng.choice(",,;;;\t|" if decimal == "." else ";;;\t|,")
        return cls(
            separator=separator,
            decimal=decimal,
            thousands=rng.choice(
                ["", "", "," if decimal == "." else ".", "'", "\u2019", " ", "\u00a0", "\u202f"]
            ),
            encoding=rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"]),
            line_end=rng.choice(["\n", "\r\n", "\r"]),
            quoting=csv.QUOTE_ALL if rng.random() < 0.3 else csv.QUOTE_MINIMAL,
            header=rng.random() < 0.75,
            sep_line=rng.random() < 0.1,
            minus=rng.choice("--\u2212\u2013"),
            plus=rng.random() < 0.1,
            repeated=rng.random() < 0.1,
        )


@dataclass
class Column:
    """A column of numbers as plain texts or of labels; an empty text is a missing value."""

    name: str
    numbers: bool
    plain: list[str]
    before: str = ""
    after: str = ""
    exponent: str = ""
    grouped: bool = True
    cells: list[str] = field(default_factory=list)

    def write(self, dialect: Dialect, rng: random.Random) -> Column:
        self.cells = [
            rng.choice(MISSING) if not text else self._number(text, dialect) if self.numbers else text
            for text in self.plain
        ]
        return self

    def _number(self, text: str, dialect: Dialect) -> str:
        digits = text.lstrip("-")
        whole, point, fraction = digits.partition(".")
        if self.grouped and dialect.thousands and len(whole) > 3 and not self.exponent:
            head = len(whole) % 3 or 3
            whole = dialect.thousands.join(
                [whole[:head], *(whole[k : k + 3] for k in range(head, len(whole), 3))]
            )
        body = whole + (dialect.decimal if point else "") + fraction
        if self.exponent:
            body += f"{self.exponent}+00"
        sign = dialect.minus if text.startswith("-") else "+" if dialect.plus else ""
        return f"{sign}{self.before}{body}{self.after}"


def draw_column(rng: random.Random, name: str, rows: int) -> Column:
    """A column of numbers of some size and precision, or of labels."""
    if rng.random() < 0.3:
        labels = rng.sample(WORDS, rng.randint(2, 4))
        return Column(name, False, [rng.choice(labels) for _ in range(rows)])
    decimals, scale = rng.choice([0, 1, 2, 3, 3]), 10 ** rng.uniform(0, 6)
    low = -scale if rng.random() < 0.3 else 0.0
    plain = [f"{rng.uniform(low, scale):.{decimals}f}" for _ in range(rows)]
    if rng.random() < 0.2:  # few different values
        plain = [rng.choice(plain[:6]) for _ in range(rows)]
    if rng.random() < 0.2:
        plain = [text if rng.random() < 0.9 else "" for text in plain]
    kind = rng.random()
    before = rng.choice(["$", "€ ", "CHF "]) if kind < 0.1 else ""
    after = rng.choice(["%", " %", " €"]) if 0.1 < kind < 0.2 else ""
    exponent = rng.choice(["E", "D"]) if kind > 0.9 and decimals else ""
    return Column(
        name,
        True,
        [t.removeprefix("-") if float(t or 0) == 0 else t for t in plain],
        before,
        after,
        exponent,
        rng.random() < 0.5,
    )


def draw_table(rng: random.Random) -> list[Column]:
    """Features and a class of few labels."""
    rows = rng.choice([8, 25, 60])
    names = rng.sample(NAMES, rng.randint(1, 5))
    return [
        *(draw_column(rng, name, rows) for name in names),
        Column("y", False, [rng.choice("pq") for _ in range(rows)]),
    ]


def write(path: Path, columns: list[Column], dialect: Dialect, rng: random.Random) -> None:
    """Write a table as the dialect says."""
    lines = [
        list(cells) for cells in zip(*(column.write(dialect, rng).cells for column in columns), strict=True)
    ]
    names = [column.name for column in columns]
    if dialect.header:
        if dialect.repeated:
            lines.insert(len(lines) // 2, names)
        lines.insert(0, names)
    text = io.StringIO(newline="")
    csv.writer(
        text, delimiter=dialect.separator, quoting=dialect.quoting, lineterminator=dialect.line_end
    ).writerows(lines)
    first = f"sep={dialect.separator}{dialect.line_end}" if dialect.sep_line else ""
    path.write_bytes((first + text.getvalue()).encode(dialect.encoding))


def read(path: Path) -> tuple[Table | None, list[str]]:
    """Return the table, None if it is refused, and what was said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            table = read_table(path, missing="state")
        except InputError as error:
            return None, [str(error)]
    texts = [str(warning.message) for warning in said if issubclass(warning.category, MilpbnWarning)]
    return table, [*texts, *table.notes]


def same(cell: object, plain: str, numbers: bool) -> bool:
    """Whether a cell was read as it was written."""
    missing = cell is None or cell != cell or str(cell).strip() in MISSING
    if missing or not plain:
        return missing and not plain
    if not numbers:
        return str(cell).strip() == plain
    try:
        return math.isclose(float(str(cell)), float(plain), rel_tol=1e-12)
    except ValueError:
        return False


def compare(table: Table, columns: list[Column], dialect: Dialect, said: list[str]) -> tuple[str, str]:
    """Return what became of a table, and the text of a failure: something is different, and nothing says so."""
    names = (
        [c.name for c in columns]
        if dialect.header
        else [*(f"x{k + 1}" for k in range(len(columns) - 1)), "class"]
    )
    found = [name for name in names if name in table.frame or name in table.left_out]
    sentences = " ".join(said)
    if len(found) < len(names) or table.n_rows != len(columns[0].plain):
        told = any(word in sentences for word in STRUCTURE)
        return "other columns or rows, said", "" if told else f"{list(table.frame)} and {table.n_rows} rows"
    outcome = "equal"
    for name, column in zip(names, columns, strict=True):
        if name in table.left_out:
            continue
        different = [
            (str(cell), plain)
            for cell, plain in zip(table.frame[name], column.plain, strict=True)
            if not same(cell, plain, column.numbers)
        ]
        if different:
            outcome = "differs, said"
            if f"olumn {name!r}" not in sentences:
                return (
                    outcome,
                    f"column {name!r}: {different[:3]}, written {column.cells[:3]}; said: {sentences}",
                )
    return outcome, ""


def test_tables_in_random_dialects_are_read_as_they_were_written(share: Share, tmp_path: Path) -> None:
    """Reading gives the cells, a sentence that names the column, or a refusal; and so does prediction."""
    for seed in share.seeds():
        rng = random.Random(seed)
        columns, dialect = draw_table(rng), Dialect.draw(rng)
        path = tmp_path / f"{seed}.csv"
        write(path, columns, dialect, rng)
        share.tally.tried["tables"] += 1
        table, said = read(path)
        if table is None:
            share.tally.outcomes["refused"] += 1
        else:
            outcome, failure = compare(table, columns, dialect, said)
            share.tally.outcomes[outcome] += 1
            if failure:
                share.note("silent difference", f"seed {seed}", f"{dialect}: {failure}")
            elif outcome == "equal" and dialect.header:
                predict(share, seed, rng, table, columns, tmp_path / f"{seed}-new.csv")
        path.unlink()
    equal = share.tally.outcomes["equal"]
    assert equal >= 0.6 * share.tally.tried["tables"], share.tally.outcomes
    share.finish()


def predict(
    share: Share, seed: int, rng: random.Random, table: Table, columns: list[Column], path: Path
) -> None:
    """The same rows in another dialect have the same codes, or a sentence says why not."""
    try:
        known: Dataset = table.dataset()
    except InputError:  # one class
        return
    dialect = Dialect.draw(rng)
    write(path, columns, dialect, rng)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            samples = read_samples(path, known.variables)
        except InputError:
            share.tally.outcomes["prediction refused"] += 1
            return
        finally:
            path.unlink()
    share.tally.tried["predictions"] += 1
    if samples.codes.shape == known.codes.shape and (samples.codes == known.codes).all():
        share.tally.outcomes["prediction equal"] += 1
        return
    share.tally.outcomes["prediction differs, said"] += 1
    sentences = " ".join([*(str(warning.message) for warning in said), *samples.notes])
    if len(samples.codes) != len(known.codes):
        if not any(word in sentences for word in STRUCTURE):
            share.note("silent rows in prediction", f"seed {seed}", f"{dialect}: {len(samples.codes)} rows")
        return
    different = [
        v.name
        for v, a, b in zip(known.variables, samples.codes.T, known.codes.T, strict=True)
        if (a != b).any()
    ]
    if any(f"{name!r}" not in sentences for name in different):
        share.note(
            "silent difference in prediction", f"seed {seed}", f"{dialect}: {different}; said: {sentences}"
        )
