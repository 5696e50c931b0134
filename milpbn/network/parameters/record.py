"""How the parameters of a classifier were fitted: the record that results and classifier files hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from milpbn.errors import InputError
from milpbn.network.additive.record import AdditiveFit
from milpbn.network.classifier import Classifier
from milpbn.network.monotone.check import MonotoneCheck, MonotoneFit, check_monotone
from milpbn.network.monotone.constraints import MonotoneConstraint
from milpbn.network.parameters.method import METHODS
from milpbn.util.declared import NotNegative, OneOf, Within, read_as
from milpbn.util.jsonable import Fields, json_safe

#: The method of tables on finer cuts, which only the recipe ``accurate`` fits.
ADDITIVE = "additive"
#: What every output says beside parameters that are not those of the score.
OWN_PARAMETERS = (
    "score, bound, gap and certificate are of the structure under the score's own (generative) parameters, "
    "not of the retrained classifier"
)
#: The same for tables on finer cuts.
FINER_TABLES = (
    "score, bound, gap and certificate are of the structure on the coarse cuts, under the score's own parameters; the "
    "classifier's tables were fitted afterwards, those of continuous columns on finer cuts"
)


@dataclass(frozen=True, kw_only=True)
class ParameterFit:
    """How the parameters of a classifier were fitted."""

    #: The name in `METHODS` that was asked for, or `ADDITIVE`.
    method: Annotated[str, OneOf((*METHODS, ADDITIVE))] = "ml"
    #: Whether the classifier has parameters that this method fitted. False under ``ml``, and where `note` says why the
    #: previous parameters are kept.
    fitted: bool = False
    #: Share of the generative log-joint in the weights, from 0 to 1; under ``temperature`` its factor.
    kappa: NotNegative | None = None
    #: Factor on half the sum of the squared deviations from it; None without deviations.
    strength: NotNegative | None = None
    #: Mean of -log P(c_m | z_m) in nats over the held-out rows of all folds: with the chosen kappa and strength, and
    #: with generative parameters. None if kappa and strength were given.
    held_out_log_loss: NotNegative | None = None
    generative_log_loss: NotNegative | None = None
    #: Number of folds; None if kappa and strength were given.
    folds: Annotated[int, Within(2)] | None = None
    #: Arcs that the classifier's structure has to hold normalisers, and the structure of the search does not.
    added_arcs: tuple[tuple[str, str], ...] = ()
    seconds: NotNegative = 0.0
    #: A sentence for the user; empty if there is nothing to say.
    note: str = ""
    #: How tables on finer cuts were chosen; None for other parameters.
    additive: AdditiveFit | None = None
    #: What became of the monotone constraints; None without any.
    monotone: MonotoneFit | None = None
    #: Attributes that files of earlier versions lack.
    LATER: ClassVar = ("additive", "monotone")

    @property
    def constraints(self) -> tuple[MonotoneConstraint, ...]:
        """The features that were asked to be monotone."""
        return () if self.monotone is None else tuple(check.constraint for check in self.monotone.features)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        return json_safe({k: v for k, v in vars(self).items() if v is not None or k not in self.LATER})

    @classmethod
    def read(cls, f: Fields) -> ParameterFit:
        """Read what `to_dict` returned.

        `InputError` if a value is missing or impossible, or values contradict each other.
        """
        arcs = tuple((row.text("0"), row.text("1")) for row in f.rows("added_arcs", 2))
        read = read_as(cls, f, "added_arcs", added_arcs=arcs)
        if (read.additive is not None) != (read.method == ADDITIVE and read.fitted):
            raise f.contradiction("it has tables on finer cuts without how they were chosen, or the converse")
        if read.method == "ml" and read != cls(seconds=read.seconds):
            raise f.contradiction(
                "it describes a fit of other parameters than the generative ones that it names"
            )
        figures = (read.held_out_log_loss, read.generative_log_loss, read.folds)
        if len({figure is None for figure in figures}) > 1:
            raise f.contradiction("it has log-losses without folds, or only one of the two log-losses")
        if not read.fitted and (read.kappa, read.strength, read.added_arcs) != (None, None, ()):
            raise f.contradiction("it describes fitted parameters, and says that none were fitted")
        if not read.fitted and read.method != "ml" and not read.note:
            raise f.contradiction("it does not say why no parameters were fitted")
        if read.fitted and read.kappa is None:
            raise f.contradiction("it has fitted parameters without kappa")
        scaled = read.method == "temperature"
        if read.kappa is not None and (
            (read.kappa > 1 and not scaled) or (read.kappa != 0 and read.method == "cll")
        ):
            raise f.contradiction(f"kappa {read.kappa!r} does not go with {read.method!r}")
        if scaled and read.strength is not None:
            raise f.contradiction("a temperature has no strength")
        return read

    def describe(self) -> list[str]:
        """Return sentences for the user, the first without the method's name; none for ``ml``."""
        if self.method == "ml":
            return []
        lines = []
        if self.additive is not None:
            lines += self.additive.describe()
        elif self.fitted:
            losses = ""
            if self.held_out_log_loss is not None and self.generative_log_loss is not None:
                losses = (
                    f"; log-loss {self.held_out_log_loss:.6f} in {self.folds} folds, "
                    f"generative {self.generative_log_loss:.6f}"
                )
            if self.method == "temperature":
                lines.append(f"temperature: the generative log-joint times {self.kappa:.4g}{losses}")
            elif self.strength is None:
                lines.append(f"{self.method}: kappa {self.kappa:g}, no deviations{losses}")
            else:
                lines.append(f"{self.method}: kappa {self.kappa:g}, strength {self.strength:g}{losses}")
        else:
            lines.append(f"{self.method}: not fitted")
        if self.note:
            lines.append(self.note)
        if self.monotone is not None:
            lines += self.monotone.describe()
        if self.added_arcs:
            arcs = ", ".join(f"{parent} -> {child}" for parent, child in self.added_arcs)
            lines.append(f"the classifier's structure also has {arcs}, to hold normalisers")
        if self.fitted:
            lines.append(OWN_PARAMETERS if self.additive is None else FINER_TABLES)
        return lines


def recorded_checks(classifier: object) -> tuple[MonotoneCheck, ...]:
    """Return whether a network has the monotone features that its file says it was fitted with; none without."""
    fit = recorded(getattr(classifier, "provenance", {}))
    if fit is None or not fit.constraints or not isinstance(classifier, Classifier):
        return ()
    return check_monotone(classifier.variables, classifier.cpts, fit.constraints)


def recorded(provenance: Mapping[str, Any]) -> ParameterFit | None:
    """Return the record under ``parameters`` in a classifier's provenance or a learner's details.

    It is None if there is none, or one that cannot be read.
    """
    try:
        return ParameterFit.read(Fields(provenance.get("parameters"), "The provenance"))
    except InputError:
        return None
