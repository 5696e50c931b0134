"""The library of networks that ships with milpbn: the best known structures and bounds, and what a new result adds.

It is one archive of cells (`milpbn.trials.store`) that `benchmarks/library.py` extends. It lies beside the embedded
instances, because results of experiments are not installed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from milpbn.certificate.verify.check import verify
from milpbn.claims.gap import Gap, is_optimal, tolerance_of
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.rescore import rescored
from milpbn.problem.scores.spec import Score
from milpbn.solving.outlook import Outlook
from milpbn.trials.store import Store

#: The archive that is installed with the package.
ARCHIVE = Path(str(files("milpbn.instances").joinpath("library.jsonl.gz")))


@dataclass(frozen=True)
class KnownNetwork:
    """The best structure and bound that the library knows for some data and a score.

    `source` names the data, and `sha256` is the hash of their training rows. `objective`, `bound`, `tolerance` and
    `standard_error`, which may be None, are in nats. The search had `limit` CPU seconds, and took `seconds` by the
    clock.
    """

    source: str
    sha256: str
    score: Score
    structure: Structure
    objective: float
    bound: float
    tolerance: float
    standard_error: float | None
    limit: float
    seconds: float
    outlook: Outlook | None

    @classmethod
    def of(cls, cell: Mapping[str, Any]) -> KnownNetwork:
        """Return the network of a cell of the archive."""
        names = sorted(cell["structure"], key=lambda name: name == cell["class"])
        same = ("source", "objective", "bound", "tolerance", "standard_error", "seconds")
        return cls(
            sha256=cell["data"]["sha256"],
            score=Score.from_dict(cell["score"]),
            structure=Structure.from_mapping(names, cell["structure"]),
            limit=cell["cpu_seconds"],
            outlook=None if cell["outlook"] is None else Outlook(**cell["outlook"]),
            **{key: cell[key] for key in same},
        )

    @property
    def gap(self) -> Gap:
        """The gaps between objective and bound."""
        return Gap.between(self.objective, self.bound)

    @property
    def p(self) -> float:
        """The desired margin as a probability, p of P12."""
        assert self.score.gamma is not None
        return round(1 / (1 + math.exp(-self.score.gamma)), 6)

    @property
    def proved(self) -> bool:
        """Whether the bound proves that the structure is best."""
        return is_optimal(self.objective, self.bound, 0.0, self.tolerance)

    def is_about(self, result: Result) -> bool:
        """Whether a result is about the same data and score, and about all structures as this network is."""
        one, other = self.score, result.score
        same = one.kind == other.kind and one.class_parents == other.class_parents
        whole = not any(result.constraints.to_dict().values())
        return whole and same and one.max_parents == other.max_parents and self.sha256 == result.data.sha256


def load_library(path: str | os.PathLike[str] | None = None) -> list[KnownNetwork]:
    """Return the networks of an archive, by default of the one that is installed; InputError if it is unusable."""
    path = ARCHIVE if path is None else Path(path)
    if not path.is_file():
        raise InputError(
            f"There is no library {str(path)!r}; leave out --library for the one of the package."
        )
    try:
        return [KnownNetwork.of(cell) for cell in Store(path).values()]
    except (KeyError, TypeError):
        raise InputError(f"The file {str(path)!r} is no library of networks; name another.") from None


def compare(
    result: Result,
    networks: Iterable[KnownNetwork],
    data: Dataset,
    certificate: str | os.PathLike[str] | None,
) -> list[str]:
    """Return what a result adds to the library, as lines of text.

    Both structures are scored from the data. The result's bound is verified if there is a certificate. Raise InputError
    if the library has no network for the same problem, the result is of other data or has no structure, its score or
    bound is wrong, or it contradicts the library.
    """
    if result.data.sha256 != data.sha256:
        raise result.data.refusal(result.request)
    known = next((network for network in networks if network.is_about(result)), None)
    if known is None or result.structure is None or result.objective is None:
        raise InputError(
            f"The library has no network for {result.described_score} on these data without constraints; "
            "`milpbn library list` shows what it has."
            if known is None
            else "The result has no structure."
        )
    (score, error), (before, _) = (
        rescored(data, Structure.from_mapping(data.names, structure.to_mapping()), known.score)
        for structure in (result.structure, known.structure)
    )
    if not abs(score - result.objective) <= error:
        raise InputError(f"The structure scores {score!r}, not {result.objective!r} as the result states.")
    bound, tolerance = result.bound, max(known.tolerance, tolerance_of(error))
    if bound is not None and certificate is not None:
        bound = verify(result, certificate, data).bound
    if score > known.bound + tolerance or (bound is not None and bound < before - tolerance):
        raise InputError("The result contradicts the bound or the score of the library; please report this.")
    best, least = max(score, before), known.bound if bound is None else min(known.bound, bound)
    added = []
    if score > before + max(error, tolerance):
        added.append("a better structure")
    if bound is not None and bound < known.bound - tolerance and not known.proved:
        added.append(
            "a tighter bound" + ("" if certificate else ", which is not checked without --certificate")
        )
    if is_optimal(best, least, error, tolerance) and not known.proved:
        added.append("with the library's bound, a proof" if bound != least else "a proof of the optimum")
    stated = (
        "none"
        if bound is None
        else f"{bound:.6f}" + ("  (verified)" if certificate else "  (as the file says)")
    )
    return [
        f"problem    {known.source}: {known.score.describe()}",
        f"structure  {score:.6f} from the data; the library has {before:.6f}",
        f"bound      {stated}; the library has {known.bound:.6f}"
        + (" and a proof" if known.proved else f", found in {known.seconds:.0f} s"),
        f"adds       {', and '.join(added) if added else 'nothing'}",
    ]


def overview(networks: Iterable[KnownNetwork]) -> list[list[str]]:
    """Return a table, with its heading first: the data, the score, and for each p a gap in percent or "proved"."""
    by_row: dict[tuple[str, str], dict[float, KnownNetwork]] = {}
    for network in networks:
        by_row.setdefault((network.source, network.score.name), {})[network.p] = network
    values = sorted({p for row in by_row.values() for p in row})
    rows = [["data", "score", *(f"p={p:g}" for p in values)]]
    for names, row in sorted(by_row.items()):
        cells = [row.get(p) for p in values]
        shown = ["" if one is None else "proved" if one.proved else _percent(one) for one in cells]
        rows.append([*names, *shown])
    return rows


def open_problems(networks: Iterable[KnownNetwork]) -> list[list[str]]:
    """Return a table of what is not proved, with its heading first: gaps of each kind, and what is ahead."""
    rows = [["data", "score", "p", "gap", "nats", "standard errors", "CPU seconds", "outlook"]]
    for one in sorted(networks, key=lambda one: (one.source, one.score.name, one.p)):
        if not one.proved:
            nats = one.gap.absolute or 0.0
            errors = "" if not one.standard_error else f"{nats / one.standard_error:.2g}"
            ahead = "" if one.outlook is None else one.outlook.when(one.seconds, 1)
            rows.append(
                [
                    *(one.source, one.score.name, f"{one.p:g}", _percent(one), f"{nats:.4g}", errors),
                    *(f"{one.limit:g}", ahead),
                ]
            )
    return rows


def _percent(network: KnownNetwork) -> str:
    """Return the gap relative to the bound in percent, or in nats where the score is about 0."""
    share = network.gap.relative_to_bound
    return f"{network.gap.absolute:.1g} nats" if share is None or share >= 1 else f"{100 * share:.2g} %"
