"""Shell completion, as the page on installation describes it."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from milpbn import instances
from milpbn.cli.app import app
from milpbn.cli.types import BACKEND
from milpbn.learners.registry import LEARNERS, RAW_LEARNERS, get_learner
from milpbn.network.parameters.method import METHODS
from milpbn.network.prior import TOWARDS
from milpbn.problem.scores.registry import margin_scores
from milpbn.solving.engines.registry import engine_names
from milpbn.solving.recipes import RECIPE_NAMES

COLUMNS = ["x y", "a", "class"]
CLASSES = ["bad", "good"]

#: What each parameter completes, by its first name; a verb's own parameter has the verb before it. New ones go here.
KINDS = {
    "nothing": "--gamma --smoothing --ess --hybrid --time-limit --time-limit-each --gap-rel --gap-abs --gap-se "
    "--threads --workers --dask --seed --max-features "
    "--n-best --within --subset --screen --solver-option --memory-limit --average --samples --n-jobs --bound --sample "
    "--row --seconds --shown --integer-bits --bits --folds --repeats --set --test-share --only --budget --epochs "
    "--cost --worst-error --sensitivity --alarm-rate --abstain predict--conformal evaluate--conformal --psi "
    "monitor--loss --alpha --rows --rule",
    "words": "--discretise --missing --class-weights --states --split --score --p --max-parents --smoothing-towards "
    "--parent-sets --penalty --backend --acyclicity --recipe --select --select-by --parameters --script --learners "
    "--also decide--conformal compare--against paper action dataname --separator --decimal --thousands --encoding "
    "--structure",
    "files": "--constraints --start --output --classifier --certificate --checkpoint --trace --log --model --result "
    "--plot --library --costs --card score--bound learn--bound result solution classifier output structure",
    "folders": "--data-dir reproduce--output",
    "tables": "data source file --data --reference --test",
    "names": "--target --drop --features --continuous --nominal --weights --require --forbid --tiers --max-children "
    "--fix --allow --arc-weight --ancestor --no-ancestor --independence --keep --na-values --of --evidence --variable "
    "--monotone --id",
    "classes": "--label --against --positive",
    "instances": "name",
    "kinds of pictures": "what",
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}
#: The same for the options of the learners.
OF_LEARNERS = {
    "files": "--checkpoint --structure-file",
    "names": "--root --order",
    "words": "--backend --evaluation --scoring --loss --dtype --init --start --structure --penalty --score "
    "--parent-sets --smoothing-towards --early-stopping",
}

PAGE = Path(__file__).resolve().parents[2] / "docs" / "install.md"
#: What a shell needs before the line of the page, and what says afterwards that it completes milpbn.
AROUND = {
    "bash": ("", "complete -p milpbn"),
    "zsh": ("autoload -Uz compinit; compinit -u -D", "echo $_comps[milpbn]"),
    "fish": ("", "complete --command milpbn"),
}


@pytest.mark.parametrize("shell", AROUND)
def test_the_line_of_the_page_makes_the_shell_complete(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (line,) = re.findall(rf"^.*={shell}_source.*$", PAGE.read_text(encoding="utf-8"), re.M)
    before, after = AROUND[shell]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", f"{before}\n{line}\n{after}"],
        env=os.environ | {"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "_milpbn_completion" in done.stdout, done.stderr


def parameters() -> Iterator[tuple[str, click.Command, click.Parameter]]:
    """Yield every parameter that takes a value, with its verb; of learners only those that all of them have."""
    verbs = {**app.commands, "learn": app.commands["learn"].get_command(None, "naive-bayes")}  # type: ignore[attr-defined]
    for verb, command in verbs.items():
        for parameter in command.params:
            if not getattr(parameter, "is_flag", False):
                yield verb, command, parameter


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the current folder: it has a table, and a classifier of its variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MILPBN_DATA", raising=False)
    (tmp_path / "table.csv").write_text("x y,a,class\n0,1,good\n")
    variables = [{"name": name, "states": ["0", "1"]} for name in COLUMNS[:-1]]
    described = {"variables": [*variables, {"name": "class", "states": CLASSES}]}
    (tmp_path / "classifier.json").write_text(json.dumps(described))
    return tmp_path


def kind_of(command: click.Command, parameter: click.Parameter) -> str:
    """Return what a parameter completes, from what it offers after a table and a classifier."""
    context = click.Context(command)
    context.args = ["classifier.json", "table.csv"]
    items = parameter.shell_complete(context, "")
    values = [item.value for item in items if item.type == "plain"]
    types = {item.type for item in items}
    if types == {"file", "plain"}:
        return "tables" if values == instances.names() else "kinds of pictures"
    for kind, known in {"names": COLUMNS, "classes": CLASSES, "instances": instances.names()}.items():
        if values == known:
            return kind
    return {"file": "files", "dir": "folders", "plain": "words"}[types.pop()] if types else "nothing"


def test_every_parameter_completes_what_this_file_says(folder):
    for verb, command, parameter in parameters():
        name = parameter.opts[0]
        expected = KIND_OF.get(verb + name, KIND_OF.get(name, "not in this file: add it to KINDS"))
        assert kind_of(command, parameter) == expected, f"milpbn {verb} {name}"


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_option_of_a_learner_completes_what_this_file_says(learner, folder):
    kinds = {name: kind for kind, names in OF_LEARNERS.items() for name in names.split()}
    command = app.commands["learn"].get_command(None, learner)  # type: ignore[attr-defined]
    own = {f"--{field.rstrip('_').replace('_', '-')}" for field in get_learner(learner).__dataclass_fields__}
    for parameter in command.params:
        if parameter.opts[0] in own and not parameter.is_flag:
            kind = kinds.get(parameter.opts[0], "nothing")
            assert kind_of(command, parameter) == kind, f"{learner} {parameter.opts[0]}"
            if kind == "nothing":
                assert parameter.type.name not in ("text", "word"), (
                    f"{learner} {parameter.opts[0]}: say what it takes"
                )


def offered(command: str, name: str) -> list[str]:
    """Return the words that a parameter offers."""
    parameter = next(p for p in app.commands[command].params if p.opts[0] == name)
    return [item.value for item in parameter.shell_complete(click.Context(app.commands[command]), "")]


def test_words_are_those_that_are_accepted():
    """Completion must be fast, so it does not import what knows these words."""
    backends = [name for name in engine_names() if not name.startswith("pulp:")]
    assert [i.value for i in BACKEND.shell_complete(None, None, "")] == ["auto", *backends]  # type: ignore[arg-type]
    assert offered("solve", "--recipe") == [*RECIPE_NAMES]
    assert offered("solve", "--parameters") == [*METHODS]
    assert offered("solve", "--smoothing-towards") == [*TOWARDS]
    known = [*margin_scores(), *dict.fromkeys((*LEARNERS, *RAW_LEARNERS))]
    assert offered("compare", "--learners") == offered("compare", "--against") == known


def answer(**environment: str) -> str:
    """Return what a shell gets."""
    done = CliRunner().invoke(app, [], env=environment, prog_name="milpbn")
    assert done.stderr == ""
    return done.stdout


def complete(line: str, **environment: str) -> list[str]:
    """Return what zsh gets for the end of a command line: kinds and values."""
    words = {"COMP_WORDS": f"milpbn {line}", "COMP_CWORD": str(line.count(" ") + 1)}
    lines = answer(_MILPBN_COMPLETE="zsh_complete", **words, **environment).splitlines()
    return [f"{kind},{value}" for kind, value in zip(lines[::3], lines[1::3], strict=False)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("so", ["plain,solve"]),
        ("solve --time", ["plain,--time-limit"]),
        ("solve ta", ["file,ta"]),
        ("solve ti", ["file,ti", "plain,tic-tac-toe"]),
        ("solve table.csv --target c", ["plain,class"]),
        ("solve table.csv --drop a,c", ["plain,a,class"]),
        ("solve table.csv --fix class=", ["plain,class=x y", "plain,class=a", "plain,class=class"]),
        ("solve table.csv --tiers a;c", ["plain,a;class"]),
        ("solve table.csv --score=s", ["plain,sm", "plain,sbm"]),
        ("solve table.csv --output ", ["file,"]),
        ("query classifier.json --evidence a=1,class=", ["plain,a=1,class=bad", "plain,a=1,class=good"]),
        ("explain classifier.json table.csv --label g", ["plain,good"]),
        ("plot expl", ["file,expl", "plain,explain"]),
        ("plot explain cl", ["file,cl"]),
        ("plot cpt classifier.json --variable a", ["plain,a"]),
        ("compare --learners sm,tan-omi-", [f"plain,sm,tan-omi-{x}" for x in ("cr", "cl", "mm")]),
        ("instances corr", ["plain,corral"]),
        ("--version ", [f"plain,{verb}" for verb in app.commands]),
        ("learn nonsense ", []),
        ("solve none.csv --drop ", []),
    ],
)
def test_a_shell_gets(line, expected, folder):
    assert complete(line) == expected


def test_entries_of_the_catalog_are_completed(folder):
    (folder / "catalog.json").write_text('{"letter": {}}')
    (folder / "letter.csv.gz").write_bytes(gzip.compress(b"u,v\n1,2\n"))
    options = f"solve --data-dir {folder}"
    assert complete(f"{options} le") == ["file,le", "plain,led-7", "plain,letter"]
    assert complete(f"{options} letter --drop ") == ["plain,u", "plain,v"]
    assert complete("solve let", MILPBN_DATA=str(folder)) == ["file,let", "plain,letter"]


@pytest.mark.parametrize("damaged", ["catalog.json", "classifier.json", "table.csv.gz"])
def test_a_damaged_file_shows_nothing(damaged, folder):
    (folder / "table.csv").unlink()
    (folder / damaged).write_text('{"variables": [7')
    assert complete("solve x", MILPBN_DATA=str(folder)) == ["file,x"]
    if damaged != "catalog.json":
        assert complete(f"evaluate {damaged} --weights ", MILPBN_DATA=str(folder)) == []


def test_completion_in_a_process_of_its_own_imports_nothing_heavy(folder):
    code = """
