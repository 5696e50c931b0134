"""Run a case through the public functions or the command line, and record the answer."""

from __future__ import annotations

import json
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import milpbn
from campaign.case import Case
from milpbn.certificate.verify.check import verify
from milpbn.cli.app import app
from milpbn.cli.verify import check_exactly


@dataclass(frozen=True)
class Answer:
    """The answer of the program.

    Attributes
    ----------
    code : int
        Exit code; through Python the one that the command line would have had.
    words : str
        The sentence of a refusal, or the traceback of what escaped; else empty.
    escaped : bool
        Whether an exception came out that is not one of the project's.
    result : dict or None
        Contents of ``result.json``.
    python : milpbn.Result or None
        The object, where it went through Python.
    printed : str
        What was printed on stdout.
    """

    code: int
    words: str = ""
    escaped: bool = False
    result: dict[str, Any] | None = None
    python: Any = field(default=None, compare=False)
    printed: str = ""


def command(*arguments: object) -> Answer:
    """Run ``milpbn`` in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = CliRunner().invoke(app, [str(a) for a in arguments])
    lines = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    words = lines[-1].removeprefix("Error: ") if lines else ""
    trouble = done.exception is not None and not isinstance(done.exception, SystemExit)
    if trouble:
        words = "".join(traceback.format_exception(done.exception))
    return Answer(done.exit_code, words, trouble or "failed unexpectedly" in words, printed=done.stdout)


def run(case: Case, folder: Path) -> Answer:
    """Run a case; its files are ``data.*``, ``result.json``, ``trace.jsonl``, ``classifier.json``, ``proof.npz``."""
    for name in ("result.json", "trace.jsonl", "classifier.json", "proof.npz"):
        (folder / name).unlink(missing_ok=True)
    return _by_command(case, folder) if case.way == "command" else _by_python(case, folder)


def verified(case: Case, folder: Path) -> Answer:
    """Verify the files of a run through Python, by both verifiers."""
    values, proof = json.loads((folder / "result.json").read_text(encoding="utf-8")), folder / "proof.npz"
    return _judged(case, values, proof, verify, check_exactly)


def verified_exactly(case: Case, values: dict[str, Any] | None, proof: Path) -> Answer:
    """Ask the exact checker alone about a certificate, and about a result if there is one."""
    return _judged(case, values, proof, check_exactly)


def _judged(
    case: Case, values: dict[str, Any] | None, proof: Path, *verifiers: Callable[[Any, str, Any], object]
) -> Answer:
    """Ask verifiers one after the other, until one refuses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = milpbn.read_table(case.frame(), name="data", **case.reading()).dataset("train")
            for check in verifiers:
                check(values, str(proof), data)
    except milpbn.MilpbnError as error:
        return Answer(error.exit_code, str(error))
    except Exception:
        return Answer(4, traceback.format_exc(), escaped=True)
    return Answer(0)


def write_inputs(case: Case, folder: Path) -> list[str]:
    """Write what a run reads, and return the arguments of ``milpbn`` that solve the case."""
    table = case.write_table(folder)
    arguments = ["solve", str(table), *case.reading_arguments(), *case.solve_arguments()]
    if case.start is not None:
        (folder / "start.json").write_text(json.dumps({"structure": case.start}), encoding="utf-8")
        arguments += ["--start", str(folder / "start.json")]
    if case.certificate:
        arguments += ["--certificate", str(folder / "proof.npz")]
    return arguments


def _by_command(case: Case, folder: Path) -> Answer:
    answer = command(
        *write_inputs(case, folder),
        *("--output", folder / "result.json", "--trace", folder / "trace.jsonl"),
        *("--classifier", folder / "classifier.json", "-q"),
    )
    path = folder / "result.json"
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() and answer.code != 2 else None
    return Answer(answer.code, answer.words, answer.escaped, result, printed=answer.printed)


def _by_python(case: Case, folder: Path) -> Answer:
    options: dict[str, Any] = {**case.options, "output": folder / "result.json", "verbose": False}
    options["trace"] = folder / "trace.jsonl"
    if case.certificate:
        options["certificate"] = folder / "proof.npz"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = milpbn.read_table(case.frame(), name="data", **case.reading())
            if case.start is not None:
                names = [*case.names[:-1], case.names[-1]]
                options["start"] = milpbn.Structure.from_mapping(names, case.start)
            score = milpbn.Score(**case.score)
            rules = milpbn.Constraints.from_dict(case.constraints)
            result = milpbn.solve(table, score, constraints=rules, **options)
    except milpbn.MilpbnError as error:
        return Answer(error.exit_code, str(error))
    except Exception:
        return Answer(4, traceback.format_exc(), escaped=True)
    return Answer(0 if result.structure is not None else 3, "", False, result.to_dict(), result)
