"""``milpbn learn``: every learner as a command, its options, files, and the gap to a bound."""

import gzip
import json
import os
import signal
import sys
import time
from dataclasses import dataclass, fields

import click
import numpy as np
import pytest
from cli_common import QUICK, ended, load, refused, run, says, start, succeed, toy_rows, write_csv

import milpbn
from milpbn.cli.app import app
from milpbn.cli.learn import LearnGroup
from milpbn.cli.learners import learner_options
from milpbn.data import Dataset
from milpbn.learners.base import Control, Learned, Learner, setting
from milpbn.learners.registry import LEARNERS, get_learner
from milpbn.network import load_classifier, read_structure
from milpbn.util.budget import Budget
from milpbn.util.options import spelling


def test_help_lists_every_learner():
    listed = succeed("learn")
    assert listed.output == run("learn", "--help").output
    assert all(name in listed.output for name in LEARNERS)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_has_a_command_with_its_options(name):
    assert f"milpbn learn {name}" in succeed("learn", name, "--help").output
    group = app.commands["learn"]
    assert isinstance(group, LearnGroup)
    parameters = group.get_command(click.Context(group), name).params
    flags = [flag for p in parameters for flag in (*p.opts, *p.secondary_opts)]
    assert len(flags) == len(set(flags))
    names = [p.name for p in parameters]
    assert len(names) == len(set(names))
    for field in fields(get_learner(name)):
        assert spelling(field) in flags


def test_an_unknown_learner_is_a_sentence():
    done = refused("learn", "nobody", "x.csv")
    assert "naive-bayes" in done.stderr
    assert done.stderr.count("\n") == 1


def test_options_take_the_types_of_the_fields():
    @dataclass(frozen=True, kw_only=True)
    class Odd(Learner):
        name = "odd"
        rate: float = setting(0.5, "A rate.")
        count: int | None = setting(None, "A count.")
        lambda_: str | float = setting("cv", "A number or cv.")
        names: tuple[str, ...] | str = setting("all", "Names.")
        sizes: tuple[int, ...] = setting((1, 2), "Sizes.")
        rates: tuple[float, ...] = setting((), "Rates.")
        flag: bool = setting(True, "A flag.")
        word: str = setting("a", "A word.", choices=("a", "b"))

        def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
            raise NotImplementedError

    seen: dict[str, object] = {}

    @click.command()
    @learner_options(Odd)
    def command(options: dict[str, object]) -> None:
        seen.update(options)

    command.main([], standalone_mode=False)
    assert seen == {}
    text = "--rate 2 --count 3 --lambda 1e-2 --sizes 3,4 --rates 0.5,1 --no-flag --word b"
    command.main([*text.split(), "--names", '"a,b",c'], standalone_mode=False)
    assert seen == {
        "rate": 2.0,
        "count": 3,
        "lambda_": 0.01,
        "names": ("a,b", "c"),
        "sizes": (3, 4),
        "rates": (0.5, 1.0),
        "flag": False,
        "word": "b",
    }
    assert Odd(**seen).count == 3
    command.main(["--lambda", "cv"], standalone_mode=False)
    assert seen["lambda_"] == "cv"
    for bad in (["--count", "x"], ["--sizes", "1,x"], ["--word", "c"], ["--rate", "nan"]):
        with pytest.raises(click.BadParameter):
            command.main(bad, standalone_mode=False)


def test_structure_and_classifier_files_are_written(shop, tmp_path):
    files = ["--output", tmp_path / "s.json", "--classifier", tmp_path / "c.json"]
    done = succeed("learn tan toy.csv --root b", *files)
    table = milpbn.read_table(shop / "toy.csv")
    structure = read_structure(tmp_path / "s.json", table.dataset().names)
    assert structure.to_mapping()["b"] == ["class"]
    classifier = load_classifier(tmp_path / "c.json")
    assert classifier.structure == structure
    assert classifier.provenance["learner"] == {
        "name": "tan",
        "penalty": "none",
        "root": "b",
        "holdout": 0.2,
        "smoothing": 1.0,
        "smoothing_towards": "uniform",
    }
    document = load(tmp_path / "s.json")
    assert document["learner"] == {"name": "tan", "root": "b"}
    assert document["accuracy"]["training"] == milpbn.evaluate(classifier, str(shop / "toy.csv")).accuracy
    assert document["accuracy"]["test"] is None
    assert document["gap"] is None
    assert f"training   {100 * document['accuracy']['training']:.2f} %" in done.stdout
    assert f"structure  {len(structure.arcs)} arcs" in done.stdout
    assert "gap        unknown; to state it, add --bound with a result.json of milpbn solve" in done.stdout
    succeed("solve toy.csv", *QUICK, "--start", tmp_path / "s.json", "-q")


