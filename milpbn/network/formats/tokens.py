"""Tokens of the text formats of networks: BIF, Hugin's and Netica's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from milpbn.data.labels import number_of
from milpbn.errors import InputError

#: Comments as regular expressions, each with that of what begins one: those of C++, and those of Hugin.
CPP, PERCENT = (r"//[^\n]*|/\*.*?\*/", r"//|/\*"), (r"%[^\n]*", "%")


@dataclass(frozen=True)
class Token:
    """A word, quoted text or mark, and the white space before it: one blank for line breaks and comments."""

    text: str
    line: int
    before: str
    quoted: bool = False

    def is_mark(self, *marks: str) -> bool:
        """Return whether this is one of the marks and not quoted text."""
        return self.text in marks and not self.quoted

    def refused(self, where: str) -> InputError:
        """Return the error that this stands where something else is expected."""
        return InputError(f"Line {self.line} has {self.text[:40]!r} {where}.")


END = Token("", 0, " ", quoted=True)


class TokenReader:
    """The tokens of a text with comments of one kind, and the position of the next one."""

    def __init__(self, text: str, comments: tuple[str, str] = CPP) -> None:
        self.tokens = list(_tokens(text, *comments))
        self.position = 0

    def next(self) -> Token:
        """Return the next token."""
        if self.position == len(self.tokens):
            raise InputError("It ends within a block; it seems cut off.")
        self.position += 1
        return self.tokens[self.position - 1]

    def until_semicolon(self, *, nested: bool = False) -> list[Token]:
        """Return the tokens up to a semicolon; if `nested`, to one outside of parentheses, without braces."""
        found: list[Token] = []
        opened = 0
        while not (token := self.next()).is_mark(";") or (nested and opened > 0):
            if nested and token.is_mark("{", "}"):
                raise token.refused("where ';' is expected")
            opened += token.is_mark("(") - token.is_mark(")")
            found.append(token)
        return found


def _tokens(text: str, comment: str, start: str) -> Iterator[Token]:
    pattern = re.compile(
        rf"""\s+|{comment}|(?P<text>"(?:[^"\\]|\\.)*+")|(?P<mark>[{{}}()\[\];,|=])"""
        rf"""|(?P<word>(?:(?!{start})[^\s{{}}()\[\];,|="])++)""",
        re.DOTALL,
    )
    position, line, before = 0, 1, ""
    while position < len(text):
        match = pattern.match(text, position)
        if match is None:
            raise InputError(f"Line {line} has a quote or a comment without an end.")
        if match.lastgroup is None:
            before = match[0] if not before and set(match[0]) <= {" ", "\t"} else " "
        else:
            quoted = match.lastgroup == "text"
            word = re.sub(r"\\(.)", r"\1", match[0][1:-1]) if quoted else match[0]
            yield Token(word, line, before, quoted)
            before = ""
        line += match[0].count("\n")
        position = match.end()


def blank_separated(tokens: Sequence[Token]) -> list[str]:
    """Return the texts between blanks, commas and quotation marks."""
    texts: list[str] = []
    apart = True
    for token in tokens:
        if token.is_mark(","):
            apart = True
        elif token.before or token.quoted or apart:
            texts.append(token.text)
            apart = token.quoted
        else:
            texts[-1] += token.text
    return texts


def numbers_in(tokens: Sequence[Token]) -> list[float]:
    """Return the numbers in a list, whose commas and parentheses are passed over."""
    listed = [token for token in tokens if not token.is_mark("(", ")", ",")]
    for token in listed:
        if number_of(token.text) != number_of(token.text):
            raise token.refused("in a list of numbers, and it is not a number")
    return [number_of(token.text) for token in listed]
