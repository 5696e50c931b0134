"""What the choice of an additive model compared, and what it chose: a part of the record of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from milpbn.util.declared import Count, NotNegative, OneOf, Within, read_as
from milpbn.util.jsonable import Fields, json_safe

#: Where the interactions come from, and how they are named.
STRUCTURES = {
    "none": "no interactions",
    "forest": "a forest of interactions",
    "grown": "a forest of interactions and more of two or three features",
    "pairs": "all pairs and more interactions of three features",
    "exact": "the exact structure",
    "tan": "the tree of TAN",
}


@dataclass(frozen=True, kw_only=True)
class AdditiveTrial:
    """One candidate of the choice, with its best strengths."""

    #: How continuous columns were cut into coarse intervals, as in ``--discretise``.
    cuts: str
    #: One of `STRUCTURES`.
    structure: Annotated[str, OneOf(tuple(STRUCTURES))]
    #: Those of `milpbn.network.additive.terms.Strengths`.
    main_ridge: NotNegative
    main_smoothness: NotNegative
    pair_ridge: NotNegative
    pair_smoothness: NotNegative
    #: Share of naive Bayes, or of TAN with its tree, in the log-odds, beside the terms.
    kappa: NotNegative
    #: Mean of -log P(c_m | x_m) in nats over the held-out rows; None if the time did not suffice for the only one. For
    #: a candidate that was given up after some folds it is the chosen one's and the difference there.
    log_loss: NotNegative | None
    #: Mean difference of the log-loss from the chosen candidate's, and its standard error over the rows.
    difference: float
    standard_error: NotNegative
    #: Whether columns of few integers have a penalty on the differences of neighbours.
    ordered: bool = False
    #: Whether terms are penalised by groups, so that those of no use are empty.
    grouped: bool = False
    #: Whether the curves of continuous columns are penalised by their curvature instead of by their steps.
    curvature: bool = False
    LATER: ClassVar = ("ordered", "grouped", "curvature")

    @property
    def strengths(self) -> tuple[float, float, float, float]:
        """Ridge and smoothness of main effects, and of interactions."""
        return self.main_ridge, self.main_smoothness, self.pair_ridge, self.pair_smoothness

    def describe(self) -> str:
        """Return the candidate in words."""
        cuts = f"cuts {self.cuts}, " if self.cuts else ""
        order = ", integers in order" if self.ordered else ""
        order += ", curvature penalised" if self.curvature else ""
        order += ", penalties by groups" if self.grouped else ""
        return f"{cuts}{STRUCTURES[self.structure]}{order}, kappa {self.kappa:g}"


@dataclass(frozen=True, kw_only=True)
class AdditiveFit:
    """How an additive model was chosen."""

    #: All candidates in the order of the choice; each was compared by `folds` times `repeats` fits.
    trials: tuple[AdditiveTrial, ...]
    #: Position of the chosen one.
    chosen: Annotated[int, Within(0)]
    #: Training rows that were held out in the folds; fewer than all in a large table.
    rows: Count
    folds: Count
    repeats: Count
    #: Whether all candidates were compared before the time was over.
    complete: bool
    #: Whether features could get more parents than the score allowed at first.
    wider: bool = False
    #: By what the scores of the fit to all rows are multiplied.
    sharper: NotNegative = 1.0
    LATER: ClassVar = ("sharper",)

    @property
    def choice(self) -> AdditiveTrial:
        """The chosen candidate."""
        return self.trials[self.chosen]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        return json_safe(vars(self))

    @classmethod
    def read(cls, f: Fields) -> AdditiveFit:
        """Read what `to_dict` returned; raise InputError if a value is missing or impossible."""
        found = read_as(cls, f)
        if found.chosen >= len(found.trials):
            raise f.contradiction("it has no trial with the number of the chosen one")
        return found

    def describe(self) -> list[str]:
        """Return sentences for the user: what was chosen, and what was compared."""
        one = self.choice
        known = one.log_loss is not None
        compared = (
            f"; log-loss {one.log_loss:.4f} in {self.folds} folds" if known else ", the first candidate"
        )
        lines = [
            f"{one.describe()}{compared}",
            "ridge and smoothness of main effects {:.3g} and {:.3g}, "
            "of interactions {:.3g} and {:.3g}".format(*one.strengths),
        ]
        for trial in self.trials:
            if trial is not one:
                lines.append(
                    f"{trial.describe()}: log-loss {trial.log_loss:.4f}, "
                    f"{trial.difference:+.4f} +- {trial.standard_error:.4f} from the chosen one"
                )
        if self.sharper != 1.0:
            lines.append(f"The log-odds of the fit to all rows are multiplied by {self.sharper:g}.")
        if not self.complete:
            which = "all candidates were" if known else "one was"
            lines.append(f"The time limit ended the choice before {which} compared on held-out rows.")
        return lines
