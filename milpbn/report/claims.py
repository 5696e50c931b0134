"""The sentences of a report: what a result claims."""

from __future__ import annotations

from milpbn.claims.reasons import BoundSource, Reason
from milpbn.claims.result import Result
from milpbn.solving.progress import show_gap
from milpbn.util.plurals import counted


def headline(result: Result) -> str:
    """Return the result in one sentence."""
    if result.structure is None:
        return f"The run ended without a structure: {str(result.reason).replace('_', ' ')}."
    if result.optimal:
        return (
            "This network is proved optimal: no structure within the options of the run has a better score"
            f"{result.among_clause}."
        )
    searched = result.searched
    if searched.bound is None:
        return (
            "This is the best network that was found; nothing is proved of how far it is from the best one."
        )
    share = show_gap(searched.gap.relative_to_bound)
    if result.subset is not None:
        return f"This network was sought on representative samples only; on them its score is {share} below the bound."
    if result.screened is not None:
        if searched.optimal:
            return f"This network is proved optimal over the kept parent sets{result.among_clause}."
        return (
            "Among the structures of the kept parent sets, none exceeds this network's score by more than "
            f"{share} of the bound."
        )
    return f"No structure exceeds this network's score by more than the gap, {share} of the bound{result.among_clause}."


def meaning_of_gap(result: Result) -> list[str]:
    """Return sentences on what incumbent, bound and gap say of this result."""
    searched, gap = result.searched, result.searched.gap
    lines = [
        "The incumbent is the score of the network, computed from the data. The bound is a number that the score of no "
        "structure can exceed. The gap is their distance: the best structure is at most so much better than this one."
    ]
    if searched.bound is None or gap.absolute is None:
        lines.append("This run has no bound, so that the network may be far from the best one.")
    elif result.optimal:
        lines.append(
            f"Here the gap is {gap.absolute:.3g} nats, which is within the tolerance of a proof. "
            "Other structures may have the same score, but none exceeds it by more than this gap."
        )
    else:
        lines.append(
            f"Here the gap is {gap.absolute:.6g} nats. A longer run can only lower the bound and raise the incumbent, "
            "so that the true distance is between 0 and this gap; the network may well be optimal already."
        )
    if result.gap_se is not None and not searched.optimal:
        lines.append(
            "Another sample of the same size would change the score of this network by about "
            f"{result.standard_error:.4g} nats, one standard error; the gap is {result.gap_se:.3g} of these."
        )
    if result.among:
        lines.append(
            f"Bound, gap and optimum are only about {result.among}. Others may score more; a search with --parent-sets "
            "all is about all structures."
        )
    if any(value is not None and value <= 0 for value in (searched.objective, searched.bound)):
        lines.append("The score can be negative, so that only the gap in nats has a meaning.")
    if result.subset is not None:
        lines.append(
            f"Bound and gap are over {counted(result.subset.samples, 'representative sample')}. They say nothing "
            "of the score over all samples."
        )
        if result.bound is not None:
            lines.append(f"Over all samples no structure scores more than {result.bound:.6f}.")
    if result.screened is not None:
        lines.append(
            f"Bound and gap are over {result.screened.n_kept} of "
            f"{counted(result.screened.total, 'candidate parent set')}. A structure with one of the others "
            "may be better."
        )
    if searched.bound is not None:
        lines.append(
            "The file calls the bound certified: it rests on the arithmetic of milpbn itself, and milpbn verify checks "
            "it with the run's certificate."
            if result.bound_source is BoundSource.CERTIFIED
            else "The bound is that of a MILP solver, and holds within the solver's tolerances."
        )
    if result.reason is Reason.RUNNING:
        lines.append(
            "The run had not ended when it wrote the file; the numbers hold, and may have become better since."
        )
    return lines
