"""Facts about a run: its data, its backend, and where its time went."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from milpbn.data.dataset import Dataset
from milpbn.data.left_out import WHYS
from milpbn.data.request import DataRequest
from milpbn.errors import InputError
from milpbn.util.declared import Count, NotNegative, OneOf, Within
from milpbn.util.plurals import counted

#: How the notes begin that say what a limit came before: compilation used it up, or only small sets were searched.
COMPILED, ONLY_SMALL = "Compiling kernels", "Only parent sets of at most"


@dataclass(frozen=True)
class DataSummary:
    """The training data of a result."""

    #: Name, and hash of names, states, codes and weights (`Dataset.sha256`).
    name: str
    sha256: str
    #: Number of training rows, and number of distinct rows among them.
    samples: Count
    unique_samples: Annotated[int, Within(1, "samples")]
    #: N and the number of classes; without a class the number of variables and 0.
    features: Count
    classes: Annotated[int, Within(0)]
    #: Columns of the source that are no features, each with the reason (`milpbn.data.left_out.WHYS`).
    left_out: Mapping[str, Annotated[str, OneOf(WHYS)]] = field(default_factory=dict, compare=False)
    #: The sum of the sample weights; None in files of earlier versions.
    total_weight: NotNegative | None = field(default=None, compare=False)
    #: How continuous columns were cut, as in ``--discretise``; empty without such columns, None in files of earlier
    #: versions. Summaries that differ in the last three only are equal.
    discretisation: str | None = field(default=None, compare=False)
    #: Attributes that files of earlier versions lack.
    LATER: ClassVar = ("left_out", "total_weight", "discretisation")

    @property
    def variables(self) -> str:
        """The numbers of features and classes, or of the variables without a class, in words."""
        if not self.classes:
            return f"{self.features} variables, no class"
        return f"{self.features} features, {self.classes} classes"

    @property
    def described(self) -> str:
        """The numbers of samples and of variables in words."""
        weighted = self.total_weight is not None and self.total_weight != self.samples
        total = f" of total weight {self.total_weight:.6g}" if weighted else ""
        unique = "" if self.unique_samples == self.samples else f" ({self.unique_samples} different)"
        return f"{counted(self.samples, 'sample')}{total}{unique}, {self.variables}"

    @classmethod
    def of(cls, data: Dataset) -> DataSummary:
        """Summarise a training set."""
        return cls(
            data.name,
            data.sha256,
            data.n_samples,
            data.merged.n_samples,
            data.n_features if data.has_class else data.n_variables,
            data.n_classes if data.has_class else 0,
            dict(data.left_out),
            math.fsum(data.weights),
            data.discretisation,
        )

    def refusal(self, request: DataRequest | None) -> InputError:
        """Return the error for other data than these, which were read as the request says, if it is known."""
        words = [] if request is None else request.words
        read = f" ({shlex.join(words)})" if words else ""
        return InputError(
            f"The result is of other data than these, of {self.name!r}; give the data, rows and reading options of "
            f"that run{read}."
        )


@dataclass(frozen=True)
class BackendInfo:
    """The backend of a run: its registry name, its version, and its threads (None if a solution file names none).

    `workers` are the threads of its workers, the most at any time; None if no workers were asked for.
    """

    name: str
    version: str
    threads: Count | None
    workers: Annotated[int, Within(0)] | None = field(default=None, compare=False)
    #: Attributes that files of earlier versions lack.
    LATER: ClassVar = ("workers",)

    @property
    def described(self) -> str:
        """Version, threads and workers in words."""
        counts = (self.threads, "thread"), (self.workers, "worker")
        return ", ".join([self.version, *(counted(n, what) for n, what in counts if n is not None)])


@dataclass(frozen=True)
class Seconds:
    """Wall-clock seconds: in total, for data and coefficients, the MILP, the search, and retrained parameters.

    The last are those for the other networks of an average.
    """

    total: NotNegative = 0.0
    coefficients: NotNegative = 0.0
    model: NotNegative = 0.0
    solve: NotNegative = 0.0
    parameters: NotNegative = 0.0
    average: NotNegative = 0.0
    #: Attributes that files of earlier versions lack.
    LATER: ClassVar = ("parameters", "average")
