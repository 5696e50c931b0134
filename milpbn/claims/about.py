"""Facts about a run: its data, its backend, and where its time went.

The functions that read them raise `InputError` if a value is missing or impossible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from milpbn.data.dataset import Dataset
from milpbn.data.left_out import WHYS
from milpbn.util.jsonable import Fields

#: How the notes begin that say what a limit came before: compilation used it up, or only small sets were searched.
COMPILED, ONLY_SMALL = "Compiling kernels", "Only parent sets of at most"


@dataclass(frozen=True)
class DataSummary:
    """The training data of a result.

    Attributes
    ----------
    name, sha256 : str
        Name, and hash of names, states, codes and weights (`Dataset.sha256`).
    samples, unique_samples : int
        Number of training rows, and number of distinct rows among them.
    features, classes : int
        N and the number of classes.
    left_out : mapping from str to str
        Columns of the source that are no features, each with the reason (`milpbn.data.left_out.WHYS`).
    total_weight : float or None
        The sum of the sample weights; None in files of earlier versions.
    discretisation : str or None
        How continuous columns were cut, as in ``--discretise``; empty without such columns, None in files of earlier
        versions. Summaries that differ in the last three only are equal.
    """

    name: str
    sha256: str
    samples: int
    unique_samples: int
    features: int
    classes: int
    left_out: Mapping[str, str] = field(default_factory=dict, compare=False)
    total_weight: float | None = field(default=None, compare=False)
    discretisation: str | None = field(default=None, compare=False)

    @classmethod
    def of(cls, data: Dataset) -> DataSummary:
        """Summarise a training set."""
        return cls(
            data.name,
            data.sha256,
            data.n_samples,
            data.merged.n_samples,
            data.n_features,
            data.n_classes,
            dict(data.left_out),
            math.fsum(data.weights),
            data.discretisation,
        )


@dataclass(frozen=True)
class BackendInfo:
    """The backend of a run: its registry name, its version, and its threads (None if a solution file names none)."""

    name: str
    version: str
    threads: int | None


@dataclass(frozen=True)
class Seconds:
    """Wall-clock seconds: in total, for data and coefficients, the MILP, the search, and retrained parameters.

    The last are those for the other networks of an average.
    """

    total: float = 0.0
    coefficients: float = 0.0
    model: float = 0.0
    solve: float = 0.0
    parameters: float = 0.0
    average: float = 0.0


def read_data(f: Fields) -> DataSummary:
    """Read a summary that was written as a dictionary of its attributes."""
    f.known([a.name for a in fields(DataSummary)])
    samples = f.whole("samples", 1)
    return DataSummary(
        f.text("name"),
        f.text("sha256"),
        samples,
        f.whole("unique_samples", 1, samples),
        f.whole("features", 1),
        f.whole("classes", 1),
        {} if f.missing("left_out") else read_left_out(f.fields("left_out")),
        None if f.missing("total_weight") else f.number("total_weight", 0.0),
        None if f.missing("discretisation") else f.text("discretisation"),
    )


def read_left_out(f: Fields) -> dict[str, str]:
    """Read the columns that are no features, each with the reason."""
    return {name: f.text(name, WHYS) for name in f}


def read_backend(f: Fields) -> BackendInfo:
    """Read a backend that was written as a dictionary of its attributes."""
    f.known([a.name for a in fields(BackendInfo)])
    return BackendInfo(f.text("name"), f.text("version"), f.whole("threads", 1, optional=True))
