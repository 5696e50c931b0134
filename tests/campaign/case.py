"""One problem with all options of its run, as a record that can be written to JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milpbn.data.dataset import Dataset

#: Name of the column of weights.
WEIGHT = "w"
MISSING = -1
#: Label that the state of missing values has (documented in `milpbn.read_table`).
MISSING_LABEL = "?"


@dataclass(frozen=True)
class Training:
    """A table as a learner sees it: the remaining rows, as codes of the remaining states.

    Attributes
    ----------
    states : tuple of tuples of str
        Labels by variable, the class last.
    rows : tuple of tuples of int
        Distinct rows of codes, in ascending order.
    weights : tuple of Fraction
        Total weight of each of them, exact.
    """

    states: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[int, ...], ...]
    weights: tuple[Fraction, ...]


@dataclass(frozen=True)
class Case:
    """A table, a score, constraints, and how to search.

    Attributes
    ----------
    names : list of str
        Features, the class last.
    labels : list of lists of str
        States of each variable, sorted; with `declared` all of them are states, seen or not.
    rows : list of lists of int
        Codes into the labels, `MISSING` for an empty cell.
    weights, copies : lists
        Weight of each row, and how often the row is in the table.
    missing : str
        Policy for missing values, ``drop`` or ``state``.
    declared : bool
        The table declares its states (pandas categories, ARFF).
    target_first : bool
        The class is the first column of the table.
    score, constraints, options : dict
        Arguments of `milpbn.Score`, of `milpbn.Constraints.from_dict`, and of `milpbn.solve`.
    start : dict or None
        A structure to start from, as parents by name.
    way : str
        ``python`` or ``command``: through `milpbn.solve` or ``milpbn solve``.
    certificate : bool
        Ask for a certificate, and verify it.
    """

    names: list[str]
    labels: list[list[str]]
    rows: list[list[int]]
    weights: list[float]
    copies: list[int] = field(default_factory=list)
    missing: str = "drop"
    declared: bool = False
    target_first: bool = False
    score: dict[str, Any] = field(default_factory=dict)
    constraints: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    start: dict[str, list[str]] | None = None
    way: str = "python"
    certificate: bool = False

    def to_json(self) -> str:
        """Return the record as text."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Case:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))

    def but(self, **changes: Any) -> Case:
        """Return the case with other values of some fields."""
        return replace(self, **changes)

    @cached_property
    def problem(self) -> str:
        """A key made of everything that decides which structure is best."""
        same = self.but(options={}, start=None, way="", certificate=False, target_first=False)
        return same.to_json()

    def times(self, row: int) -> int:
        """How often a row is in the table."""
        return self.copies[row] if self.copies else 1

    def trains(self, row: int) -> bool:
        """Whether a row is left after weightless rows and missing values, by the documented rules."""
        codes = self.rows[row]
        lost = codes[-1] == MISSING if self.missing == "state" else MISSING in codes
        return self.weights[row] > 0 and not lost

    @cached_property
    def training(self) -> Training:
        """The rows and states of those that `trains` keeps."""
        total: dict[tuple[int, ...], Fraction] = {}
        for k, (row, weight) in enumerate(zip(self.rows, self.weights, strict=True)):
            if self.trains(k):
                total[tuple(row)] = total.get(tuple(row), Fraction(0)) + Fraction(weight) * self.times(k)
        maps: list[dict[int, int]] = []
        states = []
        for i, labels in enumerate(self.labels):
            seen = {row[i] for row in total}
            kept = list(range(len(labels))) if self.declared else sorted(seen - {MISSING})
            names = [labels[k] for k in kept]
            if MISSING in seen:
                kept, names = [*kept, MISSING], [*names, MISSING_LABEL]
            maps.append({code: at for at, code in enumerate(kept)})
            states.append(tuple(names))
        coded = sorted(
            (tuple(maps[i][code] for i, code in enumerate(row)), weight) for row, weight in total.items()
        )
        return Training(tuple(states), tuple(row for row, _ in coded), tuple(weight for _, weight in coded))

    @property
    def columns(self) -> list[int]:
        """Variables in the order of the table's columns."""
        V = len(self.names)
        return [V - 1, *range(V - 1)] if self.target_first else list(range(V))

    def frame(self) -> pd.DataFrame:
        """Return the table with its column of weights, every row as often as it is there."""
        codes = np.array(self.rows, dtype=np.int64).reshape(-1, len(self.names))
        times = [self.times(k) for k in range(len(self.rows))]
        codes = np.repeat(codes, times, axis=0)
        table: dict[str, Any] = {}
        for i in self.columns:
            if self.declared:
                table[self.names[i]] = pd.Categorical.from_codes(
                    codes[:, i], categories=pd.Index(self.labels[i])
                )
            else:
                names = np.array([*self.labels[i], None], dtype=object)  # code -1 is the last
                table[self.names[i]] = names[codes[:, i]]
        return pd.DataFrame({**table, WEIGHT: np.repeat(np.array(self.weights, dtype=float), times)})

    def reading(self) -> dict[str, Any]:
        """Return the arguments of `milpbn.read_table`."""
        return {
            "target": self.names[-1],
            "weights": WEIGHT,
            "missing": self.missing,
            "nominal": list(self.names),
            "states": "declared" if self.declared else "seen",
        }

    def reading_arguments(self) -> list[str]:
        """Return the same for the command line."""
        return [
            *("--target", self.names[-1], "--weights", WEIGHT, "--missing", self.missing),
            *("--nominal", ",".join(self.names)),
            *(("--states", "declared") if self.declared else ()),
        ]

    def write_table(self, folder: Path) -> Path:
        """Write the table as CSV, or as ARFF where states are declared; return the path."""
        path = folder / ("data.arff" if self.declared else "data.csv")
        lines = [",".join([*(self.names[i] for i in self.columns), WEIGHT])]
        if self.declared:
            lines = ["@relation data"]
            lines += [f"@attribute {self.names[i]} {{{','.join(self.labels[i])}}}" for i in self.columns]
            lines += [f"@attribute {WEIGHT} numeric", "@data"]
        for k, (row, weight) in enumerate(zip(self.rows, self.weights, strict=True)):
            cells = ["?" if row[i] == MISSING else self.labels[i][row[i]] for i in self.columns]
            lines += [",".join([*cells, repr(float(weight))])] * self.times(k)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def solve_arguments(self) -> list[str]:
        """Return score, constraints and options as arguments of ``milpbn solve``, without files."""
        return [
            *_score_arguments(self.score),
            *_constraint_arguments(self.constraints),
            *_flags(self.options),
        ]


