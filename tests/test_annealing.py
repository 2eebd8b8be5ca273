"""The parameter `annealing`: its words, and the schedule that an instance describes."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.model_selection import GridSearchCV

import rffpk
from rffpk import Annealing, KernelPowerKMeans, PowerKMeans

X = load_iris().data
FEATURES = {"n_frequencies": 8}
PAPER = (-5.0, 1.04, 3, "objective"), {"init": "k-means", "sample": None}
EXACT = (-1.0, 1.04, 5, "settled"), {"init": "random"}, {}
# What "paper" stands for in each class, and what else makes its fits small.
PAPERS = {
    "PowerKMeans": (*PAPER, {}),
    "RFFKernelPowerKMeans": (*PAPER, FEATURES),
    "DiffusionPowerKMeans": (*PAPER, {"whitening": None}),
    "RFFMultiKernelPowerKMeans": (
        (-5.0, 1.04, 2, "objective"), PAPER[1], FEATURES | {"kernels": None}
    ),
    "KernelPowerKMeans": EXACT,
    "MultiKernelPowerKMeans": EXACT,
}  # fmt: skip


def passes(model):
    return [record for record in model.history_ if "s" in record]


def stages(model):
    return {record["stage"] for record in passes(model)}


def assert_same(first, second):
    assert_array_equal(first.labels_, second.labels_)
    assert (first.inertia_, first.objective_) == (second.inertia_, second.objective_)
    assert [r["s"] for r in passes(first)] == [r["s"] for r in passes(second)]


@pytest.mark.parametrize("name", PAPERS)
def test_words_are_schedules(name):
    (start, factor, number, until), others, small = PAPERS[name]
    given = Annealing(start=start, factor=factor, passes=number, until=until)
    rows, new = X[::2], partial(getattr(rffpk, name), 3, random_state=0, **small)
    paper = new(annealing="paper").fit(rows)
    assert_same(paper, new(annealing=given, **others).fit(rows))
    assert paper.get_params()["annealing"] == "paper"
    assert_same(new(annealing="auto").fit(rows), new(annealing=Annealing()).fit(rows))
    model = new(annealing=None).fit(rows)  # k-means
    assert stages(model) == {"hard"} and {r["s"] for r in passes(model)} == {-np.inf}
    assert [r["kind"] for r in model.history_ if r["stage"] == "start"] == ["given"]
    assert np.isfinite(model.s_) and np.isfinite(model.objective_)


def test_paper_leaves_what_else_is_given():
    init = X[[0, 60, 120]]
    model = PowerKMeans(3, annealing="paper", init=init, sample=90, random_state=0).fit(X)
    assert model.sample_size_ == 90
    assert "k-means" not in stages(model) and passes(model)[0]["s"] == -5.0


def test_none_moves_given_centroids_as_k_means_does():
    rows, _ = make_blobs(500, 4, centers=25, random_state=0)
    init = rows[:25]
    model = PowerKMeans(25, annealing=None, init=init, tol=0.0).fit(rows)
    expected = KMeans(25, init=init, n_init=1, tol=0.0).fit(rows)
    assert_array_equal(model.labels_, expected.labels_)
    assert_allclose(model.cluster_centers_, expected.cluster_centers_)


def test_members_are_parameters_of_the_model():
    model = PowerKMeans(3, annealing=Annealing(passes=2), random_state=0)
    copy = clone(model).set_params(annealing__start=-2.0)
    assert (copy.annealing.start, copy.annealing.passes) == (-2.0, 2)
    assert model.annealing.start == "critical"
    grid = GridSearchCV(model, {"annealing__start": [-1.0, -2.0]}, cv=2).fit(X)
    assert passes(grid.best_estimator_)[0]["s"] == grid.best_params_["annealing__start"]


@pytest.mark.parametrize("swaps, kinds", [(0, 8), (4, 5)])
def test_swaps_over_principal_components_of_a_kernel(swaps, kinds):
    rows, _ = make_blobs(150, 4, centers=6, cluster_std=2.0, random_state=0)
    model = KernelPowerKMeans(6, annealing=Annealing(swaps=swaps), random_state=0).fit(rows)
    assert ("swap" in stages(model)) == (swaps > 0)
    assert sum(record["stage"] == "start" for record in model.history_) == kinds
