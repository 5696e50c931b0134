from __future__ import annotations

import pytest
from format_cases import assert_same, queries, random_classifier

from milpbn.errors import InputError
from milpbn.network.formats.pgmpy_models import from_pgmpy, to_pgmpy

models = pytest.importorskip("pgmpy.models")


@pytest.mark.parametrize("seed", range(5))
def test_pgmpy_has_the_same_joint_probabilities(seed):
    classifier = random_classifier(seed)
    model = to_pgmpy(classifier)
    assert model.check_model()
    assert_same(from_pgmpy(model), classifier)
    for states, probability in queries(classifier, 200):
        named = {classifier.variables[i].name: classifier.variables[i].states[k] for i, k in states.items()}
        assert model.get_state_probability(named) == pytest.approx(probability, rel=1e-12, abs=1e-15)


def test_a_model_without_tables_is_refused():
    with pytest.raises(InputError, match="has no table; fit the model"):
        from_pgmpy(models.DiscreteBayesianNetwork([("a", "b")]), "b")
