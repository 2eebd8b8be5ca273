"""Sparse rows: seconds and peak memory beside scikit-learn, and texts as CSR and as arrays.

    python -m bench.speed.sparse [--rows N] [--columns N] [--entries N] [--clusters K]
        [--methods NAME ...] [--processes N] [--data DIR] [--repeats N]

The first table has fits of generated rows (10^5 x 10^5 with 100 entries each by default) whose
clusters are topics: each has its own columns, from which most entries come. Every fit runs in a
process of its own, which makes the rows first, or in several, of which the medians are shown;
memory is the peak of the process during the fit, less what it had before the rows, over the bytes
of their CSR. The second table has the CPU time of
a pass over sparse rows over that of a pass over the same rows as an array, by the share of entries;
the third, with --data, the texts of the folder, rows of length one, as CSR and as arrays in turn;
the fourth the same for texts of several views in lists, and for several kernels on one matrix.
"""

from __future__ import annotations

import argparse
import gc
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import rffpk
from bench import commands, tables
from bench.datasets import prepare, prepared_views, single_view
from bench.internals import Rows, centered, column_rows, one_pass, ones, sparse_rows
from bench.timing import alternate, in_own_process, peak_memory, timed
from rffpk import (
    Annealing,
    DiffusionPowerKMeans,
    FuzzyCMeans,
    KernelPowerKMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
)

METHODS: dict[str, Callable[[int], Any]] = {
    "PowerKMeans": lambda k: PowerKMeans(k, random_state=0),
    "PowerKMeans, one start, no swaps": lambda k: PowerKMeans(
        k, annealing=Annealing(swaps=0), n_init=1, random_state=0
    ),
    "FuzzyCMeans(m=1.05)": lambda k: FuzzyCMeans(k, m=1.05, random_state=0),
    "DiffusionPowerKMeans(metric='cosine')": lambda k: DiffusionPowerKMeans(
        k, metric="cosine", random_state=0
    ),
    "RFFKernelPowerKMeans(n_frequencies=256)": lambda k: RFFKernelPowerKMeans(
        k, n_frequencies=256, random_state=0
    ),
    "sklearn KMeans(n_init=1)": lambda k: KMeans(k, n_init=1, random_state=0),
    "sklearn KMeans(n_init=10)": lambda k: KMeans(k, n_init=10, random_state=0),
    "sklearn MiniBatchKMeans": lambda k: MiniBatchKMeans(k, n_init=3, random_state=0),
}
DEFAULT = [name for name in METHODS if not name.startswith("RFF") and "n_init=10" not in name]

# file, key of the view
TEXTS = (("tr11", "X"), ("3sources", "X0"), ("bbcsport", "X0"))
OF_TEXTS = (PowerKMeans, RFFKernelPowerKMeans, KernelPowerKMeans, DiffusionPowerKMeans)
OF_VIEWS = ("3sources", "bbcsport", "tr11")
OF_SEVERAL = (
    rffpk.RFFMultiKernelPowerKMeans, rffpk.MultiKernelPowerKMeans, rffpk.RMKKM, rffpk.AverageMKKM,
    rffpk.MKKM, rffpk.SimpleMKKM, rffpk.MKKMMR, rffpk.LKAM, rffpk.ONKC, rffpk.CoregSC, rffpk.MVCLFA,
    rffpk.FAMKKM, rffpk.SMKC,
)  # fmt: skip

SHARES = (0.005, 0.02, 0.05, 0.1, 0.2)

OWN = 0.5  # share of the entries in the columns of the topic


def topics(n: int, d: int, m: int, k: int) -> tuple[sparse.csr_array, np.ndarray]:
    """n rows of length one with m entries each (fewer where columns coincide) and their topics."""
    random = np.random.default_rng(0)
    y = random.integers(0, k, n).astype(np.int32)
    width = d // k
    columns = random.integers(0, d, (n, m), dtype=np.int32)
    own = random.integers(0, width, (n, m), dtype=np.int32) + width * y[:, None]
    columns = np.where(random.random((n, m), dtype=np.float32) < OWN, own, columns)
    indptr = np.arange(0, n * m + 1, m, dtype=np.int32)
    X = sparse.csr_array((np.full(n * m, 1 / np.sqrt(m)), columns.ravel(), indptr), shape=(n, d))
    X.sum_duplicates()
    return X, y