def test_the_gap_is_that_of_score(shop, tmp_path):
    bound = ["--bound", shop / "result.json"]
    done = succeed("learn tan toy.csv", *bound, "--output", tmp_path / "s.json", "--smoothing", "4")
    scored = run("score", tmp_path / "s.json", "toy.csv", *bound)
    words = [line.split(maxsplit=1) for line in scored.stdout.splitlines()[1:]]
    assert [word for word, _ in words] == ["score", "bound", "gap", "best"]
    assert [line.split(maxsplit=1) for line in done.stdout.splitlines()[-4:]] == words
    document = load(tmp_path / "s.json")
    result = load(shop / "result.json")
    assert document["bound"] == result["bound"]
    assert document["gap"]["absolute"] == pytest.approx(result["bound"] - document["objective"])


def test_the_reason_is_printed_where_no_gap_is_stated(shop, tmp_path):
    done = run("learn multinet toy.csv --bound result.json")
    says(done.stdout, "gap        not stated: only an acyclic graph", "structure  none")
    options = ["--score", "ll", "--max-parents", "3", "--parent-sets", "all"]
    done = run("learn exact toy.csv --bound result.json", *options)
    assert "gap        not stated: it gives" in done.stdout


def test_bounds_of_other_data_are_refused_before_learning(shop, tmp_path):
    other = write_csv(tmp_path / "other.csv", toy_rows(seed=9))
    done = refused("learn tan", other, "--bound", "result.json", "--output", tmp_path / "s.json")
    assert "other data" in done.stderr
    assert not (tmp_path / "s.json").exists()


def test_the_bound_of_a_subset_is_refused(shop, tmp_path):
    succeed("solve toy.csv", *QUICK, "-q", "--subset", "20", "--output", tmp_path / "sub.json")
    own = load(tmp_path / "sub.json")
    succeed("learn tan toy.csv --bound", tmp_path / "sub.json")
    no_gap = dict.fromkeys(own["gap"])
    (tmp_path / "sub.json").write_text(json.dumps({**own, "bound": None, "gap": no_gap}))
    done = refused("learn tan toy.csv --bound", tmp_path / "sub.json")
    says(done.stderr, "representative samples", "without --subset")
    assert "longer" not in done.stderr


@pytest.mark.parametrize("name", ["multinet", "svm"])
def test_a_model_without_a_classifier_file_is_refused_before_learning(name, shop, tmp_path):
    files = ["--output", tmp_path / "s.json", "--classifier", tmp_path / "c.json"]
    assert "--classifier" in refused("learn", name, "toy.csv", *files).stderr
    assert not (tmp_path / "s.json").exists()
    assert not (tmp_path / "c.json").exists()
    if name == "multinet":
        succeed("learn", name, "toy.csv", *files[:2])
        assert load(tmp_path / "s.json")["structure"] is None


def test_a_quiet_exact_search_is_quiet_in_a_terminal_too(shop, monkeypatch):
    monkeypatch.setattr("milpbn.solving.report.wants_progress", lambda verbose: verbose is not False)
    arguments = ("learn", "exact", shop / "toy.csv", "--score", "mdl")
    assert "incumbent" in run(*arguments).stderr
    assert run(*arguments, "-q").stderr == ""


def test_test_rows_of_a_split_are_evaluated(shop, tmp_path):
    (tmp_path / "toy.csv.gz").write_bytes(gzip.compress((shop / "toy.csv").read_bytes()))
    (tmp_path / "catalog.json").write_text(json.dumps({"toy": {"train_rows": 30}}))
    catalog = ["toy", "--data-dir", tmp_path]
    done = run("learn naive-bayes", *catalog, "--classifier", tmp_path / "c.json", "-q")
    shown = run("evaluate", tmp_path / "c.json", *catalog, "--json", "-q").stdout
    assert f"test       {100 * json.loads(shown)['accuracy']:.2f} % accuracy  (10 samples)" in done.stdout
    assert "30 samples" in done.stdout
    done = run("learn naive-bayes", *catalog, "--split", "all")
    assert "40 samples" in done.stdout
    assert "test" not in done.stdout


