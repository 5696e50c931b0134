"""scikit-learn's callbacks (1.9 and newer), told of every change of incumbent or bound once there is a structure.

With an older scikit-learn the estimators work without callbacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from milpbn.claims.result import Result

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's class, without callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


class FitTask:
    """The root task of a fit for scikit-learn's callbacks; each change of incumbent or bound is a task of its own.

    It is made before the fit. Callbacks may ask for the training data.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._estimator = estimator
        self._data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        self._context: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def hook(self, attributes: Callable[[Result], Mapping[str, Any]]) -> Callable[[Result], bool] | None:
        """Return a function for `Options.on_change`, or None if there are no callbacks.

        `attributes` returns the fitted attributes that belong to a result.
        """
        if self._context is None or not getattr(self._estimator, "_skl_callbacks", ()):
            return None

        def tell(result: Result) -> bool:
            if result.classifier is None:
                return False  # a bound, but no structure yet
            task = self._context.subcontext(task_name="change of incumbent or bound")
            task.call_on_fit_task_begin(estimator=self._estimator, **self._data)
            stop = task.call_on_fit_task_end(
                estimator=self._estimator, **self._data, reconstruction_attributes=lambda: attributes(result)
            )
            return bool(stop)

        return tell

    def end(self) -> None:
        """Tell callbacks that the estimator is fitted."""
        if self._context is not None:
            self._context.call_on_fit_task_end(
                estimator=self._estimator, **self._data, reconstruction_attributes=dict
            )
