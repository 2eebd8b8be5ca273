"""Values that fits refuse: the argument, the value, the error, the name in the message, the remedy.

A row of `REFUSALS` is one value of one argument. `classes` refuse it: all classes that have the
parameter, or the classes that are named. `remedy` is a pattern of code in the message, which gives
rows or weights that a fit accepts. Sentences of messages are free.
"""

import inspect
from collections import UserDict
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

import rffpk
from rffpk import Annealing

N, K = 120, 3
ROWS, Y = make_blobs(N, 4, centers=K, cluster_std=0.6, random_state=1)
VIEWS = [ROWS[:, :2], ROWS[:, 2:]]
NAMES = pd.Index([f"patient {i:03d}" for i in range(N)])
ORDER = np.random.default_rng(0).permutation(N)
FRAME = pd.DataFrame(ROWS, NAMES, [*"abcd"])
FRAMES = [pd.DataFrame(x, NAMES).add_prefix("c") for x in VIEWS]
KERNELS = [rbf_kernel(ROWS, gamma=gamma) for gamma in (0.05, 0.1)]

ONE = [
    rffpk.PowerKMeans, rffpk.FuzzyCMeans, rffpk.RFFKernelPowerKMeans, rffpk.DiffusionPowerKMeans,
    rffpk.KernelKMeans, rffpk.KernelPowerKMeans, rffpk.NystroemKernelKMeans,
]  # fmt: skip
FUSED = [
    rffpk.AverageMKKM, rffpk.MKKM, rffpk.MKKMMR, rffpk.LKAM, rffpk.ONKC, rffpk.MVCLFA,
    rffpk.CoregSC, rffpk.SimpleMKKM, rffpk.SMKC, rffpk.FAMKKM,
    *([rffpk.LMKKM] if find_spec("clarabel") else []),
]  # fmt: skip
SEVERAL = [
    rffpk.RFFMultiKernelPowerKMeans, rffpk.MultiKernelPowerKMeans, rffpk.RMKKM, *FUSED,
]  # fmt: skip
MAPS = [rffpk.DiffusionMap, rffpk.RandomFourierFeatures]
ALL = [*ONE, *SEVERAL, *MAPS]
PRECOMPUTED = [cls for cls in SEVERAL if cls is not rffpk.RFFMultiKernelPowerKMeans]
SCALED = [cls for cls in FUSED if cls not in (rffpk.CoregSC, rffpk.SMKC)]
EXACT = [rffpk.KernelKMeans, rffpk.KernelPowerKMeans]
ANNEALED = [cls for cls in ALL if "annealing" in inspect.signature(cls).parameters]


class Refusal(NamedTuple):
    argument: str  # X, sample_weight, or a parameter
    value: Any
    error: type | tuple[type, ...]
    name: str  # as the message begins, or has it
    remedy: str | None = None  # a pattern of code
    classes: list[type] | None = None
    options: dict[str, Any] = {}  # noqa: RUF012 other parameters
    then: dict[str, Any] = {}  # noqa: RUF012 parameters that take what the remedy gives
    first: Any = None  # a view before what the remedy gives
    rows: Any = ROWS  # of a fit whose parameter is refused

    def refused_by(self):
        """Return the classes that refuse the value."""
        if self.classes is not None or self.argument in ("X", "sample_weight"):
            return self.classes or ALL
        return [cls for cls in ALL if self.argument in inspect.signature(cls).parameters]


class Cells:
    """Cells that NumPy may ask for items for hours."""

    def __len__(self):
        return N

    def __getitem__(self, item):
        raise AssertionError("items are not to be asked for")


class AnnData(Cells):
    shape = (N, 4)
    X = ROWS
    obsm = {"spatial": ROWS[:, :1], "X_pca": ROWS}  # noqa: RUF012

    def to_df(self):
        return pd.DataFrame(self.X, NAMES)


class MuData(Cells):
    mod = {"rna": AnnData(), "atac": AnnData()}  # noqa: RUF012
    obs = None


class TensorDataset(Cells):
    class Tensor:
        def numpy(self):
            return ROWS

    tensors = (Tensor(), None)


