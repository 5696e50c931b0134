"""What a selection and the searches after it have in common: the data, the score, the options and the values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from milpbn.claims.result import Result
from milpbn.solving.api import maximise
from milpbn.solving.grid import Grid
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.tally import Tally
from milpbn.util.budget import Budget

#: Seconds for each trial without a time limit.
TRIAL_SECONDS = 60.0


@dataclass(frozen=True)
class Choosing:
    """A selection: what validation chooses from, and how it searches. It is made once, and passed on.

    Attributes
    ----------
    question : Question
        The data, as `source_of` returns them; cuts and states of a table are learnt on the training rows of each split.
        The options of the score are replaced. A subset is for the searches on all training rows only, a screening for
        every search.
    options : Options
        How to search. The trials take half of its time limit.
    trial_seconds : float
        Limit of each trial if the options have no time limit.
    """

    question: Question
    options: Options
    grid: Grid
    budget: Budget
    trial_seconds: float = TRIAL_SECONDS

    def quiet(self, **changes: Any) -> Options:
        """Return the options of a search that writes no file and shows no progress, with other changes."""
        silent = replace(self.options, output=None, certificate=None, trace=None, log=None, verbose=False)
        return replace(silent, n_best=1, checkpoint=None, resume=False, on_change=None, **changes)

    def search(self, tally: Tally, options: Options, started: float) -> Result:
        """Search on all training rows with the setting of a tally; a time limit counts from `started`."""
        score, rows, own = tally.applied(self.question.data, options)
        return maximise(replace(self.question, data=rows, score=score), own, started=started)
