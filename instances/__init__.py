"""Problems that ship with milpbn, with their known optima or bounds.

>>> from milpbn import instances
>>> instances.load("corral").shape
(128, 7)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from milpbn.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

#: The instance that ``milpbn solve`` uses if no data are named.
DEFAULT = "tic-tac-toe"


@dataclass(frozen=True)
class Instance:
    """The publication that defines a problem, a sentence about the rows, and the module that makes the data.

    The module is imported when the data are wanted, so that names do not wait for pandas.
    """

    source: str
    definition: str
    module: str = "generate"

    def build(self, name: str) -> pd.DataFrame:
        """Return the data frame, the class in the last column."""
        module, name = import_module(f"{__name__}.{self.module}"), name.replace("-", "_")
        return module.classic(name) if self.module == "scikit" else getattr(module, name)()


_BREIMAN = "Breiman, Friedman, Olshen & Stone, Classification and Regression Trees, 1984"
_THRUN = "Thrun et al., The MONK's problems, CMU-CS-91-197, 1991"

_INSTANCES = {
    "corral": Instance(
        "John, Kohavi & Pfleger, Irrelevant features and the subset selection problem, ICML 1994",
        "(A0 and A1) or (B0 and B1); one irrelevant feature, one that agrees with the class in 3 rows of 4",
    ),
    "mofn-3-7-10": Instance(
        "Kohavi, Sommerfield & Dougherty, Data mining using MLC++, 1997",
        "at least 3 of the 7 bits Bit-2 to Bit-8 are set; all combinations of 10 bits",
    ),
    "monks-1": Instance(_THRUN, "a1 = a2 or a5 = 1; all combinations"),
    "monks-2": Instance(_THRUN, "exactly two attributes have their first value; all combinations"),
    "monks-3": Instance(
        _THRUN,
        "(a5 = 3 and a4 = 1) or (a5 != 4 and a2 != 3); all combinations, without noise",
    ),
    "tic-tac-toe": Instance(
        "Aha, Incremental constructive induction, ML 1991",
        "all boards on which a game ends that x began; positive if x has won",
    ),
    "balance-scale": Instance(
        "Siegler, Three aspects of cognitive development, Cognitive Psychology 8, 1976",
        "the side with the larger weight times distance, or balanced; all combinations",
    ),
    "led-7": Instance(
        f"{_BREIMAN}, pages 43-49",
        "digits on seven segments, each inverted with probability 0.1; a seeded sample",
    ),
    "waveform-21": Instance(
        f"{_BREIMAN}, pages 49-55",
        "random mixtures of two of three triangular waves plus N(0, 1) noise; a seeded sample",
    ),
    "iris": Instance(
        "Fisher, Annals of Eugenics 7, 1936, through scikit-learn",
        "lengths and widths of sepals and petals of three species",
        "scikit",
    ),
    "wine": Instance(
        "Forina et al., PARVUS, 1988, through scikit-learn",
        "chemical analyses of wines from three cultivars",
        "scikit",
    ),
    "breast-cancer": Instance(
        "Street, Wolberg & Mangasarian, SPIE 1905, 1993, through scikit-learn",
        "shapes of cell nuclei in benign and malignant tumours",
        "scikit",
    ),
    "digits": Instance(
        "Alpaydin & Kaynak, Cascading classifiers, Kybernetika 34, 1998, through scikit-learn",
        "handwritten digits as 8 x 8 grey values",
        "scikit",
    ),
}


def names() -> list[str]:
    """Return the names of all instances."""
    return list(_INSTANCES)


def load(name: str) -> pd.DataFrame:
    """Return an instance, one of `names`, as a data frame.

    Returns
    -------
    pandas.DataFrame
        The class is the last column, named ``class``; nominal values are str, continuous ones float.
        Every call returns the same rows in the same order.

    Raises
    ------
    InputError
        If there is no such instance.
    """
    return _find(name).build(name)


def describe(name: str) -> dict[str, Any]:
    """Return a description of an instance, one of `names`, and its known optima.

    Returns
    -------
    dict
        ``name``, ``source``, ``definition``, the numbers of ``rows``, ``features``, ``continuous`` features
        and ``classes``, and ``optima``: a list of dicts with the keys ``score``, ``p``, ``max_parents``,
        ``class_parents``, ``objective``, ``bound`` (nats), ``status`` (``optimal`` or ``feasible``) and
        ``command``, as kept in ``optima.json``.

    Raises
    ------
    InputError
        If there is no such instance.
    """
    instance = _find(name)
    frame = instance.build(name)
    features = frame.iloc[:, :-1]
    return {
        "name": name,
        "source": instance.source,
        "definition": instance.definition,
        "rows": len(frame),
        "features": features.shape[1],
        "continuous": features.select_dtypes("number").shape[1],
        "classes": frame["class"].nunique(),
        "optima": _optima().get(name, []),
    }


def _find(name: str) -> Instance:
    if name not in _INSTANCES:
        raise InputError(f"There is no instance named {name!r}; choose one of {', '.join(names())}.")
    return _INSTANCES[name]


def _optima() -> dict[str, list[dict[str, Any]]]:
    return json.loads(files(__name__).joinpath("optima.json").read_text(encoding="utf-8"))
