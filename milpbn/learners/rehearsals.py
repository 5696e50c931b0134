"""Compilation of all kernels of the package: those of searches from their list, the others by small runs.

A run on a few rows compiles the kernels for exactly the arguments of the real runs, which no list has to repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numba
import numpy as np

from milpbn.certificate.verify.check import verify
from milpbn.data.mdlp import mdlp_cuts
from milpbn.learners.base import Control
from milpbn.learners.registry import get_learner
from milpbn.network.additive.model import Additive, Penalty
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve
from milpbn.solving.warm_up import compile_all, tiny_data
from milpbn.util.compiled import count_kept


@dataclass(frozen=True)
class Rehearsal:
    """A run on a few rows, and the modules whose kernels it compiles."""

    name: str
    run: Callable[[], object]
    modules: tuple[str, ...] = ()


def _cut() -> None:
    mdlp_cuts(np.arange(60.0), np.arange(60) // 30, 2)


def _fit_additive() -> None:
    for n_classes in (2, 3):
        Additive(tiny_data(n_classes)).fit(Penalty())


def _verify(score: Score) -> None:
    """Solve and verify, to the optimum and with the bound before any search."""
    with TemporaryDirectory() as folder:
        path = str(Path(folder, "proof.npz"))
        for gap in (0.0, 1e9):
            result = solve(tiny_data(), score, certificate=path, gap_abs=gap, threads=1, verbose=False)
            verify(result, path, tiny_data())


def _learn(name: str, options: dict[str, str]) -> None:
    get_learner(name)(**options).fit(tiny_data(), Control(n_jobs=1))


#: Learners with kernels of their own, each with the options that change the kernels' arguments.
_LEARNERS: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
    ("all-orders", {}, ()),
    ("tan-cr", {}, ("discriminative.discriminative_scores", "discriminative.family_changes")),
    ("tan-cl", {}, ()),
    ("tan-mm", {}, ()),
    ("tan-omi-cr", {}, ("generative.order_based",)),
    *(
        (
            "differentiable-tan",
            {"dtype": dtype},
            tuple(
                f"differentiable.{name}" for name in ("adam", "gradients", "losses", "training", "vectorised")
            ),
        )
        for dtype in ("float32", "float64")
    ),
)
REHEARSALS = (
    Rehearsal("discretisation", _cut, ("milpbn.data.mdlp",)),
    Rehearsal(
        "tables on finer cuts",
        _fit_additive,
        ("milpbn.network.additive.kernels", "milpbn.network.additive.newton"),
    ),
    *(
        Rehearsal(
            f"verification of {name}",
            partial(_verify, Score(name=name, max_parents=parents)),
            ("milpbn.certificate.verify.maxima", "milpbn.certificate.verify.tables"),
        )
        for name in ("sm", "cll")
        for parents in (2, 3)
    ),
    *(
        Rehearsal(name, partial(_learn, name, options), tuple(f"milpbn.learners.{m}" for m in modules))
        for name, options, modules in _LEARNERS
    ),
)


def compile_package(told: Callable[[str], object] = lambda line: None) -> tuple[int, int]:
    """Compile all kernels that are not on disk yet; return the numbers of kernels on disk after and before.

    A kernel counts once for each list of types of arguments. `told` is called with lines of progress.
    """
    if numba.config.DISABLE_JIT:
        return 0, 0
    for module in dict.fromkeys(module for each in REHEARSALS for module in each.modules):
        import_module(module)
    before = count_kept()
    compile_all(lambda done, of: told(f"compiling kernels of searches: {done} of {of}"))
    for number, each in enumerate(REHEARSALS, start=1):
        known = count_kept()
        each.run()
        found = count_kept() - known
        if found:
            told(f"compiled {found} kernels of {each.name} (run {number} of {len(REHEARSALS)})")
    return count_kept(), before
