"""Fingerprints of fits on a fixed list of problems: does a change of the code change a result?

    python -m bench.quality.answers > before.txt      # on one commit
    python -m bench.quality.answers | diff before.txt -   # on another, same machine and libraries

A line for each fit: its name, and fingerprints of the labels, of all other fitted numbers, and
of the objectives of all passes. The problems are fixed; add to them, but do not change them.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.preprocessing import scale

import rffpk

ip_rff_mkpkm = partial(rffpk.RFFMultiKernelPowerKMeans, kernels=None, typicality="auto")

LEARNED = (
    "cluster_centers_", "dual_coef_", "embedding_", "kernel_weights_", "eta_", "eigenvalues_",
    "singular_values_", "objective_", "inertia_", "s_", "n_iter_",
)  # fmt: skip


def fingerprint(values: Any) -> str:
    """A short digest of the bits of numbers."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:10]


def data() -> dict[str, Any]:
    """Named arrays and lists of views."""
    digits, iris, wine = (load()["data"] for load in (load_digits, load_iris, load_wine))
    many, _ = make_blobs(30_000, 20, centers=12, cluster_std=3.0, random_state=0)
    few, _ = make_blobs(400, 8, centers=6, random_state=1)
    blobs, _ = make_blobs(2_000, 5, centers=15, cluster_std=0.5, random_state=3)
    return {
        "digits": digits,
        "digits32": digits.astype(np.float32),
        "iris": iris,
        "wine": scale(wine),
        "many": many,
        "many32": many.astype(np.float32),
        "few": few,
        "blobs": blobs,
        "duplicates": np.repeat(few[:4], 20, axis=0),
        "views": [digits[:, :24], digits[:, 24:40], digits[:, 40:]],
        "views32": [x.astype(np.float32) for x in (digits[:, :32], digits[:, 32:])],
        "small views": [few[:, :3], few[:, 3:]],
    }


def fits() -> Iterator[tuple[str, str, Any, bool]]:
    """(name, data, estimator, whether rows are weighted)."""
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


def _first_rows(features: Any, k: int, random_state: Any) -> Any:
    return features[:k]


def line(task: str, name: str, x: Any, estimator: Any, weighted: bool) -> str:
    """Fit an estimator; the name of the fit and the fingerprints of its results."""
    n = len(x[0]) if isinstance(x, list) else len(x)
    if weighted:
        weight = np.random.default_rng(5).integers(0, 4, n).astype(float)
        estimator.fit(x, sample_weight=weight)
    else:
        estimator.fit(x)
    learned = [getattr(estimator, a) for a in LEARNED if getattr(estimator, a, None) is not None]
    passes = [r["objective"] for r in getattr(estimator, "history_", []) if "objective" in r]
    numbers = fingerprint(np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in learned]))
    title = f"{type(estimator).__name__}, {task}, {name}"
    return (
        f"{title:<60} labels {fingerprint(estimator.labels_)}  numbers {numbers}  "
        f"passes {fingerprint(np.array(passes))}"
    )


def main() -> None:
    arrays = data()
    warnings.simplefilter("ignore")
    for task, name, estimator, weighted in fits():
        print(line(task, name, arrays[name], estimator, weighted), flush=True)


if __name__ == "__main__":
    sys.exit(main())
