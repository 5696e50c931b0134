"""The Bayesian network classifier: variables, structure and tables, fitted and used."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from milpbn import __version__
from milpbn.data.dataset import UNKNOWN, Dataset, Variable
from milpbn.errors import InputError, MilpbnWarning
from milpbn.network.checks import check_cpts, check_variables
from milpbn.network.cpt import Cpt, class_log_joint, fit_cpts
from milpbn.network.margins import log_posterior
from milpbn.network.structure import Structure

if TYPE_CHECKING:
    from milpbn.data.sources import Source as RawSource

#: What a classifier predicts on: encoded samples, or a data frame, path, name or array to read.
Source: TypeAlias = "Dataset | RawSource"


class Predictor(Protocol):
    """What a learner's model can do, whether or not it is a Bayesian network (`Classifier` is one)."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Labels of the classes, in the order of the columns of the log-joint."""
        ...

    def predict(self, source: Source) -> NDArray[np.object_]:
        """Return the label of each sample's class, shape (M,)."""
        ...


class JointPredictor(Predictor, Protocol):
    """A predictor that compares the classes by log-probabilities."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Features first, the class variable last."""
        ...

    def encode(self, source: Source) -> Dataset:
        """Return samples as codes."""
        ...

    def predict_log_joint(self, source: Source) -> NDArray[np.float64]:
        """Return log P(c, z_m) in nats, shape (M, C)."""
        ...


def encode(source: Source, variables: tuple[Variable, ...]) -> Dataset:
    """Return samples as codes into the states of some variables, every row kept.

    Parameters
    ----------
    source : Dataset, pandas.DataFrame, str or path-like
        A `Dataset` must have been encoded with these variables and comes back as it is; the rest is read by
        `milpbn.data.read_samples`: columns are matched by name, the class column may be absent, and values
        without a state become `UNKNOWN`.
    variables : tuple of Variable
        Features first, the class variable last.

    Warns
    -----
    MilpbnWarning
        If no value of a feature that a table has is one of the training data's: it may be coded otherwise.

    Raises
    ------
    InputError
        If a dataset has other variables, or the table cannot be read or lacks a feature.
    """
    if not isinstance(source, Dataset):
        from milpbn.data import read_samples  # reading needs pandas, predicting on codes does not

        data = read_samples(source, variables)
        for name, count in unknown_values(data).items():
            if count == len(data.y) > 1:  # one sample says little
                warnings.warn(
                    f"No value of the column {name!r} is one that training saw, and it counts for nothing; "
                    "is it coded in another way?",
                    MilpbnWarning,
                    stacklevel=3,
                )
        return data
    if source.variables != variables:
        raise InputError(
            f"The data {source.name!r} has other columns or states than the classifier; "
            "encode its table with the classifier's variables."
        )
    return source


def unknown_values(data: Dataset) -> dict[str, int]:
    """Return how many values of each feature have no state, features without any left out."""
    counts = (data.X == UNKNOWN).sum(axis=0)
    return {v.name: int(n) for v, n in zip(data.variables, counts, strict=False) if n}


class TableClassifier(ABC):
    """What classifiers made of one table per variable share; they compare classes by sums of log-probabilities.

    Attributes
    ----------
    variables : tuple of Variable, length V = N + 1
        Features first, the class variable last.
    cpts : tuple of Cpt, length V
        One table per variable.
    """

    variables: tuple[Variable, ...]
    cpts: tuple[Cpt, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """Labels of the classes, in the order of the columns of the log-joint."""
        return self.variables[-1].states

    def encode(self, source: Source) -> Dataset:
        """Return samples as codes into this classifier's states; see `milpbn.network.classifier.encode`."""
        return encode(source, self.variables)

    @abstractmethod
    def predict_log_joint(self, source: Source) -> NDArray[np.float64]:
        """Return the sums of log-probabilities of all classes in nats, shape (M, C)."""

    def predict(self, source: Source) -> NDArray[np.object_]:
        """Return the label of each sample's best class, shape (M,); ties go to the first class."""
        labels = np.array(self.classes, dtype=object)
        return labels[self.predict_log_joint(source).argmax(axis=1)]

    def unknown_count(self, source: Source) -> dict[str, int]:
        """Return how many values of each feature have no state, features without any left out."""
        return unknown_values(self.encode(source))


@dataclass(frozen=True, eq=False)
class Classifier(TableClassifier):
    """A Bayesian network over N features and the class variable.

    Attributes
    ----------
    variables : tuple of Variable, length V = N + 1
        Features first, the class variable last.
    structure : Structure
        One parent set per variable.
    cpts : tuple of Cpt, length V
        One table per variable.
    smoothing : float
        The Laplace constant the tables were estimated with.
    provenance : dict
        Where the classifier comes from: milpbn's version, the data's name and hash, and what the caller
        added (score, objective, bound, date, ...); JSON values only.

    Raises
    ------
    InputError
        If the parts do not belong together or a table does not hold probabilities.
    """

    variables: tuple[Variable, ...]
    structure: Structure
    cpts: tuple[Cpt, ...]
    smoothing: float = 1.0
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_variables(self.variables)
        check_cpts(self.cpts, self.variables, self.structure)

    @classmethod
    def fit(
        cls,
        data: Dataset,
        structure: Structure,
        smoothing: float = 1.0,
        provenance: Mapping[str, Any] | None = None,
    ) -> Classifier:
        """Estimate the tables of a structure (`fit_cpts`) and return the classifier.

        Parameters
        ----------
        data : Dataset
            Training samples, without unknown values.
        structure : Structure
            Parent sets over the data's variables.
        smoothing : float
            Laplace constant a >= 0.
        provenance : mapping, optional
            Added to, and winning over, the version and the data's name, hash and size recorded here.

        Raises
        ------
        InputError
            As `fit_cpts`.
        """
        recorded = {
            "milpbn": __version__,
            "data": {"name": data.name, "sha256": data.sha256, "samples": data.n_samples},
        }
        cpts = tuple(fit_cpts(data, structure, smoothing))
        return cls(data.variables, structure, cpts, float(smoothing), {**recorded, **(provenance or {})})

    def predict_log_joint(self, source: Source) -> NDArray[np.float64]:
        """Return log P(c, z_m) in nats, shape (M, C)."""
        data = self.encode(source)
        return class_log_joint(data.codes, self.structure, self.cpts, len(self.classes))

    def predict_proba(self, source: Source) -> NDArray[np.float64]:
        """Return P(c | z_m), shape (M, C); uniform where every class has probability 0."""
        return np.exp(log_posterior(self.predict_log_joint(source)))
