"""A fit that was killed at any moment goes on from its checkpoint to the same bits.

With `-m ""`, RFFPK_KILLS=20 kills so many children at random moments; by default 3.
"""

import contextlib
import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs

from rffpk import (
    RMKKM,
    Annealing,
    DiffusionMap,
    DiffusionPowerKMeans,
    FuzzyCMeans,
    KernelKMeans,
    KernelPowerKMeans,
    MultiKernelPowerKMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
    _core,
    load,
)
from rffpk.sources import from_array

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KILLS = int(os.environ.get("RFFPK_KILLS", "3"))
RECORDED = ("seconds", "reading", "computing")  # differ from fit to fit
EXACT = (KernelKMeans, KernelPowerKMeans, MultiKernelPowerKMeans, RMKKM)


@pytest.fixture(autouse=True)
def fast_files(monkeypatch):
    """Skip the waits for the disk: the tests do not end in a crash of the machine."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class Stop(Exception):
    """Raised where a fit is interrupted."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


def blobs(n=400, d=4, k=4, cluster_std=3.0, seed=0):
    return make_blobs(n, d, centers=k, cluster_std=cluster_std, random_state=seed)[0]


def few_blobs():
    return blobs()[:150]


@pytest.fixture
def X():
    return blobs()


def model(cls=PowerKMeans, k=4, **parameters):
    return cls(k, random_state=0, **parameters)


def records(history):
    return [
        {name: np.asarray(value).tolist() for name, value in record.items() if name not in RECORDED}
        for record in history
    ]


RESULTS = {
    "cluster_centers_", "dual_coef_", "kernel_weights_", "labels_", "inertia_", "objective_", "s_",
    "n_iter_", "sample_size_",
}  # fmt: skip


def assert_same(model, expected):
    assert vars(model).keys() == vars(expected).keys()
    for name in RESULTS & {*vars(expected)}:
        assert_array_equal(getattr(model, name), getattr(expected, name))
    assert records(model.history_) == records(expected.history_)


def after_saves(monkeypatch, action):
    """Call the action after each checkpoint."""
    replace = os.replace

    def replaced(source, target, **options):
        replace(source, target, **options)
        if os.fspath(target).endswith("fit.checkpoint"):
            action()

    monkeypatch.setattr(os, "replace", replaced)


def after_passes(monkeypatch, action):
    """Call the action after each pass, which the log has."""
    logger, handler = logging.getLogger("rffpk"), logging.Handler()
    handler.emit = lambda record: action() if "objective=" in record.getMessage() else None
    for name, value in (("handlers", [handler]), ("level", logging.DEBUG), ("propagate", False)):
        monkeypatch.setattr(logger, name, value)
    logger.manager._clear_cache()


def watched(monkeypatch):
    """Record the names and the shapes of the rows of all passes of the core from here on."""
    seen = set()

    def watching(name, function):
        def call(xs, *given, **options):
            seen.add((name, np.shape(xs[0] if isinstance(xs, list) else xs)))
            return function(xs, *given, **options)

        monkeypatch.setattr(_core, name, call)

    watching("fused_pass", _core.fused_pass)
    watching("near_pass", _core.near_pass)
    return seen


def interrupted(monkeypatch, saves=1):
    """Raise an interrupt in fits after so many checkpoints."""
    left = [saves]

    def stop():
        left[0] -= 1
        if left[0] == 0:
            left[0] = saves
            raise Stop

    after_saves(monkeypatch, stop)


def stopped(monkeypatch, fit, path, saves=5):
    """Stop a fit after so many checkpoints; the last one stays."""
    with monkeypatch.context() as patch, pytest.raises(Stop):
        interrupted(patch, saves)
        fit(checkpoint=path, checkpoint_seconds=0)


def fit_in_parts(fit, path):
    """Stop a fit again and again; return it, and how often it was interrupted."""
    parts = 0
    while True:
        try:
            return fit(checkpoint=path, checkpoint_seconds=0), parts
        except Stop:
            parts += 1


