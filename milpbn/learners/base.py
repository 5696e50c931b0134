"""The interface of the learners that exact structures are compared with."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from milpbn.data.dataset import Dataset, require_class
from milpbn.errors import InputError, NoIncumbentError
from milpbn.network.cpt import require_states
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.predictor import Predictor
from milpbn.network.structure import Structure
from milpbn.util import interrupts, stages
from milpbn.util.budget import Budget, Limit
from milpbn.util.clock import within
from milpbn.util.options import option
from milpbn.util.validation import convert_fields


@dataclass(frozen=True, kw_only=True)
class Control:
    """The settings of a run that do not belong to a method."""

    random_state: int = 0
    #: Wall-clock seconds. When they have passed, or the memory limit (`milpbn.util.memory`) is near, a learner returns
    #: its best result with ``stopped_early`` set in the details, or raises NoIncumbentError if it has no result.
    time_limit: float | None = None
    n_jobs: int = 1
    #: Called from time to time with a line of text about the progress.
    report: Callable[[str], None] = field(default=lambda line: None)
    #: Called often; when it returns True, the learner stops as it does at the time limit. By default it is true after a
    #: signal that was noted (`milpbn.util.interrupts`).
    interrupted: Callable[[], bool] = field(default=interrupts.requested)
    #: How the structures get their parameters (`milpbn.network.parameters`); None for the parameters that the learner
    #: fits itself. `milpbn.learners.parameters.learn_with_parameters` reads this, not the learner.
    parameters: str | None = None
    #: Whether a solver shows its own progress, as in `milpbn.Options`; None: if there is a terminal or a notebook.
    verbose: bool | None = None

    def __post_init__(self) -> None:
        convert_fields(self)
        if self.parameters is not None:
            ParameterMethod.parse(self.parameters)

    def budget(self) -> Budget:
        """Start the clock, and return the budget of a run."""
        return Budget(self.time_limit, cancelled=self.interrupted)


def solver_limits(budget: Budget) -> dict[str, Any]:
    """Return the options with which `milpbn.solve` keeps to a budget; a search refuses a time limit of 0."""
    left = budget.left()
    return {
        "time_limit": None if left == math.inf else max(1e-9, left),
        "interrupted": lambda: budget.stop() is Limit.USER,
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class Learned:
    """The result of a learner."""

    predictor: Predictor
    #: The graph; None if the model is not an acyclic graph over the variables (a multinet, a cyclic pseudo-TAN, a
    #: support vector machine).
    structure: Structure | None
    #: Information about the run as JSON values: scores, steps, chosen options, whether it stopped early.
    details: Mapping[str, Any] = field(default_factory=dict)


class Learner(ABC):
    """A method with its options. A subclass is a frozen dataclass whose fields are the options (see `setting`)."""

    name: ClassVar[str]
    #: One line of help.
    summary: ClassVar[str]
    reference: ClassVar[str]
    #: Whether the model is, or can be, a Bayesian network over the variables.
    is_network: ClassVar[bool] = True
    #: Options that the learner requires, in the form that the help shows.
    needs: ClassVar[str] = ""
    #: Whether a fit runs kernels, which `milpbn compare` compiles before it measures times.
    compiles: ClassVar[bool] = True

    def __post_init__(self) -> None:
        convert_fields(self)

    def fit(self, data: Dataset, control: Control = Control(), budget: Budget | None = None) -> Learned:
        """Learn from training data.

        Parameters
        ----------
        data : Dataset
            Training data with at least one row and one feature, in which every value has a state.
        budget : Budget, optional
            What the run may use, if the clock of a larger one runs; by default it starts now.

        Raises
        ------
        InputError
            If the method cannot run with the data or the options.
        NoIncumbentError
            If the time limit ends, or the memory limit is reached, before there is a result.
        """
        require_class(data, f"The learner {self.name}")
        require_states(data)
        for count, what in ((data.n_samples, "rows"), (data.n_features, "features")):
            if count == 0:
                raise InputError(
                    f"The training data {data.name!r} have no {what}; there is nothing to learn from."
                )
        self.check()
        stages.enter(f"learning {self.name}")
        own = Budget(whole=budget or control.budget())
        try:
            learned = within(lambda: self._fit(data, control, own), own.over, name=f"milpbn-{self.name}")
        finally:
            own.close()  # an exception in this thread must also stop the thread of the learner
        if learned is not None:
            return learned
        if own.stopped is Limit.USER:
            raise KeyboardInterrupt
        if own.stopped is Limit.MEMORY:
            raise NoIncumbentError(
                f"The learner {self.name} found no classifier within the memory limit; raise it, or take fewer "
                "features or rows."
            )
        raise NoIncumbentError(
            f"The learner {self.name} found no classifier within its time limit; allow more time (the first run on a "
            "machine compiles for up to a minute), or take fewer features or rows."
        )

    @abstractmethod
    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Learn from data that `fit` has checked, until the budget is over; see `fit`."""

    def check(self) -> None:
        """Refuse options that the learner cannot run with, independently of the data.

        Raises
        ------
        InputError
            If there is such an option, which the sentence names.
        """
        return  # most options are checked when they are set

    def unused(self) -> Mapping[str, str]:
        """Return the options that have no effect; each maps to the other option and value that cause this."""
        return {}


def require_used(learner: Learner, given: Iterable[str]) -> None:
    """Refuse options that the user has given, by their names, although they have no effect.

    Raises
    ------
    InputError
        If there is such an option. The sentence names it and the option that makes it ineffective.
    """
    unused = learner.unused()
    for name in given:
        if name in unused:
            raise InputError(
                f"The option {name.rstrip('_')} of {learner.name} changes nothing with {unused[name]}; leave it out."
            )


#: Declares an option of a learner; the type of the option is that of the field's annotation.
setting = option
