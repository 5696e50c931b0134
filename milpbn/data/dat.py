"""The data files of GOBNILP (``.dat``): discrete columns of words.

The first line has the names of the columns, the second one the arities (numbers of states), and every other line is a
row. Words are separated by white space, and lines that begin with ``#`` are comments. Older files have the number of
columns in a line of its own before the names, and files of BLIP the number of rows in one before the rows.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from milpbn.data.dataset import Dataset
from milpbn.data.labels import MISSING_MARKERS, number_of
from milpbn.data.raw_table import text_frame
from milpbn.errors import InputError
from milpbn.util.text_lines import content_lines


def parse_dat(text: str, where: str) -> pd.DataFrame:
    """Parse the text of a .dat file.

    The columns are categorical; their categories are the values that occur, numbers by size and others as text. Raises
    `InputError` if a line is malformed, the number of rows is another one, or a column has more values than its arity;
    the message names the line or the column.
    """
    lines = [(number, line.split()) for number, line in content_lines(text)]
    if len(lines) > 2 and lines[0][1] == [str(len(lines[1][1]))] and len(lines[1][1]) > 1:
        del lines[0]
    if len(lines) < 2:
        raise InputError(f"The file {where} needs a line with names and a line with arities.")
    (_, names), (second, arities), *rows = lines
    if len(arities) != len(names) or not all(word.isdecimal() and 0 < len(word) < 10 for word in arities):
        raise InputError(
            f"Line {second} of {where} does not have the arities of {len(names)} columns, which GOBNILP's .dat files "
            "have in their second line; if it is another kind of table, save it as .csv."
        )
    if len(rows) > 1 and len(names) > 1 and len(rows[0][1]) == 1 and rows[0][1][0].isdecimal():
        (number, (declared,)), *rows = rows
        if declared != str(len(rows)):
            raise InputError(
                f"Line {number} of {where} says that there are {declared} rows, but {len(rows)} follow; is it cut off?"
            )
    for number, words in rows:
        if len(words) != len(names):
            raise InputError(f"Line {number} of {where} has {len(words)} values for {len(names)} columns.")
    columns = []
    for position, (name, arity) in enumerate(zip(names, arities, strict=True)):
        cells = np.array([words[position] for _, words in rows], dtype=object)
        cells[[cell in MISSING_MARKERS for cell in cells]] = None
        values = sorted({cell for cell in cells if cell is not None}, key=_order)
        if len(values) > int(arity):
            raise InputError(f"Column {name!r} of {where} has {len(values)} values, but the arity {arity}.")
        columns.append(pd.Categorical(cells, categories=values))
    return text_frame(names, columns)


def _order(label: str) -> tuple[bool, float, str]:
    """Sort numbers by size, before other labels."""
    number = number_of(label)
    is_text = number != number
    return is_text, 0.0 if is_text else number, label


def format_dat(data: Dataset) -> str:
    """Return discrete data as the text of a .dat file.

    White space in names becomes ``_``. The states of a column with a label that is no word, such as ``(-inf, 48.5]``,
    are written as codes from 0; a comment lists them. Raises `InputError` if two names become the same word, a value
    has no state, or the rows have weights.
    """
    names = [re.sub(r"\s", "_", name) for name in data.names]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(
            f"Two columns would be called {repeated[0]!r} in a .dat file, where names have no white space; rename one."
        )
    if (data.weights != 1).any():
        raise InputError("A .dat file cannot hold weights of rows; write one row for each sample.")
    if (data.codes < 0).any():
        raise InputError("A .dat file cannot hold missing values; drop these rows.")
    comments, columns = ["# Written by milpbn."], []
    for name, variable, codes in zip(names, data.variables, data.codes.T, strict=True):
        labels = list(variable.states)
        if not all(re.fullmatch(r"[^\s#]\S*", label) and label not in MISSING_MARKERS for label in labels):
            listed = ", ".join(f"{code} = {label!r}" for code, label in enumerate(labels))
            comments.append(f"# {name}: {listed}")
            labels = [str(code) for code in range(len(labels))]
        columns.append(np.array(labels, dtype=object)[codes])
    # A first word that begins with # would be read as a comment.
    if names[0].startswith("#"):
        raise InputError(f"The first name in a .dat file cannot be {names[0]!r}; rename the column.")
    arities = [str(variable.n_states) for variable in data.variables]
    rows = [" ".join(row) for row in zip(*columns, strict=True)]
    return "\n".join([*comments, " ".join(names), " ".join(arities), *rows]) + "\n"