class Case(NamedTuple):
    """A fit, and what its passes must show so that the case is what its name says."""

    cls: type
    parameters: dict[str, Any]
    rows: Callable[[], Any] = blobs
    tuning: dict[str, Any] = {}  # noqa: RUF012
    seen: Callable[[set], bool] = bool  # of the passes: pairs of a function of the core and a shape


def halves():
    X = blobs()
    return [X[:, :2], X[:, 1:]]


def source():
    return from_array(blobs(), block_rows=70)


TWICE = {"n_init": 2, "annealing": Annealing(swaps=3)}
BLOCKS = {"storage__block_bytes": 1, "sampling__rows": 150, "sampling__rows_a_cluster": 1}
BOUNDS = {"hardpasses__bounds_rows": 1, "hardpasses__bounds_cost": 0.0}
NEAR = {"hardpasses__near_work": 1, "hardpasses__bounds_rows": 1}
PAPER = {"annealing": Annealing(start=-5.0, factor=1.3, passes=3, until="objective")}
SOFT = {"annealing": Annealing(end=-4.0), "n_init": 2}
HARD = {"k": 20, "sample": 200, "annealing": Annealing(swaps=0), "n_init": 1, "tol": 1e-6}
MANY = {"k": 100, "sample": 800, "annealing": Annealing(swaps=4)}
TWO = {"kernels": ["rbf", "linear"]}
FITS = {  # a default run has the first of them
    "sample": Case(PowerKMeans, {"sample": 100}),
    "all rows": Case(PowerKMeans, {"sample": None, "annealing": Annealing(swaps=3)}),
    "views": Case(RFFMultiKernelPowerKMeans, {**TWO, "n_frequencies": 8, "n_init": 2}, halves),
    "source": Case(PowerKMeans, {"sample": None, "n_init": 1, "annealing": Annealing(swaps=2)},
                   source, BLOCKS),
    "bounds leave rows undecided": Case(
        PowerKMeans, HARD, lambda: blobs(2000, 8, 20, 2.0, 1).astype(np.float32), BOUNDS,
        lambda seen: bool({n for _, (n, _) in seen} - {200, 2000}),
    ),
    "rows see few centroids": Case(
        PowerKMeans, MANY, lambda: blobs(1200, 8, 100, 3.0, 1).astype(np.float32), NEAR,
        lambda seen: "near_pass" in dict(seen),
    ),
    "swaps on components": Case(
        PowerKMeans, {"annealing": Annealing(swaps=8), "n_init": 1},
        lambda: blobs(300, 80, 4, 4.0) * np.geomspace(1, 1e-3, 80),
        {"swaps__rows": 60, "components__margin": 0.0},
        lambda seen: {columns < 80 for _, (n, columns) in seen if n == 60} == {True},
    ),
    "kernels": Case(MultiKernelPowerKMeans, TWO, few_blobs),
    "kernel": Case(KernelPowerKMeans, {}, few_blobs),
    "paper": Case(PowerKMeans, {**PAPER, "init": "k-means", "n_init": 2, "sample": None}),
    "sparse": Case(PowerKMeans, {}, lambda: sparse.csr_array(blobs() * (blobs() > 0))),
    "soft": Case(PowerKMeans, {**SOFT, "sample": 200}),
    "features": Case(RFFKernelPowerKMeans, {"n_frequencies": 8, **TWICE}),
    "diffusion": Case(DiffusionPowerKMeans, {"n_landmarks": 50, **TWICE}),
    "graph": Case(DiffusionPowerKMeans, {"whitening": 0.5, **TWICE, "n_init": 1}),
    "fuzzy": Case(FuzzyCMeans, {"n_init": 2, "init": "k-means", "max_iter": 9}),
    "fuzzy after a search": Case(FuzzyCMeans, {"m": "auto"}),
    "bank": Case(RFFMultiKernelPowerKMeans, {"n_frequencies": 8, **TWICE}),
    "many clusters": Case(PowerKMeans, {"k": 100, "sample": 200}),
    "sample of a source": Case(PowerKMeans, {"sample": 150, "n_init": 2}, source, BLOCKS),
    "paper of a kernel": Case(
        KernelPowerKMeans, {**SOFT, "annealing": "paper", "max_iter": 30}, few_blobs
    ),
    "soft end of a kernel": Case(KernelPowerKMeans, SOFT, few_blobs),
    "labels": Case(KernelKMeans, {"init": np.arange(150) % 4}, few_blobs),
    "robust": Case(RMKKM, {**TWO, "n_init": 2}, few_blobs),
}  # fmt: skip