def test_progress_goes_to_stderr(shop):
    done = run("learn hill-climbing toy.csv --start empty")
    assert "nats after" in done.stderr
    assert "nats after" not in done.stdout
    assert run("learn hill-climbing toy.csv --start empty -q").stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_signal_keeps_the_best_so_far(shop, tmp_path):
    # The search signals itself at its first report, and so stops with one change made.
    code = """
        import os, signal
        from milpbn.util import interrupts
        from milpbn.learners.generative import hill_climbing as module
        original = module.climb
        def interrupt(line):
            os.kill(os.getpid(), signal.SIGINT)
            while not interrupts.requested():  # another thread notes it
                pass
        def climb(climber, *, report, **options):
            return original(climber, report=interrupt, **options)
        module.climb = climb
    """
    command = ("learn", "hill-climbing", "toy.csv", "--start", "empty", "--output", tmp_path / "s.json")
    code, stdout, stderr = ended(code, *command)
    assert code == 0, stderr
    assert "stopped by: user" in stdout
    assert load(tmp_path / "s.json")["details"]["changes"] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_ends_a_fit_of_another_library(tmp_path):
    """A terminal sends the signal to all processes of the group, those that fit among them."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, (8000, 40)).astype(str).tolist()
    write_csv(tmp_path / "large.csv", rows, ",".join([*(f"x{i}" for i in range(39)), "class"]))
    arguments = ("learn", "svm", tmp_path / "large.csv", "--sigma", "1", "--cost", "32")
    patient = "from milpbn.util import clock; clock.GRACE = 60.0"  # other programs may run beside this one
    begun = os.times()
    with start(patient, *arguments, start_new_session=True) as process:
        try:
            while "fitting" not in process.stderr.readline():
                assert process.poll() is None
            time.sleep(0.3)
            os.killpg(process.pid, signal.SIGINT)
            stdout, stderr = process.communicate(timeout=100)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, stderr
    assert "stopped by: user" in stdout
    assert "stopped_early True" in stdout
    used = os.times().children_user - begun.children_user
    assert used < 15, "the fit was not ended at once"  # CPU seconds


GRADIENT = ("--epochs", "2", "--batch-size", "20", "-q")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--checkpoint", "none/x.npz"), "--checkpoint"),
        (("--checkpoint", "toy.csv"), "--checkpoint 'toy.csv' would overwrite"),
        (("--checkpoint", "c.npz", "--output", "c.npz"), "would overwrite the file of"),
        (("--checkpoint", "codes.npy"), "is not a complete checkpoint"),
        (("--structure", "naive-bayes", "--k", "3"), "k of differentiable-tan changes nothing"),
        (("--loss", "nll", "--gamma", "3"), "changes nothing with loss nll"),
        (("--loss", "cll", "--lambda", "3"), "lambda of differentiable-tan changes nothing"),
        (("--smoothing", "3"), "changes nothing with init uniform"),
    ],
)
def test_what_differentiable_tan_refuses_before_it_trains(tmp_path, monkeypatch, arguments, part):
    monkeypatch.chdir(tmp_path)
    table = write_csv(tmp_path / "toy.csv", toy_rows()).read_text()
    np.save("codes.npy", np.zeros(3))
    monkeypatch.setattr("milpbn.learners.differentiable.training._Runner.epoch", None)
    assert part in refused("learn", "differentiable-tan", "toy.csv", *GRADIENT, *arguments).stderr
    assert (tmp_path / "toy.csv").read_text() == table


def test_a_checkpoint_of_another_run_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "toy.csv", toy_rows())
    command = ("learn", "differentiable-tan", "toy.csv", *GRADIENT, "--checkpoint", "c.npz")
    succeed(*command)
    assert refused(*command, "--seed", "1").stderr.count("The checkpoint") == 1


def test_a_pseudo_tan_is_kept_and_used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [[*row[:3], row[0] + row[1], row[3]] for row in toy_rows()]
    write_csv(tmp_path / "toy.csv", rows, "a,b,c,d,class")
    command = ("learn", "differentiable-tan", "toy.csv", "--structure", "pseudo-all", "--epochs", "40")
    options = ("--loss", "nll", "--structure-rate", "0.05", "--batch-size", "10", "-q")
    succeed(*command, *options, "--classifier", "p.json", "--output", "l.json")
    assert load(tmp_path / "p.json")["format"] == "milpbn-pseudo-classifier"
    predicted = run("predict", "p.json", "toy.csv").output.split()[1:]
    figures = json.loads(run("evaluate", "p.json", "toy.csv", "--json").output)
    right = np.mean([label == row[-1] for label, row in zip(predicted, rows, strict=True)])
    assert figures["accuracy"] == pytest.approx(right)
    assert "pseudo-TAN" in run("info", "p.json").output
    assert "structure = pseudo-all" in succeed("info", "l.json").output
    assert load(tmp_path / "l.json")["structure"] is None
    assert "a pseudo-TAN with a cycle" in refused("solve", "toy.csv", "--start", "l.json", "-q").stderr


def test_info_describes_the_output_of_a_learner(tmp_path):
    succeed("learn", "tan", "instance:corral", "-q", "--output", tmp_path / "t.json")
    described = run("info", tmp_path / "t.json").output
    assert "learner    tan" in described
    assert "% of training rows\n" in described


def test_info_of_a_learner_calls_weighted_figures_weighted(tmp_path):
    rows = ["a,w,c", *(f"{'xy'[k % 2]},{1 + k % 3},{'uv'[k % 5 == 0]}" for k in range(30))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    succeed(
        "learn", "naive-bayes", tmp_path / "t.csv", "--weights", "w", "--parameters", "cll:10", "-q",
        "--output", tmp_path / "t.json",
    )  # fmt: skip
    document, described = load(tmp_path / "t.json"), run("info", tmp_path / "t.json").output
    share, once = document["accuracy"]["training"], document["unweighted_accuracy"]["training"]
    assert (
        f"accuracy   {100 * share:.2f} % of training rows, weighted; {100 * once:.2f} % where each"
        in described
    )
    assert "parameters cll: " in described
