"""Print fingerprints of fits on a fixed list of problems: does a change change a result?

    python -m bench.quality.answers > before.txt      # on one commit
    python -m bench.quality.answers | diff before.txt -   # on another, same machine and libraries
    python -m bench.quality.answers Diffusion sparse      # only fits whose titles have such a word

Prints a line for each result of a fit: the title of the fit, the name of the result, a digest of
its bits, and its size in six digits. So a diff tells other labels from other last digits. Results
are what the fit learned, and what the model says of new rows, before and after it was saved and
loaded, and after `partial_fit`. The problems are fixed; add to them, but do not change them.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

import rffpk
from rffpk.sources import from_array

LEARNED = (
    "cluster_centers_", "dual_coef_", "embedding_", "kernel_weights_", "eta_", "eigenvalues_",
    "singular_values_", "objective_", "inertia_", "s_", "n_iter_", "linkage_", "m_", "lambda_",
    "row_weights_", "anchors_", "time_", "bandwidth_", "frequencies_", "gamma_", "kernel_error_",
)  # fmt: skip

NEW_ROWS = 200  # at least so many where there are


# ---- data ----------------------------------------------------------------------------------------


def data() -> dict[str, Any]:
    """Return named arrays, lists of views, kernel matrices and sources."""
    digits, iris, wine = (load()["data"] for load in (load_digits, load_iris, load_wine))
    many, _ = make_blobs(30_000, 20, centers=12, cluster_std=3.0, random_state=0)
    small, _ = make_blobs(400, 8, centers=6, random_state=1)
    blobs, _ = make_blobs(2_000, 5, centers=15, cluster_std=0.5, random_state=3)
    return {
        "digits": digits,
        "digits32": digits.astype(np.float32),
        "iris": iris,
        "wine": scale(wine),
        "many": many,
        "many32": many.astype(np.float32),
        "few": small,
        "blobs": blobs,
        "duplicates": np.repeat(small[:4], 20, axis=0),
        "views": [digits[:, :24], digits[:, 24:40], digits[:, 40:]],
        "views32": [x.astype(np.float32) for x in (digits[:, :32], digits[:, 32:])],
        "small views": [small[:, :3], small[:, 3:]],
        **forms(digits, small, blobs),
        **maps(),
    }


def forms(digits: Any, small: Any, blobs: Any) -> dict[str, Any]:
    """Return rows in other forms than arrays of float32 and float64."""
    random = np.random.default_rng(7)
    topics = random.dirichlet(np.full(3000, 0.02), 8)
    counts = np.array([random.multinomial(60, topics[i % 8]) for i in range(1500)])
    lacking = [small[:, :3].copy(), small[:, 3:].copy()]
    lacking[0][::5] = np.nan
    lacking[1][2::10] = np.nan
    affinities = rbf_kernel(small, gamma=0.05)
    return {
        "sparse": sparse.csr_array(digits),
        "counts": sparse.csr_array(counts.astype(np.float32)),
        "float16": digits.astype(np.float16),
        "int8": digits.astype(np.int8),
        "uint8": digits.astype(np.uint8),
        "int64": digits.astype(np.int64),
        "columns first": np.asfortranarray(digits),
        "lists": small.tolist(),
        "source": from_array(blobs, block_rows=500),
        "source32": from_array(digits.astype(np.float32), block_rows=450),
        "missing views": lacking,
        "sparse views": [sparse.csr_array(digits[:, :32]), digits[:, 32:]],
        "affinities": affinities,
        "sparse affinities": sparse.csr_array(np.where(affinities > 0.1, affinities, 0.0)),
        "kernels": [affinities, rbf_kernel(small[:, :4], gamma=0.02), small @ small.T],
    }


def maps() -> dict[str, Any]:
    """Return rows in the plane or of many towns, with noise, piles or heavy tails."""
    random = np.random.default_rng(11)
    towns, _ = make_blobs(30_000, 6, centers=150, cluster_std=0.6, random_state=4)
    points, _ = make_blobs(5_500, 2, centers=15, cluster_std=0.25, random_state=5)
    noisy = np.concatenate([points, random.uniform(-12, 12, (500, 2))])
    pile = np.repeat([[1.0, 2.0, 3.0]], 249, axis=0)
    pile[100] = [5.0, 2.0, 3.0]
    return {
        "towns": towns,
        "towns32": towns.astype(np.float32),
        "source of towns": from_array(towns, block_rows=8000),
        "map": random.permutation(noisy),
        "source of map": from_array(noisy, block_rows=1500),
        "moons": make_moons(1_500, noise=0.06, random_state=0)[0],
        "far": make_blobs(1_000, 3, centers=5, random_state=6)[0] + 1e5,
        "pile": pile,
        "uniform": random.uniform(size=(3_000, 3)),
        "heavy": random.zipf(1.6, (6_000, 2)).clip(max=10**6).astype(float),
    }


# ---- fits ----------------------------------------------------------------------------------------


def _first_rows(features: Any, k: int, random_state: Any) -> Any:
    return features[:k]


Diffusion, Power, Rff = rffpk.DiffusionPowerKMeans, rffpk.PowerKMeans, rffpk.RFFKernelPowerKMeans
Views, Fuzzy = rffpk.RFFMultiKernelPowerKMeans, rffpk.FuzzyCMeans
MANY = ["digits", "digits32", "many32"]
ARRAYS = ["digits", "digits32", "wine", "many", "many32", "blobs", "duplicates"]
OF_VIEWS = ["views", "views32", "small views", "wine"]
SMALL = ["iris", "wine", "few", "duplicates"]
BOTH = ["views", "small views"]
PAPER = {"n_clusters": 6, "kernels": None}  # of the class for several views

# (name, names of data, class, parameters, whether rows are weighted)
TABLE: list[tuple[str, list[str], Any, dict[str, Any], bool]] = [
    # the schedules, one view, several views, exact kernels and fusions
    ("default", ARRAYS, Power, {"n_clusters": 6}, False),
    ("default", ARRAYS, Rff, {"n_clusters": 6}, False),
    ("weighted", MANY, Rff, {"n_clusters": 10, "random_state": 1}, True),
    ("soft end", MANY, Power,
     {"n_clusters": 10, "annealing": rffpk.Annealing(end=-4.0), "random_state": 2}, False),
    ("papers", MANY, Rff, {"n_clusters": 10, "annealing": "paper", "random_state": 3}, False),
    ("fuzzy", MANY, Fuzzy, {"n_clusters": 10, "m": 1.3}, True),
    ("many clusters", ["digits"], Power, {"n_clusters": 60}, False),
    ("fused", ["digits"], Rff, {"n_clusters": 10, "cache": False}, False),
    ("laplacian", ["wine"], Rff, {"n_clusters": 3, "kernel": "laplacian", "n_init": 5}, False),
    ("callable", ["few"], Power, {"n_clusters": 6, "init": _first_rows}, False),
    ("sample", ["many"], Power,
     {"n_clusters": 12, "sample": 1000, "annealing": rffpk.Annealing(swaps=3)}, True),
    ("views", OF_VIEWS, Views, PAPER | {"typicality": "auto"}, False),
    ("plain views", OF_VIEWS, Views, PAPER | {"typicality": None, "weight_entropy": 0.1}, True),
    ("noise", OF_VIEWS, Views,
     PAPER | {"typicality": rffpk.Typicality(eta="mean", m=1.5), "noise": 0.1}, False),
    ("default views", OF_VIEWS, Views, {"n_clusters": 6}, False),
    ("sample", ["views"], Views,
     PAPER | {"typicality": "auto", "sample": 300, "weight_entropy": 0.05}, True),
    ("default", SMALL, rffpk.KernelKMeans, {"n_clusters": 4}, False),
    ("default", SMALL, rffpk.KernelPowerKMeans, {"n_clusters": 4}, False),
    ("weighted", SMALL, rffpk.KernelPowerKMeans, {"n_clusters": 4, "cache": False}, True),
    ("spectral", SMALL, rffpk.KernelKMeans, {"n_clusters": 4, "init": "spectral"}, False),
    ("papers", SMALL, rffpk.KernelPowerKMeans,
     {"n_clusters": 4, "annealing": "paper", "n_init": 3}, False),
    ("du2015", SMALL, rffpk.MultiKernelPowerKMeans,
     {"n_clusters": 4, "kernels": "du2015"}, False),
    ("views", ["small views"], rffpk.MultiKernelPowerKMeans, {"n_clusters": 6}, True),
    # more rows than the critical exponent is computed from
    ("large", ["digits32"], rffpk.KernelPowerKMeans, {"n_clusters": 10, "n_init": 4}, False),
    ("large", ["views"], rffpk.MultiKernelPowerKMeans, {"n_clusters": 10, "n_init": 3}, False),
    ("default", BOTH, rffpk.AverageMKKM, {"n_clusters": 6}, False),
    ("default", BOTH, rffpk.MKKM, {"n_clusters": 6}, False),
    ("landmarks", BOTH, rffpk.SimpleMKKM, {"n_clusters": 6, "n_landmarks": 200}, False),
    ("default", BOTH, rffpk.SMKC, {"n_clusters": 6, "anchors": 100}, False),
    ("rff", BOTH, rffpk.FAMKKM, {"n_clusters": 6, "approximation": "rff"}, False),
    ("matrices", BOTH, rffpk.FAMKKM, {"n_clusters": 6}, False),
    ("weighted", BOTH, rffpk.MKKM, {"n_clusters": 6}, True),
    ("weighted", BOTH, rffpk.SMKC, {"n_clusters": 6, "anchors": 100}, True),
    ("weighted", BOTH, rffpk.FAMKKM, {"n_clusters": 6}, True),
    ("default", ["digits"], rffpk.NystroemKernelKMeans,
     {"n_clusters": 10, "n_anchors": 100}, False),
    # clusters of any shape
    ("default", ["moons", "digits32", "wine", "many32", "uniform"], Diffusion, {}, False),
    ("default", ["sparse", "int8", "lists", "pile"], Diffusion, {"n_clusters": 2}, False),
    ("weighted", ["moons", "digits32"], Diffusion, {"n_clusters": 4}, True),
    ("auto", ["moons", "map", "source"], Diffusion, {"n_clusters": "auto"}, False),
    ("noise", ["map", "source of map"], Diffusion, {"n_clusters": 15, "noise": "auto"}, False),
    ("share", ["map"], Diffusion, {"n_clusters": 15, "noise": 0.08}, True),
    ("source", ["source", "source32"], Diffusion, {"n_clusters": 10}, False),
    ("given", ["affinities", "sparse affinities"], Diffusion,
     {"n_clusters": 6, "metric": "precomputed"}, True),
    ("cosine", ["counts", "digits32"], Diffusion, {"metric": "cosine"}, False),
    ("whitened", ["wine"], Diffusion, {"n_clusters": 3, "whitening": 0.5}, False),
    ("many clusters", ["towns32"], Diffusion, {"n_clusters": 150}, False),
    # centroids in the columns
    ("noise", ["map", "source of map"], Power, {"n_clusters": 15, "noise": "auto"}, False),
    ("share", ["map", "digits"], Power, {"n_clusters": 15, "noise": 0.08}, True),
    ("noise", ["map"], Rff, {"n_clusters": 15, "noise": "auto"}, True),
    ("auto", ["map", "uniform", "source"], Power, {"n_clusters": "auto"}, False),
    ("coarse", ["map"], Power, {"n_clusters": "coarse"}, False),
    ("fine", ["map"], Power, {"n_clusters": "fine"}, False),
    ("many clusters", ["towns", "towns32", "source of towns"], Power, {"n_clusters": 120}, False),
    ("four hundred", ["towns32"], Power, {"n_clusters": 400, "sample": None}, True),
    ("many clusters", ["towns32"], Rff, {"n_clusters": 100}, False),
    ("many clusters", ["towns32"], Fuzzy, {"n_clusters": 100, "m": 1.2, "max_iter": 30}, False),
    ("default", ["sparse", "counts", "float16", "int8", "uint8", "int64", "columns first"], Power,
     {"n_clusters": 10}, False),
    ("default", ["source", "far", "pile", "heavy"], Power,
     {"n_clusters": 5}, False),
    ("default", ["float16", "sparse", "source32", "pile"], Rff, {"n_clusters": 2}, False),
    # components of a sample, growing samples, and all rows
    ("levels", ["digits32", "many32"], Rff, {"n_clusters": 10, "sample": 60}, True),
    ("cauchy", ["wine"], Rff, {"n_clusters": 3, "kernel": "cauchy", "sampling": "iid"}, False),
    ("auto", ["map"], Rff, {"n_clusters": "auto"}, False),
    ("cosine", ["counts", "float16"], Power, {"metric": "cosine"}, True),
    ("whitened", ["wine"], Power, {"n_clusters": 3, "whitening": 0.5}, False),
    ("fuzzy", ["float16", "sparse", "source", "far"], Fuzzy, {"n_clusters": 5, "m": 1.5}, False),
    ("auto", ["digits", "wine"], Fuzzy, {"n_clusters": "auto", "m": "auto"}, False),
    # several views and kernels
    ("missing", ["missing views"], Views, {"n_clusters": 6, "allow_missing_views": True}, True),
    ("sparse", ["sparse views"], Views, {"n_clusters": 10}, False),
    ("kernels", ["small views"], Views, {"n_clusters": 6, "kernels": "linear"}, False),
    ("diffusion", ["small views"], Views, {"n_clusters": 6, "kernels": "diffusion"}, False),
    ("auto", ["small views"], Views, {"n_clusters": "auto"}, False),
    ("auto noise", ["small views"], Views, {"n_clusters": 6, "noise": "auto"}, True),
    ("auto", ["iris"], rffpk.KernelPowerKMeans, {"n_clusters": "auto"}, False),
    ("given", ["affinities"], rffpk.KernelPowerKMeans,
     {"n_clusters": 6, "kernel": "precomputed"}, False),
    ("default", ["sparse", "pile"], rffpk.KernelKMeans, {"n_clusters": 2}, True),
    ("default", ["small views"], rffpk.CoregSC, {"n_clusters": 6}, False),
    ("centroid", ["small views"], rffpk.CoregSC, {"n_clusters": 6, "scheme": "centroid"}, True),
    ("default", ["small views"], rffpk.LKAM, {"n_clusters": 6}, False),
    ("landmarks", ["views32"], rffpk.LKAM, {"n_clusters": 6, "n_landmarks": 150}, True),
    ("landmarks", ["small views"], rffpk.LMKKM, {"n_clusters": 6, "n_landmarks": 80}, False),
    ("default", ["small views"], rffpk.MVCLFA, {"n_clusters": 6}, False),
    ("default", ["small views"], rffpk.ONKC, {"n_clusters": 6}, False),
    ("default", ["small views"], rffpk.MKKMMR, {"n_clusters": 6}, True),
    ("default", ["small views"], rffpk.RMKKM, {"n_clusters": 6}, False),
    ("weighted", ["wine"], rffpk.RMKKM, {"n_clusters": 3, "kernels": "du2015"}, True),
    ("default", ["small views"], rffpk.SimpleMKKM, {"n_clusters": 6}, True),
    ("auto", ["small views"], rffpk.AverageMKKM, {"n_clusters": "auto"}, False),
    *(("given", ["kernels"], fusion, {"n_clusters": 6, "kernels": "precomputed"}, False)
      for fusion in (rffpk.MKKM, rffpk.SimpleMKKM, rffpk.FAMKKM, rffpk.MultiKernelPowerKMeans)),
    ("default", ["sparse", "float16"], rffpk.NystroemKernelKMeans,
     {"n_clusters": 10, "n_anchors": 80}, True),
    # maps
    ("default", ["moons", "wine", "sparse"], rffpk.DiffusionMap, {}, False),
    ("given", ["affinities"], rffpk.DiffusionMap, {"metric": "precomputed"}, False),
    ("default", ["wine", "digits32", "sparse"], rffpk.RandomFourierFeatures, {}, False),
]  # fmt: skip

# Fits from a source that a reading interrupts, and that go on from their checkpoints.
RESUMED: list[tuple[str, Any, dict[str, Any]]] = [
    ("blobs", Power, {"n_clusters": 15, "sample": None}),
    ("digits32", Rff, {"n_clusters": 10, "n_frequencies": 32}),
    ("blobs", Fuzzy, {"n_clusters": 15, "m": 1.2}),
    ("map", Diffusion, {"n_clusters": 15}),
]


# ---- results -------------------------------------------------------------------------------------


def fitted(x: Any, estimator: Any, weighted: bool) -> Any:
    if not weighted:
        return estimator.fit(x)
    n = len(x[0]) if isinstance(x, list) else x.shape[0]
    weight = np.random.default_rng(5).integers(0, 4, n).astype(float)
    return estimator.fit(x, sample_weight=weight)


def resumed(x: Any, estimator: Any, folder: str) -> Any:
    """Fit to a source whose readings are interrupted, and resume from the checkpoint each time."""
    for readings in range(3, 1000, 4):
        left = iter(range(readings))

        def source(left: Iterator[int] = left) -> Iterator[Any]:
            if next(left, None) is None:
                raise InterruptedError
            return from_array(x, block_rows=500)()

        with contextlib.suppress(InterruptedError):
            return estimator.fit(source, checkpoint=f"{folder}/checkpoint", checkpoint_seconds=0)
    raise AssertionError("not reached: no fit reads its rows so often")


def new_rows(x: Any) -> Any:
    """Return rows near some of the rows of a fit, in their form."""
    if isinstance(x, list):
        return [new_rows(view) for view in x] if hasattr(x[0], "shape") else x[::2]
    x = np.concatenate([*x()]) if callable(x) else x
    rows = x[:: max(1, x.shape[0] // NEW_ROWS)]
    return (0.9 * rows).astype(rows.dtype)


def results(model: Any, rows: Any, folder: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the names of results of a fitted model, and functions that return their numbers."""
    for name in ("labels_", *LEARNED):
        if getattr(model, name, None) is not None:
            yield name, partial(getattr, model, name)
    if hasattr(model, "history_"):
        yield "passes", lambda: [r["objective"] for r in model.history_ if "objective" in r]
    for name in ("predict", "transform", "predict_proba", "medoids", "score"):
        if hasattr(model, name):
            yield name, partial(getattr(model, name), rows)
    if getattr(model, "typicality", None) is not None:
        yield "predict_typicality", partial(model.predict_typicality, rows)
    if hasattr(model, "cut"):
        k = (model.n_clusters_ + 1) // 2
        yield "cut", lambda: model.cut(k, rows)
    for name in ("predict", "transform"):
        if hasattr(model, name):
            yield f"loaded {name}", partial(loaded, model, name, rows, folder)
    if hasattr(model, "partial_fit"):
        yield "partial_fit", lambda: model.partial_fit(rows).cluster_centers_
        yield "partial_fit labels", partial(model.predict, rows)


