"""Training with mini-batches and the schedules of Roth & Pernkopf (2020, R20), section 4.2; validation, checkpoints."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.folds import validation_split
from milpbn.errors import InputError
from milpbn.learners.base import Control
from milpbn.learners.differentiable.adam import adam_step, initial_state
from milpbn.learners.differentiable.checkpoints import load_checkpoint, save_checkpoint
from milpbn.learners.differentiable.gradients import batch_gradients, make_work
from milpbn.learners.differentiable.layout import (
    Choices,
    Layout,
    build_layout,
    likelihood_tables,
    tables_to_cpts,
    uniform_tables,
)
from milpbn.learners.differentiable.losses import Loss
from milpbn.learners.generative.closed_form import check_data
from milpbn.network.cpt import Cpt, class_log_joint
from milpbn.network.prior import Prior
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget
from milpbn.util.checkpoints import seconds_of
from milpbn.util.clock import Pause
from milpbn.util.compiled import kernel
from milpbn.util.options import check_choice

#: Seconds between two checkpoints, unless writing one takes long.
CHECKPOINT_SECONDS = 30.0
#: Number of reports of a training.
REPORTS = 20
#: Number of columns of a batch that are copied at a time; their codes fill a cache line.
_COLUMNS = 16


@dataclass(frozen=True, kw_only=True)
class Training:
    """The settings of a training.

    Raises `InputError` if a setting has no valid value.
    """

    loss: Loss
    #: Number of passes over the data; with 0 the result has the initial tables.
    epochs: int = 500
    #: Samples per step; the last batch of an epoch may be smaller.
    batch_size: int = 100
    #: Learning rate of Theta in the first epoch. In epoch e of E it is multiplied by ``rate_decay ** (e / E)``.
    learning_rate: float = 3e-3
    #: Learning rate of Phi, which is constant.
    structure_rate: float = 1e-3
    #: Factor by which the learning rate of Theta decreases over the run.
    rate_decay: float = 1e-3
    #: tau of the first and of the last epoch, with geometric interpolation in between.
    temperatures: tuple[float, float] = (10.0, 0.1)
    #: Initial tables. ``uniform``: drawn from U([-0.1, 0.1]); ``ml``: Laplace-smoothed maximum likelihood.
    init: str = "uniform"
    #: Laplace constant of ``ml``.
    smoothing: float = 1.0
    dtype: str = "float32"
    #: Share of the samples held out to measure the error during the training; 0 for none.
    validation: float = 0.0
    #: Number of runs. All have the same initial tables and number of epochs, but different random numbers. The result
    #: has the normalised means of their log-probabilities, and the most probable choices under the mean of Phi.
    averaged_runs: int = 1

    def __post_init__(self) -> None:
        for name, least in (("epochs", 0), ("batch_size", 1), ("averaged_runs", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        for name in ("learning_rate", "structure_rate", "smoothing"):
            value = getattr(self, name)
            if not 0 < value <= 10:
                raise InputError(f"{name} must be above 0 and at most 10, got {value}.")
        check_choice("init", self.init, ("uniform", "ml"))
        check_choice("dtype", self.dtype, ("float32", "float64"))
        if not 0 <= self.validation < 1:
            raise InputError(f"validation must be at least 0 and below 1, got {self.validation}.")

    def rate(self, epoch: int) -> float:
        """Return the learning rate of Theta in an epoch (0, 1, ...)."""
        return self.learning_rate * self.rate_decay ** (epoch / self.epochs)

    def tau(self, epoch: int) -> float:
        """Return the temperature in an epoch (0, 1, ...)."""
        first, last = self.temperatures
        return first * (last / first) ** (epoch / max(1, self.epochs - 1))


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """The result of a training."""

    #: The most probable parent sets. Their graph may have a cycle if the choices allow one. Length V.
    parents: tuple[tuple[int, ...], ...]
    #: The tables of these parent sets. Length V.
    cpts: tuple[Cpt, ...]
    #: Unnormalised log-probabilities of all choices, variable by variable. Shape (F,).
    phi: NDArray[np.float64]
    #: For every epoch of all runs its number, the mean loss per sample under the sampled structures (nats), and the
    #: error on the held-out samples if it was measured.
    history: list[list[Any]]
    #: Error of the result on the held-out samples.
    error: float | None
    #: Number of runs in the mean. A run that was stopped is left out, unless it is the first.
    runs: int
    stopped_early: bool

    @property
    def details(self) -> dict[str, Any]:
        """The details of the training for `milpbn.learners.base.Learned`."""
        return {
            "epochs": len(self.history),
            "loss": self.history[-1][1] if self.history else None,
            "validation_error": self.error,
            "averaged_runs": self.runs,
            "history": self.history,
            "stopped_early": self.stopped_early,
        }


class Epoch(NamedTuple):
    """What the random numbers and the schedules decide for one epoch."""

    #: The order of the samples. Shape (M,).
    order: NDArray[np.int64]
    #: Gumbel(0, 1) samples. Shape (steps, F).
    noise: NDArray[np.float64]
    #: Samples per step.
    batch_size: int
    #: Temperature, and the learning rates of Theta and Phi.
    tau: float
    rate: float
    structure_rate: float


@kernel
def train_epoch(layout, state, loss, codes, weights, epoch, work):  # type: ignore[no-untyped-def]
    """Make the steps of one epoch, and return the weighted mean loss of its batches, each before its step.

    The `AdamState` is changed in place. The samples are `codes`, int32 array of shape (M, V), with `weights`, float64
    array of shape (M,).
    """
    M, V = codes.shape
    total = weights.sum()
    mean_weight = total / M
    value = 0.0
    for step in range(len(epoch.noise)):
        begin = step * epoch.batch_size
        B = min(epoch.batch_size, M - begin)
        rows = epoch.order[begin : begin + B]
        for b in range(B):
            work.scale[b] = weights[rows[b]] / (B * mean_weight)
        for left in range(0, V, _COLUMNS):
            for b in range(B):
                for v in range(left, min(left + _COLUMNS, V)):
                    work.codes[v, b] = codes[rows[b], v]
        batch = batch_gradients(layout, state.theta, state.phi, loss, epoch.noise[step], epoch.tau, work, B)
        value += batch * B / M
        adam_step(layout, state, work, epoch.rate, epoch.structure_rate)
    return value


def train(
    data: Dataset,
    choices: Choices,
    training: Training,
    control: Control = Control(),  # frozen
    checkpoint: str | None = None,
    budget: Budget | None = None,
) -> Trained:
    """Train the tables of all candidate families and the distributions of the choices (R20, section 3).

    Parameters
    ----------
    choices : sequence of sequences of ascending tuples of int, length V
        Candidate parent sets of every variable, the class last; one per variable for a fixed structure.
    checkpoint : str, optional
        File to which the state is saved every `CHECKPOINT_SECONDS` and at the end. If it exists, the training continues
        from it. A training in several parts gives the same result as one without interruption, bit by bit.
    budget : Budget, optional
        As for `Learner.fit`.

    Raises
    ------
    InputError
        If a value has no state, a table is too large, or the checkpoint belongs to another training.
    """
    check_data(data, Prior(training.smoothing))
    budget, began = budget or control.budget(), time.monotonic()
    seed = control.random_state
    runner = _Runner(data, choices, training, seed)
    layout, state = runner.layout, runner.state
    about = [data.sha256, [list(sets) for sets in choices], layout.strides.tolist(), asdict(training), seed]
    run = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    history = []
    if checkpoint is not None:
        history = load_checkpoint(checkpoint, run, runner.arrays)
        began -= seconds_of(checkpoint)

    def save() -> None:
        if checkpoint is not None:
            save_checkpoint(checkpoint, run, runner.arrays, history, time.monotonic() - began)

    save()  # shows whether the file can be written before any time is spent on the training

    total = training.averaged_runs * training.epochs
    pause, stopped_early = Pause(CHECKPOINT_SECONDS, CHECKPOINT_SECONDS), False
    for epoch in range(len(history), total):
        if budget.over():
            stopped_early = True
            break
        value = runner.epoch(epoch, seed)
        reporting = (epoch + 1) * REPORTS // total > epoch * REPORTS // total
        error = runner.held_out_error(state.theta, state.phi) if reporting else None
        history.append([epoch + 1, value, error])
        if reporting:
            watched = "" if error is None else f"  validation error {100 * error:.2f} %"
            control.report(f"epoch {epoch + 1} of {total}  loss {value:.6g}{watched}")
        if pause.over():
            with pause.after():
                save()
    save()
    finished = len(history) // max(1, training.epochs)
    tables, phi = runner.answer(finished)
    chosen = most_probable(layout, phi)
    return Trained(
        parents=tuple(sets[n] for sets, n in zip(choices, chosen, strict=True)),
        cpts=tables_to_cpts(data, layout, choices, tables, chosen),
        phi=phi,
        history=history,
        error=runner.held_out_error(tables, phi) if history else None,
        runs=max(1, finished),
        stopped_early=stopped_early,
    )


def most_probable(layout: Layout, phi: NDArray[np.float64]) -> list[int]:
    """Return the position of each variable's most probable family among its families; of equal ones the first."""
    return [int(np.argmax(phi[a:b])) for a, b in zip(layout.first[:-1], layout.first[1:], strict=True)]


