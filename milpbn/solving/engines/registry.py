"""Finds an engine by its name, and refuses early what it cannot do."""

from __future__ import annotations

from milpbn.errors import InputError
from milpbn.problem.scores.registry import score_names
from milpbn.problem.scores.spec import Score
from milpbn.solvers.registry import DEFAULT_SOLVER, SOLVERS, find_solver, solver_names
from milpbn.solving.engines.base import Engine
from milpbn.solving.engines.branch_and_cut import BranchAndCutEngine
from milpbn.solving.engines.milp import MilpEngine
from milpbn.solving.engines.native import NativeEngine, distributed_module
from milpbn.solving.options import Options

#: The engines that ``auto`` tries, in this order; it stands for the first one that maximises the score.
AUTOMATIC = (NativeEngine.name, BranchAndCutEngine.name, DEFAULT_SOLVER)
#: The project's own engines; all others are MILP solvers.
OWN: dict[str, type[Engine]] = {engine.name: engine for engine in (NativeEngine, BranchAndCutEngine)}


def engine_names() -> list[str]:
    """Return the names that `get_engine` takes, whether their solvers are installed or not."""
    return [*OWN, *solver_names()]


def get_engine(name: str) -> Engine:
    """Return an engine by its name, one of `engine_names` or ``pulp:NAME``.

    Raise InputError if there is no engine of that name. Whether its solver is installed is checked by `Engine.version`
    and `Engine.run` only.
    """
    if name.lower() in OWN:
        return OWN[name.lower()]()
    solver = find_solver(name)
    if solver is None:
        known = ", ".join([*OWN, *SOLVERS])
        raise InputError(f"There is no backend {name!r}; choose one of auto, {known} or pulp:NAME.")
    return MilpEngine(solver)


def automatic(name: str, score: Score, *, for_milp: bool = False) -> str:
    """Return the name of the engine that ``auto`` stands for; other names are returned unchanged.

    If options for MILP solvers are given (`for_milp`, see `for_solvers`), a score that branch and cut would maximise
    gets such a solver.
    """
    if name.lower() != "auto":
        return name
    return next(
        engine
        for engine in AUTOMATIC
        if (can := get_engine(engine).capabilities).maximises(score.kind)
        and not (for_milp and can.local_only)
    )


def for_solvers(options: Options) -> list[str]:
    """Return the options that are given and that only MILP solvers take, in their spelling on the command line."""
    given = {
        "--no-warm-start": not options.warm_start,
        "--no-root-bound": not options.root_bound,
        f"--acyclicity {options.acyclicity}": options.acyclicity != Options.acyclicity,
        "--log": options.log is not None,
        "--solver-option": bool(options.solver_options),
    }
    return [spelling for spelling, is_given in given.items() if is_given]


def without_root(engine: Engine, score: Score) -> Engine:
    """Return the engine that searches in place of another one where no structure is known, and so no root bound.

    An engine that continues from the root cannot branch there. The first one of `AUTOMATIC` that does not need a root,
    and maximises the score, finds a structure, or proves that none exists. Other engines are returned unchanged.
    """
    if not engine.capabilities.continues_root:
        return engine
    others = map(get_engine, AUTOMATIC)
    return next(
        other
        for other in others
        if not other.capabilities.continues_root and other.capabilities.maximises(score.kind)
    )


def check_engine(engine: Engine, options: Options, score: Score) -> None:
    """Refuse options and scores that the engine's capabilities exclude, and options that its solver does not take.

    The sentence of the InputError says what to do instead.
    """
    name, can = engine.name, engine.capabilities
    unused = ", ".join(for_solvers(options))
    certified = score_names(lambda kind: kind.certified)
    scores = ", ".join(score for one in OWN.values() for score in one.capabilities.scores)
    own = f"choose --backend auto and one of the scores {scores}"
    # Per row: whether something is asked for, whether the engine can do it, and the sentence if it cannot.
    table = (
        (
            bool(options.solver_options),
            can.milp,
            f"The backend {name} has no solver options; leave out --solver-option.",
        ),
        (
            True,
            can.maximises(score.kind),
            f"The backend {name} maximises {', '.join(can.scores)}, not {score.name}; use --backend auto.",
        ),
        (
            bool(unused),
            can.milp,
            f"The backend {name}, which auto chooses for this score, has no use for {unused}; leave it "
            f"out, or name a MILP solver, for instance --backend {DEFAULT_SOLVER}.",
        ),
        (
            options.most_listed > 1,
            can.n_best,
            f"A list of the best structures comes with the backends {' and '.join(OWN)}, not with {name}, and not with "
            f"every score; leave out --n-best (n_best) and --within (within), or {own}.",
        ),
        (
            options.checkpoint is not None,
            can.resumes and not options.root_only,
            f"A checkpoint comes with the tree search of the backends {' and '.join(OWN)}, and not with every score; "
            f"leave out --checkpoint (checkpoint), or {own}.",
        ),
        (
            options.workers is not None or options.dask is not None,
            can.spreads and not options.root_only,
            f"Several workers share the tree search of the backend {NativeEngine.name}, which maximises "
            f"{', '.join(NativeEngine.capabilities.scores)}; leave out --workers (workers) and --dask (dask), or "
            "choose these.",
        ),
        (
            options.certificate is not None,
            can.certificate,
            f"A certificate comes with the backends {' and '.join(OWN)}, not with {name}; leave one of them out.",
        ),
        (
            options.certificate is not None,
            score.kind.certified,
            f"A certificate comes with the scores {', '.join(certified)}, not with {score.name}.",
        ),
    )
    for asked, able, sentence in table:
        if asked and not able:
            raise InputError(sentence)
    engine.check_options(options.solver_options or {})
    if options.workers is not None or options.dask is not None:
        distributed_module().check_cluster(options.dask)


def checked_engine(options: Options, score: Score) -> tuple[Engine, str]:
    """Return the engine that the options name, and its version, after checking options and score.

    Raise InputError if there is no such engine, its solver is missing, or it does not take an option or the score.
    """
    engine = get_engine(automatic(options.backend, score, for_milp=bool(for_solvers(options))))
    version = engine.version()
    check_engine(engine, options, score)
    return engine, version