class Hugging(Cells):
    column_names = ("NAME",)

    def with_format(self, name):
        return self

    def __getitem__(self, item):
        assert item == slice(None)
        return {"NAME": ROWS}


class Framed(Cells):
    """Cells that a method makes a data frame of, as in polars, Spark and Modin."""

    def __init__(self, method):
        setattr(self, method, partial(pd.DataFrame, ROWS))


class Tensor(Cells):
    """A tensor that needs gradients, or is on a device."""

    shape, ndim = (N, 4), 2

    def __array__(self, *args, **options):
        raise RuntimeError("Can't call numpy() on Tensor. Use tensor.detach().numpy() instead.")


PASS, ANY = r"Pass (.*)\.$", (ValueError, TypeError)
VECTORS = pd.DataFrame({"v": [*ROWS], "w": 1.0})
SERIES = {j: pd.Series(ROWS[:, j], NAMES)[:: 1 - 2 * (j % 2)] for j in range(4)}
OBJECTS = [
    Refusal("X", AnnData(), TypeError, "X", r"Pass (X.X),"),
    Refusal("X", AnnData(), TypeError, "X", r"(X.obsm\['X_pca'\]), or"),
    Refusal("X", AnnData(), TypeError, "X", r"or (X.to_df\(\)),"),
    *(Refusal("X", X, TypeError, "X", PASS) for X in (
        TensorDataset(), *map(Framed, ("collect", "toPandas", "to_pandas")),
        dict(enumerate(ROWS.T)), UserDict(enumerate(ROWS.T)), SERIES,
    )),
    Refusal("X", Hugging(), TypeError, "X", r"Pass a column, (.*)\.$"),
    Refusal("X", pd.DataFrame(ROWS).to_dict("records"), TypeError, "X",
            r"by (pandas\.DataFrame),"),
    Refusal("X", (AnnData(), AnnData()), TypeError, r"X\[0\]"),
    Refusal("X", [ROWS, Cells()], TypeError, r"X\[1\]"),
    *(Refusal("X", X, TypeError, "X") for X in (
        Cells(), {1, 2}, Tensor(), {"a": Hugging()}, {"a": [[1, 2], [3]]},
    )),
    Refusal("X", "rows.npy", ValueError, "X"),
    Refusal("X", MuData(), TypeError, "X", r"such as (.*)\.$", SEVERAL),
    Refusal("X", dict(enumerate(VIEWS)), TypeError, "X", r"Pass (.*) as views", SEVERAL),
    Refusal("X", dict(enumerate(VIEWS)), TypeError, "X", r"or (.*) as one table",
            [rffpk.KernelKMeans]),
    Refusal("X", [[[1, 2], [3]]] * 2, ValueError, r"X\["),
    Refusal("sample_weight", Cells(), TypeError, "sample_weight"),
    Refusal("sample_weight", dict(zip(NAMES, 1.0 + np.arange(N) % 2)), TypeError,
            "sample_weight", r"by (pandas\.Series)\.$", ONE),
]  # fmt: skip


