"""The options of the score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from milpbn.cli.declared import options_of
from milpbn.cli.sections import given, option_group
from milpbn.cli.types import word
from milpbn.errors import InputError
from milpbn.problem.scores.options import DeclaredScore
from milpbn.problem.scores.registry import ALIASES, SCORES, list_names
from milpbn.util.options import declared, spelling

if TYPE_CHECKING:
    from milpbn.problem.scores.spec import Score


@dataclass(frozen=True)
class ScoreOptions:
    """The options of the score: attributes of `milpbn.Score`, and which of them validation chooses."""

    given: Mapping[str, Any]
    choose_p: bool = False
    choose_max_parents: bool = False

    def score(self) -> Score:
        """Return the score, checked."""
        from milpbn.problem.scores.spec import Score

        return Score(**self.given)

    def refuse_choices(self, subject: str, *, fits: bool = True) -> None:
        """Refuse ``cv``, and what has no effect if the verb fits no classifier; the subject begins the sentence."""
        if self.choose_p or self.choose_max_parents:
            raise InputError(f"{subject} one gamma and one max_parents; cv is for milpbn solve.")
        for item in () if fits else declared(DeclaredScore):
            words = item.metadata.get("of_classifiers")
            if words is not None and item.name in self.given and not self.score().kind.smooths:
                raise InputError(words.format(option=spelling(item), score=self.score().name))


@option_group(
    "Score",
    "score",
    *options_of(
        DeclaredScore, name={"type": word("name", *SCORES, *ALIASES), "help": f"{list_names()}; default sm."}
    ),
)
def score_options(**values: Any) -> ScoreOptions:
    """Gather the options of the score."""
    chosen = {name for name in ("p", "max_parents") if values[name] == "cv"}
    if "p" in chosen and values["gamma"] is not None:
        raise InputError("--p cv chooses gamma itself; leave out --p or --gamma.")
    known = given(**values | dict.fromkeys(chosen))
    return ScoreOptions(known, "p" in chosen, "max_parents" in chosen)
