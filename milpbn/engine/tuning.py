"""All search parameters of the native engine in one place: value, unit, effect, and evidence for the value.

The values change how fast a search is, but not what it proves: bounds hold and optima are found with any values.
Tolerances for rounding errors are not here but beside the formulas that need them.

Kernels cannot read these fields. A module with kernels copies them into its own constants when it is imported, and a
kernel is compiled again after a value has changed. `python -m milpbn.engine.tuning` prints docs/tuning.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from inspect import getdoc

from milpbn.heuristics.tuning import ClimbTuning
from milpbn.util.parameters import as_table, parameter

_WARMER = '"A node starts warmer than its parent ended, and cools by Newton\'s success."'
_NEWTON = '"Newton steps over parent sets."'
_FEW = '"Few samples and parent sets at a time."'
_LEFT_OUT = '"If the steps left out too much, the next steps leave out less."'
_STRAY = '"On data of small and middle size, searches near the incumbent may stray."'
_CLIMBS = '"Climbs take a tenth of the time."'
_PROBES = '"Decisions without observations are probed."'
_MULTIPLIERS = '"Three or more parents, many variables; child limits."'


@dataclass(frozen=True)
class RootTuning:
    """The steps on the whole problem, before any branching."""

    worthwhile: float = parameter(
        0.02,
        "share of the bound's distance to the incumbent",
        "The steps end when they can gain less than this. A round of multipliers that gains less is the last one.",
    )
    patience: int = parameter(
        60, "steps", "The steps end if this number of them lowers the bound by less than `worthwhile`."
    )
    repeat: float = parameter(
        0.1,
        "share of the parent sets",
        "If reduced-cost fixing removes at least this share, the steps start again on the rest.",
    )
    slice_work: int = parameter(
        50_000_000,
        "products of dual weights and columns",
        "Work between two checks of the clock: about 50 ms.",
    )
    parallel_from: int = parameter(
        2_000_000, "products of samples and domains", "Larger products use threads."
    )


@dataclass(frozen=True)
class TemperatureTuning:
    """The temperature of the softened score, whose dual weights give the bounds (compiled into the steps).

    The *waste* is the part of the bound's distance to the score at the point that is due to the temperature. Further
    steps can remove the other part only. The temperature changes so that both parts stay in balance.
    """

    first: float = parameter(0.2, "share of gamma", "The first temperature, and the highest one of a node.")
    lowest: float = parameter(
        1e-6, "share of gamma", "The lowest temperature. The steps end if none of them gains at it."
    )
    good_step: float = parameter(
        0.6, "share of a Newton step", "A step that goes further than this is a good step.", _WARMER
    )
    most_waste: float = parameter(
        0.5,
        "share of what steps can gain",
        "After a good step, the temperature falls if the waste exceeds this and `target_waste`.",
        _WARMER,
    )
    target_waste: float = parameter(
        0.7,
        "share of the distance between bound and score at which the steps end",
        "After a good step, the temperature falls to where the waste is expected to be this.",
        _WARMER,
    )
    fastest_fall: float = parameter(
        0.4, "factor", "The factor of the temperature after a good step is at least this."
    )
    high_waste: float = parameter(
        3.0, "times what steps can gain", "After any other step, a higher waste calls for `fast_fall`."
    )
    fast_fall: float = parameter(
        0.6, "factor", "Factor of the temperature if the waste is above `high_waste`."
    )
    slow_fall: float = parameter(
        0.85,
        "factor",
        "Factor of the temperature if the waste is below `high_waste` but above what steps can gain.",
    )
    low_waste: float = parameter(
        0.3,
        "times what steps can gain",
        "The temperature rises after a short step if the waste is below this.",
        _WARMER,
    )
    short_step: float = parameter(
        0.1, "share of a Newton step", "A step that goes less far than this is a short step.", _WARMER
    )
    rise: float = parameter(1.2, "factor", "Factor of the temperature when it rises.")
    converged_fall: float = parameter(
        0.2, "factor", "Factor of the temperature when no step gains at the current one."
    )
    warmer_start: float = parameter(
        1.5,
        "factor",
        "Children start at the parent's first temperature times this if its second step was poor.",
        _WARMER,
    )
    colder_start: float = parameter(
        0.5,
        "factor",
        "Children start at the parent's first temperature times this if its second step was full.",
        _WARMER,
    )
    poor_step: float = parameter(
        0.4, "share of a Newton step", "A second step that goes less far than this is poor.", _WARMER
    )
    full_step: float = parameter(
        0.9, "share of a Newton step", "A second step that goes further than this is full.", _WARMER
    )


@dataclass(frozen=True)
class StepTuning:
    """Newton and Frank-Wolfe steps, at the root and in the tree (compiled into the steps)."""

    left_to_branching: float = parameter(
        0.2,
        "share of the distance from the parent's bound to the score at the point",
        "The steps at a child end when they can gain less than this, because branching can gain more.",
        '"Steps end relative to what branching can gain."',
    )
    refresh: int = parameter(
        64,
        "steps",
        "The logits are computed anew after this number of steps, so that rounding errors do not add up.",
    )
    most_vertices: int = parameter(600, "vertices", "A point has at most this number of vertices.")
    most_new: int = parameter(100, "vertices", "One Newton step adds at most this number of vertices.")
    smallest_share: float = parameter(
        1e-12, "share of the point", "A vertex with a smaller share is dropped."
    )
    part_of_gain: float = parameter(
        0.05,
        "share of the first gap",
        "The pairwise steps on a Newton step's model end when its gap is smaller than this.",
        _NEWTON,
    )
    steps_per_vertex: int = parameter(
        20,
        "pairwise steps per vertex",
        "The pairwise steps on a Newton step's model end after this number.",
        _NEWTON,
    )
    newton_worth: int = parameter(
        120,
        "parent sets",
        "A Newton step over n parent sets is taken only if n^2 is at most this times the number of allowed ones.",
        _NEWTON,
    )
    curvature_block: int = parameter(
        4096, "dual weights", "The curvature is summed over blocks of this size, which stay in the cache."
    )
    line_steps: int = parameter(6, "steps", "A line search takes at most this number of steps.")
    line_accuracy: float = parameter(
        0.2, "share of the first slope", "A line search ends when the slope is at most this."
    )


@dataclass(frozen=True)
class NodeTuning:
    """Which samples and parent sets the steps at a node use, and when the steps end."""

    accuracy: float = parameter(
        0.01,
        "share of the bound's distance to the incumbent",
        "The steps end when they can gain at most this.",
        '"Steps end relative to what branching can gain."',
    )
    first_burst: int = parameter(
        2,
        "steps",
        "A node starts with two bursts of this length. Then samples and parent sets may be selected again.",
        _FEW,
    )
    burst: int = parameter(8, "steps", "Steps between two checks of the clock.")
    bursts: int = parameter(8, "bursts", "Bursts between two selections of samples and parent sets.")
    most_steps: int = parameter(
        192, "steps", "At one node; twice this number if the steps left out too much."
    )
    reselect_above: float = parameter(
        5.0,
        "times the distance between bound and score at which the steps end",
        "After the first two bursts, samples and parent sets are selected again if the distance is larger.",
        _FEW,
    )
    width: float = parameter(
        0.4,
        "share of gamma",
        "Samples whose margin exceeds gamma by more than this are left out of the steps.",
        _FEW,
    )
    likelihood_width: float = parameter(
        12.0,
        "nats",
        "Under the conditional log-likelihood, samples with a larger log-margin are left out of the steps. "
        "With two classes each of them loses at most 6e-6 nats.",
    )
    reach: float = parameter(
        0.05,
        "share of the bound's distance to the incumbent",
        "Parent sets are left out of the steps if all structures with them are further below the heaviest one.",
        _FEW,
    )
    most_missed: float = parameter(
        0.1,
        "share of what the steps gained",
        "If the bound on the whole node is higher than that of the steps by more than this, the steps left out "
        "too much and go on with more.",
        _LEFT_OUT,
    )
    least_gain: float = parameter(
        1e-4,
        "share of the bound's distance to the incumbent",
        "For `most_missed`, a smaller gain counts as this much, so that rounding errors do not decide.",
        _LEFT_OUT,
    )
    widening: float = parameter(
        4.0,
        "factor",
        "`width` and `reach` grow by this factor if the steps left out too much for the second time.",
        _FEW,
    )


@dataclass(frozen=True)
class TreeTuning:
    """The branching rule and node selection."""

    probed_decisions: int = parameter(
        8,
        "decisions",
        "Before a node is split, those of this number of its best decisions that lack observations are probed: both "
        "children are bounded.",
        _PROBES,
    )
    probed_work: int = parameter(
        1_000_000,
        "products of samples and parent sets",
        "Nothing is probed on larger data, where a step costs so much that probes do not repay within a search.",
        _PROBES,
    )
    observations: int = parameter(
        1, "observations", "A decision with fewer on either side lacks observations.", _PROBES
    )
    probing: float = parameter(
        0.15,
        "share of the steps in the tree",
        "Decisions are probed only while the probes that were discarded took less than this, or less than "
        "`first_probing`.",
        _PROBES,
    )
    first_probing: int = parameter(
        1500,
        "steps",
        "Discarded probes may take this number of steps in any search, as long as that is at most `early_probing`.",
        _PROBES,
    )
    early_probing: float = parameter(
        0.3,
        "share of the steps in the tree",
        "Discarded probes take at most this share, also where `first_probing` allows more.",
        _PROBES,
    )
    prior_observations: int = parameter(
        4,
        "observations",
        "Expected pseudo-costs of two variables include this number of observations of the mean over all decisions.",
        '"Pseudo-costs of new decisions come from decisions on the same variables."',
    )
    least_score: float = parameter(
        1e-9, "nats", "Lower limit of both factors of a decision's score, so that neither makes it 0."
    )
    least_distance: float = parameter(
        1e-3,
        "share of the point",
        "Lower limit of the fractionality by which a fall of the bound is divided.",
    )
    bound_step: float = parameter(
        0.01,
        "share of the bound's distance to the incumbent",
        "Among nodes whose bounds are in the same interval of this length, the newest is selected: the search dives.",
        '"Among nodes of about the same bound the newest comes first."',
    )


@dataclass(frozen=True)
class PrimalTuning:
    """When the tree climbs for better structures, and from which structures."""

    answer_distance: float = parameter(
        0.25,
        "share of the root bound's distance to the incumbent",
        "An answer of the oracle that is further below the incumbent does not start a climb.",
    )
    longest_pause: float = parameter(
        10.0,
        "branchings",
        "The longest pause between two climbs from near the incumbent; from then on, `passes` limits them as well. "
        "While climbs succeed, the pause is 1.",
        _CLIMBS,
    )
    pause_growth: float = parameter(
        1.1, "factor", "The pause grows by this factor after a climb without a better structure."
    )
    passes: float = parameter(
        0.1,
        "passes over a variable's parent sets per step in the tree",
        "Climbs after the longest pause that find nothing better take at most this many.",
        _CLIMBS,
    )
    stray: float = parameter(
        0.1,
        "gammas",
        "A climb may start from the result of the last one although it scored less than its predecessor. The "
        "accepted loss is random with this mean.",
        _STRAY,
    )
    return_after: float = parameter(
        10.0,
        "times `stray`",
        "Climbs start from the incumbent again when they are worse than it by more than this.",
    )
    medium_data: float = parameter(
        1e6, "samples times parent sets", "On larger data, climbs are rare and never accept a loss.", _STRAY
    )


@dataclass(frozen=True)
class MultiplierTuning:
    """Lagrange multipliers of inequalities: a linear program at the root, descent at the nodes."""

    sweeps: int = parameter(
        4, "rounds", "At a node, all multipliers are changed at most this number of times."
    )
    rows_at_a_time: int = parameter(16, "rows", "Multipliers changed between two checks of the clock.")
    trials: int = parameter(
        12, "evaluations", "At most this number for one change of a multiplier (compiled)."
    )
    least_fall: float = parameter(
        1e-9, "share of the bound", "A smaller fall of the bound is not worth another trial (compiled)."
    )
    columns: int = parameter(
        10,
        "columns of each variable",
        "The linear program starts with this number, and adds this number at a time.",
    )
    rounds: int = parameter(60, "solutions", "The linear program is solved at most this number of times.")
    most_clusters: int = parameter(
        500, "rows", "The linear program gets at most this number of cluster rows.", _MULTIPLIERS
    )
    separation_nodes: int = parameter(
        100,
        "nodes",
        "The search for a violated row has this node limit. It has no time limit, so that bounds are reproducible.",
    )
    rounding: float = parameter(
        1e-9, "share of the largest weight", "Smaller reduced costs count as 0 in the linear program."
    )


@dataclass(frozen=True)
class OracleTuning:
    """The maximum over structures, and bounds on single parent sets (compiled into the oracle)."""

    most_ordered: int = parameter(
        14,
        "variables",
        "Up to this number, dynamic programming searches all orders. With more variables, acyclicity is relaxed.",
        _MULTIPLIERS,
    )
    class_sets: int = parameter(
        200,
        "parent sets of the class",
        "The oracle solves a branching for at most this number of them; all others share one bound.",
        '"Class sets are bounded before they are tried."',
    )
    bounded_class_sets: int = parameter(
        20,
        "parent sets of the class",
        "At most this number of them have their own reduced costs when single parent sets are bounded.",
        '"Class sets are bounded before they are tried."',
    )
    most_forced: int = parameter(
        4 * 64**4,
        "class sets times nodes to the fourth power",
        "Up to this size, the root solves a branching for every arc: about a second of work.",
    )
    subsets_at_a_time: int = parameter(
        1 << 20,
        "sets of variables",
        "Sets between two checks of the clock when all orders are searched: about a tenth of a second.",
    )


@dataclass(frozen=True)
class Tuning:
    """All search parameters of the native engine, by the part of the search that reads them."""

    root: RootTuning = RootTuning()
    temperature: TemperatureTuning = TemperatureTuning()
    steps: StepTuning = StepTuning()
    node_steps: NodeTuning = NodeTuning()
    tree: TreeTuning = TreeTuning()
    primal: PrimalTuning = PrimalTuning()
    multipliers: MultiplierTuning = MultiplierTuning()
    oracle: OracleTuning = OracleTuning()


TUNING = Tuning()

_PAGE = """# Search parameters

The command `python -m milpbn.engine.tuning` writes this page from `milpbn/engine/tuning.py` and
`milpbn/heuristics/tuning.py`; change the values there. They change how fast a search is, but not what it proves.
Headings in quotation marks are in [decisions.md](decisions.md). `python benchmarks/tuning.py --report` prints
results/tuning.json.
"""


def page() -> str:
    """Return docs/tuning.md."""
    parts = [_PAGE]
    kinds = [(f"TUNING.{f.name}", type(f.default)) for f in fields(Tuning)]
    for name, kind in [*kinds, ("heuristics.tuning.TUNING", ClimbTuning)]:
        parts.append(f"## `{name}`\n\n{getdoc(kind)}\n\n{as_table(kind)}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
