"""Tables of numbers, words and gaps as columns, and pipelines of them in files."""

import datetime
import decimal
import fractions

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from refusals import Framed
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.impute import KNNImputer
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


def test_numbers_count_alike_and_a_word_as_a_deviation():
    model = TablePreprocessor().fit(TABLE)
    transformed = model.transform(TABLE)
    names = [*model.get_feature_names_out()]
    assert names[:2] == ["size", "count"] and "kind=a" in names and "same" not in names
    assert {"flag=True", "flag=False"} <= {*names}
    assert_allclose(transformed.mean(axis=0), 0, atol=1e-12)
    for name in TABLE.columns[:-1]:
        own = [j for j, each in enumerate(names) if each.split("=")[0] == name]
        if name in ("size", "count"):
            assert_allclose(transformed[:, own].var(axis=0), 1)
        else:
            rows = np.unique(transformed[:, own], axis=0)
            assert_allclose(pdist(rows), 1)


def test_frames_arrays_and_lists_are_alike_and_columns_are_found_by_name():
    table = with_gaps()
    model = TablePreprocessor().fit(table)
    assert_array_equal(model.transform(table[table.columns[::-1]]), model.transform(table))
    array = table.astype(object).to_numpy()
    assert_array_equal(clone(model).fit_transform(array), model.transform(table))
    assert model.set_output(transform="pandas").transform(table).shape == (150, 9)
    rows = [[1.5, "a", None], [2.5, "b", 2.0], [3.5, "a", 1.0]] * 5
    model = TablePreprocessor().fit(rows)
    assert model.categories_[0] is None and [*model.categories_[1]] == ["a", "b"]
    array = RANDOM.normal(size=(30, 2))
    gaps, masked = np.where(array > 1, np.nan, array), np.ma.masked_array(array, array > 1)
    assert_array_equal(model.fit_transform(masked), clone(model).fit_transform(gaps))


@pytest.mark.parametrize(
    "columns",
    [
        *({"size": np.ldexp(TABLE["size"], exponent)} for exponent in (-900, 700)),
        *(
            {"count": [*map(number, TABLE["count"].tolist())]}
            for number in (decimal.Decimal, fractions.Fraction, np.float32, int)
        ),
    ],
    ids=["tiny", "huge", "Decimal", "Fraction", "float32", "int"],
)
def test_numbers_of_any_scale_and_type_count_alike(columns):
    expected = TablePreprocessor().fit_transform(TABLE)
    assert_array_equal(TablePreprocessor().fit_transform(TABLE.assign(**columns)), expected)
    for numbers in columns.values():
        objects = [[number, word] for number, word in zip(numbers, TABLE["kind"])]
        assert TablePreprocessor().fit(objects).categories_[0] is None


def test_gaps_are_filled_by_near_rows_and_make_no_columns():
    table = with_gaps()
    model = TablePreprocessor().fit(table)
    transformed = model.transform(table)
    assert np.isfinite(transformed).all() and transformed.shape[1] == 9
    names = [*model.get_feature_names_out()]
    own = transformed[:, [names.index(f"kind={each}") for each in "abc"]]
    assert_array_equal(own[[7, 110]], own[[8, 111]])  # a word, no share of several
    unknown = TABLE[:1].assign(kind="new")
    assert_allclose(model.transform(unknown)[0], transformed[0], atol=1e-9)


DAYS = pd.date_range("2020", periods=150)
TIMES = {
    "numpy": DAYS.to_numpy(),
    "zone": DAYS.tz_localize("UTC"),
    "date": DAYS.date,
    "datetime": np.array(DAYS.to_pydatetime(), dtype=object),
    "timestamp": DAYS.astype(object),
    "numpy.datetime64": np.fromiter(DAYS.to_numpy(), object),
    "time": [datetime.time(i % 24) for i in range(150)],
    "period": DAYS.to_period("D"),
    "period object": DAYS.to_period("D").astype(object),
    "timedelta": [datetime.timedelta(i) for i in range(150)],
    "numpy.timedelta64": np.fromiter((np.timedelta64(i, "D") for i in range(150)), object),
    "duration": DAYS - DAYS[0],
    "offset": np.array([pd.offsets.MonthEnd(i) for i in range(1, 151)], dtype=object),
    "category": pd.Categorical(DAYS),
    "category of periods": pd.Categorical(DAYS.to_period("D")),
    "among numbers": np.array([1.0] * 149 + [datetime.date(2020, 1, 1)], dtype=object),
}


