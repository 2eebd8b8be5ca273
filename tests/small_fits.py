"""Small fits that visit each part of the core, for tools that make them slow, such as valgrind."""

import warnings

import numpy as np
from scipy import sparse

import rffpk
from rffpk import Annealing, _core

X = np.random.default_rng(0).standard_normal((40, 3))
SPARSE = sparse.csr_array(np.where(X > 0, X, 0))
LACKING = [np.where(np.arange(40)[:, None] % 3 == 0, np.nan, X), X[:, :2].copy()]

SHORT = {"max_iter": 3, "n_init": 1, "random_state": 0, "n_jobs": 2}
FEW = {"n_frequencies": 8, "annealing": Annealing(swaps=0), **SHORT}
FITS = [
    (rffpk.RFFKernelPowerKMeans(2, **{**FEW, "annealing": Annealing(swaps=1)}), X),
    (rffpk.RFFKernelPowerKMeans(2, **FEW), SPARSE),
    (rffpk.PowerKMeans(2, annealing=Annealing(swaps=0), **SHORT), SPARSE),
    (rffpk.RFFMultiKernelPowerKMeans(2, kernels=None, typicality="auto", **FEW), X),
    (rffpk.RFFMultiKernelPowerKMeans(2, allow_missing_views=True, **FEW), LACKING),
    (rffpk.DiffusionPowerKMeans(2, annealing=Annealing(swaps=0), **SHORT), X),
    (rffpk.KernelPowerKMeans(2, **SHORT), X),
]


def in_dtype(rows, dtype):
    return [x.astype(dtype) for x in rows] if isinstance(rows, list) else rows.astype(dtype)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _core.use_thread_work(0)
    for model, rows in FITS:
        for dtype in (np.float32, np.float64):
            of_dtype = in_dtype(rows, dtype)
            model.fit(of_dtype).predict(of_dtype)
            print(type(model).__name__, np.dtype(dtype), model.inertia_, flush=True)
