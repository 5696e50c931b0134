"""Networks with two variables of one column: missing values, evidence and samples, against the whole joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fine import codes_of, contained, fine_classifier, raw_rows

from milpbn.data.dataset import MISSING, UNKNOWN
from milpbn.errors import InputError
from milpbn.network import AveragedClassifier, Classifier, Structure


def joint(classifier: Classifier) -> np.ndarray:
    """Return P of all states, one axis per variable."""
    n = len(classifier.variables)
    product = np.ones([v.n_states for v in classifier.variables])
    for cpt in classifier.cpts:
        axes = [*cpt.parents, cpt.variable]
        shape = [classifier.variables[j].n_states if j in axes else 1 for j in range(n)]
        product = product * cpt.table.transpose(np.argsort(axes)).reshape(shape)
    return product


@pytest.mark.parametrize("seed", range(3))
def test_missing_columns_are_summed_over_in_both_variables(seed):
    classifier = fine_classifier(seed, n_columns=3, fine=6, missing=seed == 2, most_parents=1 + seed)
    frame = raw_rows(classifier, 60, seed, missing=0.4)
    whole, codes = joint(classifier), codes_of(classifier, frame)
    found = classifier.predict_proba(frame)
    for row, shares in zip(codes, found, strict=True):
        assert (row[:-1] != UNKNOWN).all()
        given = whole[tuple(slice(None) if k == MISSING else k for k in row[:-1])]
        expected = given.reshape(-1, given.shape[-1]).sum(axis=0)
        assert shares == pytest.approx(expected / expected.sum(), abs=1e-12)
    assert classifier.log_likelihood(frame.assign(kind=None)) == pytest.approx(
        [np.log(whole[tuple(slice(None) if k == MISSING else k for k in row[:-1])].sum()) for row in codes]
    )


def test_evidence_of_a_column_is_evidence_of_its_variables():
    classifier = fine_classifier(1, n_columns=3, fine=6)
    coarse, fine = classifier.variables[:2]
    frame = pd.DataFrame({"x0": [0.3]})
    expected = dict(zip(classifier.classes, classifier.predict_proba(frame)[0], strict=True))
    label = fine.states[codes_of(classifier, frame)[0, 1]]
    for evidence in ({"x0": 0.3}, {"x0": "0.3"}, {"x0 (fine)": 0.3}, {"x0": label}, {"x0 (fine)": label}):
        assert classifier.posterior("kind", evidence) == pytest.approx(expected, abs=1e-12)
        assert "x0" not in classifier.marginals(evidence)
    # Of a coarse interval the fine one is unknown, but lies in it.
    wide = int(contained(coarse, fine).sum(axis=1).argmax())
    inside, said = contained(coarse, fine)[wide], coarse.states[wide]
    found = classifier.posterior("x0 (fine)", {"x0": said})
    assert sum(p for p, within in zip(found.values(), inside, strict=True) if within) == pytest.approx(1)
    table = classifier.predict_proba(pd.DataFrame({"x0": [said]}))[0]
    assert list(classifier.posterior("kind", {"x0": said}).values()) == pytest.approx(table)
    with pytest.raises(InputError, match="'x0' and 'x0 \\(fine\\)', which code one column"):
        classifier.posterior("kind", {"x0": 1, "x0 (fine)": 2})
    with pytest.raises(
        InputError, match="value 'red' of 'x0' in the evidence is neither a finite number nor"
    ):
        classifier.posterior("kind", {"x0": "red"})
    best = classifier.most_probable_explanation().states
    codes = [v.states.index(best[v.name]) for v in classifier.variables]
    assert contained(coarse, fine)[codes[0], codes[1]]


def test_samples_have_raw_columns_and_are_read_again(tmp_path):
    classifier = fine_classifier(2, n_columns=3, fine=6)
    drawn = classifier.sample(300, random_state=1)
    columns = drawn.of_columns()
    assert columns.names == ("x0", "colour", "x2", "kind")
    pd.DataFrame(columns.labels, columns=list(columns.names)).to_csv(tmp_path / "drawn.csv", index=False)
    assert (classifier.encode(tmp_path / "drawn.csv").codes == drawn.codes).all()


def test_networks_of_an_average_may_have_other_variables_of_the_same_columns(tmp_path):
    one, other = fine_classifier(1), fine_classifier(2)
    plain = fine_classifier(3, coarse=2, fine=2)  # both variables of a column have the same intervals
    kept = [i for i, v in enumerate(plain.variables) if v.column is None]
    place = {i: k for k, i in enumerate(kept)}
    cpts = tuple(
        replace(plain.cpts[i], variable=place[i], parents=tuple(place[j] for j in plain.cpts[i].parents))
        for i in kept
    )
    variables = tuple(plain.variables[i] for i in kept)
    structure = Structure(tuple(v.name for v in variables), tuple(cpt.parents for cpt in cpts))
    coarse = Classifier(variables, structure, cpts)
    average = AveragedClassifier((one, other, coarse))
    frame = raw_rows(one, 40, 5, missing=0.2)
    expected = np.mean([member.predict_proba(frame) for member in average.members], axis=0)
    assert average.predict_proba(frame) == pytest.approx(expected, abs=1e-12)
    assert list(average.marginals({"x0": 0.2})) == ["colour", "kind"]
    assert len(average.explain_local(frame)) == 40