@pytest.mark.promise(
    "Files",
    "A fit that was killed at any moment goes on from its checkpoint to the same bits. A "
    "damaged checkpoint, or one of other rows, parameters or versions, is refused.",
)
@pytest.mark.few(11)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FITS)
def test_a_fit_goes_on_from_every_step(path, monkeypatch, tuning, name, weighted):
    case = FITS[name]
    tuning(**case.tuning)
    X = case.rows()
    n = len(X[0]) if isinstance(X, list) else 400 if callable(X) else X.shape[0]
    weight = np.random.default_rng(0).uniform(0.5, 2, n) if weighted else None

    def fit(**arguments):
        labels = []
        arguments |= {"labels_to": labels.append} if callable(X) else {}
        fitted = model(case.cls, **case.parameters).fit(X, sample_weight=weight, **arguments)
        return fitted, np.concatenate(labels) if labels else fitted.labels_

    seen = watched(monkeypatch)
    whole, labels = fit()
    assert case.seen(seen) or case.cls in EXACT
    interrupted(monkeypatch)
    (found, found_labels), parts = fit_in_parts(fit, path)
    assert_same(found, whole)
    assert_array_equal(found_labels, labels)
    assert parts >= sum(
        "shift" in record and record["stage"] != "swap" for record in whole.history_
    )
    assert not path.exists()


def test_the_numpy_twin_goes_on(X, path, monkeypatch):
    monkeypatch.setenv("RFFPK_BACKEND", "numpy")
    parameters = {"n_init": 2, "annealing": Annealing(swaps=1)}
    whole = model(**parameters).fit(X)
    interrupted(monkeypatch, 3)
    found, _ = fit_in_parts(lambda **arguments: model(**parameters).fit(X, **arguments), path)
    assert_same(found, whole)


def test_a_fit_goes_on_with_the_memory_that_it_had(X, path, monkeypatch, memory):
    memory(1 << 40)
    X = np.hstack([X] * 50)

    def fit(**arguments):
        parameters = {"n_frequencies": 256, "sampling": "orthogonal", "n_init": 2}
        return model(RFFKernelPowerKMeans, **parameters).fit(X, **arguments)

    whole = fit()
    stopped(monkeypatch, fit, path)
    memory(4 * 10**6)
    found = fit(checkpoint=path)
    assert_same(found, whole)
    assert found.cache_ and whole.cache_ and not fit().cache_


def test_a_random_state_that_is_an_object_goes_on(X, path, monkeypatch):
    def fit(random, **arguments):
        return PowerKMeans(4, n_init=2, random_state=random).fit(X, **arguments)

    random = np.random.RandomState(3)
    whole, after = fit(random), random.get_state()
    interrupted(monkeypatch, 4)

    def begin(**arguments):
        random.seed(3)
        return fit(random, **arguments)

    found, parts = fit_in_parts(begin, path)
    assert parts > 3
    assert_same(found, whole)
    assert_array_equal(random.get_state()[1], after[1])


