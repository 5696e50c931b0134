"""The list of kernels that searches need."""

from __future__ import annotations

import json
import subprocess
import sys

from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solving.warm_up import Kernels, compile_all, needed, tiny_data

#: Prints the kernels that searches compile after all kernels of the list are compiled; there should be none.
SEARCHES = """
import json
from numba.core import event
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve
from milpbn.solving.warm_up import compile_all

compiled = []
class Listener(event.Listener):
    def on_start(self, e):
        compiled.append(e.data["dispatcher"].py_func.__module__ + "." + e.data["dispatcher"].py_func.__name__)
    def on_end(self, e):
        pass

compile_all()
event.register("numba:compile", Listener())
quiet = dict(verbose=False, threads=1)
for score in (Score(p=0.9), Score(name="cll"), Score(p=0.9, max_parents=3)):
    solve("instance:corral", score, time_limit=20, **quiet)
solve("instance:corral", Score(p=0.9), constraints=Constraints(max_children={"A0": 1}), time_limit=20, **quiet)
solve("instance:corral", Score(name="hard-margin"), backend="highs", time_limit=20, **quiet)
solve("instance:corral", Score(name="bdeu", max_parents=3), backend="branch-and-cut", time_limit=20, **quiet)
print(json.dumps(compiled))
"""


def test_searches_compile_nothing_beyond_the_list() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", SEARCHES], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_all_scores_of_a_kind_need_the_same_kernels() -> None:
    assert needed("sm", 2, rows=False) == needed("sbm", 2, rows=False)
    soft, smooth = (
        [job for stage in needed(name, 2, rows=True).values() for job in stage] for name in ("sm", "cll")
    )
    assert {job.name for job in set(soft) ^ set(smooth)} == {
        "add_up_margins",
        "improve",
        "_to_odds",
        "_likelihoods",
    }


def test_scores_without_bounds_need_the_kernels_of_local_search_only() -> None:
    problem = build_problem(tiny_data(), Score(name="hard-margin"), for_milp=False)
    kernels = Kernels(problem, True, False, lambda: False)
    assert set(kernels._needs) == {"search", "milp"}
    kernels.close()


def test_a_linear_score_needs_the_kernels_of_parent_sets_only() -> None:
    problem = build_problem(tiny_data(), Score(name="mdl"), for_milp=False)
    kernels = Kernels(problem, True, False, lambda: False)
    assert set(kernels._needs) == {"branching"}
    assert kernels.ready("search")
    kernels.close()


def test_cached_kernels_are_not_compiled_again() -> None:
    told: list[tuple[int, int]] = []
    count = compile_all()
    assert compile_all(lambda *numbers: told.append(numbers)) == count
    assert told == []
