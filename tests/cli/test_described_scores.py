"""Every file and every output says in full which score it is about."""

import pandas as pd
import pytest
from cli_common import run, succeed

import milpbn
from milpbn.network import save_classifier
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.solving.progress import closing_block


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    rows = [(i % 7 + 0.5, i % 3, "pq"[(i // 2) % 2], 1 + i % 2) for i in range(40)]
    table = pd.DataFrame(rows, columns=["x", "a", "y", "w"])
    folder = tmp_path_factory.mktemp("described")
    read = milpbn.read_table(table, target="y", weights="w", discretise="uniform:3")
    found = milpbn.solve(
        read,
        Score(name="cll", hybrid=0.1, penalty=1.0, smoothing=2.0),
        constraints=Constraints(arc_weights={("a", "x"): 0.5}),
        output=folder / "result.json",
        certificate=folder / "proof.npz",
    )
    save_classifier(found.classifier, folder / "classifier.json")
    return found, folder


def test_results_and_their_files_say_the_same(result):
    found, folder = result
    described = found.described_score
    assert described == (
        "cll + 0.1 x log-likelihood - 1 per parameter + 0.5 for the arc a -> x, smoothing 2, max_parents = 2, "
        "cuts by uniform:3"
    )
    assert milpbn.Result.load(folder / "result.json").described_score == described
    assert described in repr(found)
    assert described.replace(">", "&gt;") in found._repr_html_()
    assert found.data.total_weight == 60.0
    block = closing_block(found)
    assert f"score      {described}\n" in block
    assert "40 samples of total weight 60" in block
    for name in ("result.json", "classifier.json", "proof.npz"):
        assert described in run("info", folder / name).output, name
    succeed("report", folder / "result.json", "--output", folder / "r.html")
    assert described.replace(">", "&gt;") in (folder / "r.html").read_text(encoding="utf-8")
