"""Explains a structure that a search found: what is proved of its arcs, what features are worth, and alternatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from milpbn.claims.parts import ProvedArcs, ResultPart
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.problem.rescore import rescore
from milpbn.solving.alternatives import Neighbour, near_optimal
from milpbn.solving.gains import FeatureGain, feature_gains
from milpbn.solving.options import Options
from milpbn.solving.question import Question


@dataclass(frozen=True)
class StructureExplanation(ResultPart):
    """What is known of the structure of a result."""

    #: Its score in nats, computed from the data.
    objective: float
    #: Upper bound on the score of every structure, in nats, as the result says.
    bound: float | None
    arcs: tuple[tuple[str, str], ...]
    #: Arcs that every optimum has, and arcs that none has, as the result says; None if its search proved none.
    proved: ProvedArcs | None
    #: What the features are worth to the score, the most valuable first.
    gains: tuple[FeatureGain, ...]
    #: The best structures that differ by one change, the best first.
    alternatives: tuple[Neighbour, ...]

    def to_text(self, shown: int = 20) -> str:
        """Return the explanation as lines of text, with at most this many arcs and features."""
        lines = _arc_lines(self.arcs, self.proved, shown)
        lines.append("gain: the score minus the score without the feature's arcs, in nats")
        for gain in self.gains[:shown]:
            lines.append(f"  {gain.gain:>12.6f}  {gain.variable}{_irreplaceable(gain)}")
        if len(self.gains) > shown:
            lines.append(f"  ... {len(self.gains) - shown} more")
        lines.append("alternatives: structures that differ by one change, and what they lose, in nats")
        lines += [f"  {other.loss:>12.6f}  {other.change}" for other in self.alternatives]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()


def explain_result(
    result: Result,
    data: Dataset,
    *,
    alternatives: int = 10,
    seconds: float = 0.0,
    threads: int | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> StructureExplanation:
    """Explain the structure of a result.

    Parameters
    ----------
    result : Result
        A result with a structure. Its score and constraints are used.
    data : Dataset
        The training data of the result.
    alternatives : int
        Number of alternatives.
    seconds : float
        As for `milpbn.solving.gains.feature_gains`.
    threads, interrupted
        See `milpbn.solving.options.Options`.

    Raises
    ------
    InputError
        If the result has no structure, or is of other data.
    """
    if result.structure is None:
        raise InputError("The result has no structure, so that there is nothing to explain.")
    if data.sha256 != result.data.sha256:
        raise result.data.refusal(result.request)
    structure, question = result.structure, Question(data, result.score, result.constraints)
    options = Options(threads=threads, verbose=False, interrupted=interrupted)
    return StructureExplanation(
        objective=rescore(data.merged, structure, result.score, result.constraints),
        bound=result.bound,
        arcs=tuple((structure.names[j], structure.names[i]) for j, i in structure.arcs),
        proved=result.proved,
        gains=feature_gains(question, structure, options, seconds=seconds, bound=result.bound),
        alternatives=near_optimal(question, structure, alternatives),
    )


def _arc_lines(arcs: tuple[tuple[str, str], ...], proved: ProvedArcs | None, shown: int) -> list[str]:
    if proved is None:
        return [f"arcs: {len(arcs)}; the result says of none of them whether every optimum has it"]
    inside = set(proved.inside)
    sure = sum(arc in inside for arc in arcs)
    lines = [
        f"arcs: {sure} of {len(arcs)} are in every optimum; {len(proved.outside)} other arcs are in none"
    ]
    for arc in arcs[:shown]:
        claim = "in every optimum" if arc in inside else "not known to be in every optimum"
        lines.append(f"  {arc[0]} -> {arc[1]}  {claim}")
    return lines + ([f"  ... {len(arcs) - shown} more"] if len(arcs) > shown else [])


def _irreplaceable(gain: FeatureGain) -> str:
    if gain.least is None or gain.most is None:
        return ""
    least, most = f"{gain.least:.4f}", f"{gain.most:.4f}"
    return f"; {least if least == most else f'{least} to {most}'} of it irreplaceable by other arcs"
