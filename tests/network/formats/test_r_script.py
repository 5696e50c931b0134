from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from scored_elsewhere import networks, new_rows

from milpbn.data.dataset import Dataset, Variable
from milpbn.data.labels import StateLabels
from milpbn.errors import InputError
from milpbn.network import Classifier, Structure
from milpbn.network.formats.registry import write_network


@pytest.mark.parametrize("name", ["chain", "class with parents", "tables with zeros"])
def test_r_predicts_the_same(name, tmp_path):
    rscript = shutil.which("Rscript") or pytest.skip("R is not installed")
    if subprocess.run([rscript, "-e", "library(bnlearn)"], capture_output=True, check=False).returncode:
        pytest.skip("bnlearn is not installed")
    classifier = networks("state")[name]
    for ending in ("bif", "R"):
        write_network(classifier, tmp_path / f"c.{ending}")
    new_rows().to_csv(tmp_path / "rows.csv", index=False)
    subprocess.run([rscript, "c.R", "c.bif", "rows.csv", "p.csv"], cwd=tmp_path, check=True)
    rows, found = (
        pd.read_csv(tmp_path / f"{n}.csv", dtype=str, keep_default_na=False) for n in ("rows", "p")
    )
    shares = found[[f"P({label})" for label in classifier.classes]].astype(float)
    assert shares.to_numpy() == pytest.approx(classifier.predict_proba(rows), abs=1e-12)
    assert found[f"predicted {classifier.variables[-1].name}"].tolist() == classifier.predict(rows).tolist()


@pytest.mark.parametrize(
    ("states", "numeric"),
    [
        (("False", "True"), False),
        (("F", "T"), False),
        (("0", "1"), True),
        (("0", "1", "2"), True),
        (("01", "1", "1e5", "x"), False),
        (("True", "False", "unknown"), False),
        (("2024-01-01 00:00:00", "2024-02-03 10:30:00", "2024-02-03 10:30:00.5"), False),
        (("(-inf, 1.5]", "(1.5, inf)"), False),
    ],
)
def test_r_finds_the_states_that_milpbn_finds(states, numeric, tmp_path):
    """Without bnlearn: only the states of the values are looked at."""
    rscript = shutil.which("Rscript") or pytest.skip("R is not installed")
    cuts = (1.5,) if states[0][0] == "(" else None
    variables = (Variable("x", states, cuts, numeric=numeric), Variable("c", ("u", "v")))
    codes = np.array([[s, s % 2] for s in range(len(states))], dtype=np.int32)
    data = Dataset("values", variables, codes, np.ones(len(codes)))
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names))
    for ending in ("bif", "R"):
        write_network(classifier, tmp_path / f"c.{ending}")
    texts = (
        "True TRUE true tRUE T t False f 1 1.0 0 0.0 -0 01 1e0 2 x 1e5 1E5 100000 unknown 0x1 Inf 1.5 1.50001"
    )
    days = "2024-01-01,2024-01-01T00:00,2024-02-03 10:30,2024-02-03T10:30:00.000,2024-02-03 10:30:00.500"
    values = [*texts.split(), *days.split(",")]
    pd.DataFrame({"x": values}).to_csv(tmp_path / "rows.csv", index=False)
    words = re.search(
        r"variable x \{\s*type discrete \[ \d+ \] \{ (.*?) \}", (tmp_path / "c.bif").read_text()
    )[1]
    node = ", ".join(f'"{word}"' for word in words.split(", "))
    script = (tmp_path / "c.R").read_text().partition("posterior <-")[0]
    tables = f"array(0, {len(states)}, list(c({node})))", "array(0, 2, list(c('u', 'v')))"
    known = "list(x = list(prob = {}), c = list(prob = {}))".format(*tables)
    script = script.replace("bnlearn::read.bif(files[1])", known)
    (tmp_path / "c.R").write_text(f"{script}\ncat(match(states_of('x'), c({node})), sep = '\\n')\n")
    run = [rscript, "c.R", "c.bif", "rows.csv", "p.csv"]
    found = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    labels = StateLabels(states, numeric=numeric or cuts is not None)
    expected = [labels.code(value) for value in values]
    assert [None if code == "NA" else int(code) - 1 for code in found] == expected


def test_an_average_gets_no_script(tmp_path):
    with pytest.raises(InputError, match="An R script holds one Bayesian network"):
        write_network(networks()["average"], tmp_path / "c.R")
    assert not list(tmp_path.iterdir())
