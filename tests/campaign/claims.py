"""Whether the claims of a result are true: its numbers and words against the exact scores of all structures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from campaign.case import Case
from campaign.exact import NOTHING, Truth
from campaign.space import Graph, breach, has_least, is_margin, penalty_alone, restricted, sets_are_alike

#: Largest difference between a structure's score and the exact score, relative to max(1, its size): the verifier's own
#: allowance.
SCORE_TOLERANCE = 1e-9
#: Largest gap in nats at which a structure is called optimal, and what rounding adds relative to the sizes in a sum,
#: and to the largest score of any structure: a penalty that no good structure pays has rounding errors, too.
OPTIMALITY, ROUNDING, OF_LARGEST = 1e-6, 1e-9, 1e-11
#: Solvers satisfy the rows of a MILP up to a tolerance. The largest gap is then this share of the score, and bounds can
#: be wrong by this share of 1, the optimum, or the sum of the weights. Sums of local scores have no such rows.
SOLVER_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Failure:
    """A failure: its kind, by which a smaller case with the same failure is recognised, and the details."""

    kind: str
    text: str


def near(a: float, b: float, tolerance: float = SCORE_TOLERANCE) -> bool:
    """Whether two numbers agree up to rounding."""
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))


def same_score(truth: Truth, a: float, b: float) -> bool:
    """Whether two scores agree up to rounding, also where large weights meet margins near 0.

    A margin is a sum of differences between logarithms near 1, one of each variable, with an error of about the unit
    in the last place each.
    """
    rounding = 2.0**-52 * len(truth.scores.sizes) * float(truth.scores.total)
    return abs(a - b) <= rounding or near(a, b)


def graph_of(case: Case, mapping: Mapping[str, list[str]]) -> Graph:
    """Return a structure by name as parents by index."""
    return tuple(tuple(sorted({case.names.index(j) for j in mapping[name]})) for name in case.names)


def check_structure(case: Case, truth: Truth, mapping: Any) -> Iterator[Failure]:
    """Check that a structure obeys the constraints and is covered by the bound."""
    broken = breach(case, mapping)
    if broken:
        yield Failure("structure breaks a constraint", f"{mapping}: {broken}")
        return
    graph = graph_of(case, mapping)
    if graph not in truth.values and not _with_fewer(case, truth, graph):
        yield Failure("structure is no candidate", f"{mapping} is none of the structures searched")


def _with_fewer(case: Case, truth: Truth, graph: Graph) -> bool:
    """Whether a structure equals one over the candidate sets, except for class-free sets, which have the same score."""
    if not sets_are_alike(case):
        return False
    last = len(graph) - 1
    return any(
        all(a == b or (i != last and last not in b and set(a) <= set(b)) for i, (a, b) in enumerate(pairs))
        for pairs in (list(zip(other, graph, strict=True)) for other in truth.values)
    )


def check_numbers(
    case: Case, truth: Truth, numbers: Mapping[str, Any], mapping: Any, source: str
) -> Iterator[Failure]:
    """Check objective, bound, gaps and optimality of a result, or of its subset.

    Parameters
    ----------
    case, truth
        The problem, and what is true of it; of the subset, if the numbers are its.
    numbers : mapping
        With the keys objective, bound, gap, and optimal.
    mapping : dict
        The structure.
    source : str
        The source of the bound.
    """
    z, b, best = numbers["objective"], numbers["bound"], truth.optimum
    assert best is not None
    exact = truth.scores.of(graph_of(case, mapping))
    if exact is None or z is None:
        yield Failure("structure has no score", f"{mapping} with objective {z!r}")
        return
    if not same_score(truth, z, float(exact)):
        yield Failure("wrong objective", f"objective {z!r}, exactly {_show(exact)}")
    if b is not None:
        yield from check_bound(case, truth, b, source)
        if b < z:
            yield Failure("bound below the objective", f"bound {b!r}, objective {z!r}")
        yield from check_gap(z, b, numbers["gap"])
        tolerance = numbers["tolerance"]
        if not 0 < tolerance <= largest_gap(case, truth, z, source):
            yield Failure("strange tolerance", f"{tolerance!r} with objective {z!r}")
        # Rounding counts against the structure.
        if b - z > tolerance if numbers["optimal"] else b - z <= 0.8 * tolerance:
            yield Failure("wrong status", f"{numbers['optimal']!r} with objective {z!r} and bound {b!r}")
    if numbers["optimal"]:
        worse = float(best - exact) - slack(case, truth, source)
        if worse > largest_gap(case, truth, z, source) * (1 + 1e-9):
            yield Failure(
                "called optimal and is not", f"exactly {_show(exact)}, the optimum is {_show(best)}"
            )


def largest_gap(case: Case, truth: Truth, z: float, source: str) -> float:
    """Return the largest gap at which a structure with the score z may be called optimal."""
    arcs = sum(abs(w) for _, _, w in case.constraints.get("arc_weights", []))
    largest = max(map(abs, truth.values.values()))
    rounding = ROUNDING * (float(truth.scores.total) + arcs + abs(z)) + OF_LARGEST * float(largest)
    gap = max(OPTIMALITY, rounding)
    if source == "certified" or not has_rows(case):
        return gap
    spread = float(max(truth.values.values()) - min(truth.values.values()))
    return max(gap, SOLVER_TOLERANCE * (abs(z) + arcs + spread))


def has_rows(case: Case) -> bool:
    """Whether a MILP computes a part of the score by rows."""
    return is_margin(case) or case.score["name"] == "aicc"


def slack(case: Case, truth: Truth, source: str) -> float:
    """Return by how much a bound may be below the optimum; it depends on the bound's source."""
    if source == "certified":
        return 0.0
    if not has_rows(case):
        return OPTIMALITY + 1e-12 * abs(float(truth.optimum or 0))
    return SOLVER_TOLERANCE * max(1.0, abs(float(truth.optimum or 0)), float(truth.scores.total))