class _Runner:
    """Successive runs on the same data: the state of the current run, and the sums over the finished runs.

    The sums are those of Theta and Phi; they are empty if there is only one run.
    """

    def __init__(self, data: Dataset, choices: Choices, training: Training, seed: int) -> None:
        self.data, self.choices, self.training = data, choices, training
        self.held_out: Dataset | None = None
        if training.validation > 0:
            fit_rows, held_rows = validation_split(data.y, training.validation, seed)
            self.data, self.held_out = data.take(fit_rows), data.take(held_rows)
        self.layout = build_layout(self.data, choices)
        if training.init == "ml":
            self.theta = likelihood_tables(self.layout, self.data, choices, training.smoothing)
        else:
            self.theta = uniform_tables(self.layout, np.random.default_rng([seed, 0]))
        self.state = initial_state(self.layout, self.theta, training.dtype)
        self.sums: dict[str, NDArray[np.float64]] = {}
        if training.averaged_runs > 1:
            phi = np.zeros(self.state.phi.shape)
            self.sums = {"theta_sum": np.zeros(self.state.theta.shape), "phi_sum": phi}

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays that training changes, by name."""
        return {**self.state._asdict(), **self.sums}

    def epoch(self, done: int, seed: int) -> float:
        """Train one epoch after `done` epochs of all runs; its random numbers depend on `seed` and `done` only."""
        data, training = self.data, self.training
        epoch = done % training.epochs
        if done and epoch == 0:
            begin = initial_state(self.layout, self.theta, training.dtype)
            for old, new in zip(self.state, begin, strict=True):
                old[...] = new
        rng = np.random.default_rng([seed, 1 + done])
        batch_size = min(training.batch_size, data.n_samples)
        noise = np.zeros((math.ceil(data.n_samples / batch_size), self.layout.n_families))
        if self.layout.n_families >= len(self.layout.first):  # some variable has several families
            noise = rng.gumbel(size=noise.shape)
        order = rng.permutation(data.n_samples)
        rates = training.tau(epoch), training.rate(epoch), training.structure_rate
        value = train_epoch(
            self.layout,
            self.state,
            training.loss,
            data.codes,
            data.weights,
            Epoch(order, noise, batch_size, *rates),
            make_work(self.layout, batch_size, data.n_classes, training.dtype),
        )
        if self.sums and epoch == training.epochs - 1:
            self.sums["theta_sum"] += self.state.theta
            self.sums["phi_sum"] += self.state.phi
        return value

    def answer(self, finished: int) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
        """Return Theta and Phi: the means over the finished runs, or those of the only run."""
        if not self.sums or not finished:
            return self.state.theta, self.state.phi
        return self.sums["theta_sum"] / finished, self.sums["phi_sum"] / finished

    def held_out_error(self, theta: NDArray[np.floating], phi: NDArray[np.float64]) -> float | None:
        """Return the error of the most probable structure on the held-out samples."""
        if self.held_out is None:
            return None
        chosen = most_probable(self.layout, phi)
        return error_rate(self.held_out, tables_to_cpts(self.data, self.layout, self.choices, theta, chosen))


def error_rate(data: Dataset, cpts: Sequence[Cpt]) -> float:
    """Return the weighted share of samples that tables classify wrongly; their graph may have a cycle."""
    # Only the names of the structure are used. The tables contain the parents.
    log_joint = class_log_joint(data.codes, Structure.empty(data.names), cpts, data.n_classes)
    wrong = log_joint.argmax(axis=1) != data.y
    return float(data.weights @ wrong / data.weights.sum())
