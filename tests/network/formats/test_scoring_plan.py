"""Steps of summing features out: every result is used once, and large sums are refused."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scored_elsewhere import networks

from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError
from milpbn.network import Classifier, Structure
from milpbn.network.formats import scoring_plan
from milpbn.network.formats.pmml import classifier_to_pmml
from milpbn.network.formats.python_format import classifier_to_python
from milpbn.network.formats.r_script import classifier_to_r
from milpbn.network.formats.scoring_plan import plans_of
from milpbn.network.formats.spreadsheet import classifier_to_xlsx
from milpbn.network.formats.sql import classifier_to_sql


def test_every_result_is_used_once_and_every_feature_once():
    for classifier in networks().values():
        for found in plans_of(classifier):
            used = [k for step in found.steps for k in step.results]
            used += [k for k, step in enumerate(found.steps) if not step.left]
            assert sorted(used) == list(range(len(found.steps)))
            assert len({*found.features}) == len(found.steps)


def test_families_that_no_posterior_depends_on_are_left_out(make_data):
    data = make_data(0)
    structure = Structure(data.names, ((1,), (), (4,), (2,), ()))
    (found,) = plans_of(Classifier.fit(data, structure))
    # x0 given x1 has nothing to do with the class; x3 given x2 has, where x2 is missing.
    assert found.features == (2, 3)
    # A probability of 0 there makes a row impossible in every class, so that all are equally probable.
    data = replace(data, codes=np.where(data.codes[:, :1] == 0, data.codes[:1], data.codes))
    assert plans_of(Classifier.fit(data, structure, smoothing=0.0))[0].features == (0, 1, 2, 3)


def test_a_sum_that_is_too_large_is_refused(make_data, monkeypatch):
    data = make_data(0, states=(3, 3, 3, 3, 2))
    classifier = Classifier.fit(data, Structure(data.names, ((1, 2, 3, 4), (4,), (4,), (4,), ())))
    assert np.isfinite(plans_of(classifier)[0].steps[0].table).all()
    monkeypatch.setattr(scoring_plan, "MOST_ENTRIES", 100)
    with pytest.raises(InputError, match="would need 256 entries, more than 100"):
        plans_of(classifier)


@pytest.mark.parametrize(
    "write",
    [classifier_to_sql, classifier_to_pmml, classifier_to_python, classifier_to_r, classifier_to_xlsx],
)
@pytest.mark.parametrize("name", ["P(u)", "predicted c"])
def test_a_feature_with_the_name_of_a_result_is_refused(write, name):
    """R replaced the column by the result, and SQL's query had two columns of one name."""
    variables = (Variable(name, ("x", "y")), Variable("c", ("u", "v")))
    data = Dataset("results", variables, np.eye(2, dtype=np.int32), np.ones(2))
    with pytest.raises(InputError, match=f"column {re.escape(repr(name))} has the name of a result"):
        write(Classifier.fit(data, Structure.naive_bayes(data.names)))
