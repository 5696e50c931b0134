"""The lines of text files that say something: neither blank nor comments."""

from __future__ import annotations

import re
from collections.abc import Iterator


def content_lines(text: str, comment: str = "#") -> Iterator[tuple[int, str]]:
    """Yield number (from 1) and text of every line that is neither blank nor a comment, without outer white space.

    Lines may end as on any system. A comment begins with `comment`, after white space.
    """
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith(comment):
            yield number, stripped
