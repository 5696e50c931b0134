"""The classifiers of Pernkopf, Wohlmayr & Mücke (2011, P11): Table 1, and Figure 2 with few bits per parameter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from milpbn.errors import NoIncumbentError
from milpbn.experiments.base import Figures, Method, MethodInput
from milpbn.heuristics.spanning import tan_structure
from milpbn.learners.discriminative.family_changes import Estimation
from milpbn.learners.registry import get_learner
from milpbn.network.classifier import Classifier
from milpbn.network.fixed_point import accuracy_by_width
from milpbn.network.structure import Structure

#: P11's names of the classifiers, in the order of its Table 1.
DIGIT_LEARNERS = {
    "digits-nb": "NB",
    "tan-cmi": "TAN-CMI",
    "tan-omi-cr": "TAN-OMI-CR",
    "tan-omi-mm": "TAN-OMI-MM",
    "tan-cr": "TAN-CR",
    "tan-mm": "TAN-MM",
}
#: P11's widest format, Q12.52.
INTEGER_BITS, BITS = 12, 64


@dataclass(frozen=True, kw_only=True)
class DigitClassifier(Method):
    """A classifier as P11 learns it: scores by 5-fold cross-validation, zero probabilities replaced.

    Gamma is chosen by cross-validation with TAN-OMI-MM; TAN-MM takes the same. Without `seconds` there is no limit.
    """

    learner: str
    evaluation: str = "cv"
    zero_probability: float = 1e-5
    seconds: float | None = None

    @property
    def name(self) -> str:
        """Name of the learner."""
        return self.learner

    @property
    def needs(self) -> Method | None:
        """TAN-OMI-MM, which chooses gamma for TAN-MM."""
        return replace(self, learner="tan-omi-mm") if self.learner == "tan-mm" else None

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Learn, and measure the accuracy at every number of bits."""
        train, test = given.part.train, given.part.test
        details: dict[str, Any] = {}
        if self.learner in ("digits-nb", "tan-cmi"):
            own = Structure.naive_bayes(train.names) if self.learner == "digits-nb" else tan_structure(train)
            classifier = Estimation(zero_probability=self.zero_probability).classifier(train, own)
        else:
            options: dict[str, Any] = {
                "evaluation": self.evaluation,
                "zero_probability": self.zero_probability,
            }
            if self.learner.endswith("-mm"):
                options["gamma"] = given.needed.get("gamma", "cv")
            learned = get_learner(self.learner)(**options).fit(train, given.control(self.seconds))
            details = dict(learned.details)
            if details.get("stopped_early"):
                raise NoIncumbentError(f"The search did not end within {self.seconds:g} s; allow more time.")
            assert isinstance(learned.predictor, Classifier)
            classifier = learned.predictor
        return {
            "figures": Figures.of(classifier, test).to_dict(),
            "gamma": details.get("gamma"),
            "widths": accuracy_by_width(classifier, test, INTEGER_BITS, BITS),
            "structure": classifier.structure.to_mapping(),
        }
