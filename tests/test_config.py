"""Backends, instruction sets, the limit of BLAS and the command line."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest
import threadpoolctl
from contracts.plan import config

import rffpk
from rffpk import _core
from rffpk.__main__ import main


def test_the_configuration_is_reported_with_what_is_missing_or_slow(monkeypatch, capsys):
    shown = rffpk.show_config()
    capped = shown["isa"] != shown["isa_levels"][-1]
    assert not capped or "RFFPK_ISA" in os.environ
    assert any("RFFPK_ISA" in text for text in shown["slow"]) == capped
    assert shown["threads"] >= 1 and shown["blas"] and shown["threads_by"] in ("own", "openmp")
    assert not any(text.startswith("matplotlib ") for text in shown["missing"])
    assert ("distributed (extra dask)" in shown["missing"]) == (find_spec("distributed") is None)
    main(["info"])
    printed = capsys.readouterr().out
    assert all(key in printed for key in ("version", "isa", "threads_by", "thread_limits", "blas"))
    monkeypatch.setenv("RFFPK_BACKEND", "numpy")
    monkeypatch.setattr(config, "thread_limits", lambda: {"affinity": 8, "quota": 1})
    monkeypatch.setattr(config, "available_memory", lambda: 2**20)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    before = _core.use_isa("plain")
    slow = " ".join(rffpk.show_config()["slow"])
    _core.use_isa(before)
    for part in "RFFPK_BACKEND", "8 processors, by quota:", "1 MB of memory":
        assert part in slow
    assert ("RFFPK_ISA" in slow) == (len(_core.isa_levels()) > 1)


def test_the_demo_compares_three_methods_on_two_data_sets(capsys):
    main(["demo"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    ari = {}
    for name in ("KMeans(n_init=10)", "SpectralClustering", "DiffusionPowerKMeans"):
        ari[name] = [float(row[1]) for row in rows if row and row[0] == name]
        assert len(ari[name]) == 2
    digits, moons = ari["DiffusionPowerKMeans"]
    assert digits > ari["KMeans(n_init=10)"][0] + 0.05
    assert moons > 0.95 and moons > ari["SpectralClustering"][1]


def test_the_backend_is_chosen_by_name(monkeypatch):
    monkeypatch.delenv("RFFPK_BACKEND", raising=False)
    assert config.backend() is _core
    monkeypatch.setenv("RFFPK_BACKEND", "numpy")
    assert rffpk.show_config()["backend"] == "numpy"
    monkeypatch.setenv("RFFPK_BACKEND", "fortran")
    with pytest.raises(ValueError, match="RFFPK_BACKEND='fortran': must be one of"):
        rffpk.PowerKMeans(2).fit(np.eye(4))


FIT = """
import numpy as np, rffpk
X = np.random.default_rng(0).standard_normal((1000, 6))
annealing = rffpk.Annealing(swaps=0)
model = rffpk.RFFKernelPowerKMeans(5, n_init=1, annealing=annealing, random_state=0).fit(X)
print(rffpk.show_config()["isa"], float(model.objective_), float(model.inertia_))
"""


@pytest.mark.exhaustive
def test_every_instruction_set_gives_the_same_result_up_to_rounding(python):
    levels, costs = zip(*(python(FIT, RFFPK_ISA=isa).split(" ", 1) for isa in _core.isa_levels()))
    assert [*levels] == [*_core.isa_levels()]
    costs = np.array([text.split() for text in costs], dtype=float)
    np.testing.assert_allclose(costs, costs[:1].repeat(len(costs), axis=0), rtol=1e-9)
    done = python("import rffpk", check=False, RFFPK_ISA="x86-64-v9")
    assert done.returncode != 0
    assert "RFFPK_ISA='x86-64-v9' names no compiled level" in done.stderr


# ---- one thread of BLAS -------------------------------------------------------------------------


def blas_threads():
    pools = threadpoolctl.threadpool_info()
    return {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}


def set_blas_threads(number):
    """Set the limit in a thread that ends: a running thread could keep the limit from changing."""
    thread = threading.Thread(target=threadpoolctl.threadpool_limits, args=(number, "blas"))
    thread.start()
    thread.join()


@pytest.fixture
def two_blas_threads():
    [before] = blas_threads()
    set_blas_threads(2)
    yield
    set_blas_threads(before)


@pytest.mark.promise(
    "Process-wide state",
    "BLAS has one thread in the whole process while a fit or prediction runs. It has its "
    "former number when the last of them ends, and in a forked child at once.",
)
@pytest.mark.parametrize(
    "order", ["Aa", "AaBb", "ABab", "ABba", "AAaa", "AABaba", "ABaAba", "ABCbca", "ABCacb"]
)
def test_the_last_thread_to_leave_restores_the_limit_of_blas(two_blas_threads, order):
    """Each letter is a thread: a capital enters, a small letter leaves."""
    threads = {name: ThreadPoolExecutor(1) for name in "ABC"}
    inside = {name: [] for name in "ABC"}
    for event in order:
        name = event.upper()
        if event == name:
            inside[name].append(config.one_blas_thread())
            threads[name].submit(inside[name][-1].__enter__).result()
        else:
            threads[name].submit(inside[name].pop().__exit__, None, None, None).result()
        assert blas_threads() == ({1} if any(inside.values()) else {2})
    for thread in threads.values():
        thread.shutdown()


@pytest.mark.promise(like="test_the_last_thread_to_leave_restores_the_limit_of_blas")
def test_predictions_have_one_thread_of_blas(two_blas_threads, monkeypatch):
    """Products of matrices round differently by several."""
    model = rffpk.RFFMultiKernelPowerKMeans(2, kernels=[("linear", 0.5)], random_state=0)
    X = np.random.default_rng(0).standard_normal((200, 3))
    model.fit([X])
    visit, seen = _core.fused_pass, []

    def visited(*given, **options):
        seen.append(blas_threads())
        return visit(*given, **options)

    monkeypatch.setattr(_core, "fused_pass", visited)
    for predict in (model.predict, model.predict_proba, model.transform, model.score):
        predict([X])
    assert seen and all(each == {1} for each in seen)
    assert blas_threads() == {2}


@pytest.mark.promise(like="test_passes_in_several_threads_at_once")
@pytest.mark.promise(like="test_the_last_thread_to_leave_restores_the_limit_of_blas")
def test_overlapping_fits_leave_blas_as_it_was(two_blas_threads):
    """The first fit to begin ends first, one of the others fails, and they end in any order."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    begun, ended = threading.Event(), threading.Event()
    everyone = threading.Barrier(8, timeout=60)

    def fit(number):
        def init(features, n_clusters, random_state):
            begun.set()
            everyone.wait()
            if number:
                assert ended.wait(60)
            assert blas_threads() == {1}
            if number == 3:
                raise RuntimeError("no start.")
            return features[:n_clusters]

        return rffpk.PowerKMeans(4, init=init, random_state=0).fit(X).inertia_

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(fit, 0)
        assert begun.wait(60)
        others = [pool.submit(fit, number) for number in range(1, 8)]
        expected = first.result()
        ended.set()
        for number, future in enumerate(others, 1):
            if number == 3:
                with pytest.raises(RuntimeError, match="no start"):
                    future.result()
            else:
                assert future.result() == expected
    assert blas_threads() == {2}