import os, sys
from milpbn.cli.app import app
for line in ("solve t", "solve table.csv --drop ", "solve --backend ", "compare --learners "):
    os.environ |= {"COMP_WORDS": f"milpbn {line}", "COMP_CWORD": str(line.count(" ") + 1)}
    app.run([])
    print([m for m in ("pandas", "numba", "scipy", "sklearn") if m in sys.modules])
"""
    environment = {**os.environ, "_MILPBN_COMPLETE": "bash_complete"}
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    lines = done.stdout.splitlines()
    assert done.stderr == ""
    assert {"file,t", "plain,class", "plain,native", "plain,sm"} <= {*lines}
    assert lines.count("[]") == 4


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["solve", "table.csv", "--drop", ""], ["x\\ y", "a", "class"]),
        (["solve", "table.csv", "--drop", "x\\ "], ["x\\ y"]),
        (["solve", "table.csv", "--fix", "class", "=", "a,c"], ["a,class"]),
        (["solve", "table.csv", "--fix", "class", "="], ["x\\ y", "a", "class"]),
        (["query", "classifier.json", "--evidence", "x\\ y", "=", "1,class", "=", "g"], ["good"]),
        (["solve", "--discretise", "quantile", ":"], ["5"]),
        (["solve", "--score", "=", "sb"], ["sbm"]),
        (["solve", "ti"], ["tic-tac-toe"]),
        (["solve", "ta"], []),
    ],
)
def test_bash_inserts(words, expected, folder):
    """The function that bash calls, with the words as bash splits them; an empty answer leaves files to bash."""
    function = answer(_MILPBN_COMPLETE="bash_source")
    (folder / "function.sh").write_text(function.replace("env COMP", "COMP"))
    (folder / "answer").touch()
    script = """
milpbn() { printf %s "$COMP_WORDS" > words; printf %s "$COMP_CWORD" > place; cat answer; }
source ./function.sh
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _milpbn_completion milpbn 2>/dev/null
[ ${#COMPREPLY[@]} = 0 ] || printf "%s\n" "${COMPREPLY[@]}"
"""
    command = ["bash", "-c", script, "bash", "milpbn", *words]
    subprocess.run(command, check=True)  # writes what milpbn is asked
    asked = {"COMP_WORDS": (folder / "words").read_text(), "COMP_CWORD": (folder / "place").read_text()}
    (folder / "answer").write_text(answer(_MILPBN_COMPLETE="bash_complete", **asked))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == expected
