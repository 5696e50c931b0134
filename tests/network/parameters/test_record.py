"""The record of fitted parameters: its JSON, and what it says."""

from __future__ import annotations

import pytest

from milpbn.errors import InputError
from milpbn.network.parameters.record import OWN_PARAMETERS, ParameterFit, recorded
from milpbn.util.jsonable import Fields

FITTED = ParameterFit(
    method="hybrid",
    fitted=True,
    kappa=0.5,
    strength=3.0,
    held_out_log_loss=0.25,
    generative_log_loss=0.5,
    folds=5,
    added_arcs=(("class", "x1"),),
    seconds=1.5,
    note="A note.",
)
GIVEN = ParameterFit(method="hybrid", fitted=True, kappa=0.5, strength=3.0)
KEPT = ParameterFit(method="cll", note="No room; the generative parameters are kept.")


@pytest.mark.parametrize("record", [FITTED, GIVEN, KEPT, ParameterFit()], ids=lambda r: r.method)
def test_json_round_trip(record: ParameterFit) -> None:
    assert ParameterFit.read(Fields(record.to_dict(), "It")) == record
    assert recorded({"parameters": record.to_dict()}) == record
    assert recorded({}) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "best"}, "one of ml, cll, hybrid, temperature"),
        ({"method": "ml"}, "than the generative ones that it names"),
        ({"method": "cll"}, "kappa 0.5 does not go with 'cll'"),
        ({"method": "temperature"}, "has no strength"),
        ({"folds": None}, "without folds"),
        ({"generative_log_loss": None}, "only one of the two"),
        (
            {"fitted": False, "kappa": None, "strength": None, "added_arcs": [], "note": ""},
            "does not say why",
        ),
        ({"kappa": 1.5}, "kappa 1.5 does not go with 'hybrid'"),
        ({"fitted": False}, "none were fitted"),
        ({"kappa": None}, "without kappa"),
        ({"kappa": -1.0}, "at least 0"),
        ({"folds": 1}, "whole number"),
        ({"added_arcs": [["class"]]}, "list of 2"),
        ({"more": 1}, "unknown"),
    ],
    ids=str,
)
def test_impossible_records_are_refused(change, message) -> None:
    with pytest.raises(InputError, match=message):
        ParameterFit.read(Fields({**FITTED.to_dict(), **change}, "It"))
    assert recorded({"parameters": {**FITTED.to_dict(), **change}}) is None


def test_describe_returns_sentences_for_the_user() -> None:
    assert FITTED.describe() == [
        "hybrid: kappa 0.5, strength 3; log-loss 0.250000 in 5 folds, generative 0.500000",
        "A note.",
        "the classifier's structure also has class -> x1, to hold normalisers",
        OWN_PARAMETERS,
    ]
    assert GIVEN.describe()[0] == "hybrid: kappa 0.5, strength 3"
    assert KEPT.describe() == ["cll: not fitted", "No room; the generative parameters are kept."]
    assert ParameterFit().describe() == []
    scaled = ParameterFit(method="temperature", fitted=True, kappa=0.75)
    assert scaled.describe()[0] == "temperature: the generative log-joint times 0.75"
