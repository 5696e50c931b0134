"""Parts: which rows they have, and that nothing is learnt from test rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from milpbn.data import read_table
from milpbn.data.dataset import UNKNOWN
from milpbn.experiments.protocol import part_names, parts, table_hash
from milpbn.trials.parts import validation_datasets, validation_splits


def test_a_table_with_a_split_has_one_part(catalog):
    table = read_table("split", data_dir=catalog)
    (part,) = parts(table, 0)
    assert part_names(table) == [part.name] == ["test"]
    assert part.train_rows.tolist() == list(range(60))
    assert part.test_rows.tolist() == list(range(60, 100))
    assert part.train.n_samples == 60
    assert part.test.n_samples == 40


def test_folds_cover_every_row_once(catalog):
    table = read_table("folded", data_dir=catalog)
    found = parts(table, 0)
    assert [part.name for part in found] == part_names(table) == [f"fold-{i}" for i in range(1, 6)]
    assert sorted(np.concatenate([part.test_rows for part in found]).tolist()) == list(range(50))
    for part in found:
        assert not set(part.train_rows) & set(part.test_rows)
        assert len(part.train_rows) + len(part.test_rows) == 50
    assert parts(table, 0)[0].test_rows.tolist() == found[0].test_rows.tolist()
    assert parts(table, 1)[0].test_rows.tolist() != found[0].test_rows.tolist()


def test_states_and_cuts_come_from_the_training_rows_only(catalog):
    table = read_table("folded", data_dir=catalog)
    for part in parts(table, 0):
        frame = table.frame.copy()
        changed = frame.index[part.test_rows]
        frame.loc[changed, "size"] = "1000"
        frame.loc[changed, "colour"] = "new"
        other = replace(part, table=replace(table, frame=frame))
        assert other.train.variables == part.train.variables
        assert (other.train.codes == part.train.codes).all()
        assert (other.test.codes[:, 1] == UNKNOWN).all()
        assert (part.test.codes[:, 1] != UNKNOWN).all()
        for (a, b), (c, d) in zip(
            validation_datasets(part.training, 3), validation_datasets(other.training, 3), strict=True
        ):
            assert a.sha256 == c.sha256
            assert b.sha256 == d.sha256


def test_the_validation_splits_learn_their_own_cuts(catalog):
    (part,) = parts(read_table("split", data_dir=catalog), 0)
    splits = validation_datasets(part.training, 5)
    rows = validation_splits(part.train.y, 5)
    assert len(splits) == len(rows) == 5
    for (fit, held), (fit_rows, held_rows) in zip(splits, rows, strict=True):
        own = part.training.dataset(fit_rows)
        assert fit.variables == own.variables
        assert held.y.tolist() == part.train.y[held_rows].tolist()
    assert len({fit.variables[0].cuts for fit, _ in splits}) > 1


def test_the_hash_changes_with_everything_that_results_depend_on(catalog):
    table = read_table("split", data_dir=catalog)
    assert table_hash(table) == table_hash(read_table("split", data_dir=catalog))
    frame = table.frame.copy()
    frame.iloc[3, 1] = "other"
    others = [
        replace(table, frame=frame),
        replace(table, train_rows=59),
        replace(table, missing="state"),
        replace(table, kinds={**table.kinds, "size": "nominal"}),
        replace(table, weights=2 * table.weights),
    ]
    assert len({table_hash(t) for t in [table, *others]}) == 6
