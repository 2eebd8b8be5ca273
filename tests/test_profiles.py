"""Profiles of clusters against plain formulas."""

import datetime
from functools import cache

import numpy as np
import pandas as pd
import pytest
from conventions import ip_rff_mkpkm
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import rffpk
from rffpk import describe
from rffpk.tables import TablePreprocessor

FRAME = load_iris(as_frame=True).data
X = FRAME.to_numpy()
ALONE = {"n_resamples": 0}


@cache
def fitted():
    return rffpk.PowerKMeans(3, random_state=0).fit(X)


def cohen(x, inside, p):
    """Compute Cohen's d by its formula."""
    a, b, p, q = x[inside], x[~inside], p[inside], p[~inside]
    means = np.average(a, axis=0, weights=p), np.average(b, axis=0, weights=q)
    within = (p @ (a - means[0]) ** 2 + q @ (b - means[1]) ** 2) / (p.sum() + q.sum())
    return (means[0] - means[1]) / np.sqrt(within)


@pytest.mark.promise(
    "Memberships and trees",
    "`describe` follows its formulas, with weights, sparse rows, views, noise and missing numbers.",
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_sizes_means_and_differences_are_those_of_the_formulas(form, weighted):
    weight = np.arange(150) % 3 + 0.5 if weighted else None
    p = np.ones(150) if weight is None else weight
    profile = describe(fitted(), X, table=form(X * 10), sample_weight=weight, **ALONE)
    assert_array_equal(profile.sizes, np.bincount(fitted().labels_))
    assert_array_equal(profile.medoids, fitted().medoids(X))
    assert_allclose(profile.shares, np.bincount(fitted().labels_, p) / p.sum())
    for j in range(3):
        inside = fitted().labels_ == j
        assert_allclose(profile.means[j], np.average(10 * X[inside], axis=0, weights=p[inside]))
        assert_allclose(profile.differences[j], cohen(X, inside, p), rtol=1e-7)
    assert profile.stability is None


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("exponent", [1000, -1000])
def test_columns_whose_squares_overflow_or_vanish(form, exponent):
    known = describe(fitted(), X, table=form(X), **ALONE)
    found = describe(fitted(), X, table=form(np.ldexp(X, exponent)), **ALONE)
    assert_array_equal(found.differences, known.differences)
    assert_array_equal(found.means, np.ldexp(known.means, exponent))


def test_missing_numbers_and_constant_columns():
    table = np.c_[X[:, 0], np.full(150, 3.3), fitted().labels_ == 1, np.full(150, np.nan)]
    table[::7, 0] = np.nan
    profile = describe(fitted(), X, table=table, **ALONE)
    known = ~np.isnan(table[:, 0])
    expected = cohen(X[known, :1], fitted().labels_[known] == 0, np.ones(known.sum()))
    assert_allclose(profile.differences[0, :1], expected)
    assert_array_equal(profile.differences[:, 1], 0)
    assert_allclose(profile.means[:, 1], 3.3)
    assert profile.differences[1, 2] == np.inf and profile.differences[0, 2] < 0
    assert np.isnan(profile.means[:, 3]).all() and not profile.differences[:, 3].any()
    assert "column 2 1 (+inf)" in str(profile)


@pytest.mark.promise(like="test_sizes_means_and_differences_are_those_of_the_formulas")
def test_clusters_that_are_there_are_stable_and_halves_of_one_are_not():
    rows, y = make_blobs(400, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    stable = describe(rffpk.PowerKMeans(3, random_state=0).fit(rows), rows, random_state=0)
    assert_array_equal(stable.stability, 1)
    model = rffpk.PowerKMeans(4, random_state=0).fit(rows)
    parts = [len(np.unique(y[model.labels_ == j])) for j in range(4)]
    of = [np.bincount(y[model.labels_ == j]).argmax() for j in range(4)]
    halves = np.array([of.count(each) > 1 for each in of])
    assert max(parts) == 1 and halves.sum() == 2
    found = describe(model, rows, random_state=0)
    assert found.stability[halves].max() < 0.85 < found.stability[~halves].min()
    again = describe(model, rows, random_state=0)
    assert_array_equal(again.stability, found.stability)


def test_pipelines_are_described_by_their_own_columns():
    model = make_pipeline(StandardScaler(), rffpk.PowerKMeans(3, random_state=0)).fit(FRAME)
    weight = np.arange(150) % 2
    found = describe(model, FRAME, n_resamples=2, sample_weight=weight, random_state=0)
    assert found.columns == [*FRAME.columns]
    here = (model[-1].labels_ == 0) & (weight > 0)
    assert_allclose(found.means[0], X[here].mean(axis=0))
    assert_array_equal(found.medoids, model[-1].medoids(model[0].transform(FRAME)))


def mixed_table():
    """Return two groups of rows that differ in each of the columns, of each kind."""
    y, random = np.arange(120) % 2, np.random.default_rng(0)
    days = pd.Timestamp("2024-01-10") + pd.to_timedelta(30 * y, unit="D")
    return y, pd.DataFrame(
        {
            "size": 10.0 * y + random.standard_normal(120),
            "word": np.where(random.random(120) < 0.9, np.where(y, "red", "blue"), "green"),
            "member": y == 1,
            "since": days,
            "stay": pd.to_timedelta(12 * (1 + y), unit="h"),
        }
    )


def test_means_that_are_zero_are_shown_as_zero():
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 3000)
    X = (y + 0.1 * random.standard_normal(3000))[:, None]
    table = pd.DataFrame({"w": np.array([*"xyz"])[y], "zero": np.where(y == 1, 0.0, X[:, 0])})
    model = rffpk.PowerKMeans(3, random_state=0).fit(X)
    found = describe(model, X, table=table, **ALONE)
    zero = found.columns.index("zero")
    assert np.sum(found.means == 0) == 7  # two words of each cluster, and a column of zeros
    assert found.means[model.predict([[1.0]])[0], zero] == 0
    assert "-0 %" not in str(found)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_words_and_dates_are_described_as_users_read_them(library):
    y, frame = mixed_table()
    data = frame.drop(columns=["since", "stay"])
    model = make_pipeline(TablePreprocessor(), rffpk.PowerKMeans(2, random_state=0)).fit(data)
    table, package = frame, pytest.importorskip(library)
    if library == "polars":
        data, table = (
            package.DataFrame({name: x[name].to_list() for name in x}) for x in (data, frame)
        )
    description = describe(model, data, n_resamples=2, random_state=0)
    assert_array_equal(description.stability, 1.0)
    shares = ["word=red", "word=blue", "word=green", "member=True"]
    assert {*description.columns} == {"size", *shares}
    description = describe(model, data, table=table, **ALONE)
    of = dict(zip(description.columns, description.units))
    assert of == dict.fromkeys(shares, "share") | {
        "size": "number", "since": "date", "stay (days)": "number"
    }  # fmt: skip
    for j in range(2):
        rows = frame[model[-1].labels_ == j]
        means = dict(zip(description.columns, description.means[j]))
        assert means["word=red"] == pytest.approx((rows["word"] == "red").mean())
        assert means["member=True"] == rows["member"].mean()
        assert means["stay (days)"] == pytest.approx(0.5 + 0.5 * rows["member"].mean())
        line = str(description).splitlines()[j + 1]
        member = bool(rows["member"].iloc[0])
        assert f"since 2024-{'02-09' if member else '01-10'} (" in line
        assert f"member=True {100 * member} % (" in line


def test_gaps_of_dates_and_words_are_left_out():
    days = [datetime.date(2020, 1, 1 + i % 28) if i % 2 else np.nan for i in range(150)]
    table = pd.DataFrame({"day": days, "word": pd.Categorical([None] * 150)})
    found = describe(fitted(), X, table=table, **ALONE)
    known = np.array([day.toordinal() - 719163 for day in days[1::2]])
    expected = [known[fitted().labels_[1::2] == j].mean() for j in range(3)]
    assert found.columns == ["day"]
    assert_allclose(found.means[:, 0], expected)


def test_dates_with_a_time_zone_are_described_without_a_word():
    days = pd.date_range("2020", periods=150)
    first, *others = (
        describe(fitted(), X, table=pd.DataFrame({"day": kind}), **ALONE).means
        for kind in (days, days.tz_localize("UTC"), days.tz_localize("UTC").astype(object))
    )
    assert_array_equal(others, [first] * 2)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_views_stand_side_by_side(form):
    views = [FRAME[FRAME.columns[:1]], form(X[:, 1:])]
    model = ip_rff_mkpkm(3, random_state=0).fit(views)
    found = describe(model, views, n_resamples=2, random_state=0)
    assert found.columns[:2] == ["view 0: sepal length (cm)", "view 1: column 0"]
    assert_allclose(found.means[1], X[model.labels_ == 1].mean(axis=0))
    assert ((found.stability > 0.3) & (found.stability <= 1)).all()


def test_noise_belongs_to_the_rest():
    rows = np.r_[X, [[60.0] * 4]]
    model = ip_rff_mkpkm(3, kernels="linear", noise=0.03, random_state=0).fit(rows)
    noise = (model.labels_ < 0).sum()
    assert noise
    found = describe(model, rows, n_resamples=1, random_state=0)
    assert found.sizes.sum() == 151 - noise
    assert_allclose(found.shares.sum(), 1 - noise / 151)
    expected = cohen(rows, model.labels_ == 0, np.ones(151))
    assert_allclose(found.differences[0], expected)


def test_precomputed_kernels_are_described_by_a_table():
    K = rbf_kernel(X)
    model = rffpk.KernelKMeans(3, kernel="precomputed", random_state=0).fit(K)
    found = describe(model, K, table=FRAME, **ALONE)
    assert found.medoids is None and found.columns == [*FRAME.columns]
    for options in ({"table": X}, ALONE):
        with pytest.raises(ValueError, match="n_resamples must be 0 and table must be given"):
            describe(model, K, **options)


def test_the_text_has_a_line_for_each_cluster():
    head, *lines = str(
        describe(fitted(), X, table=FRAME, n_resamples=1, random_state=0)
    ).splitlines()
    assert head.split()[:5] == ["cluster", "rows", "share", "stability", "medoid"]
    assert [int(line.split()[0]) for line in lines] == [0, 1, 2]
    place = head.index("means")
    assert all(line[place - 2 : place] == "  " and line[place] != " " for line in lines)
    assert sum("  petal length (cm) 1.46 (-" in line for line in lines) == 1
    one = describe(rffpk.PowerKMeans(1).fit(X), X, **ALONE)
    assert not one.differences.any() and one.shares == [1]
    rows = np.repeat([[0.0, 1.0], [9.0, 1.01]], 50, axis=0) + np.tile(np.eye(2), (50, 1))
    found = describe(rffpk.PowerKMeans(2, random_state=0).fit(rows), rows, **ALONE)
    assert 0 < np.abs(found.differences[:, 1]).max() < 0.05
    assert str(found).count("column 0") == 2 and "column 1" not in str(found)


def test_what_is_refused():
    model, frame = fitted(), pd.DataFrame({"a": [np.inf] * 150, "opens": [datetime.time(8)] * 150})
    for arguments, options, error, message in [
        ((Pipeline([]), X), {}, TypeError, "model is a Pipeline, must be a clusterer of rffpk"),
        ((KMeans(3).fit(X), X), {}, TypeError, "model is a KMeans, must be a clusterer of rffpk"),
        ((rffpk.PowerKMeans(3), X), {}, NotFittedError, "is not fitted"),
        ((model, lambda: iter([X])), {}, TypeError, "^X.* is a source"),
        ((model, X), {"table": X[1:]}, ValueError, "table has 149 rows, must have 150 like X"),
        ((model, X), {"n_resamples": -1}, ValueError, "n_resamples=-1"),
        ((model, X), {"table": frame[["a"]]}, ValueError, "table: X has infinity in column 'a'"),
        ((model, X), {"table": [["x"]] * 150}, ValueError, "table"),
        ((model, X), {"table": frame[["opens"]]}, ValueError, "table: column 'opens'"),
    ]:
        with pytest.raises(error, match=message):
            describe(*arguments, **options)


@pytest.mark.parametrize("of_rows", ["labels", "weights", "memberships"])
def test_refits_do_not_begin_with_the_labels_of_all_rows(of_rows):
    X, y = make_blobs(60, centers=3, cluster_std=0.3, random_state=0)
    one_hot = np.eye(3)[y]
    if of_rows == "memberships":
        model = rffpk.FuzzyCMeans(3, init=one_hot, random_state=0)
    else:
        init = y if of_rows == "labels" else one_hot.T
        model = rffpk.KernelKMeans(3, init=init, random_state=0)
    assert_array_equal(describe(model.fit(X), X, random_state=0).stability, 1.0)


def test_centroids_are_where_refits_begin(monkeypatch):
    X, y = make_blobs(30, 30, centers=3, random_state=0)  # as many columns as rows
    begun, fit, init = [], rffpk.PowerKMeans.fit, X[[0, 1, 2]]

    def noted(self, *given, **options):
        begun.append(self.init)
        return fit(self, *given, **options)

    monkeypatch.setattr(rffpk.PowerKMeans, "fit", noted)
    describe(rffpk.PowerKMeans(3, init=init).fit(X), X, random_state=0, n_resamples=1)
    assert_array_equal(begun, [init, init])


def test_rows_without_a_weight_are_in_no_refit():
    X, _ = make_blobs(60, centers=3, cluster_std=0.3, random_state=0)
    weight = np.zeros(60)
    weight[:4] = 1
    for k, expected in ((3, False), (5, True)):
        model = rffpk.PowerKMeans(k, random_state=0).fit(X)
        profiles = describe(model, X, sample_weight=weight, random_state=0)
        assert np.isnan(profiles.stability).all() == expected
        assert "stability" in str(profiles)


def test_rows_that_are_none_in_a_view_are_missing():
    lacks = np.where(np.arange(150)[:, None] < 20, np.nan, X)
    model = rffpk.RFFMultiKernelPowerKMeans(2, allow_missing_views=True, random_state=0)
    model.fit([X, lacks])
    given = [None if np.isnan(row).any() else row for row in lacks]
    a, b = (describe(model, [X, view], random_state=0, n_resamples=1) for view in (lacks, given))
    assert_array_equal(a.means, b.means)
    assert_array_equal(a.stability, b.stability)


def test_tables_of_arrow_are_described_as_frames():
    arrow = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"word": ["a", "b", "b"] * 50, "number": np.arange(150.0)})
    found = describe(fitted(), X, table=arrow.Table.from_pandas(frame), **ALONE)
    assert str(found) == str(describe(fitted(), X, table=frame, **ALONE))
