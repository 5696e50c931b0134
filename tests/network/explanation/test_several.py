"""Explanations of an average: one per network, for the same two classes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from milpbn.network import AveragedClassifier, Classifier, Structure


@pytest.fixture
def average(make_data, make_structure):
    data = make_data(0)
    members = (
        Structure.naive_bayes(data.names),
        make_structure(data.names, 1),
        make_structure(data.names, 2),
    )
    return AveragedClassifier(tuple(Classifier.fit(data, structure) for structure in members)), data


def test_every_network_is_explained_for_the_classes_of_the_average(average):
    classifier, data = average
    mean = classifier.predict_proba(data)
    for found in classifier.explain_local(data.take(range(10))):
        assert found.probabilities == pytest.approx(mean[found.sample], abs=1e-12)
        order = np.argsort(-mean[found.sample], kind="stable")
        assert (found.label, found.against) == tuple(classifier.classes[c] for c in order[:2])
        for member, network in zip(found.members, classifier.members, strict=True):
            assert (member.label, member.against, member.sample) == (found.label, found.against, found.sample)
            logs = network.predict_log_posterior(data)[found.sample]
            assert member.log_odds == pytest.approx(logs[order[0]] - logs[order[1]], abs=1e-12)


def test_the_text_says_that_there_is_no_sum(average):
    classifier, data = average
    assert "no sum over families" in str(classifier.explain_local(data)[0])
    assert "network 3" in str(classifier.explain_global(data))
    json.dumps(classifier.explain_global(data, gamma=1.0).to_dict(), allow_nan=False)
    json.dumps(classifier.explain_local(data)[0].to_dict(), allow_nan=False)
    assert str(classifier) == str(classifier.explain_global())
