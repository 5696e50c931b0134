"""Completion in bash: it splits words at ``=`` and ``:``, and has no way to say that files or words fit."""

from __future__ import annotations

import re
from glob import escape, iglob
from typing import Any

from click.shell_completion import BashComplete, CompletionItem, add_completion_class

#: Characters at which bash splits words by default, beside white space and quotes, and that stand in values.
_SPLITS = "=:"


@add_completion_class
class Bash(BashComplete):
    """Completion in bash, as click has it, but for ``NAME=VALUE``, names with spaces, and files beside words.

    bash replaces only what follows the last ``=`` or ``:``.
    """

    _before = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the complete words and the incomplete one, joined where bash has split them."""
        words, last = super().get_completion_args()
        joined: list[str] = []
        for word in [*words, last]:
            goes_on = joined and word and (not word.strip(_SPLITS) or joined[-1][-1] in _SPLITS)
            if goes_on and not word.startswith("-"):
                joined[-1] += word
            else:
                joined.append(word)
        *words, whole = joined
        value = whole.partition("=")[2] if whole.startswith("-") else whole
        if whole != last:
            self._before = value if not last.strip(_SPLITS) else value.removesuffix(last)
        return words, whole

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return the files where some fit, else the words: bash takes one or the other."""
        items = super().get_completions(args, incomplete)
        kinds = {item.type for item in items}
        if len(kinds) > 1:
            fit = next(iglob(escape(incomplete) + "*"), None) is not None
            items = [item for item in items if (item.type == "plain") != fit]
        return items

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return a line for click's function in bash: the kind, and what follows the last split."""
        if item.type != "plain":
            return super().format_completion(item)
        rest = str(item.value).removeprefix(self._before)
        # Once for bash, and once for the command read in click's function.
        return "plain," + re.sub(r"([^\w.,:=+@%/-])", r"\\\\\1", rest)
