"""Cells: pieces of an experiment with a key, each of which is computed once and kept in the experiment's archive."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from milpbn.errors import InputError
from milpbn.trials.store import ARCHIVE, Store
from milpbn.util.jsonable import json_safe

#: Part of every key. A new number makes all kept cells unknown, for instance after a change of what a method does.
FORMAT = 1


@dataclass(frozen=True)
class Cell:
    """All that the contents of a cell depend on, apart from the machine and the versions of the programs."""

    #: Name of the data set, and its hash (`milpbn.experiments.protocol.table_hash`).
    data: str
    data_sha256: str
    #: Name of the part, such as ``fold-1``.
    part: str
    method: str
    #: The method's settings, as JSON values.
    options: Mapping[str, Any]
    seed: int
    #: Seconds that the method may search; None for a method without a limit.
    budget: float | None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Cell:
        """Return the cell that JSON values describe."""
        return cls(**{item.name: values[item.name] for item in fields(cls)})

    @property
    def key(self) -> str:
        """SHA-256 of all attributes and of `FORMAT`."""
        text = json.dumps(json_safe({**vars(self), "format": FORMAT}), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def choice_seconds(self) -> float:
        """Seconds of a trial in the choice of options before the search, a part of `options`; 0 without a choice."""
        choice = self.options.get("choice")
        return float(choice["seconds"]) if isinstance(choice, Mapping) else 0.0

    def differs_in_budgets_only(self, other: Cell) -> bool:
        """Whether all but the budgets, that of the choice and that of the search, is the same as in another cell."""

        def without_budgets(cell: Cell) -> str:
            options = dict(cell.options)
            if isinstance(choice := options.get("choice"), Mapping):
                options["choice"] = {key: value for key, value in choice.items() if key != "seconds"}
            return replace(cell, options=options, budget=None).key

        return without_budgets(self) == without_budgets(other)

    def __str__(self) -> str:
        """Return the place of the cell in words."""
        return f"{self.data} {self.part} {self.method}"


@dataclass(frozen=True)
class Kept:
    """The contents of a cell."""

    #: What the method found; empty if it failed.
    found: Mapping[str, Any]
    #: Why the method failed, in a sentence; None if it did not.
    failure: str | None = None
    #: The budget of the cell that it was read from.
    budget: float | None = field(default=None, compare=False)
    #: Seconds that it took; 0 if that was not kept.
    wall: float = field(default=0.0, compare=False)
    processor: float = field(default=0.0, compare=False)

    @property
    def proved(self) -> bool:
        """Whether a search ended with a proof, so that more time would change nothing."""
        return self.found.get("search", {}).get("reason") == "optimal"


class KeptCells:
    """What was found in the cells of an experiment, in the archive of its folder (`milpbn.trials.store.Store`)."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._store = Store(Path(folder, ARCHIVE))

    def read(self, cell: Cell, *, any_budget: bool = False) -> Kept | None:
        """Return the contents of a cell; None if it has not been computed.

        A search that ended with a proof stands for the same search with more time. With `any_budget` it is what the
        same search found with the most time that is kept: most time for the choice before it, then a proof, then most
        time for the search; a failure only where nothing else is kept. `InputError` if the archive cannot be read, or a
        cell in it is incomplete.
        """
        document = self._store.get(cell.key)
        kept = None if document is None else self._parsed(cell.key, document)[1]
        if cell.budget is None or (kept is not None and not any_budget):
            return kept
        alike: list[tuple[float, bool, float, str, Kept]] = []
        place = {name: getattr(cell, name) for name in ("data", "part", "method")}
        for key, document in self._store.items():
            if not place.items() <= document.get("cell", {}).items():
                continue
            found, its = self._parsed(key, document)
            if its.failure is not None or not found.differs_in_budgets_only(cell):
                continue
            stands_for = found.choice_seconds == cell.choice_seconds and (its.budget or 0.0) <= cell.budget
            if any_budget or (its.proved and stands_for):
                alike.append((found.choice_seconds, its.proved, its.budget or 0.0, key, its))
        return max(alike, key=lambda entry: entry[:4])[-1] if alike else kept

    def write(self, cell: Cell, kept: Kept, **more: Any) -> None:
        """Append the contents of a cell to the archive, with other JSON values beside them, such as versions."""
        failed = kept.failure is not None
        document = {
            "status": "failed" if failed else "done",
            "cell": {**vars(cell), "format": FORMAT},
            **({"reason": kept.failure} if failed else {"found": kept.found}),
            **more,
        }
        self._store.add({cell.key: document})

    def _parsed(self, key: str, document: Mapping[str, Any]) -> tuple[Cell, Kept]:
        """Return what a cell of the archive says."""
        try:
            cell = Cell.of(document["cell"])
            seconds = document.get("seconds", {})
            if document["status"] == "failed":
                return cell, Kept({}, str(document["reason"]), **seconds)
            return cell, Kept(document["found"], None, cell.budget, **seconds)
        except (KeyError, TypeError) as error:
            raise InputError(
                f"The cell {key[:12]!r} in {str(self._store.path)!r} is incomplete ({error}); restore or remove the "
                "file."
            ) from None
