"""Blocks of ``key = value;`` fields and inner blocks in braces, which Hugin's and Netica's files consist of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from milpbn.data.labels import number_of
from milpbn.errors import InputError
from milpbn.network.formats.plain_network import milpbn_properties
from milpbn.network.formats.tokens import Token, TokenReader, blank_separated

#: Blocks in blocks.
_DEEPEST = 20


@dataclass
class Block:
    """A block: the tokens before its brace, its fields by their names in lower case, and the blocks in it."""

    head: Sequence[Token] = ()
    fields: dict[str, list[Token]] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """The texts before the brace, of which all but the last are lower-case keywords."""
        return [*(token.text.lower() for token in self.head[:-1]), *(token.text for token in self.head[-1:])]

    @property
    def where(self) -> str:
        """The block for a sentence."""
        return f"The node {self.words[-1]!r} (line {self.head[0].line})"

    def texts(self, key: str) -> list[str]:
        """Return the texts of a field, without parentheses around all of them; none if there is no such field."""
        tokens = self.fields.get(key, [])
        if len(tokens) > 1 and tokens[0].is_mark("(") and tokens[-1].is_mark(")"):
            tokens = tokens[1:-1]
        return blank_separated(tokens)

    def text(self, key: str) -> str:
        """Return the text of a field that has one, else nothing."""
        return (self.texts(key) or [""])[0]

    def edges(self, key: str) -> list[float]:
        """Return the numbers of a field."""
        numbers = list(map(number_of, self.texts(key)))
        if any(x != x for x in numbers):
            raise InputError(f"{self.where} has a value in {key} that is not a number.")
        return numbers

    def properties(self) -> dict[str, str]:
        """Return milpbn's properties among the fields."""
        return milpbn_properties({key: self.text(key) for key in self.fields})


def read_blocks(text: str, comments: tuple[str, str]) -> list[Block]:
    """Return the outermost blocks of a file.

    Raises `InputError`, which names the line where there is one, if a brace, quote or semicolon is missing.
    """
    whole = Block()
    _Parser(text, comments).fill(whole, 0)
    return whole.blocks


class _Parser(TokenReader):
    """A recursive descent over the tokens of a file."""

    def fill(self, block: Block, depth: int) -> None:
        """Read fields and inner blocks up to the brace that closes a block, or to the end of the file."""
        head: list[Token] = []
        while depth or self.position < len(self.tokens):
            token = self.next()
            if token.is_mark("}"):
                if not depth or head:
                    raise InputError(f"Line {token.line} has '}}' where no block or field ends.")
                return
            if token.is_mark(";"):
                head = []
            elif token.is_mark("=") and head:
                block.fields[head[-1].text.lower()] = self.value()
                head = []
            elif token.is_mark("{"):
                if depth == _DEEPEST or not head:
                    raise InputError(f"Line {token.line} has '{{' where no block begins.")
                block.blocks.append(Block(head))
                self.fill(block.blocks[-1], depth + 1)
                head = []
            else:
                head.append(token)
        if head:
            raise InputError(f"Line {head[0].line} has {head[0].text[:40]!r} where no block begins.")

    def value(self) -> list[Token]:
        """Return the tokens of a value, and pass the semicolon after it; within parentheses one ends nothing."""
        found: list[Token] = []
        opened = 0
        while not (token := self.next()).is_mark(";") or opened > 0:
            if token.is_mark("}") or token.is_mark("{"):
                raise InputError(f"Line {token.line} has {token.text!r} where ';' is expected.")
            opened += token.is_mark("(") - token.is_mark(")")
            found.append(token)
        return found
