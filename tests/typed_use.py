"""What a type checker knows of the public names; checked by mypy, and run by no test."""

from collections.abc import Callable, Iterator
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import rffpk

X = np.zeros((4, 2))

assert_type(rffpk.PowerKMeans(2).fit(X), rffpk.PowerKMeans)
assert_type(rffpk.DiffusionPowerKMeans(2).fit(X).labels_, NDArray[np.int32])
assert_type(rffpk.KernelPowerKMeans(2).fit(X).labels_, NDArray[np.int32])
assert_type(rffpk.SMKC(2).fit([X, X]), rffpk.SMKC)
assert_type(rffpk.SMKC(2).fit([X, X]).labels_, NDArray[np.int32])
assert_type(rffpk.MKKM(2).fit([X, X], sample_weight=[1, 2, 0, 1]), rffpk.MKKM)
assert_type(rffpk.FuzzyCMeans(2).fit(X).inertia_, float)
assert_type(rffpk.RFFKernelPowerKMeans(2).fit(X).cache_, bool)
assert_type(rffpk.RFFMultiKernelPowerKMeans(2).fit(X).cache_, bool)
assert_type(rffpk.FuzzyCMeans(2).fit(X).predict_proba(X), NDArray[Any])
assert_type(rffpk.cmeans(X, 2).u, NDArray[np.float64])
assert_type(rffpk.select_n_clusters(X).n_clusters, int)

# what a file holds, and attributes that do not exist
assert_type(rffpk.load("model").labels_, NDArray[np.int32])
assert_type(rffpk.load("model", rffpk.DiffusionMap), rffpk.DiffusionMap)
assert_type(rffpk.load("model", rffpk.PowerKMeans).cluster_centers_, NDArray[Any])
print(rffpk.load("model").lables_)  # type: ignore[attr-defined]
print(rffpk.PowerKMeans(2).fit(X).lables_)  # type: ignore[attr-defined]
print(rffpk.MKKM(2).fit([X, X]).weights_)  # type: ignore[attr-defined]
print(rffpk.RandomFourierFeatures().fit(X).gama_)  # type: ignore[attr-defined]

# modules that are imported when they are used, and names that do not exist
assert_type(rffpk.sources.from_array(X), Callable[[], Iterator[Any]])
print(rffpk.PowerMeans)  # type: ignore[attr-defined]

# what else these parameters take
rffpk.PowerKMeans(2, init=X[:2])
rffpk.FuzzyCMeans(2, init=[[0.0, 1.0], [1.0, 0.0]], sample="auto")
rffpk.PowerKMeans(2, init=lambda rows, k, random_state: rows[:k])
rffpk.KernelPowerKMeans(2, kernel=lambda x, y: float(x @ y), init=X[:2].T)
rffpk.MKKM(2, kernels=["rbf", ("rbf", 0.5)])
rffpk.RFFMultiKernelPowerKMeans(2, kernels=[("linear", 0.5), rffpk.DiffusionMap()])
rffpk.SMKC(2, anchors=[0, 1])

# what comes from scikit-learn's classes
assert_type(rffpk.PowerKMeans(2).fit_transform(X), NDArray[Any])
assert_type(rffpk.PowerKMeans(2).fit_predict(X), NDArray[np.int32])
assert_type(rffpk.PowerKMeans(2).get_params(), dict[str, Any])
assert_type(
    rffpk.FuzzyCMeans(2).set_params(m=1.5).set_output(transform="pandas"), rffpk.FuzzyCMeans
)
assert_type(rffpk.DiffusionMap().fit(X).get_feature_names_out(), NDArray[np.object_])

# arguments that no class accepts
rffpk.FuzzyCMeans("abc")  # type: ignore[arg-type]
rffpk.FuzzyCMeans(3, nonsense=1)  # type: ignore[call-arg]
rffpk.FuzzyCMeans(3, 4)  # type: ignore[call-arg]
rffpk.PowerKMeans("many")  # type: ignore[arg-type]
rffpk.SMKC("many")  # type: ignore[arg-type]
rffpk.Annealing(nonsense=1)  # type: ignore[call-arg]
rffpk.DiffusionMap(nonsense=1)  # type: ignore[call-arg]
rffpk.Typicality(nonsense=1)  # type: ignore[call-arg]

# words that no class accepts; mypy reports an "ignore" that is not needed
rffpk.PowerKMeans(2, annealing=rffpk.Annealing(until="never"))  # type: ignore[arg-type]
rffpk.PowerKMeans(2, init="spectral")  # type: ignore[arg-type]
rffpk.RFFKernelPowerKMeans(2, kernel="poly")  # type: ignore[arg-type]
rffpk.KernelPowerKMeans(2, gamma="wide")  # type: ignore[arg-type]
rffpk.NystroemKernelKMeans(2, kernel="precomputed")  # type: ignore[arg-type]
rffpk.DiffusionPowerKMeans(2, metric="cosinus")  # type: ignore[arg-type]
rffpk.RFFMultiKernelPowerKMeans(2, kernels="poly")  # type: ignore[arg-type]
rffpk.SMKC(2, anchors="random")  # type: ignore[arg-type]