def test_a_fit_goes_on_without_the_steps_that_were_made(X, path, monkeypatch, capsys):
    counts = []
    for saves in (10**9, 10):
        with monkeypatch.context() as patch:
            steps = []
            after_passes(patch, lambda steps=steps: steps.append(1))
            interrupted(patch, saves)
            with contextlib.suppress(Stop):
                model().fit(X, checkpoint=path, checkpoint_seconds=0)
        counts.append(len(steps))
    every, begun = counts
    with monkeypatch.context() as patch:
        after_passes(patch, lambda: steps.append(1))
        model().set_params(verbose=1).fit(X, checkpoint=path)
    assert begun > 5
    assert len(steps) == every
    assert "goes on from" in capsys.readouterr().out


def test_checkpoints_are_written_at_intervals(X, path, monkeypatch):
    seconds, saves = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    after_saves(monkeypatch, lambda: saves.append(seconds[0]))

    def slow():
        seconds[0] += 7

    after_passes(monkeypatch, slow)
    model(annealing=Annealing(swaps=0)).fit(X, checkpoint=path)
    assert len(saves) > 2
    assert min(np.diff([0, *saves])) >= 60
    assert max(np.diff(saves)) <= 67


# ---- kills ---------------------------------------------------------------------------------------

KILLED = [  # models and their numbers of rows
    (PowerKMeans(12, sample=None), 6000),
    (PowerKMeans(120, sample=None, init="random"), 6000),
    (RFFKernelPowerKMeans(12, n_frequencies=50, sample=500), 6000),
    (DiffusionPowerKMeans(12), 1500),
    (FuzzyCMeans(12, sample=None), 6000),
    (RFFMultiKernelPowerKMeans(12, n_frequencies=50), 3000),
    (KernelKMeans(12), 600),
    (KernelPowerKMeans(12), 600),
    (MultiKernelPowerKMeans(12), 400),
    (RMKKM(12), 400),
]


def fit_to_file(model, X, checkpoint, file):
    """Fit a model in a child, and write what it has."""
    model.fit(X, checkpoint=checkpoint, checkpoint_seconds=0)
    kinds = (np.ndarray, int, float)
    results = {k: v for k, v in vars(model).items() if k.endswith("_") and isinstance(v, kinds)}
    np.savez(file, **results, passes=[record.get("objective", 0.0) for record in model.history_])


@pytest.mark.promise(like="test_a_fit_goes_on_from_every_step")
@pytest.mark.exhaustive
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("model, n", KILLED, ids=str)
def test_a_fit_that_is_killed_at_any_moment_goes_on_to_the_same_bits(path, tmp_path, model, n):
    X = blobs(n, 10, 12, 4.0)
    X = [X[:, :4], X[:, 4:]] if hasattr(model, "kernels") else X
    files, random = [tmp_path / "whole.npz", tmp_path / "found.npz"], np.random.default_rng(0)

    def run(checkpoint, file, seconds=None):
        given = clone(model).set_params(random_state=0), X, checkpoint, file
        child = multiprocessing.get_context("fork").Process(target=fit_to_file, args=given)
        child.start()
        child.join(seconds)
        child.kill()
        child.join()
        return child.exitcode

    started = time.perf_counter()
    assert run(None, files[0]) == 0
    took = time.perf_counter() - started
    killed, resumed, killing = 0, 0, True
    while killing:
        killing, there = killed < KILLS or not resumed, path.exists()
        if code := run(path, files[1], random.uniform(0, took) if killing else None):
            assert killing and code == -signal.SIGKILL
            killed, resumed = killed + 1, resumed + there
        else:
            whole, found = (np.load(file) for file in files)
            assert "passes" in whole and "labels_" in whole and whole.keys() == found.keys()
            assert all(np.array_equal(whole[name], found[name]) for name in whole)
            assert not path.exists()


# ---- other fits ----------------------------------------------------------------------------------


