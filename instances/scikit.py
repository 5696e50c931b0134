"""The classic data sets that scikit-learn ships, in the form of the generated ones."""

from __future__ import annotations

import pandas as pd
from sklearn import datasets


def classic(name: str) -> pd.DataFrame:
    """Return a data set of scikit-learn as a frame of floats whose last column ``class`` holds the labels.

    Among them are iris (Fisher 1936): 150 flowers, 4 features, 3 species; wine (Forina et al. 1988): 178 wines, 13
    features, 3 cultivars; breast_cancer, the Wisconsin diagnostic set (Street et al. 1993): 569 tumours, 30 features;
    and digits (Alpaydin & Kaynak 1998, test part): 1797 images of 8 x 8 grey values 0..16.
    """
    bunch = getattr(datasets, f"load_{name}")()
    labels = [str(bunch["target_names"][code]) for code in bunch["target"]]
    frame = pd.DataFrame(bunch["data"], columns=list(bunch["feature_names"]), dtype=float)
    return frame.assign(**{"class": labels})
