"""The claims of a result or of a certificate's header, and the checks that need no tree: data, options, incumbent."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.format import NOT_IN_HEADER, kept_candidates
from milpbn.claims.gap import tolerance_of
from milpbn.claims.local_result import KEYS as LOCAL_KEYS
from milpbn.claims.local_result import LocalResult, result_kind
from milpbn.claims.parts import SAME_NUMBER, ProvedArcs, same_number
from milpbn.claims.reasons import Limit, Reason
from milpbn.claims.result import DataSummary, Result, Seconds, keys_of
from milpbn.data.dataset import Dataset
from milpbn.data.sums import exact_sums
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates, admitted_sets, count_candidates, list_candidates
from milpbn.problem.class_free import settled
from milpbn.problem.conflicts import resolve
from milpbn.problem.constraints import Rules, atoms, combine
from milpbn.problem.forecast import require_list
from milpbn.problem.gate import objection
from milpbn.problem.local import GivenTerms, LocalDataset, obeying
from milpbn.problem.rescore import rescored, standard_error
from milpbn.problem.rounding import EPS
from milpbn.util.jsonable import Fields, shorten
from milpbn.util.saved_arrays import SavedArrays, UnfitError

#: All keys of ``result.json``.
KEYS = keys_of(Result)
#: Nats by which a stated standard error may differ from the computed one, or this share of it if that is more.
SAME_ERROR = 1e-6
#: The keys that files of earlier versions lack: of the class of structures, of screening, of the K best structures, of
#: how the data were read, of the tolerance and the standard error. Those of local scores lack some more.
NEWER = ("among", "screened", "alternatives", "request", "tolerance", "standard_error", "gap_se")
LOCAL_NEWER = (*NEWER, "constraints", "run", "notes")
#: Scores that have certificates and are sums of one term per variable and its parents.
DECOMPOSABLE = ("ll", "mdl", "aic", "bdeu", GivenTerms.name)


class Claim(NamedTuple):
    """The claims of a result or of a certificate's header, which have a structure, a score and a bound."""

    #: The whole result; that of a header has no times and no selection.
    result: Result
    #: Version of milpbn that wrote it.
    version: str
    structure: Structure
    #: Score and bound of what was searched (`Result.searched`): of the subset, if one was; over the kept parent sets,
    #: if some were left out.
    objective: float
    bound: float
    #: The gap in standard errors that is stated (`Result.gap_se`); None if none is.
    gap_se: float | None = None

    @property
    def optimal(self) -> bool:
        """Whether the structure is called optimal among what was searched."""
        return self.result.searched.optimal

    @property
    def arcs(self) -> ProvedArcs:
        """The arcs that all optima are said to have, and to lack."""
        return self.result.proved or ProvedArcs()

    @property
    def samples(self) -> int | None:
        """Number of samples of the subset; None without one."""
        return None if self.result.subset is None else self.result.subset.samples


def read_claim(values: object, what: str) -> Claim:
    """Read the claims of a result, or of a certificate's header, which has the key ``milpbn``.

    Raises InputError if the values contradict themselves, have unknown keys, or hold no structure or no bound; `what`
    begins the sentence.
    """
    f = Fields(values, what)
    is_header = "milpbn" in f
    whole, newer = (("format", *LOCAL_KEYS), LOCAL_NEWER) if "format" in f else (KEYS, NEWER)
    keys = [key for key in whole if key not in NOT_IN_HEADER] if is_header else whole
    f.known((*keys, "version", "milpbn") if is_header else keys)
    contents = {key: f.get(key) for key in keys if key in f or key not in newer}
    version = f.text("milpbn" if is_header else "version")
    if is_header:
        contents |= {"seconds": vars(Seconds()), "trace": []}
    result = result_kind(contents).from_dict(contents, what)
    searched = result.searched
    if result.structure is None or searched.objective is None:
        raise InputError(f"{what} holds no structure, so that there is nothing to verify.")
    if searched.bound is None:
        raise InputError(f"{what} holds no bound, so that there is nothing to verify.")
    if not result.score.kind.certified:
        raise InputError(f"There are no certificates for the score {result.score.name}.")
    stated = f.optional("gap_se", f.number, 0.0) if "gap_se" in f else None
    return Claim(result, version, result.structure, searched.objective, searched.bound, stated)


