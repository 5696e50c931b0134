"""The classic data sets that scikit-learn ships, in the form of the generated ones."""

from __future__ import annotations

import pandas as pd


def iris() -> pd.DataFrame:
    """Return iris (Fisher 1936): 150 flowers, 4 continuous features, 3 species."""
    from sklearn.datasets import load_iris

    return _frame(load_iris())


def wine() -> pd.DataFrame:
    """Return wine (Forina et al. 1988): 178 wines, 13 continuous features, 3 cultivars."""
    from sklearn.datasets import load_wine

    return _frame(load_wine())


def breast_cancer() -> pd.DataFrame:
    """Return the Wisconsin diagnostic set (Street et al. 1993): 569 tumours, 30 continuous features."""
    from sklearn.datasets import load_breast_cancer

    return _frame(load_breast_cancer())


def digits() -> pd.DataFrame:
    """Return digits (Alpaydin & Kaynak 1998, test part): 1797 images of 8 x 8 grey values 0..16."""
    from sklearn.datasets import load_digits

    return _frame(load_digits())


def _frame(bunch: dict) -> pd.DataFrame:
    """Return a scikit-learn data set as a frame of floats whose last column ``class`` holds the labels."""
    labels = [str(bunch["target_names"][code]) for code in bunch["target"]]
    frame = pd.DataFrame(bunch["data"], columns=list(bunch["feature_names"]), dtype=float)
    return frame.assign(**{"class": labels})