@pytest.mark.parametrize("kind", TIMES)
def test_dates_and_durations_are_refused_however_they_are_held(kind):
    table = TABLE[["size"]].assign(when=TIMES[kind])
    array, model = table.astype(object).to_numpy(), rffpk.PowerKMeans
    words = TablePreprocessor().fit(TABLE.assign(when="x"))
    in_frame = "^X: has dates or durations in column 'when', which are not numbers"
    in_array = "^X: has dates or durations in column '?1'?,"
    for call, message in [
        (lambda: TablePreprocessor().fit(table), in_frame),
        (lambda: words.transform(TABLE.assign(when=TIMES[kind])), in_frame),
        (lambda: model(2).fit(table), in_frame),
        *((lambda taker=taker: taker.fit(array), in_array)
          for taker in (model(2), rffpk.SMKC(2), TablePreprocessor())),
        (lambda: model(2).fit(lambda: iter([array])), "dates or durations"),
        (lambda: model(2).fit(TABLE[["size"]], sample_weight=table["when"]),
         "^sample_weight: has dates or durations"),
        (lambda: rffpk.xie_beni_index(array, np.ones((150, 1)), [[0.0], [1.0]]), in_array),
    ]:  # fmt: skip
        with pytest.raises(TypeError, match=message):
            call()


@pytest.mark.parametrize(
    "categories, others",
    [
        ([0.5, 2.0, 3.0], [np.array([0.5, 2, 3], dtype=object), np.float32([0.5, 2, 3])]),
        ([1.0, 2.0, 3.0], [[1, 2, 3], ["1", "2", "3"], np.float16([1, 2, 3])]),
        ([10**6 + 1, 7, 10**17 + 1], [np.array([10**6 + 1, 7, 10**17 + 1])]),
        ([True, False], [[1, 0], [1.0, 0.0], np.array([True, False]), ["True", "False"]]),
        ([1, 0], [[True, False], [1.0, 0.0], [decimal.Decimal(1), decimal.Decimal(0)]]),
    ],
)
def test_equal_categories_are_one_whatever_their_types(categories, others):
    own = np.array(categories, dtype=object)
    table = TABLE[["size"]].assign(which=pd.Categorical(own[np.arange(150) % len(own)]))
    model = TablePreprocessor().fit(table)
    rows = table[: len(own)]
    for other in others:
        assert_array_equal(
            model.transform(rows.assign(which=other)), model.transform(table)[: len(own)]
        )
        for i in range(len(own)):
            row = model.transform(rows.assign(which=other)[i : i + 1])
            assert_array_equal(row[0], model.transform(table)[i])


def test_a_row_of_mixed_columns_does_not_depend_on_the_others():
    words = np.array([1, 2.0, "a", True, 10**7, None, "2", 3.5, 1.0], dtype=object)
    table = TABLE[["size", "kind"]].assign(mixed=np.resize(words, 150))
    model = TablePreprocessor().fit(table)
    assert {*model.categories_[2]} == {"1", "2", "a", "10000000", "3.5"}
    found = model.transform(table)
    for i in range(20):
        assert_array_equal(model.transform(table[i : i + 1])[0], found[i])


def test_a_gap_is_filled_as_scikit_learn_does_and_alike_beside_any_other_rows():
    table = with_gaps()
    table["flag"] = table["flag"].astype(object).where(np.arange(150) % 4 > 0, None)
    table["tied"] = np.arange(150) % 3 - 1.0
    table.loc[::5, "tied"] = None
    model = TablePreprocessor().fit(table)
    found = model.transform(table)
    for i in range(0, 150, 7):
        assert_array_equal(model.transform(table[i : i + 1])[0], found[i])
    X = RANDOM.normal(size=(100, 4))
    X[RANDOM.random((100, 4)) < 0.2] = np.nan
    X[3] = [np.nan, np.nan, np.nan, 1]
    model = TablePreprocessor().fit(X)
    imputer = KNNImputer(n_neighbors=10).fit(model.references_)
    assert_allclose(model.transform(X), imputer.transform(model.references_), atol=1e-12)


@pytest.mark.parametrize("far", [1e4, 1e8, 1e160])
def test_gaps_are_filled_by_near_rows_beside_one_far_away(far):
    x = np.random.default_rng(0).standard_normal(400)
    X = np.c_[x, 10 * x]
    X[-1] = min(far, 1e8), 0
    model = TablePreprocessor().fit(X)
    rows = np.array([[each, np.nan] for each in (-1.0, 0.0, 1.0, far)])
    filled = model.transform(rows)[:, 1] * model.scales_[1] + model.means_[1]
    assert_allclose(filled[:3], [-10, 0, 10], atol=2)
    assert np.isfinite(filled).all()


@pytest.mark.parametrize("value", [1j, [1], {"a": 1}, np.zeros(2)], ids=str)
def test_what_is_no_number_and_no_word_is_named(value):
    column = np.fromiter([value] * 150, dtype=object)
    message = f"^X has values of type {type(value).__name__} in column 'odd', must have numbers"
    with pytest.raises(TypeError, match=message):
        TablePreprocessor().fit(TABLE.assign(odd=column))


