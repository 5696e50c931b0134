"""What each arc of a structure is worth: the score without it."""

from __future__ import annotations

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.util import stages


def arc_losses(data: Dataset, structure: Structure, score: Score) -> dict[tuple[int, int], float]:
    """Return what the score loses without each arc, with parameters estimated anew.

    Parameters
    ----------
    data : Dataset
        Training data of the structure.
    structure : Structure
        The structure.
    score : Score
        The score. Under margin scores and the conditional log-likelihood a feature without the class as a parent counts
        as one without parents; so the loss of an arc from the class is that of all of the feature's arcs.

    Returns
    -------
    dict of (parent, child) to float
        The structure's score minus its score without the arc, in nats; negative where the arc makes the score worse.

    Raises
    ------
    InputError
        If `rescore` refuses the structure.
    """
    data = data.merged
    if tuple(structure.names) != tuple(data.names):
        raise InputError(f"The structure has other variables than the data {data.name!r}.")
    last, own = len(structure.names) - 1, rescore(data, structure, score)
    losses = {}
    for count, (parent, child) in enumerate(structure.arcs):
        stages.tell(f"arcs {count} of {len(structure.arcs)}")
        rest = tuple(j for j in structure.parents[child] if j != parent)
        if parent == last and score.kind.class_free_alike:
            rest = ()
        sets = (*structure.parents[:child], rest, *structure.parents[child + 1 :])
        losses[parent, child] = own - rescore(data, Structure(structure.names, sets), score)
    return losses