def check_bound(case: Case, truth: Truth, b: float, source: str) -> Iterator[Failure]:
    """Check that no structure exceeds a bound."""
    best = truth.optimum
    assert best is not None
    if not math.isfinite(b):
        yield Failure("bound is not finite", repr(b))
        return
    below = best - Fraction(b) - Fraction(slack(case, truth, source))
    if below > NOTHING:
        much = below > Fraction(SCORE_TOLERANCE) * max(Fraction(1), abs(best))
        how = "" if much else " by rounding"
        kind = f"{source} bound below the optimum{how}"
        yield Failure(kind, f"bound {b!r}, optimum {_show(best)}, {float(below):.3g} below")


def check_gap(z: float, b: float, gap: Mapping[str, Any]) -> Iterator[Failure]:
    """Check the three gaps."""
    absolute = b - z
    ratios = {"relative_to_bound": abs(b), "relative_to_incumbent": abs(z)}
    told = gap.get("absolute")
    if told is None or not near(told, absolute):
        yield Failure("wrong gap", f"absolute {told!r}, objective {z!r}, bound {b!r}")
    for key, size in ratios.items():
        told = gap.get(key)
        if told is None or told == absolute == 0:
            continue
        if size == 0 or not near(told, absolute / size):
            yield Failure("wrong gap", f"{key} {told!r}, objective {z!r}, bound {b!r}")


def check_trace(case: Case, truth: Truth, trace: Any, source: str) -> Iterator[Failure]:
    """Check that incumbents never fall, bounds never rise, and both hold at every moment."""
    best = float(truth.optimum or 0)
    for t, z, b in trace:
        if z is not None and z > best and not same_score(truth, z, best):
            yield Failure("incumbent above the optimum", f"{z!r} at {t} s, optimum {best!r}")
        if b is not None:
            yield from check_bound(case, truth, b, source)
        if z is not None and b is not None and z > b:
            yield Failure("trace crosses", f"{z!r} above {b!r} at {t} s")
    for (t, z, b), (later, higher, lower) in pairwise(trace):
        fine = t <= later and (z is None or (higher is not None and z <= higher))
        fine = fine and (b is None or (lower is not None and lower <= b))
        if not fine:
            yield Failure("trace goes back", f"{(t, z, b)} then {(later, higher, lower)}")