def case_of(data: Dataset, score: dict[str, Any], constraints: dict[str, Any] | None = None) -> Case:
    """Return the case of a dataset; all of its states are declared."""
    return Case(
        names=list(data.names),
        labels=[list(v.states) for v in data.variables],
        rows=data.codes.tolist(),
        weights=data.weights.tolist(),
        declared=True,
        score=score,
        constraints=constraints or {},
    )


#: Options of `milpbn.solve` that are flags on the command line, named when they are off.
_OFF = {
    "warm_start": "--no-warm-start",
    "root_bound": "--no-root-bound",
    "reduce": "--no-reduce",
    "merge": "--no-merge",
}


def _flags(options: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    for key, value in options.items():
        if key in _OFF:
            out += [] if value else [_OFF[key]]
        elif key == "random_state":
            out += ["--seed", str(value)]
        else:
            out += [f"--{key.replace('_', '-')}", str(value)]
    return out


def _score_arguments(score: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    for key, value in score.items():
        if key == "class_parents":
            out.append("--class-parents" if value else "--no-class-parents")
            continue
        if key == "leave_one_out":
            out += ["--leave-one-out"] if value else []
            continue
        name = {"name": "score", "equivalent_sample_size": "ess"}.get(key, key.replace("_", "-"))
        out += [f"--{name}", str(value)]
    return out


def _constraint_arguments(constraints: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    for key, option in (("required", "--require"), ("forbidden", "--forbid")):
        for a, b in constraints.get(key, ()):
            out += [option, f"{a},{b}"]
    if constraints.get("tiers"):
        out += ["--tiers", ";".join(",".join(tier) for tier in constraints["tiers"])]
    for name, limit in constraints.get("max_children", {}).items():
        out += ["--max-children", str(limit) if name == "*" else f"{name}={limit}"]
    if "max_features" in constraints:
        out += ["--max-features", str(constraints["max_features"])]
    for key, option in (("fixed", "--fix"), ("allowed", "--allow")):
        for name, parents in constraints.get(key, {}).items():
            out += [option, f"{name}={','.join(parents)}"]
    for key, option in (("ancestors", "--ancestor"), ("no_ancestors", "--no-ancestor")):
        for a, b in constraints.get(key, ()):
            out += [option, f"{a},{b}"]
    for a, b, given in constraints.get("independences", ()):
        out += ["--independence", f"{a},{b}|{','.join(given)}" if given else f"{a},{b}"]
    for a, b, weight in constraints.get("arc_weights", ()):
        out += ["--arc-weight", f"{a},{b}={weight!r}"]
    return out
