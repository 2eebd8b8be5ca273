"""Small fits that visit each part of the core, for tools that make them slow, such as valgrind."""

import warnings

import numpy as np

import rffpk
from rffpk import _core

FITS = [
    rffpk.RFFKernelPowerKMeans(2, n_frequencies=8, max_iter=4, n_init=1, swaps=1),
    rffpk.RFFMultiKernelPowerKMeans(2, n_frequencies=8, max_iter=3, n_init=1, swaps=0),
    rffpk.DiffusionPowerKMeans(2, max_iter=3, n_init=1, swaps=0),
    rffpk.KernelPowerKMeans(2, max_iter=3, n_init=1),
]

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _core.use_thread_work(0)
    X = np.random.default_rng(0).standard_normal((40, 3))
    for model in FITS:
        for dtype in (np.float32, np.float64):
            model.set_params(random_state=0, n_jobs=2).fit(X.astype(dtype)).predict(X[:5])
            print(type(model).__name__, np.dtype(dtype), model.inertia_, flush=True)