@pytest.fixture
def kept(X, path):
    """Write a checkpoint of a fit of X that was interrupted."""
    stopped(pytest.MonkeyPatch, lambda **arguments: model().fit(X, **arguments), path)
    return path


def changed(X, i, j, value):
    X = X.copy()
    X[i, j] = value
    return X


@pytest.mark.promise(like="test_a_fit_goes_on_from_every_step")
@pytest.mark.parametrize(
    ("parameters", "change", "text"),
    [
        ({"n_clusters": 5}, None, "n_clusters was 4, is 5"),
        ({"tol": 1e-4}, None, "tol was 0.001, is 0.0001"),
        ({"random_state": 1}, None, "random_state was 0, is 1"),
        ({"init": np.zeros((4, 4))}, None, "init was 'k-means[+][+]', is an array"),
        ({}, lambda X: X[:-1], "number of rows was 400, is 399"),
        ({}, lambda X: X[:, :-1], "number of columns was .4., is .3."),
        ({}, lambda X: X.astype(np.float32), "dtype of X was float64, is float32"),
        ({}, lambda X: changed(X, 7, 1, 0.0), "digest of some rows of X was"),
        ({}, lambda X: X[::-1], "digest of some rows of X was"),
    ],
)
def test_another_fit_is_refused(X, kept, parameters, change, text):
    before = kept.read_bytes()
    again = model().set_params(**parameters)
    with pytest.raises(ValueError, match=f"fit.checkpoint is of another fit: {text}"):
        again.fit(X if change is None else change(X), checkpoint=kept)
    assert kept.read_bytes() == before
    assert not hasattr(again, "cluster_centers_")


def test_a_number_that_is_not_in_the_sample_is_noticed(X, path, monkeypatch, tuning):
    tuning(sampling__rows=100, sampling__rows_a_cluster=1)
    stopped(monkeypatch, lambda **arguments: model().fit(X, **arguments), path)
    texts = []
    for i in range(20):
        with pytest.raises(ValueError, match="is of another fit: digest of") as error:
            model().fit(changed(X, i, 1, 0.5), checkpoint=path)
        texts.append(str(error.value))
    assert 0 < sum("digest of the column means" in text for text in texts) < 20


@pytest.mark.promise(like="test_a_fit_goes_on_from_every_step")
def test_other_weights_classes_and_versions_are_refused(X, kept, monkeypatch):
    with pytest.raises(ValueError, match="digest of sample_weight was None"):
        model().fit(X, sample_weight=np.r_[2.0, np.ones(len(X) - 1)], checkpoint=kept)
    with pytest.raises(ValueError, match="class was PowerKMeans, is FuzzyCMeans"):
        model(FuzzyCMeans).fit(X, checkpoint=kept)
    monkeypatch.setattr("rffpk.estimators.fitting.__version__", "99.0")
    with pytest.raises(ValueError, match=r"rffpk version was .*, is 99\.0\. resume=False begi"):
        model().fit(X, checkpoint=kept)


def test_threads_and_verbose_may_change(X, kept, tmp_path, monkeypatch):
    assert_same(model().set_params(n_jobs=1, verbose=0).fit(X, checkpoint=kept), model().fit(X))
    path = tmp_path / "maps.fit.checkpoint"

    def fit(n_jobs, **arguments):
        maps = [DiffusionMap(2, n_landmarks=50, n_jobs=n_jobs, random_state=0)]
        return model(RFFMultiKernelPowerKMeans, kernels=maps).fit(X, **arguments)

    stopped(monkeypatch, lambda **arguments: fit(1, **arguments), path, 3)
    assert_same(fit(2, checkpoint=path), fit(1))
    assert not path.exists()


