"""Local scores of parent sets in the text formats of GOBNILP and BLIP (``.jkl``) and of URLearning (``.pss``).

The first line of a .jkl file has the number of variables. Every variable has a line with its name and the number of its
parent sets, and then one line for each of them: score, number of parents, parents. In a .pss file, a line ``VAR name``
comes before the parent sets of a variable, which have no number of parents; lines that begin with ``META`` say how the
scores were made, and are left out, also at the beginning of a .jkl file. Words are separated by white space, and lines
that begin with ``#`` are comments.

A variable's parent sets are all that it may have: sets that are not listed, or have the score ``-inf``, are excluded.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from milpbn.data.labels import number_of
from milpbn.errors import InputError
from milpbn.problem.candidates import Candidates
from milpbn.problem.local import LocalScores
from milpbn.problem.problem import LARGEST_TERM
from milpbn.util.atomic import atomic_write_text
from milpbn.util.jsonable import read_text, unusable
from milpbn.util.text_lines import content_lines

#: Scores of parent sets that are excluded, in lower case.
EXCLUDED = ("-inf", "-infinity")
#: Numbers of lines, and their words.
Lines: TypeAlias = Iterator[tuple[int, list[str]]]
#: The parent sets of each variable: number of the line, score, parents.
Listed: TypeAlias = dict[str, list[tuple[int, float, list[str]]]]


def write_jkl(local: LocalScores, path: str | os.PathLike[str]) -> None:
    """Write local scores atomically, with all digits.

    White space in names becomes ``_``, because names are words in this format. InputError if a name is empty or begins
    with ``#``, two names become the same word, or the file cannot be written.
    """
    candidates = local.candidates
    words = [re.sub(r"\s", "_", name) for name in candidates.names]
    for name, word in zip(candidates.names, words, strict=True):
        if not word or word.startswith("#"):
            raise InputError(f"A .jkl file cannot hold the name {name!r}; rename the column.")
        if words.count(word) > 1:
            raise InputError(
                f"Two columns would be called {word!r} in a .jkl file, which has no white space in names; rename one."
            )
    lines = [str(len(words))]
    for i, (word, sets) in enumerate(zip(words, candidates.sets, strict=True)):
        lines.append(f"{word} {len(sets)}")
        scores = local.scores[candidates.offsets[i] : candidates.offsets[i + 1]].tolist()
        lines += [
            " ".join([repr(score), str(len(members)), *(words[j] for j in members)])
            for score, members in zip(scores, sets, strict=True)
        ]
    atomic_write_text(path, "\n".join(lines) + "\n")


def read_jkl(path: str | os.PathLike[str]) -> LocalScores:
    """Read local scores; the InputError for a file that is not of this format names the line.

    Parents may be names, or the numbers of variables from 0 if the names are these numbers.
    """
    text = read_text(path, "file of local scores")
    lines = [(number, line.split()) for number, line in content_lines(text)]
    said = list(itertools.dropwhile(lambda line: line[1][0].upper() == "META", lines))
    first = said[0][1][0] if said else ""
    pss = first.upper() == "VAR" or (len(said) < len(lines) and not first.isdecimal())
    try:
        return _assemble((_pss if pss else _jkl)(iter(said)))
    except InputError as error:
        raise unusable("file of local scores", path, error) from None


def _jkl(lines: Lines) -> Listed:
    """Return the parent sets in the lines of a .jkl file by variable."""
    number, words = _next(lines)
    if len(words) != 1 or not words[0].isdecimal() or len(words[0]) > 6 or int(words[0]) == 0:
        raise InputError(f"Line {number} does not have the number of variables.")
    listed: Listed = {}
    for _ in range(int(words[0])):
        number, words = _next(lines)
        if len(words) != 2 or not words[1].isdecimal() or len(words[1]) > 12:
            raise InputError(
                f"Line {number} does not have a variable, without white space, and the number of its parent sets."
            )
        if words[0] in listed:
            raise InputError(f"Line {number} has the variable {words[0]!r} a second time.")
        listed[words[0]] = [_row(*_next(lines)) for _ in range(int(words[1]))]
    extra = next(lines, None)
    if extra is not None:
        raise InputError(f"Line {extra[0]} comes after the last parent set.")
    return listed


def _pss(lines: Lines) -> Listed:
    """Return the parent sets in the lines of a .pss file by variable."""
    listed: Listed = {}
    for number, words in lines:
        if words[0].upper() == "META":
            continue
        if words[0].upper() == "VAR":
            if len(words) != 2 or words[1] in listed:
                raise InputError(f"Line {number} does not have the name of another variable.")
            rows = listed[words[1]] = []
        elif not listed:
            raise InputError(f"Line {number} comes before the first variable.")
        else:
            rows.append((number, _score(number, words[0]), words[1:]))
    if not listed:
        raise InputError("It has no variable (VAR).")
    return listed


def _assemble(listed: Listed) -> LocalScores:
    """Return the parent sets; InputError if a variable has none, a parent is no other one, or a set occurs twice."""
    index = {name: i for i, name in enumerate(listed)}
    sets: list[tuple[tuple[int, ...], ...]] = []
    scores: list[float] = []
    for name, rows in listed.items():
        if not rows:
            raise InputError(f"{name!r} has no parent set, so that no structure has a score.")
        found: dict[tuple[int, ...], float] = {}
        for number, score, parents in rows:
            unknown = [parent for parent in parents if parent not in index or parent == name]
            members = tuple(sorted({index[parent] for parent in parents if parent in index}))
            if unknown:
                raise InputError(
                    f"Line {number} has a parent of {name!r} that is no other variable: {unknown[0]!r}."
                )
            if len(members) < len(parents):
                raise InputError(f"Line {number} names a parent of {name!r} twice.")
            if members in found:
                raise InputError(f"Line {number} has a parent set of {name!r} a second time.")
            found[members] = score
        allowed = {members: score for members, score in found.items() if score > -math.inf}
        if not allowed:
            raise InputError(f"All parent sets of {name!r} have the score -inf; at least one needs a number.")
        sets.append(tuple(allowed))
        scores += allowed.values()
    return LocalScores(Candidates(tuple(listed), tuple(sets)), np.array(scores))


def _next(lines: Lines) -> tuple[int, list[str]]:
    found = next(lines, None)
    if found is None:
        raise InputError("It ends before the last parent set; it seems cut off.")
    return found


def _row(number: int, words: list[str]) -> tuple[int, float, list[str]]:
    score = _score(number, words[0])
    if len(words) < 2 or words[1] != str(len(words) - 2):
        raise InputError(f"Line {number} does not have a score, the number of parents, and these parents.")
    return number, score, words[2:]


def _score(number: int, word: str) -> float:
    if word.lower() in EXCLUDED:
        return -math.inf
    score = number_of(word)
    if not math.isfinite(score):
        raise InputError(
            f"Line {number} begins with {word[:40]!r}, which is not a finite score; give a number, or -inf to exclude "
            "the parent set."
        )
    if abs(score) >= LARGEST_TERM:
        raise InputError(
            f"Line {number} begins with the score {word[:40]}; its size must be below {LARGEST_TERM:g}."
        )
    return score
