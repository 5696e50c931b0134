"""One interface for every learner that exact structures are compared with."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from milpbn.checks import convert_fields
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.classifier import Predictor
from milpbn.network.cpt import require_states
from milpbn.network.structure import Structure


@dataclass(frozen=True, kw_only=True)
class Control:
    """How a learner is to run: everything that does not belong to the method.

    Attributes
    ----------
    random_state : int
        Seed of everything random.
    time_limit : float or None
        Wall-clock seconds; a learner that runs out of them returns the best it has, and says so in its details by
        ``stopped_early``, or raises NoIncumbentError where there is nothing yet.
    n_jobs : int
        Threads that may be used.
    report : callable
        Told, now and then, what is going on, in one line for a person.
    interrupted : callable
        Asked often; True means that the user wants what there is.
    verbose : bool or None
        Whether a solver shows its own progress, as in `milpbn.Options`; None: in a terminal or a notebook.
    """

    random_state: int = 0
    time_limit: float | None = None
    n_jobs: int = 1
    report: Callable[[str], None] = field(default=lambda line: None)
    interrupted: Callable[[], bool] = field(default=lambda: False)
    verbose: bool | None = None

    def __post_init__(self) -> None:
        convert_fields(self)

    def watch(self) -> Callable[[], bool]:
        """Start the clock; the answer says whether to stop."""
        end = None if self.time_limit is None else time.monotonic() + self.time_limit
        return lambda: self.interrupted() or (end is not None and time.monotonic() >= end)

    def clock(self) -> Callable[[], Control]:
        """Start the clock for work in several parts; the answer says how the next one is to run.

        Its limit is the time that is left, or next to nothing: solvers refuse a limit of 0.
        """
        if self.time_limit is None:
            return lambda: self
        end = time.monotonic() + self.time_limit
        return lambda: replace(self, time_limit=max(1e-9, end - time.monotonic()))


@dataclass(frozen=True, eq=False, kw_only=True)
class Learned:
    """What a learner found.

    Attributes
    ----------
    predictor : Predictor
        The classifier, parameters included.
    structure : Structure or None
        Its graph; None for a model that is no acyclic graph over the variables (a multinet, a cyclic pseudo-TAN,
        a support vector machine).
    details : mapping
        What the method has to say of its run: the selected penalty, scores, steps, why it stopped; JSON values.
    """

    predictor: Predictor
    structure: Structure | None
    details: Mapping[str, Any] = field(default_factory=dict)


class Learner(ABC):
    """A method with its options; subclasses are frozen dataclasses, their fields the options (see `setting`).

    Attributes
    ----------
    name : str
        On the command line.
    summary : str
        One line of help.
    reference : str
        Where the method is described.
    is_network : bool
        The model is a Bayesian network over the variables, or can be one.
    needs : str
        Options without which it does not run, as the help shows them.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]
    is_network: ClassVar[bool] = True
    needs: ClassVar[str] = ""

    def __post_init__(self) -> None:
        convert_fields(self)

    def fit(self, data: Dataset, control: Control = Control()) -> Learned:  # frozen
        """Learn from training data.

        Parameters
        ----------
        data : Dataset
            At least one row and one feature; every value has a state.
        control : Control
            How to run.

        Raises
        ------
        InputError
            If the data or the options do not fit the method.
        NoIncumbentError
            If there was no time for anything that could be returned.
        """
        require_states(data)
        for count, what in ((data.n_samples, "rows"), (data.n_features, "features")):
            if count == 0:
                raise InputError(
                    f"The training data {data.name!r} have no {what}; there is nothing to learn from."
                )
        self.check()
        return self._fit(data, control)

    @abstractmethod
    def _fit(self, data: Dataset, control: Control) -> Learned:
        """Learn from data that `fit` has looked at; see there."""

    def check(self) -> None:
        """Refuse options that the learner cannot run with, whatever the data.

        Raises
        ------
        InputError
            Naming the option.
        """
        return  # most options are checked when they are set

    def unused(self) -> Mapping[str, str]:
        """Return the options that change nothing while others are as they are, and which those are."""
        return {}


def require_used(learner: Learner, given: Iterable[str]) -> None:
    """Refuse options that somebody has given although they change nothing.

    Raises
    ------
    InputError
        Naming the option, and the one that makes it idle.
    """
    unused = learner.unused()
    for name in given:
        if name in unused:
            raise InputError(
                f"The option {name.rstrip('_')} of {learner.name} changes nothing with {unused[name]}; leave it out."
            )


def setting(default: Any, help: str, **extra: Any) -> Any:  # click's word for it
    """Return a dataclass field that the command line turns into an option.

    Parameters
    ----------
    default : object
        Default value; its type, or the first type of the field's annotation, is the option's.
    help : str
        Help text.
    **extra
        Read by the command line: ``choices`` (a sequence of words); ``file``, "input" or "output" where the value is
        the path of a file that is read or written.
    """
    return field(default=default, metadata={"help": help, **extra})
