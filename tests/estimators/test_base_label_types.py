"""Labels of the network inside an estimator: they have the type of y, also in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from milpbn.network import load_classifier, save_classifier
from milpbn.sklearn import MaxMarginBNClassifier, NaiveBayesClassifier, TANClassifier

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
X = pd.DataFrame({"a": np.where(RNG.random(60) < 0.8, Y, 0), "b": RNG.integers(0, 2, 60)})


@pytest.mark.parametrize("model", [MaxMarginBNClassifier(p=0.9), NaiveBayesClassifier(), TANClassifier()])
@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (Y, "i"),
        (Y - 1.0, "f"),
        (Y == 1, "b"),
        (np.array(list("xyz"))[Y], "O"),
        (np.array(["1", "01", "2"], dtype=object)[Y], "O"),
        (Y.astype(np.int8) + 7, "i"),
        (Y.astype(np.uint16), "u"),
    ],
)
def test_the_network_predicts_labels_of_the_type_of_y(model: Any, y: Any, kind: str, tmp_path: Path) -> None:
    fitted = model.fit(X, y)
    save_classifier(fitted.classifier_, tmp_path / "c.json")
    for network in (fitted.classifier_, load_classifier(tmp_path / "c.json")):
        found = network.predict(X)
        assert found.dtype.kind == kind
        assert kind not in "iuf" or found.dtype == y.dtype
        assert list(found) == list(fitted.predict(X))
        assert list(network.variables[-1].labels) == list(fitted.classes_)