def test_a_child_forked_while_another_thread_sets_the_limit_does_not_hang(two_blas_threads, forked):
    def limited():
        with config.one_blas_thread():
            inside = blas_threads()
        return [*inside, *blas_threads()]

    with config._blas_limit._lock:
        assert forked(limited) == [1, 2]


@pytest.mark.promise(like="test_the_last_thread_to_leave_restores_the_limit_of_blas")
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("theirs", [False, True])
def test_a_forked_child_restores_the_limit_of_other_threads(two_blas_threads, forked, own, theirs):
    """Threads that the child lacks cannot restore it; its own limit it still leaves itself."""
    other = ThreadPoolExecutor(1)
    ours, held = config.one_blas_thread(), config.one_blas_thread()
    if theirs:
        other.submit(held.__enter__).result()

    def leave_and_enter():
        before = blas_threads()
        if own:
            ours.__exit__(None, None, None)
        after = blas_threads()
        with config.one_blas_thread():
            return [*before, *after, *blas_threads()]

    if own:
        ours.__enter__()
    assert forked(leave_and_enter) == [1 if own else 2, 2, 1]
    if own:
        ours.__exit__(None, None, None)
    assert blas_threads() == {1 if theirs else 2}
    if theirs:
        other.submit(held.__exit__, None, None, None).result()
    other.shutdown()
    assert blas_threads() == {2}
