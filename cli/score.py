"""``milpbn score``: the score of a user's own network, and its gap against a proven bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from milpbn.cli.options import ScoreOptions, TableOptions, score_options, table_options
from milpbn.cli.sections import verb
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.network import Structure
    from milpbn.result import Result
    from milpbn.scores.candidates import Candidates
    from milpbn.scores.constraints import Rules
    from milpbn.scores.spec import Score


@verb(short_help="Score a network of your own, and state its gap.")
@click.argument("structure")
@click.argument("data")
@click.option("--bound", "bound_file", metavar="RESULT", help="result.json of the same data, with a bound.")
@table_options
@score_options
def score(
    structure: str, data: str, bound_file: str | None, table: TableOptions, score: ScoreOptions
) -> None:
    """Score a network of your own, and state its gap.

    STRUCTURE is an arc list (PARENT -> CHILD on every line), a result or a classifier file. With --bound the
    score and its options are those of the result, which must be of the same data.

    \b
    Example:
      milpbn solve table.csv --output result.json
      milpbn score mine.txt table.csv --bound result.json
    """
    if score.chooses:
        raise InputError("A structure is scored for one gamma and one max_parents; cv is for milpbn solve.")

    from milpbn.network import read_structure
    from milpbn.scores.conflicts import resolve
    from milpbn.scores.rescore import rescore

    result = None if bound_file is None else _load_bound(bound_file)
    spec = score.score() if result is None else _same_score(result, score, str(bound_file))
    dataset = table.read(data).dataset("train")
    own = read_structure(structure, dataset.names)
    if result is None:
        value = rescore(dataset, own, spec)
    else:
        if dataset.sha256 != result.data.sha256:
            raise InputError(
                f"The bound in {bound_file!r} is for other data ({result.data.name!r}) than {dataset.name!r}; "
                "give the data, rows and options of reading of that run."
            )
        rules, candidates = resolve(result.constraints, dataset.names, spec)
        value = rescore(dataset, own, spec, rules)
    click.echo(f"data   {dataset.name}: {dataset.n_samples} samples")
    click.echo(f"score  {value:.6f} nats  ({_described(spec)})")
    if result is not None:
        click.echo(_gap(result, value, why_outside(own, spec, rules, candidates)))


def _load_bound(path: str) -> Result:
    from milpbn.result import Result

    result = Result.load(path)
    if result.bound is None:
        raise InputError(f"The result {path!r} holds no bound; solve again, for longer.")
    return result


def _same_score(result: Result, options: ScoreOptions, path: str) -> Score:
    """Return the result's score, if the options given say nothing else."""
    from milpbn.scores.spec import Score

    known = result.score.to_dict()
    if "p" in options.given:
        known.pop("gamma")
    said = Score(**{**known, **options.given})
    for key, value in said.to_dict().items():
        if value != getattr(result.score, key):
            raise InputError(
                f"The bound in {path!r} is for {key} = {getattr(result.score, key)}, not {value}; leave the "
                "score's options out, or give a result of the same score."
            )
    return result.score


def why_outside(structure: Structure, score: Score, rules: Rules, candidates: Candidates) -> str | None:
    """Return why a bound over the candidates under the rules does not speak of a structure, or None.

    Where all class-free sets of a feature score the same, a candidate inside such a set stands for it.
    """
    from milpbn.scores.candidates import class_free_alike

    alike = class_free_alike(score, rules)
    names, target = structure.names, len(structure.names) - 1
    for i, parents in enumerate(structure.parents):
        if alike and target not in (i, *parents):
            inside = any(set(s) <= set(parents) for s in candidates.sets[i])
        else:
            inside = candidates.position(i, parents) is not None
        if not inside:
            shown = ", ".join(names[j] for j in parents) or "(none)"
            return f"the parents {shown} of {names[i]!r} are none of the parent sets of that run"
    for j, limit in rules.max_children.items():
        if sum(j in parents for parents in structure.parents) > limit:
            return f"that run allowed {names[j]!r} at most {limit} children"
    return None


def _gap(result: Result, value: float, outside: str | None) -> str:
    from milpbn.progress import show_gap
    from milpbn.result import Gap

    lines = [f"bound  {result.bound:.6f} nats  ({result.bound_source})"]
    if outside is not None:
        lines.append(f"gap    not stated: {outside}, so that the bound does not speak of this structure.")
        return "\n".join(lines)
    gap = Gap.between(value, result.bound)
    lines.append(f"gap    {gap.absolute:.6f} nats; {show_gap(gap.relative_to_bound)} of the bound")
    if result.objective is not None:
        lines.append(f"best   {result.objective:.6f} nats, the structure of the result")
    return "\n".join(lines)


def _described(score: Score) -> str:
    gamma = "" if score.gamma is None else f", gamma = {score.gamma:.6g}"
    return f"{score.name}{gamma}"
