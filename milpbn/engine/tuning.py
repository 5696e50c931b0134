"""All search parameters of the native engine under one name: value, unit, effect, and evidence for the value.

The records of temperature, steps and multipliers are in `milpbn.engine.step_tuning`, the others here.

The values change how fast a search is, but not what it proves: bounds hold and optima are found with any values.
Tolerances for rounding errors are not here but beside the formulas that need them.

Kernels cannot read these fields. A module with kernels copies them into its own constants when it is imported, and a
kernel is compiled again after a value has changed. `python -m milpbn.engine.tuning` prints docs/tuning.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from inspect import getdoc

from milpbn.engine.step_tuning import WARMER, MultiplierTuning, StepTuning, TemperatureTuning
from milpbn.heuristics.tuning import ClimbTuning
from milpbn.util.parameters import as_table, parameter

_FEW = '"Few samples, classes and parent sets at a time, in one matrix."'
_WIDER = '"Samples within 1.7 gamma."'
_LEFT_OUT = '"If the steps left out too much, the next steps leave out less."'
_STRAY = '"On data of small and middle size, searches near the incumbent may stray."'
_CLIMBS = '"Climbs take a tenth of the time."'
_WORTH = '"Climbs are rarer where the bound is far."'
_PROBES = '"Decisions without observations are probed."'
_LISTS = '"The list of the K best grows beside the bound."'
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
    explored: int = parameter(
        50,
        "structures",
        "With `--n-best`, the neighbours of at most this many listed structures are scored before the first step.",
        _LISTS,
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
        "A node starts with a burst of this length. The second step sets the temperature at which children start.",
        WARMER,
    )
    burst: int = parameter(8, "steps", "Steps between two checks of the clock.")
    bursts: int = parameter(8, "bursts", "Bursts between two selections of samples and parent sets.")
    most_steps: int = parameter(
        192, "steps", "At one node; twice this number if the steps left out too much."
    )
    width: float = parameter(
        0.7,
        "share of gamma",
        "Pairs of a sample and a class are left out of the steps if their log-margin exceeds gamma, or the smallest "
        "of the sample, by more than this.",
        _WIDER,
    )
    least_width: float = parameter(
        1.0,
        "nats",
        "`width` is at least this, because log-margins move by nats between parent and child, however small gamma is.",
        _FEW,
    )
    likelihood_width: float = parameter(
        12.0,
        "nats",
        "The same under the conditional log-likelihood, whose gamma is 0. "
        "With two classes, leaving a pair out changes the bound by at most 6e-6 nats.",
    )
    reach: float = parameter(
        0.2,
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
    matrix: int = parameter(
        16_000_000,
        "numbers",
        "If the matrix of pairs and parent sets has more numbers than this, the steps use the tables instead.",
        _FEW,
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
    first_climbs: int = parameter(
        16,
        "climbs",
        "After this number of climbs from near the incumbent, `later_passes` limits them.",
        _CLIMBS,
    )
    later_passes: float = parameter(
        1.0,
        "passes over a variable's parent sets per step in the tree",
        "After a climb from near the incumbent, the next one waits for as many steps as this allows its passes.",
        _CLIMBS,
    )
    passes: float = parameter(
        0.05,
        "passes over a variable's parent sets per step in the tree",
        "Climbs after the longest pause that find nothing better take at most this many.",
        _CLIMBS,
    )
    close_bound: float = parameter(
        0.02,
        "share of the incumbent's score",
        "Where the gap to the root's bound is k times this, `first_climbs` and `later_passes` are divided by k, but by "
        "2 at most.",
        _WORTH,
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
    explored: int = parameter(
        2,
        "structures",
        "With `--n-best`, the neighbours of at most this many listed structures are scored per branching.",
        _LISTS,
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


@dataclass(frozen=True)
class Tuning:
    """All search parameters of the native engine, by the part of the search that reads them."""

    root: RootTuning = RootTuning()
    temperature: TemperatureTuning = TemperatureTuning()  # noqa: RUF009  # immutable
    steps: StepTuning = StepTuning()  # noqa: RUF009  # immutable
    node_steps: NodeTuning = NodeTuning()
    tree: TreeTuning = TreeTuning()
    primal: PrimalTuning = PrimalTuning()
    multipliers: MultiplierTuning = MultiplierTuning()  # noqa: RUF009  # immutable
    oracle: OracleTuning = OracleTuning()


TUNING = Tuning()

_PAGE = """# Search parameters

The command `python -m milpbn.engine.tuning` writes this page from `milpbn/engine/tuning.py`,
`milpbn/engine/step_tuning.py` and `milpbn/heuristics/tuning.py`; change the values there. They change how fast a search
is, but not what it proves. Headings in quotation marks are in [decisions.md](decisions.md). `python
benchmarks/tuning.py --report` prints results/tuning.json.
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
