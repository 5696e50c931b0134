"""The average of several Bayesian network classifiers: the mean of their posteriors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from milpbn.data.dataset import Dataset, Variable, by_column
from milpbn.data.encodings import encodings_of
from milpbn.errors import InputError
from milpbn.network.cards import average_card
from milpbn.network.classifier import Classifier, score_of
from milpbn.network.conformal import Conformal, Tables
from milpbn.network.decisions import DecisionRule
from milpbn.network.explanation.local import SeveralLocalExplanations, check_classes, decided, pair
from milpbn.network.explanation.overall import SeveralGlobalExplanations
from milpbn.network.inference.queries import Evidence, Queries
from milpbn.network.margins import log_posterior
from milpbn.network.predictor import ProbabilityPredictor, Source
from milpbn.util.plurals import counted


@dataclass(frozen=True, eq=False)
class AveragedClassifier(Queries, ProbabilityPredictor):
    """Several networks with equal weights: P(c | z) is the arithmetic mean of their posteriors.

    The networks may have different cuts and states, and columns with one or two variables. The average is no Bayesian
    network, and has no joint distribution: it has posteriors, but no structure, no score, no most probable explanation
    and no samples. `InputError` if there is no member, or the members differ in the raw columns of their variables or
    in their classes.
    """

    #: The networks, the best first; each has its score, objective and bound in its provenance.
    members: tuple[Classifier, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise InputError("An average needs at least one network.")
        first = self.members[0]
        for number, member in enumerate(self.members, start=1):
            if list(by_column(member.variables)) != list(by_column(first.variables)):
                raise InputError(f"Network {number} of the average has other columns than the first.")
            if member.classes != first.classes:
                raise InputError(f"Network {number} of the average has other classes than the first.")

    def __repr__(self) -> str:
        return (
            f"<AveragedClassifier of {counted(len(self.members), 'network')}, the first {self.members[0]!r}>"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the classes, the number of networks, and pictures of them."""
        scores = [score_of(member.provenance) for member in self.members]
        structures = [member.column_structure for member in self.members]
        return average_card(self.variables, structures, scores, self.n_parameters)

    @property
    def variables(self) -> tuple[Variable, ...]:  # type: ignore[override]  # frozen, so it is only read
        """Variables of the first network, features first, the class variable last."""
        return self.members[0].variables

    @property
    def variable_sets(self) -> tuple[tuple[Variable, ...], ...]:
        """The different sets of variables of the networks, each once; rows are encoded with all of them."""
        return tuple(dict.fromkeys(member.variables for member in self.members))

    @property
    def decision(self) -> DecisionRule | None:  # type: ignore[override]
        """The decision of the first network, which is that of the average."""
        return self.members[0].decision

    def _deciding(self, decision: DecisionRule | None) -> AveragedClassifier:
        return AveragedClassifier(tuple(replace(member, decision=decision) for member in self.members))

    @property
    def conformal(self) -> Conformal | None:  # type: ignore[override]
        """What the average's sets are calibrated on, which the first network holds."""
        return self.members[0].conformal

    def with_sets(self, sets: Conformal | None) -> Self:
        """Return the same model with calibrated prediction sets, or with None without any."""
        first, *others = self.members
        return replace(self, members=(first.with_sets(sets), *others))

    def with_tables(self, tables: Tables) -> AveragedClassifier:
        """Return the same model with other probability tables, those of each network."""
        pairs = zip(self.members, tables, strict=True)
        return AveragedClassifier(tuple(member.with_tables((own,)) for member, own in pairs))

    def _encodings(self, source: Source) -> dict[tuple[Variable, ...], Dataset]:
        """Return samples as codes of the states of each set of variables."""
        return {part.variables: part for part in encodings_of(self.encode(source))}

    def explain_local(
        self, source: Source, *, label: str | None = None, against: str | None = None
    ) -> tuple[SeveralLocalExplanations, ...]:
        """Explain the prediction of every sample, by one exact sum per network; see `Classifier.explain_local`.

        The log-odds of the average itself are no sum over families. All networks compare the same two classes, by
        default the most probable ones of the average.
        """
        label, against = check_classes(self.classes, label, against)
        data = self.encode(source)
        parts, posterior = self._encodings(data), self.predict_log_posterior(data)
        chosen = [None if name is None else self.classes.index(name) for name in (label, against)]
        explained = []
        for m, logs in enumerate(posterior):
            own, other = (self.classes[c] for c in pair(logs, *chosen))
            members = tuple(
                member.explain_local(parts[member.variables].take([m]), label=own, against=other)[0]
                for member in self.members
            )
            explained.append(
                SeveralLocalExplanations(
                    sample=m,
                    target=self.variables[-1].name,
                    classes=self.classes,
                    actual=members[0].actual,
                    predicted=self.classes[logs.argmax()],
                    label=own,
                    against=other,
                    probabilities=tuple(np.exp(logs).tolist()),
                    members=tuple(member.at(m) for member in members),
                )
            )
        return decided(explained, self.decision)

    def explain_global(
        self, source: Source | None = None, *, gamma: float | None = None
    ) -> SeveralGlobalExplanations:
        """Explain every network of the average; see `Classifier.explain_global`."""
        if source is None:
            return SeveralGlobalExplanations(tuple(member.explain_global() for member in self.members))
        parts = self._encodings(source)
        return SeveralGlobalExplanations(
            tuple(member.explain_global(parts[member.variables], gamma=gamma) for member in self.members)
        )

    def __str__(self) -> str:
        """Return the tables of the networks as text, shortened where there are many features."""
        return str(self.explain_global())

    def predict_log_posterior(self, source: Source) -> NDArray[np.float64]:
        """Return the logarithm of the mean of the networks' P(c | z_m), in nats, shape (M, C)."""
        parts = self._encodings(source)
        logs = [member.predict_log_posterior(parts[member.variables]) for member in self.members]
        # Normalising again removes the rounding of the sum, so that probabilities near 1 have accurate logarithms.
        return log_posterior(logsumexp(np.stack(logs), axis=0) - np.log(len(logs)))

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of all networks."""
        return sum(member.n_parameters for member in self.members)

    def posterior(self, variable: str, evidence: Evidence | None = None) -> dict[str, float]:
        """Return the mean of the networks' P(variable | evidence) by state label; see `Classifier.posterior`.

        Raises
        ------
        InputError
            As there, and if the networks have different states of the variable, such as other intervals.
        """
        return _mean(variable, [member.posterior(variable, evidence) for member in self.members])

    def marginals(self, evidence: Evidence | None = None) -> dict[str, dict[str, float]]:
        """Return the mean of the networks' P(variable | evidence); see `Classifier.marginals`.

        Variables of which the networks have different states are left out.
        """
        found = [member.marginals(evidence) for member in self.members]
        shared = [
            name
            for name in found[0]
            if all(one.get(name, {}).keys() == found[0][name].keys() for one in found)
        ]
        return {name: _mean(name, [one[name] for one in found]) for name in shared}


def _mean(variable: str, posteriors: Sequence[dict[str, float]]) -> dict[str, float]:
    first = posteriors[0]
    if any(one.keys() != first.keys() for one in posteriors):
        raise InputError(
            f"The networks of the average have different states of {variable!r}, so that its posteriors have no mean; "
            "ask for another variable, or ask one of the members."
        )
    return {label: sum(one[label] for one in posteriors) / len(posteriors) for label in first}