@pytest.mark.skipif(len(_core.isa_levels()) < 2, reason="one instruction set")
def test_features_that_another_processor_rounds_otherwise_are_refused(X, path, monkeypatch):
    X = np.rint(np.vstack([X, -X]))  # whose means are exact

    fit = model(RFFKernelPowerKMeans).fit
    stopped(monkeypatch, lambda **arguments: fit(X, **arguments), path, 3)
    before = _core.use_isa(_core.isa_levels()[0])
    try:
        with pytest.raises(ValueError, match="features by this proc"):
            fit(X, checkpoint=path)
    finally:
        _core.use_isa(before)


@pytest.mark.parametrize("resume", [True, False])
def test_a_link_stays_and_the_checkpoint_that_it_names_is_removed(X, kept, resume):
    link = kept.with_name("link")
    os.symlink(kept, link)
    model().fit(X, checkpoint=link, resume=resume)
    assert os.path.islink(link) and not kept.exists()


def test_resume_false_removes_the_old_checkpoint_before_there_is_a_new_one(X, kept, monkeypatch):
    seen = []
    after_passes(monkeypatch, lambda: seen.append(kept.exists()))
    found = model().fit(X + 1, checkpoint=kept, resume=False)
    assert seen and not any(seen)
    assert_same(found, model().fit(X + 1))
    assert not kept.exists()


@pytest.mark.promise(like="test_a_fit_goes_on_from_every_step")
def test_a_damaged_file_is_refused_by_name(X, kept):
    with pytest.raises(ValueError, match="is not a model file"):
        load(kept)
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 1
    kept.write_bytes(content)
    with pytest.raises(ValueError, match=r"checkpoint .*fit.checkpoint: is damaged: .* resume=Fal"):
        model().fit(X, checkpoint=kept)
    for other in (content[:1000], b"", b"labels"):
        kept.write_bytes(other)
        with pytest.raises(ValueError, match=r"checkpoint.*fit.checkpoint'?: (is|has)"):
            model().fit(X, checkpoint=kept)
    model().fit(X).save(kept)
    with pytest.raises(ValueError, match="checkpoint=.*: is no checkpoint"):
        model().fit(X, checkpoint=kept)


def test_an_interrupt_leaves_the_estimator_and_the_last_checkpoint(X, path, monkeypatch):
    fitted = model().fit(X)
    before = {name: id(value) for name, value in vars(fitted).items()}
    interrupted(monkeypatch, 6)
    with pytest.raises(Stop):
        fitted.fit(X + 1, checkpoint=path, checkpoint_seconds=0)
    assert {name: id(value) for name, value in vars(fitted).items()} == before
    content = path.read_bytes()

    def interrupt():
        raise KeyboardInterrupt

    after_passes(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X + 1, checkpoint=path, checkpoint_seconds=0)
    assert {name: id(value) for name, value in vars(fitted).items()} == before
    assert path.read_bytes() == content
    monkeypatch.undo()
    assert_same(fitted.fit(X + 1, checkpoint=path), model().fit(X + 1))


def test_a_checkpoint_that_cannot_be_written_is_a_warning(X, path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    whole = model().fit(X)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match="goes on without a new checkpoint: .*No space left"):
        found = model().fit(X, checkpoint=path, checkpoint_seconds=0)
    assert_same(found, whole)


@pytest.mark.parametrize(
    ("parameters", "arguments", "text"),
    [
        ({}, {"checkpoint": 3}, "checkpoint is of type int"),
        ({}, {"checkpoint": "/no/such/folder/file"}, "checkpoint=/no/such/.*there is no folder"),
        ({}, {"checkpoint_seconds": -1}, "checkpoint_seconds=-1"),
        ({}, {"resume": "yes"}, "resume"),
        ({"random_state": None}, {}, "checkpoint needs a random_state"),
        # nothing tells whether another function has the same name
        ({"init": lambda X, k, random_state: X[:k]}, {}, "checkpoint cannot compare functions"),
    ],
)
def test_arguments_are_checked(X, path, parameters, arguments, text):
    with pytest.raises((ValueError, TypeError), match=text):
        model().set_params(**parameters).fit(X, **({"checkpoint": path} | arguments))