def one_fit(name: str, shape: tuple[int, ...]) -> tuple[float, ...]:
    """Seconds, k-means objective, agreement with the topics, peak memory over that of X, and what
    of it is beyond X in arrays of the size of the centroids."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    *rows, k = shape
    before = peak_memory()
    X, y = topics(*rows, k)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    took, model = timed(lambda: METHODS[name](k).fit(X))
    megabytes = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    peak = peak_memory() - before
    arrays = (peak - megabytes) / (8 * k * X.shape[1] / 2**20)
    labels = model.labels_
    sums = sparse.csr_array((np.ones(len(y)), (labels, np.arange(len(y))))) @ X
    sizes = np.bincount(labels, minlength=sums.shape[0])
    cost = (X.data**2).sum() - (sums.multiply(sums).sum(axis=1) / np.maximum(sizes, 1)).sum()
    return took, float(cost), adjusted_rand_score(y, labels), peak / megabytes, arrays


def generated(args: argparse.Namespace) -> None:
    shape = args.rows, args.columns, args.entries, args.clusters
    print(f"\n{args.rows} x {args.columns} rows, {args.entries} entries, k = {args.clusters}\n")
    tables.print_heading(
        "method", "seconds", "objective", "ARI with the topics", "peak / CSR of X",
        "beyond X, arrays of k x d",
    )  # fmt: skip
    for name in args.methods:
        found = [in_own_process(one_fit, name, shape) for _ in range(args.processes)]
        took, cost, score, peak, arrays = map(median, zip(*found))
        numbers = f"{took:.1f}", f"{cost:.1f}", f"{score:.3f}", f"{peak:.2f}", f"{arrays:.1f}"
        tables.print_row(name, *numbers)


def pass_seconds(rows: Rows, theta: np.ndarray) -> float:
    started = time.process_time()
    one_pass(rows, theta, -2.5)
    return time.process_time() - started


def densities(repeats: int) -> None:
    """Passes of one thread over 20 000 x 1000 rows."""
    print()
    tables.print_heading("dtype", "k", *(f"{share:.1%}" for share in SHARES))
    random = np.random.default_rng(0)
    for dtype, k in product((np.float32, np.float64), (10, 50)):
        ratios = []
        for share in SHARES:
            X = random.random((20_000, 1000), dtype=np.float32)
            X = np.where(random.random(X.shape, dtype=np.float32) < share, X, 0).astype(dtype)
            given = (sparse_rows(sparse.csr_array(X)), X)
            kinds = {i: centered(column_rows(x, ones(len(x)), 1)) for i, x in enumerate(given)}
            theta = X[:k] - kinds[1].shift
            measures = {i: partial(pass_seconds, rows, theta) for i, rows in kinds.items()}
            times = alternate(measures, repeats, warm_up=True)
            ratios.append(f"{min(times[0]) / min(times[1]):.2f}")
        tables.print_row(np.dtype(dtype), k, *ratios)


COMPARED = (
    "class", "CSR, s", "array, s", "CSR / array", "ARI of the labels",
    "objective of CSR over array",
)  # fmt: skip


def compared(model: Any, X: Any, arrays: Any, repeats: int) -> tuple[str, ...]:
    """Fits of a model to X and to the same rows in arrays, in turn."""
    times, ratios = [], []
    for _ in range(repeats):
        ours, labels = timed(lambda: model.fit(X).labels_)
        cost = model.inertia_
        whole, same = timed(lambda: model.fit(arrays).labels_)
        times.append((ours, whole))
        ratios.append(ours / whole)
    return (
        type(model).__name__,
        *(f"{median(column):.3f}" for column in zip(*times)),
        f"{median(ratios):.2f}",
        f"{adjusted_rand_score(same, labels):.3f}",
        f"{cost / model.inertia_:.9f}",
    )


def texts(data: Path, repeats: int) -> None:
    print()
    tables.print_heading("set", "n", "d", "entries a row", *COMPARED)
    for name, key in TEXTS:
        array, y = single_view(data, name, key)
        array = prepare(name, array)
        X, k = sparse.csr_array(array), len(np.unique(y))
        for estimator in OF_TEXTS:
            cosine = {"metric": "cosine"} if estimator is DiffusionPowerKMeans else {}
            model = estimator(k, random_state=0, **cosine)
            entries = f"{X.nnz / len(y):.0f}"
            tables.print_row(name, *array.shape, entries, *compared(model, X, array, repeats))


def several(data: Path, repeats: int) -> None:
    """Views of texts in lists, and kernels on one matrix."""
    print()
    tables.print_heading("set", "views or kernels", *COMPARED)
    for name in OF_VIEWS:
        arrays, y = prepared_views(data, name)
        X, k = [sparse.csr_array(x) for x in arrays], len(np.unique(y))
        one = len(X) == 1
        kernels = ["rbf", ("rbf", 1.0)] if one else None
        for estimator in OF_SEVERAL:
            model = estimator(k, kernels=kernels, random_state=0)
            given = (X[0], arrays[0]) if one else (X, arrays)
            tables.print_row(name, 2 if one else len(X), *compared(model, *given, repeats))


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=100)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=DEFAULT)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    commands.add_data(parser, required=False)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if args.methods:
        generated(args)
    densities(args.repeats)
    if args.data:
        texts(args.data, args.repeats)
        several(args.data, args.repeats)


if __name__ == "__main__":
    main()
