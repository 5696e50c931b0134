"""The output file while a selection compares settings: the structure that is the best so far, on all training rows."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from milpbn.claims.reasons import Limit, Reason
from milpbn.data import Table
from milpbn.errors import InputError
from milpbn.problem.class_free import among
from milpbn.problem.constraints import Constraints, atoms, combine
from milpbn.problem.gate import objection
from milpbn.solving.choosing import Choosing
from milpbn.solving.files import SAVE_EVERY, SAVE_FIRST, check_files, remove_certificate
from milpbn.solving.smallest import unsearched
from milpbn.solving.tally import Tally
from milpbn.util.clock import Pause


class Interim:
    """Writes what a selection has found so far, so that a run that is killed leaves a structure.

    The file is a result with the status ``running``. Its score is that of the structure on all training rows, with the
    setting that is the best so far, and its bound the one that needs no search. The trials themselves search over a
    part of the rows and write nothing.

    Parameters
    ----------
    choosing : Choosing
        The selection, with the output file, if there is one, and the certificate that the final search will write.

    Raises
    ------
    InputError
        If one of the files cannot be written when the selection begins.
    """

    def __init__(self, choosing: Choosing) -> None:
        self._choosing, self._begun = choosing, False
        check_files(choosing.options)
        self._pause = Pause(SAVE_FIRST, SAVE_EVERY)

    def update(self, best: Callable[[], Tally]) -> None:
        """Write the best so far, from time to time. If the file cannot be written, the final search says so."""
        if self._choosing.options.output is not None and self._pause.over():
            with self._pause.after(), suppress(InputError, MemoryError):
                self._save(self._choosing.options.output, best())

    def _save(self, output: str | os.PathLike[str], best: Tally) -> None:
        score, source, options = best.applied(self._choosing.question.data, self._choosing.options)
        rows = source.dataset("train") if isinstance(source, Table) else source
        structure, constraints = best.incumbent, self._choosing.question.constraints or Constraints()
        if (
            structure is None
            or objection(structure, score, constraints, any_class_free=not among(score, constraints))
            is not None
        ):
            return
        rules = combine(atoms(constraints, rows.names))
        result = unsearched(
            rows, score, options, structure, rules, constraints, self._choosing.budget.began, Limit.TIME
        )
        if not self._begun:
            remove_certificate(options)
        self._begun = True
        replace(result, reason=Reason.RUNNING, limit=None).save(output)
