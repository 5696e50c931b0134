"""Cells: pieces of an experiment with a key, each of which is computed once and kept in a file of its own."""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from milpbn.errors import InputError
from milpbn.util.atomic import atomic_write_text
from milpbn.util.jsonable import dump_json, json_safe, parse_object

#: Part of every key. A new number makes all kept cells unknown, for instance after a change of what a method does.
FORMAT = 1
#: Number of digits of the key in the name of a file.
DIGITS = 12


@dataclass(frozen=True)
class Cell:
    """All that the contents of a cell depend on, apart from the machine and the versions of the programs.

    Attributes
    ----------
    data : str
        Name of the data set.
    data_sha256 : str
        Hash of the data (`milpbn.experiments.protocol.table_hash`).
    part : str
        Name of the part, such as ``fold-1``.
    method : str
        Name of the method.
    options : mapping
        The method's settings, as JSON values.
    seed : int
        Random seed.
    budget : float or None
        Seconds that the method may search; None for a method without a limit.
    """

    data: str
    data_sha256: str
    part: str
    method: str
    options: Mapping[str, Any]
    seed: int
    budget: float | None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Cell:
        """Return the cell that a file describes."""
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
    """The contents of a cell.

    Attributes
    ----------
    found : mapping
        What the method found; empty if it failed.
    failure : str or None
        Why the method failed, in a sentence; None if it did not.
    budget : float or None
        The budget of the cell that it was read from.
    """

    found: Mapping[str, Any]
    failure: str | None = None
    budget: float | None = field(default=None, compare=False)

    @property
    def proved(self) -> bool:
        """Whether a search ended with a proof, so that more time would change nothing."""
        return self.found.get("search", {}).get("reason") == "optimal"


class KeptCells:
    """A folder of cells, ``<data>/<part>-<method>-<key>.json``.

    Parameters
    ----------
    folder : path-like
        The folder, which is made when the first cell is written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, cell: Cell) -> Path:
        """Return the file of a cell."""
        return self.folder / cell.data / f"{cell.part}-{cell.method}-{cell.key[:DIGITS]}.json"

    def read(self, cell: Cell, *, any_budget: bool = False) -> Kept | None:
        """Return the contents of a cell; None if it has not been computed.

        A search that ended with a proof stands for the same search with more time.

        Parameters
        ----------
        cell : Cell
            The cell.
        any_budget : bool
            Return what the same search found with the most time that is kept: most time for the choice before it, then
            a proof, then most time for the search. A failure is returned only where nothing else is kept.

        Raises
        ------
        InputError
            If a file cannot be read, or does not hold the cell that its name says.
        """
        path = self.path(cell)
        kept: Kept | None = None
        if path.exists():
            found, kept = _read(path)
            if found.key != cell.key:
                raise _misnamed(path)
        if cell.budget is None or (kept is not None and not any_budget):
            return kept
        alike: list[tuple[float, bool, float, int, Kept]] = []
        for other in sorted(path.parent.glob(f"{glob.escape(f'{cell.part}-{cell.method}')}-*.json")):
            found, its = _read(other)
            if its.failure is not None or not found.differs_in_budgets_only(cell):
                continue
            stands_for = found.choice_seconds == cell.choice_seconds and (its.budget or 0.0) <= cell.budget
            if any_budget or (its.proved and stands_for):
                alike.append((found.choice_seconds, its.proved, its.budget or 0.0, len(alike), its))
        return max(alike)[-1] if alike else kept

    def write(self, cell: Cell, kept: Kept, **more: Any) -> None:
        """Write the contents of a cell atomically.

        Parameters
        ----------
        cell : Cell
            The cell.
        kept : Kept
            Its contents.
        **more
            More JSON values that do not belong to the contents, such as versions.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        path = self.path(cell)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"The folder {str(path.parent)!r} cannot be made ({error.strerror}).") from None
        failed = kept.failure is not None
        document = {
            "key": cell.key,
            "status": "failed" if failed else "done",
            "cell": {**vars(cell), "format": FORMAT},
            **({"reason": kept.failure} if failed else {"found": kept.found}),
            **more,
        }
        atomic_write_text(path, dump_json(json_safe(document)))


def _read(path: Path) -> tuple[Cell, Kept]:
    """Return what a file holds."""
    try:
        document = parse_object(path.read_text(encoding="utf-8"))
        cell, failed = Cell.of(document["cell"]), document["status"] == "failed"
        kept = Kept({}, str(document["reason"])) if failed else Kept(document["found"], budget=cell.budget)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"The cell {str(path)!r} cannot be read ({error}); delete it.") from None
    if document["key"] != cell.key:
        raise _misnamed(path)
    return cell, kept


def _misnamed(path: Path) -> InputError:
    return InputError(f"The file {str(path)!r} does not hold the cell that it is named after; delete it.")