def check_proved(case: Case, truth: Truth, proved: Any) -> Iterator[Failure]:
    """Check the arcs that are claimed to be in every optimum or in none."""
    if proved is None:
        return
    # The arcs are about optima in which parents that add nothing to a feature without the class are left out.
    optima = [g for g in truth.optimal if not penalty_alone(case) or has_least(case, g)]
    for key in ("in", "out"):
        for a, b in proved.get(key, ()):
            if a not in case.names or b not in case.names:
                yield Failure("wrong proved arc", f"{a} -> {b} is between no variables")
                continue
            j, i = case.names.index(a), case.names.index(b)
            if any((j in graph[i]) != (key == "in") for graph in optima):
                yield Failure("wrong proved arc", f"{a} -> {b} as {key}, optima {optima[:3]}")


def check_data(case: Case, data: Mapping[str, Any]) -> Iterator[Failure]:
    """Check the sizes of the data."""
    training = case.training
    lost = [row[-1] == -1 if case.missing == "state" else -1 in row for row in case.rows]
    rows = sum(case.times(k) for k, gone in enumerate(lost) if not gone and case.weights[k] > 0)
    expected = {
        "samples": rows,
        "unique_samples": len(training.rows),
        "features": len(case.names) - 1,
        "classes": len(training.states[-1]),
    }
    for key, value in expected.items():
        if data[key] != value:
            yield Failure("wrong size of the data", f"{key} {data[key]!r}, it is {value}")


def check_result(case: Case, truth: Truth, result: Mapping[str, Any], part: Truth | None) -> list[Failure]:
    """Return the false claims of a result.

    Parameters
    ----------
    case, truth
        The problem, and what is true of it.
    result : mapping
        Contents of ``result.json``.
    part : Truth or None
        What is true of the result's subset of samples, if that is known.
    """
    found = list(check_data(case, result["data"]))
    # A forged result may lack the key, as those of earlier versions do.
    if "among" in result and (result["among"] is not None) != restricted(case):
        found.append(Failure("claim about the wrong structures", repr(result["among"])))
    mapping, source, subset = result["structure"], result["bound_source"], result.get("subset")
    reason = result["status"]["reason"]
    if mapping is None:
        if result["objective"] is not None or reason in ("optimal", "feasible"):
            found.append(Failure("result without structure", f"{reason}, {result['objective']!r}"))
        if result["bound"] is not None:
            found += check_bound(case, truth, result["bound"], source)
        return found
    broken = list(check_structure(case, truth, mapping))
    found += broken
    if any(failure.kind == "structure breaks a constraint" for failure in broken):
        return found
    if result["class"] != case.names[-1]:
        found.append(Failure("wrong class", repr(result["class"])))
    if subset is None:
        numbers = {**result, "optimal": reason == "optimal"}
        found += check_numbers(case, truth, numbers, mapping, source)
        found += check_trace(case, truth, result["trace"], source)
        found += check_proved(case, truth, result.get("proved"))
        if result["trace"] and result["trace"][-1][1:] != [result["objective"], result["bound"]]:
            found.append(Failure("trace ends elsewhere", f"{result['trace'][-1]}"))
        return found
    numbers = {"objective": result["objective"], "bound": None, "gap": {}, "optimal": False}
    found += check_numbers(case, truth, numbers, mapping, source)
    if result["bound"] is not None:
        found += check_bound(case, truth, result["bound"], source)
    if reason == "optimal" or result.get("proved"):
        found.append(
            Failure("subset claims too much", f"{result['bound']!r}, {reason}, {result.get('proved')}")
        )
    if part is not None:
        found += check_numbers(case, part, {**subset, "tolerance": result["tolerance"]}, mapping, source)
        found += check_trace(case, part, result["trace"], source)
    return found


def _show(value: Fraction) -> str:
    from campaign.exact import CONTEXT, number

    return str(CONTEXT.nstr(number(value), 25))
