"""Measure fits of sparse rows beside scikit-learn, and passes over them beside arrays.

The first table has fits of generated rows (10^5 x 10^5 with 100 entries each by default) whose
clusters are topics: each has its own columns, from which most entries come. Every fit runs in a
process of its own, which makes the rows first. Memory is the peak of the process during the fit,
less its memory before the rows, over the bytes of their CSR. The second table has the CPU time of
a pass over sparse rows over that of a pass over the same rows as an array, by the share of entries.
"""

from __future__ import annotations

import argparse
import gc
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score

import rffpk
from bench import commands, tables
from bench.timing import alternate, cpu_timed, forget_peak, in_own_process, peak_memory, timed
from rffpk import Annealing, DiffusionPowerKMeans, PowerKMeans
from rffpk.rows.passes import centered, column_rows, one_pass
from rffpk.rows.table import sparse_rows
from rffpk.rows.weights import ones

METHODS: dict[str, Any] = {
    "PowerKMeans": partial(PowerKMeans),
    "PowerKMeans, one start, no swaps": partial(
        PowerKMeans, annealing=Annealing(swaps=0), n_init=1
    ),
    "FuzzyCMeans(m=1.05)": partial(rffpk.FuzzyCMeans, m=1.05),
    "DiffusionPowerKMeans(metric='cosine')": partial(DiffusionPowerKMeans, metric="cosine"),
    "RFFKernelPowerKMeans(n_frequencies=256)": partial(
        rffpk.RFFKernelPowerKMeans, n_frequencies=256
    ),
    "sklearn KMeans(n_init=1)": partial(KMeans, n_init=1),
    "sklearn MiniBatchKMeans": partial(MiniBatchKMeans, n_init=3),
}
DEFAULT = [name for name in METHODS if not name.startswith("RFF")]

SHARES = (0.005, 0.02, 0.05, 0.1, 0.2)

OWN = 0.5  # share of the entries in the columns of the topic


def topics(n: int, d: int, m: int, k: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Draw rows of length one with m entries each, or fewer where columns coincide; and topics."""
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


def one_fit(name: str, n: int, d: int, m: int, k: int) -> list[str]:
    """Return seconds, objective, agreement with the topics, and peak memory over that of X.

    The last number is the memory beyond X in arrays of the size of the centroids.
    """
    before = peak_memory()
    X, y = topics(n, d, m, k)
    gc.collect()
    forget_peak()
    took, model = timed(lambda: METHODS[name](k, random_state=0).fit(X))
    megabytes = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    peak = peak_memory() - before
    arrays = (peak - megabytes) / (8 * k * X.shape[1] / 2**20)
    labels = model.labels_
    sums = sparse.csr_array((np.ones(len(y)), (labels, np.arange(len(y))))) @ X
    sizes = np.bincount(labels, minlength=sums.shape[0])
    cost = (X.data**2).sum() - (sums.multiply(sums).sum(axis=1) / np.maximum(sizes, 1)).sum()
    agreement = f"{adjusted_rand_score(y, labels):.3f}"
    return [f"{took:.1f}", f"{cost:.1f}", agreement, f"{peak / megabytes:.2f}", f"{arrays:.1f}"]


def generated(args: argparse.Namespace) -> None:
    shape = args.rows, args.columns, args.entries, args.clusters
    print(f"\n{args.rows} x {args.columns} rows, {args.entries} entries, k = {args.clusters}\n")
    memory = "peak / CSR of X", "beyond X, arrays of k x d"
    tables.print_heading("method", "seconds", "objective", "ARI with the topics", *memory)
    for name in args.methods:
        tables.print_row(name, *in_own_process(one_fit, name, *shape))


def densities(n: int, repeats: int) -> None:
    """Print the time of passes of one thread over n x 1000 rows."""
    print()
    tables.print_heading("dtype", "k", *(f"{share:.1%}" for share in SHARES))
    random = np.random.default_rng(0)
    for dtype, k in product((np.float32, np.float64), (10, 50)):
        ratios = []
        for share in SHARES:
            X = random.random((n, 1000), dtype=np.float32)
            X = np.where(random.random(X.shape, dtype=np.float32) < share, X, 0).astype(dtype)
            kinds = [
                centered(column_rows(x, ones(len(X)), 1))
                for x in (sparse_rows(sparse.csr_array(X)), X)
            ]
            theta = X[:k] - kinds[1].shift
            measures = {
                i: partial(cpu_timed, partial(one_pass, rows, theta, -2.5))
                for i, rows in enumerate(kinds)
            }
            times = alternate(measures, repeats, warm_up=True)
            csr, array = (min(seconds for seconds, _ in turns) for turns in times.values())
            ratios.append(csr / array)
        tables.print_row(np.dtype(dtype), k, *tables.cells(ratios, ".2f"))


def main() -> None:
    args = commands.arguments(
        __doc__, rows=100_000, columns=100_000, entries=100, clusters=20,
        methods=commands.Names(METHODS, DEFAULT), repeats=3,
    )  # fmt: skip
    generated(args)
    densities(min(20_000, args.rows), args.repeats)


if __name__ == "__main__":
    main()