def test_a_column_of_another_kind_than_in_the_fit_is_named():
    with pytest.raises(ValueError, match="infinity in column 'size'"):
        TablePreprocessor().fit(TABLE.assign(size=np.inf))
    model = TablePreprocessor().fit(TABLE)
    words = "word 'x' in column 'size', which had numbers in fit"
    for column, message in [
        (np.array([1.0] * 149 + ["x"], dtype=object), words),
        ("x", words),
        (np.array([10**400] * 150, dtype=object), "^X: has numbers beyond float64"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            model.transform(TABLE.assign(size=column))
    with pytest.raises(ValueError, match="X lacks the columns .'kind'"):
        model.transform(TABLE.drop(columns="kind"))
    with pytest.raises(TypeError, match=r"^X: is sparse, .* Pass X\.toarray\(\)"):
        model.fit(sparse.csr_array(np.eye(3)))
    with pytest.raises(TypeError, match=r"^X: .*Pass X\.collect\(\)"):
        model.fit(Framed("collect"))
    for same in (pd.Categorical(TABLE["size"]), [*map(decimal.Decimal, TABLE["size"])]):
        assert_array_equal(model.transform(TABLE.assign(size=same)), model.transform(TABLE))
    assert_array_equal(model.transform(TABLE.assign(same="word")), model.transform(TABLE))


def test_names_of_features_are_those_of_the_fit():
    model = TablePreprocessor().fit(TABLE)
    for given in ([*TABLE][::-1], [*TABLE][1:], "size", 5):
        with pytest.raises(ValueError, match="^input_features is not equal to feature_names_in_"):
            model.get_feature_names_out(given)
    names = model.get_feature_names_out()
    assert_array_equal(model.get_feature_names_out([*TABLE]), names)
    assert_array_equal(model.get_feature_names_out(TABLE.columns), names)


@pytest.mark.parametrize(
    "X, message",
    [
        ({"size": [1.0, 2.0, "?"]}, "^X: .*'[?]' in column 'size'. Replace it by NaN"),
        ({"a": pd.Categorical([1.0, 2.0])}, r"^X: .*nominal columns \['a'\]\. Encode"),
        ({"a": [1.0, np.nan]}, "rffpk.tables.TablePreprocessor"),
    ],
)
def test_rows_that_are_no_numbers_name_the_preprocessor_or_what_to_replace(X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        rffpk.PowerKMeans(2).fit(pd.DataFrame(X))


def test_a_pipeline_is_saved_without_pickle_and_drawn(tmp_path):
    table = with_gaps()
    model = make_pipeline(TablePreprocessor(), rffpk.PowerKMeans(3, random_state=0)).fit(table)
    rffpk.save(model, tmp_path / "m")
    again = rffpk.load(tmp_path / "m")
    assert_array_equal(again.predict(table), model.predict(table))
    assert_array_equal(again.transform(table), model.transform(table))
    other = make_pipeline(MinMaxScaler(), rffpk.PowerKMeans(3))
    with pytest.raises(TypeError, match="steps .'MinMaxScaler'. before PowerKMeans"):
        rffpk.save(other, tmp_path / "n")
    pytest.importorskip("matplotlib").use("agg")
    from rffpk import plot

    assert plot.clusters(model, table).collections


GAPS = r"numbers but \['\?'\], which may be gaps.* convert"


@pytest.mark.parametrize(
    "words, message",
    [
        ([f"customer {i}" for i in range(120)], "in 120 rows"),
        (["?", *(f"{i}.5" for i in range(119))], GAPS),
        (["?", *(f"{i},5" for i in range(119))], GAPS),
        (["7", *(f"{i}.5" for i in range(119))], "are numbers:.* convert"),
        (["7", *(f"{i},5" for i in range(119))], "are numbers:.* convert"),
    ],
)
def test_a_column_of_names_or_of_numbers_as_words_is_named(words, message):
    table = pd.DataFrame({"size": np.arange(120.0), "word": words})
    with pytest.warns(UserWarning, match=f"'word' has 120 categories.*{message}"):
        TablePreprocessor().fit(table)


@pytest.mark.parametrize("values", [["yes", "no"] * 10, [None] * 20])
def test_columns_without_a_known_value_are_named(values):
    table = pd.DataFrame({"size": np.arange(20.0), "member": [True, False] * 10})
    fitted = TablePreprocessor().fit(table)
    with pytest.warns(UserWarning, match=r"columns \['member'\] are missing, or words"):
        fitted.transform(table.assign(member=values))
    fitted.transform(table.assign(member=[True, *values[1:]]))
    fitted.transform(table.assign(member=values)[:9])
    for known in ([], ["x"]):  # categories of a column without a known value are left out
        words = pd.Categorical([None] * 20, categories=known)
        assert TablePreprocessor().fit_transform(table.assign(member=words)).shape == (20, 1)