SHUFFLED = FRAMES[1].iloc[ORDER]
PAIRS = pd.DataFrame(KERNELS[0], NAMES, NAMES).iloc[ORDER]
WEIGHT = pd.Series(1.0 + np.arange(N) % 2, NAMES)
TWICE = np.repeat(np.arange(N // 2), 2)
GAPS = pd.Index([pd.NA, *range(1, N)], dtype="Int64")
ORDERS = [
    Refusal("X", [FRAMES[0], SHUFFLED], ValueError, r"X\[1\]: row 0", r"Pass (.*)\.$", SEVERAL,
            first=FRAMES[0]),
    Refusal("X", [FRAMES[0], SHUFFLED], ValueError, r"X\[1\]: row 0", None, [*ONE[:4], *MAPS]),
    Refusal("X", [FRAMES[0], FRAMES[1].reset_index(drop=True)], ValueError, r"X\[1\]",
            r"Pass (.*) if the", SEVERAL, first=FRAMES[0]),
    Refusal("X", [FRAMES[0].iloc[:-1], FRAMES[1].iloc[1:]], ValueError, "X", None, SEVERAL),
    Refusal("X", [x.set_axis(i) for x, i in zip(FRAMES, (TWICE, TWICE[::-1]))], ValueError,
            r"X\[1\]", r"Pass (X\[1\].to_numpy\(\)) if the order [^,]*$", [rffpk.MKKM],
            first=VIEWS[0]),
    Refusal("X", [FRAMES[0].set_axis(GAPS), FRAMES[1].set_axis(GAPS[::-1])], ValueError,
            r"X\[1\]: row 0", None, [rffpk.MKKM]),
    *(Refusal("X", PAIRS, ValueError, "X", PASS, [cls], {name: "precomputed"}) for cls, name in (
        (rffpk.DiffusionPowerKMeans, "metric"), (rffpk.KernelPowerKMeans, "kernel"))),
    Refusal("sample_weight", WEIGHT.iloc[ORDER], ValueError, "sample_weight: row 0", PASS),
]  # fmt: skip


FIRST = r"Pass (list\(X\)) if the first axis counts views or kernels"
LAST = r"kernels, (.*) if the last axis does"
GIVEN = {"kernels": "precomputed"}
NEAR = kneighbors_graph(ROWS, 12).toarray()
DISTANCES = [np.maximum(pairwise_distances(ROWS, metric=metric), 0)
             for metric in ("euclidean", "sqeuclidean", "cityblock")]  # fmt: skip
OF_D, OF_W = r"(numpy.exp.*?) of distances D", r"(W - .*) of affinities W"
STACKS = [
    Refusal("X", np.stack(KERNELS)[:, :, :50], ValueError, r"X.shape=\(2, 120, 50\)", None,
            PRECOMPUTED, GIVEN),
    *(Refusal("X", X, ValueError, "X.shape", *rest) for X, *rest in (
        (np.stack(KERNELS), FIRST, PRECOMPUTED, {}, GIVEN),
        (np.dstack(KERNELS), LAST, PRECOMPUTED, {}, GIVEN),
        (np.dstack(KERNELS), LAST, PRECOMPUTED, GIVEN),
        (np.stack(KERNELS), r"such as (.*) or .*, with kernel='precomp",
         [rffpk.KernelPowerKMeans], {}, {"kernel": "precomputed"}),
        (np.dstack(KERNELS), r"such as .* or (.*), with kernel='precomp",
         [rffpk.KernelPowerKMeans], {}, {"kernel": "precomputed"}),
        (np.stack(VIEWS), FIRST, SEVERAL), (np.dstack(VIEWS), LAST, SEVERAL),
        (ROWS.reshape(N, 2, 2), r".*or (.*) if the first axis counts samples", SEVERAL),
    )),
    Refusal("X", KERNELS, ValueError, "X", None, SEVERAL),
    *(Refusal("X", X, ANY, "X", r"Pass (.*), which puts", [*ONE[:4], *MAPS]) for X in (
        VIEWS, [ROWS[:, :1], ROWS[:, 1:]], [scipy.sparse.csr_array(x) for x in VIEWS])),
    *(Refusal("X", [kind(x) for x in ROWS.T], ValueError, "X: is a list of one-dim",
              r"Pass (.*) for views", [rffpk.RFFMultiKernelPowerKMeans, rffpk.MKKM])
      for kind in (np.array, pd.Series)),
    Refusal("X", (ROWS, Y / 10), ValueError, r"X\[1\]: has one", r"Pass (.*) alone",
            [rffpk.PowerKMeans, rffpk.KernelPowerKMeans, rffpk.MKKM]),
    Refusal("X", (ROWS, Y / 10), ValueError, r"X\[1\]: has one", r"or (.*) in its place",
            [rffpk.MKKM], first=ROWS),
    Refusal("X", [VIEWS[0].T, VIEWS[1].T[:1]], ANY, "X", None, SEVERAL),
    Refusal("X", [VIEWS[0].T, VIEWS[1].T, VIEWS[1].T[:1]], ANY, r"X\[2\]", None, SEVERAL),
    *(Refusal("X", X, ValueError, "X", OF_D, [rffpk.AverageMKKM], GIVEN) for X in DISTANCES),
    *(Refusal("X", X, ValueError, "X", None, PRECOMPUTED, GIVEN) for X in DISTANCES[:2]),
    Refusal("X", [np.exp(-DISTANCES[0][:, :9]), DISTANCES[0][:, :9]], ValueError, r"X\[1\]", None,
            [rffpk.SMKC], GIVEN),
    Refusal("X", DISTANCES[0], ValueError, "X", None, EXACT, {"kernel": "precomputed"}),
    *(Refusal("X", W, ValueError, "X", OF_W, [rffpk.AverageMKKM], GIVEN)
      for W in (KERNELS[0] - np.eye(N), np.maximum(NEAR, NEAR.T),
                rbf_kernel(ROWS, gamma=0.002) - np.eye(N))),
    Refusal("X", [ROWS, np.ones((N, 2))], ValueError, r"X\[1\]", None, SCALED),
    Refusal("X", [0 * KERNELS[0], KERNELS[0]], ValueError, r"X\[0\]", None, SCALED, GIVEN),
]  # fmt: skip


HOLED = ROWS.copy()
HOLED[[7, 30], [2, 0]] = np.nan
IN_ROW_7 = r"X: .*2 of 120 rows, first in row 7, column "
SECONDS = (ROWS * 1e9).astype("datetime64[s]")
LARGE = [[10**400, 1], [2, 3], [4, 5]] * 9
INFINITE = np.ones((50, 3), np.float16)
INFINITE[7, 1] = np.inf
MASKED = np.ma.masked_array(ROWS, mask=np.arange(N)[:, None] % 9 == np.zeros(4))
WORDS = pd.DataFrame({"size": [1.0, 2.0, 3.0] * 9, "city": [4, "Rome", 5] * 9, "hue": [*"rgb"] * 9})
NUMBERS = [
    Refusal("X", HOLED, ValueError, IN_ROW_7 + "2"),
    Refusal("X", pd.DataFrame(HOLED, columns=[*"abcd"]), ValueError, IN_ROW_7 + "'c'"),
    Refusal("X", np.where(np.isnan(HOLED), -np.inf, HOLED), ValueError, IN_ROW_7 + "2"),
    Refusal("X", scipy.sparse.csr_array(HOLED), ValueError, IN_ROW_7 + "2"),
    Refusal("X", [VIEWS[0], HOLED[:, 2:]], ValueError, r"X\[1\]: .* row 7, column 0", None,
            SEVERAL),
    Refusal("X", np.where(np.isnan(HOLED[:, :1]), np.nan, KERNELS[0]), ValueError, "X", None,
            [rffpk.KernelKMeans], {"kernel": "precomputed"}),
    Refusal("X", np.float32([[np.inf, -np.inf], [0, 1]]), ValueError, r"X: .* 1 of 2 rows"),
    Refusal("X", INFINITE, ValueError, "X: .* 1 of 50 rows, first in row 7, column 1"),
    *(Refusal("X", X, ValueError, "X") for X in (
        np.empty((0, 3)), [], None, [[1.0], [1.0, 2.0]] * 9, np.empty((20, 0)), ROWS[:, 0],
        np.array([["a", "b"]] * 20), ROWS + 1j, LARGE,
    )),
    *(Refusal("X", X, TypeError, "X") for X in (
        SECONDS, (ROWS * 1e9).astype("timedelta64[s]"), SECONDS.tolist(),
        pd.DataFrame({"a": ROWS[:, 0], "b": SECONDS[:, 1]}),
        pd.DataFrame({"a": pd.date_range("2020", periods=N, tz="UTC"), "b": ROWS[:, 0]}), MASKED,
        np.zeros(40, dtype=[("a", float), ("b", float)]), np.full((40, 2), {}, dtype=object),
    )),
    Refusal("X", VECTORS.to_numpy(), ValueError, r"X\[:, 0\]",
            r"(numpy.vstack\(X\[:, 0\]\))"),
    Refusal("X", VECTORS, ValueError, r"X\['v'\]", r"pass (numpy.vstack\(X\['v'\]\))"),
    Refusal("X", VECTORS["v"], ValueError, "X", r"pass (numpy.vstack\(X\))"),
    Refusal("X", pd.DataFrame({"a": ROWS[:, 0], "b": pd.Categorical(np.arange(N) % 3)}),
            TypeError, r"X.*\['b'\]"),
    *(Refusal("X", scipy.sparse.csr_array(ROWS), TypeError, "X.* is sparse, .* dense", None, [cls],
              {"kernel": kernel}) for cls, kernel in (
        (rffpk.KernelKMeans, lambda x, y: float(x @ y)), (rffpk.NystroemKernelKMeans, "chi2"))),
    Refusal("X", [ROWS, MASKED], TypeError, r"X\[1\]", None, SEVERAL),
    Refusal("X", [LARGE, np.ones((27, 1))], ValueError, r"X\[0\]", None, SEVERAL),
    Refusal("X", WORDS, ValueError, "X: .*'Rome' in column 'city'"),
    Refusal("X", WORDS.to_numpy(), ValueError, "X: .*'Rome' in column 1"),
    Refusal("X", [WORDS[["size"]], WORDS], ValueError, r"X\[1\]: .*'Rome'", None, SEVERAL),
    *(Refusal("X", ROWS * scale, ValueError, "X: .*(over|under)flow", None,
              [*ONE, *SEVERAL, rffpk.DiffusionMap]) for scale in (1e160, 1e-170)),
    Refusal("X", ROWS * 1e-159, ValueError, "X", None, [rffpk.RFFKernelPowerKMeans]),
]  # fmt: skip
OF_ALL = (-1.0, 0.0, np.nan, 1e308, 1e-280, 1j)
WEIGHTS = [
    *(Refusal("sample_weight", value, ValueError, "sample_weight") for value in (
        np.ones(N - 1), np.ones((N, 1)), *(np.full(N, number) for number in OF_ALL),
        np.r_[1e-40, np.ones(N - 1)], ["heavy"] * N, 10.0 ** np.linspace(-150, 150, N),
        10.0 ** np.linspace(-50, 0, N), 10**400, [[1, 2], [3]],
    )),
    *(Refusal("sample_weight", x[:, 0], TypeError, "sample_weight") for x in (SECONDS, MASKED)),
    Refusal("sample_weight", np.eye(N)[0], ValueError, "sample_weight", None, [*ONE, *SEVERAL]),
]  # fmt: skip


def parameters(argument, *values, classes=None, name=None, rows=ROWS, **options):
    """Return rows of one parameter."""
    row = Refusal(argument, None, ANY, name or rf"{argument}\b", None, classes, options, rows=rows)
    return [row._replace(value=value) for value in values]


def annealed(field, *values, **others):
    """Return rows of a field of annealing."""
    return parameters(
        "annealing", *(Annealing(**{field: value, **others}) for value in values),
        name=rf"annealing\.{field}\b",
    )  # fmt: skip


RAGGED = [[1.0, 2.0], [3.0]]
STARTED = [rffpk.PowerKMeans, rffpk.FuzzyCMeans, rffpk.RFFKernelPowerKMeans]
RANDOM = [rffpk.RFFKernelPowerKMeans, rffpk.RandomFourierFeatures]
PARAMETERS = [
    *parameters("n_clusters", N + 1, 0, 2.0, True, np.bool_(True), "many"),
    *parameters("n_init", 0, True, np.bool_(True)),
    *parameters("n_init", "many", classes=[rffpk.FuzzyCMeans]),
    *parameters("max_iter", 0, 2**63, True, np.bool_(True)),
    *parameters("tol", -1e-3, "tight"),
    *parameters("n_jobs", 100_000, 0, True, np.bool_(True)),
    *parameters("verbose", "loud", -1, 1.5),
    *parameters("random_state", "x", 1.5, -1, 2**40),
    *parameters("init", "furthest", np.zeros((2, 3)), RAGGED, [["a"] * 4] * K, classes=STARTED),
    *parameters("init", RAGGED, [["a"] * N] * 2, classes=[rffpk.KernelKMeans]),
    *parameters("init", np.where(np.eye(3, 4), np.nan, 0), SECONDS[:3], classes=STARTED),
    *parameters("init", MASKED, classes=[rffpk.PowerKMeans], n_clusters=N),
    *parameters("init", SECONDS[:, 0], classes=[rffpk.KernelKMeans]),
    *parameters("kernel_weights", SECONDS[:1, 0], classes=[rffpk.AverageMKKM]),
    *annealed("start", -0.19, np.array([-1, -2]), 1, np.nan, "automatic"),
    *annealed("end", -0.1),
    *annealed("end", -3.0, start=-5.0),
    *annealed("factor", 1.0, np.inf),
    *annealed("passes", 0),
    *annealed("until", "never"),
    *annealed("swaps", -1, True),
    *annealed("swaps", 3, end=-5.0),
    *annealed("swaps", 3, until="objective"),
    *parameters("sample", 0, "all", classes=ANNEALED[:1]),
    *parameters("gamma", 0.0, -1, "wide", classes=RANDOM),
    *parameters("gamma", 1e300, 1e35, classes=RANDOM[1:]),
    *parameters("kernel", "linear", "chi2", max, classes=RANDOM),
    *parameters("kernel", "cauchy", classes=[rffpk.KernelPowerKMeans]),
    *parameters("kernel", "precomputed", classes=[rffpk.NystroemKernelKMeans]),
    *parameters("n_frequencies", 0, 10**400, "many", True, classes=RANDOM),
    *parameters("sampling", "sobol", classes=RANDOM),
    *parameters("sampling", "structured", classes=RANDOM, kernel="cauchy"),
    *parameters("sampling", "orthogonal", classes=RANDOM, kernel="laplacian"),
    *parameters("m", 1.0, 6.0001, None, classes=[rffpk.FuzzyCMeans]),
    *parameters("kernels", "diffusion", ["rbf", "cauchy"], [], 3, ["precomputed"], "gaussian",
                [("rbf", 1.0, 2.0)], [("rbf", -1.0)], [("rbf", "wide")], [(3, 1.0)],
                [("rbf", 10**400)], [("polynomial", {"degree": -3})],
                [("polynomial", {"degree": "two"})], [("sigmoid", {"coef0": [1]})],
                [("rbf", {"sigma": 3})], classes=FUSED, name=r"kernel|X\["),
    *parameters("kernels", [("rbf", 1e300)], classes=[rffpk.FAMKKM], name="gamma",
                approximation="rff"),
    *parameters("views", "ab", [], [[0], []], [[0], [4]], [["a"], ["e"]], [[[0], [1, 2]]], [[0.5]],
                [slice(4, None)], [[[0]]], [[True, False]], [[0, 1], slice("a", "b")],
                [[0, 1], slice(0, 2, 0)], [[0, 1], slice(0.5, 2)], name="views"),
    *parameters("views", [[0]], classes=[rffpk.MKKM], rows=KERNELS[0], kernels="precomputed",
                name="^views=.*: kernels='precomputed' has no columns"),
]  # fmt: skip

DIFFUSION = [rffpk.DiffusionMap, rffpk.DiffusionPowerKMeans]
GRAPH = scipy.sparse.csr_array(np.maximum(NEAR, NEAR.T))
FAR = np.maximum(pairwise_distances(ROWS), 0)
GRAPHS = [
    *(Refusal("X", X, ANY, "X", None, DIFFUSION, {"metric": "precomputed"})
      for X in (GRAPH[:, :20], -GRAPH, FAR, scipy.sparse.csr_array(FAR**2), GRAPH * np.nan)),
    *parameters("n_neighbors", 9, classes=DIFFUSION, rows=GRAPH, metric="precomputed"),
    *parameters("n_landmarks", 99, classes=DIFFUSION, rows=GRAPH, metric="precomputed"),
    *parameters("whitening", 0.5, classes=DIFFUSION, rows=GRAPH, metric="precomputed"),
    *parameters("n_components", 0, 79, classes=DIFFUSION, n_landmarks=40),
    *parameters("n_neighbors", 0, classes=DIFFUSION, n_landmarks=40),
    *parameters("n_landmarks", 0, "all", classes=DIFFUSION),
    *parameters("time", 0.0, "long", classes=DIFFUSION, n_landmarks=40),
    *parameters("metric", "manhattan"),
    *parameters("noise", "auto", classes=DIFFUSION[1:], rows=GRAPH, metric="precomputed",
                name="noise='auto': must be None"),
    *parameters("whitening", -0.1, 1.5, "half", True),
    *(Refusal("X", rows, ValueError, f"^X: .*{word}flow", None, [cls], {"whitening": power})
      for cls, rows, word, power in (
        (ONE[0], ROWS * 1e160, "over", 1.0), (ONE[0], ROWS * 1e-170, "under", 1.0),
        *((MAPS[0], scipy.sparse.csr_array([[1e200], [0.0]]), " over", x) for x in (0.0, 1.0)))),
]  # fmt: skip
LACKING = np.where(np.eye(4)[::-1] == 1, np.nan, np.eye(4))
POLYNOMIAL = {"kernel": "polynomial", "gamma": 1.0, "kernel_params": {"degree": 8}}
SKEW = np.eye(4) + 0.5 * np.eye(4, k=1)
OF_KERNELS = [
    *(Refusal("X", X, ValueError, "X", None, EXACT, {"kernel": "precomputed"})
      for X in (LACKING, np.ones((4, 3)), SKEW, -np.eye(4))),
    Refusal("X", [np.eye(4), SKEW], ValueError, r"X\[1\]", None, SEVERAL[1:2], GIVEN),
    *parameters("kernel", "gauss", classes=[*EXACT, rffpk.NystroemKernelKMeans]),
    *parameters("gamma", -1.0, "big", classes=[*EXACT, rffpk.NystroemKernelKMeans]),
    *parameters("kernel_params", {"degree": -1}, {"coef0": "x"}, {"coef0": np.nan}, 3, {"gama": 3}),
    *parameters("init", "magic", np.ones((3, 2)), np.zeros(N, int), np.arange(N) % 2,
                np.arange(N) % 4, np.zeros((3, N)), classes=EXACT),
    *parameters("cache", "no", -1, "1G", 2.5, None),
    *parameters("weight_entropy", 0, 1e-320, "even"),
    *(Refusal("X", [x, x], ValueError, "^X: is a list of views.* takes one array", None, EXACT, own)
      for x, own in ((ROWS, {}), (np.eye(6), {"kernel": "precomputed"}))),
    *(Refusal("X", (ROWS * scale).astype(dtype), ValueError,
              "kernel 0 has values that are NaN or overflow float", None, EXACT[:1], own)
      for scale, dtype, own in (
        (1e7, "f", POLYNOMIAL), (1e200, "d", POLYNOMIAL), (1e170, "d", {"kernel": "linear"}),
        (1, "d", {"kernel": lambda a, b: np.nan}))),
    *parameters("n_anchors", 0), *parameters("n_components", 0, 257, classes=ONE[6:]),
    *parameters("kernel", "sigmoid", classes=ONE[6:], gamma=1.0, kernel_params={"coef0": -1.0}),
    *parameters("gamma", np.nan, "auto", classes=RANDOM),
    *parameters("kernel", "poly", classes=RANDOM),
    *parameters("annealing", "slow", 1.04, {"start": -1.0}, Annealing, np.ones(3)),
    *parameters("noise", 0.0, 1.0, "most"),
]  # fmt: skip
WHOLE = [cls for cls in FUSED if "n_landmarks" in inspect.signature(cls).parameters]
OF_VIEWS = [
    Refusal("X", [np.eye(4), np.array([["a"] * 2] * 4)], ValueError, r"X\[1\]", None, SEVERAL),
    Refusal("X", [np.eye(4), np.ones(4)], ValueError, r"X\[1\]", None, SEVERAL),
    *parameters("kernels", "du", ["rbf", "gauss"], ["rbf"], ["rbf"] * 3, "du2015", rows=VIEWS,
                name=r"kernel|X\[", classes=[rffpk.MultiKernelPowerKMeans, *FUSED]),
    *parameters("kernels", "precomputed", rows=VIEWS, name=r"kernel|X\[|anchors", classes=FUSED),
    *parameters("kernels", 3, [], ["rbf", rbf_kernel], [(rbf_kernel, 1.0)], rbf_kernel, [3, 4],
                "poly", ["rbf", "line"], "precomputed", [("rbf", -1), "rbf"],
                [("linear", 2), "rbf"], ["rbf"] * 3, rows=VIEWS, name="kernel",
                classes=[rffpk.RFFMultiKernelPowerKMeans]),
    *parameters("kernels", *(["rbf", ("linear", x)] for x in (-0.1, 1.5, "half", True)), rows=VIEWS,
                name=r"kernels\[1\]: the power of 'linear'=.*: must be", classes=SEVERAL[:1]),
    *parameters("kernels", *([x, "rbf"] for x in (
        rffpk.DiffusionMap(n_landmarks=None), rffpk.DiffusionMap(n_neighbors=0), ("diffusion", 1.0),
        rffpk.DiffusionMap(metric="precomputed"))), rows=VIEWS, classes=SEVERAL[:1],
        name=r"n_landmarks|n_neighbors=0|kernel='diffusion'|^kernels\[0\]: metric='precomputed'"),
    *parameters("anchors", 2, True, 20.0, ("k-means++", 2), ("k-means++", "many"), ("best", 20), [],
                "best", [0, 1], [0, 1, 120], [0, 1, -1], [0, 1, 1], [0.0, 1.0, 2.0], [[0, 1, 2]],
                rows=VIEWS),
    *parameters("kernels", ["rbf", "precomputed"], "precomputed", rows=[ROWS, VIEWS[0]],
                classes=[rffpk.SMKC], name="precomputed|must have equally many"),
    *(Refusal("weight_norm", value, ValueError, f"weight_norm={value}: must be {bound}")
      for value, bound in ((0.0, ">= 0.05"), (1.0, "<= 0.95"))),
    Refusal("X", [ROWS * 1e100], ValueError, "^X has kernels whose products overflow", None,
            [rffpk.MKKMMR], {"kernels": ["linear"], "standardize": False}),
    *parameters("typicality", "yes", True, *(rffpk.Typicality(**field) for field in (
        {"m": 1.0}, {"m": 6.0001}, {"eta": 0.0}, {"eta": "within"}, {"eta": 1e39}))),
    *parameters("n_landmarks", 40.0, 2, classes=WHOLE),
    *parameters("standardize", 1), *parameters("normalize_rows", "yes"),
    *parameters("lambda1", -1.0), *parameters("lambda2", np.inf, "big"),
    *parameters("approximation", "fourier", False, ("fourier", 8), ("rff", 0), ("rff", "auto"),
                ["nystroem", 2.5]),
    *parameters("kernels", ["rbf", "linear"], "du2015", name=r"kernel|X\[", rows=VIEWS,
                approximation="rff",
                classes=[rffpk.FAMKKM]),
    *parameters("diversity", -0.1, 1e308, "all"), *parameters("agreement", -0.1, 1e308, "all"),
    *parameters("mean_weight", -0.1, 1e308, "all"),
    *parameters("tol", 0.0, "small", classes=[rffpk.SimpleMKKM]),
    *parameters("tol", np.nan, "a", classes=[rffpk.MKKM]),
    *parameters("n_neighbors", 0, 0.0, 1.5, "all", classes=[rffpk.LKAM]),
    *parameters("rho", 0.0, "near"), *parameters("scheme", "both"),
    *parameters("kernel_weights", [1, 2, 3], [1, -1], [0, 0], [1, np.inf], "equal", ["a", "b"],
                rows=VIEWS),
]  # fmt: skip

TABLES = {
    "graphs": GRAPHS,
    "kernels": OF_KERNELS,
    "views": OF_VIEWS,
    "objects": OBJECTS,
    "orders": ORDERS,
    "stacks": STACKS,
    "numbers": NUMBERS,
    "weights": WEIGHTS,
    "parameters": PARAMETERS,
}
REFUSALS = [row for table in TABLES.values() for row in table]
