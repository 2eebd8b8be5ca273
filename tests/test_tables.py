"""Tables of numbers, words and gaps as columns, and pipelines of them in files."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import rffpk
from rffpk.tables import TablePreprocessor

RANDOM = np.random.RandomState(0)
Y = np.repeat([0, 1, 2], 50)
TABLE = pd.DataFrame(
    {
        "size": 10 * Y + RANDOM.normal(0, 1, 150),
        "count": pd.array(RANDOM.poisson(5, 150), dtype="Int64"),
        "kind": np.array(["a", "b", "c"])[Y],
        "level": pd.Categorical(np.array(["low", "high", "high"])[Y]),
        "flag": Y == 2,
        "same": 1.0,
    }
)


def with_gaps():
    table = TABLE.copy()
    table.loc[3, "size"] = np.nan
    table.loc[60, "count"] = pd.NA
    table.loc[[7, 110], "kind"] = None
    table.loc[9, "level"] = None
    return table


def test_every_column_counts_alike():
    model = TablePreprocessor().fit(TABLE)
    found = model.transform(TABLE)
    names = [*model.get_feature_names_out()]
    assert names[:2] == ["size", "count"] and "kind=a" in names and "same" not in names
    assert {"flag=True", "flag=False"} <= {*names}
    assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    for name in TABLE.columns[:-1]:
        own = [j for j, each in enumerate(names) if each.split("=")[0] == name]
        assert_allclose(found[:, own].var(axis=0).sum(), 1)


def test_gaps_are_filled_by_near_rows_and_make_no_columns():
    table = with_gaps()
    model = TablePreprocessor().fit(table)
    found = model.transform(table)
    assert np.isfinite(found).all() and found.shape[1] == 9
    names = [*model.get_feature_names_out()]
    own = found[:, [names.index(f"kind={each}") for each in "abc"]]
    assert own[7].argmax() == 0 and own[110].argmax() == 2
    unknown = TABLE[:1].assign(kind="new")
    assert_allclose(model.transform(unknown)[0], found[0], atol=1e-9)


def test_frames_and_arrays_are_alike_and_columns_are_found_by_name():
    table = with_gaps()
    model = TablePreprocessor().fit(table)
    assert_array_equal(model.transform(table[table.columns[::-1]]), model.transform(table))
    array = table.astype(object).to_numpy()
    assert_array_equal(clone(model).fit_transform(array), model.transform(table))
    assert model.set_output(transform="pandas").transform(table).shape == (150, 9)


@pytest.mark.parametrize(
    "column, message",
    [
        (pd.date_range("2020", periods=150), "dates or durations in column 'size'"),
        (np.full(150, np.inf), "infinity in column 'size'"),
    ],
)
def test_what_is_refused_is_named(column, message):
    with pytest.raises((TypeError, ValueError), match=message):
        TablePreprocessor().fit(TABLE.assign(size=column))
    model = TablePreprocessor().fit(TABLE)
    with pytest.raises(ValueError, match="X lacks the columns .'kind'"):
        model.transform(TABLE.drop(columns="kind"))
    with pytest.raises(TypeError, match="words in column 'size', had numbers"):
        model.transform(TABLE.assign(size="x"))


def test_a_pipeline_is_saved_without_pickle(tmp_path):
    table = with_gaps()
    model = make_pipeline(TablePreprocessor(), rffpk.PowerKMeans(3, random_state=0)).fit(table)
    rffpk.save(model, tmp_path / "m")
    again = rffpk.load(tmp_path / "m")
    assert_array_equal(again.predict(table), model.predict(table))
    assert_array_equal(again.transform(table), model.transform(table))
    other = make_pipeline(MinMaxScaler(), rffpk.PowerKMeans(3))
    with pytest.raises(TypeError, match="steps .'MinMaxScaler'. before PowerKMeans"):
        rffpk.save(other, tmp_path / "n")


def test_gaps_in_rows_name_the_preprocessor():
    with pytest.raises(ValueError, match="rffpk.tables.TablePreprocessor"):
        rffpk.PowerKMeans(2).fit([[1.0, np.nan], [2.0, 3.0]])


def test_a_pipeline_is_drawn():
    pytest.importorskip("matplotlib").use("agg")
    from rffpk import plot

    model = make_pipeline(TablePreprocessor(), rffpk.PowerKMeans(3, random_state=0)).fit(TABLE)
    assert plot.clusters(model, TABLE).collections