def check_same(claim: Claim, header: Claim, data: Dataset) -> None:
    """Refuse a result, its certificate's header and data of different problems, and a wrong summary of the data."""
    result, other = claim.result, header.result
    claimed, actual = result.data, DataSummary.of(data)
    if claimed.sha256 != actual.sha256 or isinstance(result, LocalResult) != isinstance(data, LocalDataset):
        raise claimed.refusal(result.request)
    if bool(claimed.classes) != data.has_class:
        said = "has no class; give --no-target" if data.has_class else "has a class; leave out --no-target"
        raise InputError(f"The result {said} (target).")
    for key in ("samples", "unique_samples", "features", "classes", "total_weight", "discretisation"):
        said, found = getattr(claimed, key), getattr(actual, key)
        if said is not None and said != found:
            raise InputError(f"The result says {key} = {said}, but the data have {found or 'none'}.")
    if isinstance(data, LocalDataset) and getattr(result, "parent_sets", 0) != data.local.candidates.n_sets:
        raise InputError("The result counts other parent sets than those of the local scores.")
    listed = result.alternatives is not None
    if settled(result.score, result.constraints, data.total_weight, listed=listed) != result.score:
        raise InputError("The result is about all structures, but parent sets that it needs were left out.")
    names = claim.structure.names
    if sorted(names) != sorted(data.names) or names[-1] != data.names[-1]:
        raise InputError("The result's structure has other variables than the data, or another class.")
    if vars(other.data) != vars(claimed):
        raise InputError("The certificate is of other data than the result.")
    for key in ("score", "constraints"):
        if getattr(other, key).to_dict() != getattr(result, key).to_dict():
            raise InputError(f"The certificate is for another choice of {key} than the result.")
    if header.samples != claim.samples:
        raise InputError("The certificate is for another subset of the samples than the result.")
    one, two = (None if r.screened is None else r.screened.same_sets for r in (result, other))
    if one != two:
        raise InputError("The certificate is for other screened parent sets than the result.")


def check_run(claim: Claim, header: Claim) -> None:
    """Refuse a result of another run than the certificate's, or that claims more, or describes the run differently.

    The result may claim less: if a run is killed, its certificate may be a moment newer than its result. The result
    must then describe its end as a search that is still running does: ``running``, or in older files ``feasible`` by
    the time limit. If the certificate is the one of a search that is still running, and the numbers are the same, the
    result alone says how the search ended.
    """
    result, proof = claim.result, header.result
    if result.run != proof.run:
        raise InputError("The certificate is of another run than the result.")
    for what, more in (
        (f"the bound {claim.bound!r}", claim.bound < header.bound),
        (f"the score {claim.objective!r}", claim.objective > header.objective),
    ):
        if more:
            raise InputError(f"The result claims {what}, but its certificate claims less.")
    ended = result.reason is Reason.RUNNING and proof.reason is not Reason.RUNNING
    newer = ended or claim.bound > header.bound or claim.objective < header.objective
    pairs: dict[str, tuple[object, object]] = {"version": (claim.version, header.version)}
    for key in ("backend", "bound_source", "seed"):
        pairs[key] = getattr(result, key), getattr(proof, key)
    ends: dict[str, tuple[object, object]] = {
        "limit": (result.limit, proof.limit),
        "detail": (result.detail, proof.detail),
    }
    if newer:
        limit = Limit.TIME if result.reason is Reason.FEASIBLE and not claim.optimal else None
        ends = {"limit": (result.limit, limit), "detail": (result.detail, "")}
        if result.nodes is not None and proof.nodes is not None and result.nodes > proof.nodes:
            raise InputError(f"The result has {result.nodes} nodes, but its certificate has fewer.")
    else:
        ends |= {
            "reason": (result.reason, proof.reason),
            "optimal": (claim.optimal, header.optimal),
            "nodes": (result.nodes, proof.nodes),
            "tolerance": (result.tolerance, proof.tolerance),
        }
        # Equal scores do not make structures equal: a feature without the class may have any other parents.
        one, other = ({n: {*own} for n, own in c.structure.to_mapping().items()} for c in (claim, header))
        if one != other:
            raise InputError("The result has another structure than its certificate.")
        if proof.reason is Reason.RUNNING:
            ends = {}
    if result.limit is Limit.USER and result.selection is not None and result.selection.interrupted:
        # The user interrupted the selection; the search after it stopped at its own time limit.
        ends.pop("limit", None)
    for key, words in (pairs | ends).items():
        if words[0] != words[1]:
            said, proved = (shorten(str(word) if isinstance(word, StrEnum) else word) for word in words)
            raise InputError(f"The result says {key} = {said}, but its certificate says {proved}.")


