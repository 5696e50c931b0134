"""The blocks of the README and of docs/, and the commands and statements in them that tests/test_pages.py runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parent.parent
#: All pages with commands of users.
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [ROOT / "README.md", ROOT / "instances" / "README.md", *(ROOT / "docs").rglob("*.md")]
)
#: Words of commands and statements that take long on any table.
SLOW = (
    "--recipe",
    "recipe=",
    "compare",
    "--bootstrap",
    "--seconds",
    "--select ",
    "solve_selected",
    "stability",
    "waveform-21",
    "milpbn compile",
    "--workers",
    "LocalCluster",
)


@dataclass
class Block:
    """A fenced block, be it indented: its page, first and last line, language and text."""

    page: str
    first: int
    last: int
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for fenced in re.finditer(r"^( *)(`{3,}|~{3,})([^\n]*)\n(.*?)^\1\2 *$", text, re.M | re.S):
        first, last = (text.count("\n", 0, at) + 1 for at in fenced.span())
        found.append(Block(page, first, last, fenced[3].strip(), dedent(fenced[4])))
    return found


@dataclass
class Step:
    """A command line with the lines that it prints, or a statement of Python."""

    language: str
    text: str
    output: list[str] = field(default_factory=list)

    @property
    def program(self) -> str:
        """The program that a command runs."""
        return self.text.split()[0] if self.language == "console" else "python"

    @property
    def slow(self) -> bool:
        return "import " not in self.text and any(word in self.text for word in SLOW)

    @property
    def written(self) -> list[str]:
        """Files that a command writes, or names that a statement assigns."""
        if self.language == "console":
            return re.findall(r"--(?:output|classifier|certificate) (\S+)", self.text)
        names = (node for node in ast.walk(ast.parse(self.text)) if isinstance(node, ast.Name))
        return [node.id for node in names if isinstance(node.ctx, ast.Store)]

    def needs(self, skipped: list[str]) -> bool:
        """Whether it mentions something that was not written or assigned."""
        return any(
            re.search(rf"\b{name}\b", self.text) if name.isidentifier() else name in self.text
            for name in skipped
        )


def steps(page: str) -> Iterator[Step]:
    """Yield the commands and statements of a page in their order."""
    found = blocks(page)
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.language == "console":
            yield from _commands(block.text)
        elif block.language == "python":
            if after is not None and (after.language, after.first) == ("text", block.last + 2):
                yield Step("python", block.text, after.text.splitlines())
                continue
            yield from (Step("python", ast.unparse(statement)) for statement in ast.parse(block.text).body)


def _commands(text: str) -> list[Step]:
    found: list[Step] = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.startswith("$ "):
            found.append(Step("console", line[2:]))
        elif line.strip():
            found[-1].output.append(line)
    return found