def loaded(model: Any, name: str, rows: Any, folder: str) -> Any:
    """Return what the model says of rows after it was saved and loaded."""
    path = Path(folder, "model")
    model.save(path)
    return getattr(rffpk.load(path), name)(rows)


def fingerprint_of(function: Callable[[], Any]) -> str:
    """Return the fingerprint of what a function returns, or the name of its error."""
    try:
        return fingerprint(function())
    except Exception as error:  # what this class or fit does not have, such as kernels of new rows
        return type(error).__name__


def fingerprint(values: Any) -> str:
    """Return a digest of the bits of numbers, and their size: how many different integers there
    are, or the root of the mean square of real numbers."""
    array = np.ascontiguousarray(values.toarray() if sparse.issparse(values) else values)
    digest = hashlib.sha256(array.tobytes()).hexdigest()[:10]
    if np.issubdtype(array.dtype, np.integer):
        return f"{digest}  {len(np.unique(array))} different"
    finite = array[np.isfinite(array)].astype(float)
    return f"{digest}  {np.sqrt(np.mean(finite**2)) if finite.size else np.nan:.6g}"


def problems(folder: str) -> Iterator[tuple[str, Any, Callable[[], Any]]]:
    """Yield titles, rows, and functions that return the fitted model."""
    arrays = data()
    for task, names, estimator, options, weighted in TABLE:
        for name in names:
            model = estimator(**{"random_state": 0} | options)
            title = f"{type(model).__name__}, {task}, {name}"
            yield title, arrays[name], partial(fitted, arrays[name], model, weighted)
    for name, estimator, options in RESUMED:
        model = estimator(**options, random_state=0)
        title = f"{type(model).__name__}, resumed, {name}"
        yield title, arrays[name], partial(resumed, arrays[name], model, folder)


def main() -> None:
    words = sys.argv[1:] or [""]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for title, x, fit in problems(folder):
            if any(word in title for word in words):
                try:
                    model = fit()
                except Exception as error:
                    print(f"{title}: {'fit':<18} {error!r}")
                else:
                    for name, function in results(model, new_rows(x), folder):
                        print(f"{title}: {name:<18} {fingerprint_of(function)}", flush=True)


if __name__ == "__main__":
    main()