def counted_samples(
    claim: Claim, arrays: Mapping[str, NDArray[Any]], data: Dataset
) -> NDArray[np.float64] | None:
    """Return the weights of merged samples in the searched subset, float64 array of shape (M,); None without one.

    Raises InputError if the subset has another size than claimed, or if a class's weights in it do not add up to the
    weight of the class in the data.
    """
    if claim.samples is None:
        return None
    saved = SavedArrays(dict(arrays))
    try:
        rows = saved.array("subset_row", np.int64, None, below=data.n_samples)
        weights = saved.array("subset_weight", np.float64, len(rows))
        if len(np.unique(rows)) < len(rows) or not (weights > 0).all():
            raise UnfitError("a sample is there twice, or has no weight")
    except UnfitError as error:
        raise InputError(
            f"The certificate is damaged: it does not say which samples represent all ({error})."
        ) from None
    counted = np.zeros(data.n_samples)
    counted[rows] = weights
    in_subset, in_data = (exact_sums(data.y, w, data.n_classes) for w in (counted, data.weights))
    # The tolerance covers rounding: each weight in the subset is a rounded sum.
    if len(rows) != claim.samples or not (np.abs(in_subset - in_data) <= 32 * EPS * in_data).all():
        raise InputError(
            f"The certificate's samples do not represent all: they are not {claim.samples}, or a class has another "
            "weight in them than in the data."
        )
    return counted


def searched_sets(
    claim: Claim, arrays: Mapping[str, NDArray[Any]], data: Dataset
) -> tuple[Rules, Candidates]:
    """Return the rules, and the parent sets over which the certificate proves a bound: all, or those that were kept.

    Of local scores, all are those that are listed.

    Raises InputError if the kept parent sets are not those that the result counts, if one of them breaks an option or a
    constraint, or if the constraints leave no structure.
    """
    score, constraints, screened = claim.result.score, claim.result.constraints, claim.result.screened
    names = data.names
    if screened is None:
        rules, admitted = resolve(constraints, names, score)
        if isinstance(data, LocalDataset):
            return rules, obeying(data.local, rules)
        require_list(len(names) - 1, score, rules)
        return rules, list_candidates(names, admitted)
    rules = combine(atoms(constraints, names))
    try:
        candidates = kept_candidates(SavedArrays(dict(arrays)), names)
    except UnfitError as error:
        raise InputError(
            f"The certificate is damaged: it does not say which parent sets were kept ({error})."
        ) from None
    c, admitted = len(names) - 1, admitted_sets(len(names) - 1, score, rules)
    for i, parents in zip(candidates.variable.tolist(), candidates.flat, strict=True):
        if not admitted[i].contains(parents, c):
            raise InputError(
                f"The certificate keeps a parent set of {names[i]!r} that the options and constraints rule out."
            )
    if len({*zip(candidates.variable.tolist(), candidates.flat, strict=True)}) < candidates.n_sets:
        raise InputError("The certificate is damaged: it keeps a parent set twice.")
    counted = {name: len(own) for name, own in zip(names, candidates.sets, strict=True)}
    total = count_candidates(c, score, rules)
    if counted != screened.kept or screened.total != total:
        raise InputError(
            f"The result counts {screened.n_kept} kept parent sets of {screened.total}, which are not those of its "
            f"certificate ({candidates.n_sets} of {total})."
        )
    return rules, candidates


