"""The text that `print` shows of a classifier."""

from __future__ import annotations

import numpy as np

from milpbn.data.dataset import Dataset, Variable
from milpbn.network import Classifier, Structure


def classifier(n_features: int, labels: tuple[str, ...]) -> Classifier:
    rng = np.random.default_rng(0)
    variables = tuple(Variable(f"x{i}", ("a", "b", "c")) for i in range(n_features))
    codes = rng.integers(0, (*[3] * n_features, len(labels)), (200, n_features + 1)).astype(np.int32)
    data = Dataset("random", (*variables, Variable("kind", labels)), codes, np.ones(200))
    return Classifier.fit(data, Structure.naive_bayes(data.names))


def test_two_classes_have_one_number_per_state():
    shown = classifier(2, ("no", "yes"))
    lines = str(shown).splitlines()
    assert lines[:2] == [
        "Classes of kind: no, yes",
        "Each number is added to the log-odds of yes against no, in nats:",
    ]
    counts = np.log(shown.cpts[2].table)
    assert lines[2] == f"base rate of kind, before any feature: {counts[1] - counts[0]:+.3f}"
    table = np.log(shown.cpts[0].table)
    ratios = table[1] - table[0]
    expected = ", ".join(f"{state} ({ratio:+.3f})" for state, ratio in zip("abc", ratios, strict=True))
    assert f"x0: {expected}" in lines


def test_families_are_in_the_order_of_their_largest_log_ratio():
    shown = classifier(6, ("no", "yes"))
    tables = [np.log(cpt.table) for cpt in shown.cpts[:-1]]
    strengths = {f"x{i}": np.abs(table[1] - table[0]).max() for i, table in enumerate(tables)}
    named = [line.split(":")[0] for line in str(shown).splitlines()[3:]]
    assert named == sorted(strengths, key=lambda name: -strengths[name])


def test_many_classes_show_the_favoured_ones_first():
    shown = classifier(1, tuple("uvwxyz"))
    lines = [line for line in str(shown).splitlines() if line.startswith("  a: ")]
    table = np.log(shown.cpts[0].table[:, 0])
    best = "uvwxyz"[table.argmax()]
    assert lines[0].startswith(f"  a: {best} (0), ")
    assert lines[0].endswith("... 1 more classes")


def test_wide_networks_are_shortened_and_the_representation_is_short():
    shown = classifier(60, ("no", "yes"))
    lines = str(shown).splitlines()
    assert lines[-1] == "... 40 more features"
    assert len(lines) == 24
    assert repr(shown).startswith("<Classifier of 'kind': 2 classes, 60 features, 60 arcs")
    assert len(repr(shown)) < 100
