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
    """The origin of a problem, and the function that makes its data.

    Attributes
    ----------
    source : str
        The publication that defines it.
    definition : str
        One sentence about the rows.
    function : str
        Module of this package and function that make the data. They are imported when the data are wanted, so that
        names do not wait for pandas.
    """

    source: str
    definition: str
    function: str

    def build(self) -> pd.DataFrame:
        """Return the data frame, the class in the last column."""
        module, name = self.function.split(":")
        return getattr(import_module(f"{__name__}.{module}"), name)()


_BREIMAN = "Breiman, Friedman, Olshen & Stone, Classification and Regression Trees, 1984"
_THRUN = "Thrun et al., The MONK's problems, CMU-CS-91-197, 1991"

_INSTANCES = {
    "corral": Instance(
        "John, Kohavi & Pfleger, Irrelevant features and the subset selection problem, ICML 1994",
        "(A0 and A1) or (B0 and B1); one irrelevant feature, one that agrees with the class in 3 rows of 4",
        "generate:corral",
    ),
    "mofn-3-7-10": Instance(
        "Kohavi, Sommerfield & Dougherty, Data mining using MLC++, 1997",
        "at least 3 of the 7 bits Bit-2 to Bit-8 are set; all combinations of 10 bits",
        "generate:mofn_3_7_10",
    ),
    "monks-1": Instance(_THRUN, "a1 = a2 or a5 = 1; all combinations", "generate:monks_1"),
    "monks-2": Instance(
        _THRUN, "exactly two attributes have their first value; all combinations", "generate:monks_2"
    ),
    "monks-3": Instance(
        _THRUN,
        "(a5 = 3 and a4 = 1) or (a5 != 4 and a2 != 3); all combinations, without noise",
        "generate:monks_3",
    ),
    "tic-tac-toe": Instance(
        "Aha, Incremental constructive induction, ML 1991",
        "all boards on which a game ends that x began; positive if x has won",
        "generate:tic_tac_toe",
    ),
    "balance-scale": Instance(
        "Siegler, Three aspects of cognitive development, Cognitive Psychology 8, 1976",
        "the side with the larger weight times distance, or balanced; all combinations",
        "generate:balance_scale",
    ),
    "led-7": Instance(
        f"{_BREIMAN}, pages 43-49",
        "digits on seven segments, each inverted with probability 0.1; a seeded sample",
        "generate:led_7",
    ),
    "waveform-21": Instance(
        f"{_BREIMAN}, pages 49-55",
        "random mixtures of two of three triangular waves plus N(0, 1) noise; a seeded sample",
        "generate:waveform_21",
    ),
    "iris": Instance(
        "Fisher, Annals of Eugenics 7, 1936, through scikit-learn",
        "lengths and widths of sepals and petals of three species",
        "scikit:iris",
    ),
    "wine": Instance(
        "Forina et al., PARVUS, 1988, through scikit-learn",
        "chemical analyses of wines from three cultivars",
        "scikit:wine",
    ),
    "breast-cancer": Instance(
        "Street, Wolberg & Mangasarian, SPIE 1905, 1993, through scikit-learn",
        "shapes of cell nuclei in benign and malignant tumours",
        "scikit:breast_cancer",
    ),
    "digits": Instance(
        "Alpaydin & Kaynak, Cascading classifiers, Kybernetika 34, 1998, through scikit-learn",
        "handwritten digits as 8 x 8 grey values",
        "scikit:digits",
    ),
}


def names() -> list[str]:
    """Return the names of all instances."""
    return list(_INSTANCES)


def load(name: str) -> pd.DataFrame:
    """Return an instance as a data frame.

    Parameters
    ----------
    name : str
        One of `names`.

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
    return _find(name).build()


def describe(name: str) -> dict[str, Any]:
    """Return a description of an instance and its known optima.

    Parameters
    ----------
    name : str
        One of `names`.

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
    frame = instance.build()
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
