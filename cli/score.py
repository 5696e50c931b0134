"""``milpbn score``: the score of a user's own network, and its gap against a proven bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from milpbn.cli.report import say
from milpbn.cli.score_options import ScoreOptions, score_options
from milpbn.cli.sections import option, options, verb
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA, FILE
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.claims.result import Result
    from milpbn.learners.appraisal import Suboptimality
    from milpbn.problem.scores.spec import Score


@verb(short_help="Score a network of your own, and state its gap.")
@click.argument("structure", type=FILE)
@click.argument("data", type=DATA)
@options(option("--bound bound_file", FILE, "result.json of the same data, with a bound.", metavar="RESULT"))
@table_options
@score_options
def score(
    structure: str, data: str, bound_file: str | None, table: TableOptions, score: ScoreOptions
) -> None:
    """Score a network of your own, and state its gap.

    STRUCTURE is an arc list (PARENT -> CHILD on every line), a result or a classifier file. With --bound, the
    score and its options are taken from the result, which must belong to the same data.

    \b
    Example:
      milpbn solve table.csv --output result.json
      milpbn score mine.txt table.csv --bound result.json
    """
    score.refuse_choices("A structure is scored for", fits=False)

    from milpbn.claims.result import Result
    from milpbn.learners.appraisal import suboptimality
    from milpbn.network import read_structure
    from milpbn.problem.rescore import rescore
    from milpbn.solving.progress import dropped_lines

    result = None if bound_file is None else Result.load(bound_file)
    spec = score.score() if result is None else _same_score(result, score, str(bound_file))
    dataset = table.read(data, in_units=spec.needs_units).dataset("train")
    own = read_structure(structure, dataset.names)
    found = None if result is None else suboptimality(dataset, own, result, repr(bound_file))
    say("\n".join([f"data   {dataset.name}: {dataset.n_samples} samples", *dropped_lines(dataset.notes, 7)]))
    if result is None or found is None:
        described = spec.describe(discretisation=dataset.discretisation)
        say(f"score  {rescore(dataset, own, spec):.6f} nats  ({described})")
    else:
        say("\n".join(describe_gap(found, result)))


def _same_score(result: Result, options: ScoreOptions, path: str) -> Score:
    """Return the result's score, or refuse options that contradict it."""
    from milpbn.problem.scores.spec import Score

    known = result.score.to_dict()
    if "p" in options.given:
        known.pop("gamma")
    requested = Score(**{**known, **options.given})
    for key, value in requested.to_dict().items():
        if value != getattr(result.score, key):
            raise InputError(
                f"The bound in {path!r} is for {key} = {getattr(result.score, key)}, not {value}; leave the "
                "score's options out, or give a result of the same score."
            )
    return result.score


def describe_gap(found: Suboptimality, result: Result, width: int = 7) -> list[str]:
    """Return lines with score, bound and gap of a structure, and the score of the result's own structure.

    The labels are padded to `width` characters.
    """
    from milpbn.solving.progress import among_lines, show_gap

    lines = [
        f"{'score':{width}}{found.score:.6f} nats  ({result.described_score})",
        f"{'bound':{width}}{found.bound:.6f} nats  (the result says {result.bound_source})",
        *among_lines(result.among, width),
    ]
    if found.gap is None:
        return [
            *lines,
            f"{'gap':{width}}not stated: {found.reason}, so the bound does not hold for this structure.",
        ]
    lines.append(
        f"{'gap':{width}}{found.gap.absolute:.6f} nats; {show_gap(found.gap.relative_to_bound)} of the bound"
    )
    if result.objective is not None:
        lines.append(f"{'best':{width}}{result.objective:.6f} nats, the structure of the result")
    return lines
