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

ip_rff_mkpkm = partial(rffpk.RFFMultiKernelPowerKMeans, kernels=None, typicality="auto")

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


def fits() -> Iterator[tuple[str, str, Any, bool]]:
    """Yield tasks, names of data, estimators, and whether rows are weighted."""
    for name in ("digits", "digits32", "wine", "many", "many32", "blobs", "duplicates"):
        yield "default", name, rffpk.PowerKMeans(6, random_state=0), False
        yield "default", name, rffpk.RFFKernelPowerKMeans(6, random_state=0), False
    for name in ("digits", "digits32", "many32"):
        yield "weighted", name, rffpk.RFFKernelPowerKMeans(10, random_state=1), True
        yield (
            "soft end",
            name,
            rffpk.PowerKMeans(10, annealing=rffpk.Annealing(end=-4.0), random_state=2),
            False,
        )
        yield "papers", name, rffpk.RFFKernelPowerKMeans(
            10, annealing="paper", random_state=3), False  # fmt: skip
        yield "fuzzy", name, rffpk.FuzzyCMeans(10, m=1.3, random_state=0), True
    yield "many clusters", "digits", rffpk.PowerKMeans(60, random_state=0), False
    yield "fused", "digits", rffpk.RFFKernelPowerKMeans(10, cache=False, random_state=0), False
    yield "laplacian", "wine", rffpk.RFFKernelPowerKMeans(
        3, kernel="laplacian", n_init=5, random_state=0), False  # fmt: skip
    yield "callable", "few", rffpk.PowerKMeans(6, init=_first_rows, random_state=0), False
    yield (
        "sample",
        "many",
        rffpk.PowerKMeans(12, sample=1000, annealing=rffpk.Annealing(swaps=3), random_state=0),
        True,
    )
    for name in ("views", "views32", "small views", "wine"):
        yield "views", name, ip_rff_mkpkm(6, random_state=0), False
        yield "plain views", name, ip_rff_mkpkm(
            6, typicality=None, weight_entropy=0.1, random_state=0), True  # fmt: skip
        yield (
            "noise",
            name,
            ip_rff_mkpkm(
                6, typicality=rffpk.Typicality(eta="mean", m=1.5), noise=0.1, random_state=0
            ),
            False,
        )
        yield "default views", name, rffpk.RFFMultiKernelPowerKMeans(6, random_state=0), False
    yield "sample", "views", ip_rff_mkpkm(
        6, sample=300, weight_entropy=0.05, random_state=0), True  # fmt: skip
    for name in ("iris", "wine", "few", "duplicates"):
        yield "default", name, rffpk.KernelKMeans(4, random_state=0), False
        yield "default", name, rffpk.KernelPowerKMeans(4, random_state=0), False
        yield "weighted", name, rffpk.KernelPowerKMeans(4, cache=False, random_state=0), True
        yield "spectral", name, rffpk.KernelKMeans(4, init="spectral", random_state=0), False
        yield "papers", name, rffpk.KernelPowerKMeans(
            4, annealing="paper", n_init=3, random_state=0), False  # fmt: skip
        yield "du2015", name, rffpk.MultiKernelPowerKMeans(
            4, kernels="du2015", random_state=0), False  # fmt: skip
    yield "views", "small views", rffpk.MultiKernelPowerKMeans(6, random_state=0), True
    # more rows than the critical exponent is computed from
    yield "large", "digits32", rffpk.KernelPowerKMeans(10, n_init=4, random_state=0), False
    yield "large", "views", rffpk.MultiKernelPowerKMeans(10, n_init=3, random_state=0), False
    for name in ("views", "small views"):
        yield "default", name, rffpk.AverageMKKM(6, random_state=0), False
        yield "default", name, rffpk.MKKM(6, random_state=0), False
        yield "landmarks", name, rffpk.SimpleMKKM(6, n_landmarks=200, random_state=0), False
        yield "default", name, rffpk.SMKC(6, anchors=100, random_state=0), False
        yield "rff", name, rffpk.FAMKKM(6, approximation="rff", random_state=0), False
        yield "matrices", name, rffpk.FAMKKM(6, random_state=0), False
        yield "weighted", name, rffpk.MKKM(6, random_state=0), True
        yield "weighted", name, rffpk.SMKC(6, anchors=100, random_state=0), True
        yield "weighted", name, rffpk.FAMKKM(6, random_state=0), True
    yield "default", "digits", rffpk.NystroemKernelKMeans(10, n_anchors=100, random_state=0), False


Diffusion, Power, Rff = rffpk.DiffusionPowerKMeans, rffpk.PowerKMeans, rffpk.RFFKernelPowerKMeans
Views, Fuzzy = rffpk.RFFMultiKernelPowerKMeans, rffpk.FuzzyCMeans

# (name, names of data, class, parameters, whether rows are weighted)
TABLE: list[tuple[str, list[str], Any, dict[str, Any], bool]] = [
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


def _first_rows(features: Any, k: int, random_state: Any) -> Any:
    return features[:k]


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


def lines(title: str, model: Any, rows: Any, folder: str) -> Iterator[str]:
    for name, function in results(model, rows, folder):
        yield f"{title}: {name:<18} {fingerprint_of(function)}"


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
    table = (
        (task, name, estimator(**options, random_state=0), weighted)
        for task, names, estimator, options, weighted in TABLE
        for name in names
    )
    for task, name, model, weighted in (*fits(), *table):
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
                    print(*lines(title, model, new_rows(x), folder), sep="\n", flush=True)


if __name__ == "__main__":
    main()
