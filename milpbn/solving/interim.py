"""The output file while a selection compares settings: the structure that is the best so far, on all training rows."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from milpbn.claims.reasons import Limit, Reason
from milpbn.data import Dataset, Table
from milpbn.errors import InputError
from milpbn.problem.class_free import among
from milpbn.problem.constraints import Constraints, atoms, combine
from milpbn.problem.gate import objection
from milpbn.solving.averaging import Ranked
from milpbn.solving.files import SAVE_EVERY, SAVE_FIRST, check_files, remove_certificate
from milpbn.solving.options import Options
from milpbn.solving.smallest import unsearched
from milpbn.util.clock import Pause


class Interim:
    """Writes what a selection has found so far, so that a run that is killed leaves a structure.

    The file is a result with the status ``running``. Its score is that of the structure on all training rows, with the
    setting that is the best so far, and its bound the one that needs no search. The trials themselves search over a
    part of the rows and write nothing.

    Parameters
    ----------
    source : Table or Dataset
        The data.
    options : Options
        The output file, if there is one, and the certificate that the final search will write.
    constraints : Constraints or None
        What every structure has to obey.
    began : float
        `time.monotonic` value from which seconds count.

    Raises
    ------
    InputError
        If one of the files cannot be written when the selection begins.
    """

    def __init__(
        self, source: Table | Dataset, options: Options, constraints: Constraints | None, began: float
    ) -> None:
        self._source, self._options, self._constraints, self._began = source, options, constraints, began
        check_files(options)
        self._pause = Pause(SAVE_FIRST, SAVE_EVERY)
        self._begun = False

    def update(self, best: Callable[[], Ranked]) -> None:
        """Write the best so far, from time to time. If the file cannot be written, the final search says so."""
        if self._options.output is not None and self._pause.over():
            with self._pause.after(), suppress(InputError, MemoryError):
                self._save(self._options.output, best())

    def _save(self, output: str | os.PathLike[str], best: Ranked) -> None:
        score, source, options = best.applied(self._source, self._options)
        rows = source.dataset("train") if isinstance(source, Table) else source
        structure, constraints = best.incumbent, self._constraints or Constraints()
        if (
            structure is None
            or objection(structure, score, constraints, any_class_free=not among(score, constraints))
            is not None
        ):
            return
        rules = combine(atoms(constraints, rows.names))
        result = unsearched(rows, score, options, structure, rules, constraints, self._began, Limit.TIME)
        if not self._begun:
            remove_certificate(options)
        self._begun = True
        replace(result, reason=Reason.RUNNING, limit=None).save(output)