def score_of_structure(
    claim: Claim,
    candidates: Candidates,
    rules: Rules,
    data: Dataset,
    sample_weights: NDArray[np.float64] | None = None,
) -> tuple[float, float]:
    """Return the structure's score and its rounding error, and check the claimed score against them.

    `sample_weights`, float64 array of shape (M,), are those of the searched subset. The returned score is then that
    over the subset; the claimed score over all samples is checked, too.

    Raises InputError if the bound does not cover the structure, if a claimed score is wrong by more than the rounding
    error (`milpbn.problem.rescore.rescored`), or if the claimed bound is below the claimed score.
    """
    score, full_objective = claim.result.score, claim.result.objective
    structure = Structure.from_mapping(data.names, claim.structure.to_mapping())
    reason = objection(structure, score, claim.result.constraints)
    if reason is None and candidates.choice(structure) is None:
        reason = "the bound does not cover it"
    if reason is not None:
        raise InputError(f"The options and constraints of the run rule the structure out: {reason}.")
    value, error = rescored(data, structure, score, rules, sample_weights)
    claimed = [(value, error, claim.objective)]
    if claim.samples is not None and full_objective is not None:
        claimed.append((*rescored(data, structure, score, rules), full_objective))
    for actual, rounding, stated in claimed:
        if not abs(actual - stated) <= rounding:
            raise InputError(f"The structure scores {actual!r}, not {stated!r} as the result claims.")
    if claim.bound < claim.objective:
        raise InputError(
            f"The claimed bound {claim.bound!r} is below the score {claim.objective!r} of the structure."
        )
    return value, error


def check_rest(
    claim: Claim,
    header: Claim,
    data: Dataset,
    weights: NDArray[np.float64] | None,
    error: float,
    largest_error: float,
) -> None:
    """Check what a result says beside structure, score, bound and arcs.

    `error` is that of its score, `largest_error` that of any structure's.
    """
    if claim.result.tolerance is None and claim.result.score.name in DECOMPOSABLE:
        raise InputError(
            "The result states no tolerance, as every result with a certificate of its score does."
        )
    _check_tolerance(claim.result.tolerance, tolerance_of(largest_error))
    _check_standard_error(claim, data, weights)
    if claim.optimal and not claim.result.proves(claim.objective, claim.bound, error):
        raise InputError("The result calls its structure optimal, which its bound does not prove.")
    check_run(claim, header)


def _check_tolerance(stated: float | None, provable: float) -> None:
    """Raise InputError if a result takes a larger gap for a proof than rounding errors make necessary."""
    if stated is not None and not stated <= provable * (1 + SAME_NUMBER):
        raise InputError(
            f"The result takes a gap of {stated!r} nats for a proof of optimality; on these data only one of up to "
            f"{provable!r} nats is."
        )


def _check_standard_error(claim: Claim, data: Dataset, weights: NDArray[np.float64] | None) -> None:
    """Raise InputError if a result states another standard error than that of its structure's score, or another gap."""
    stated = claim.result.standard_error
    if claim.gap_se is not None and not same_number(claim.gap_se, claim.result.gap_se):
        raise InputError(
            f"The gap in standard errors {claim.gap_se!r} does not follow from gap and standard error."
        )
    if stated is None:
        return
    same_names = Structure.from_mapping(data.names, claim.structure.to_mapping())
    found = standard_error(data, same_names, claim.result.score, weights)
    if found is None or not abs(stated - found) <= SAME_ERROR * max(1.0, found):
        raise InputError(f"The score has the standard error {found!r}, not {stated!r} as the result claims.")
