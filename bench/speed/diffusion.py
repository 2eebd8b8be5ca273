"""Diffusion features and whole fits on them, against the product with the landmarks and peers.

    python -m bench.speed.diffusion [--scale X] [--repeats N] [--threads N] [--apart X]
        [--only-small]

Float32, defaults of `DiffusionPowerKMeans`. `--scale 0.1` takes a tenth of all
rows. The parts, each a table:

- 10^6 x 50 rows about 10 centers: the time of n d m multiply-adds at the rate of a product of
  2000 x 2000 matrices, measured beside; the product with the landmarks in the pass; the features;
  a whole fit; KMeans. Ratios are in units of the first line. On a machine that is busy with other
  work those of the CPU seconds of all threads say more.
- 70 000 x 784 rows, the shape of MNIST: such rows of 50 columns, turned into 784, and noise.
- Two moons of 10^5, 10^6 and 10^7 rows: seconds, ARI, and the peak of the memory above that before
  the fit, in a process of its own.
- SpectralClustering on two moons, rows doubling until it takes more than a minute.
- CPU seconds of fits of small sets, as multiples of those of SpectralClustering: bundled and
  generated ones, medians of ratios within a turn. `--only-small` prints this part alone; CPU
  seconds of one thread need `OMP_NUM_THREADS=1`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits, load_wine, make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

from bench import commands, tables, timing
from bench.internals import Landmarks, _core
from bench.speed.end_to_end import COLUMNS, mixture
from bench.speed.problems import Machine
from rffpk import DiffusionPowerKMeans

CLUSTERS, PIXELS, MINUTE = 10, 784, 60.0


def moons(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two moons with noise .06, and their classes, made in place."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, n, dtype=np.int8)
    X = np.empty((n, 2), dtype=np.float32)
    for begin in range(0, n, 100_000):
        here = slice(begin, begin + 100_000)
        sign = 1 - 2 * y[here]  # the second moon is the first, turned and moved
        angle = np.pi * random.random(len(sign))
        X[here, 0] = sign * np.cos(angle) + y[here]
        X[here, 1] = sign * np.sin(angle) + 0.5 * y[here]
        X[here] += 0.06 * random.standard_normal((len(sign), 2))
    return X, y


def product(model: DiffusionPowerKMeans, X: np.ndarray, threads: int) -> Callable[[], object]:
    """The pass over the landmarks of a fit without all that follows their products."""
    points = model.feature_map_.landmarks_
    empty = np.zeros((len(points), 0), dtype=X.dtype)
    landmarks = Landmarks(points, model.feature_map_.n_neighbors_, 0.0, empty)
    origin = np.zeros((1, 0), dtype=X.dtype)
    stages = _core.STAGES["load"] | _core.STAGES["project"]
    given = [X], [None], [origin[0]], origin, np.ones(1), None, _core.HARD, -1.0, threads
    return partial(_core.fused_pass, *given, landmarks=[landmarks], stages=stages)


def spent(call: Callable[[], object]) -> np.ndarray:
    """Wall-clock and CPU seconds of a call."""
    started = timing.clocks()
    call()
    return timing.clocks() - started


def pinned(
    calls: dict[str, Callable[[], object]], threads: int
) -> dict[str, Callable[[], np.ndarray]]:
    return {
        name: partial(timing.pinned, partial(spent, call), threads) for name, call in calls.items()
    }


def print_seconds(took: dict[str, list[np.ndarray]], unit: str) -> None:
    """Medians, and their ratios to those of the line `unit`."""
    tables.print_heading("", "s", "ratio", "CPU s", "ratio")
    medians = {name: np.median(times, axis=0) for name, times in took.items()}
    for name, found in medians.items():
        ratios = found / medians[unit]
        tables.print_row(
            name, f"{found[0]:.3f}", f"{ratios[0]:.2f}", f"{found[1]:.3f}", f"{ratios[1]:.2f}"
        )


def against_product(n: int, apart: float, repeats: int, threads: int) -> None:
    X = mixture(n, apart)
    columns = DiffusionPowerKMeans(CLUSTERS, whitening=None, n_neighbors=8, random_state=0)
    fitted = columns.fit(X)
    m, d = fitted.feature_map_.landmarks_.shape
    calls = {
        "the product in the pass": product(fitted, X, threads),
        f"features, {fitted.feature_map_.n_components_} of them": partial(
            fitted.feature_map_.transform, X
        ),
        "fit without a choice among graphs": partial(columns.fit, X),
        f"fit, k = {CLUSTERS}": partial(DiffusionPowerKMeans(CLUSTERS, random_state=0).fit, X),
        "KMeans(n_init=1)": partial(KMeans(CLUSTERS, n_init=1, random_state=0).fit, X),
    }
    square = Machine("float32", threads).a
    floor = "the product at the rate of sgemm"
    calls = {floor: partial(np.matmul, square, square, out=np.empty_like(square)), **calls}
    took = timing.alternate(pinned(calls, threads), repeats, warm_up=True)
    took[floor] = [times * (n * d * m / len(square) ** 3) for times in took[floor]]
    ten = partial(KMeans(CLUSTERS, n_init=10, random_state=0).fit, X)
    took["KMeans(n_init=10), once"] = [pinned({"": ten}, threads)[""]()]
    print(f"\n{n} x {d} rows, {m} landmarks, {threads} threads\n")
    print_seconds(took, floor)


def images(n: int, apart: float, repeats: int, threads: int) -> None:
    random = np.random.default_rng(1)
    basis = np.linalg.qr(random.standard_normal((PIXELS, COLUMNS)))[0].astype(np.float32)
    X = 0.1 * random.standard_normal((n, PIXELS), dtype=np.float32)
    X += mixture(n, apart) @ basis.T
    calls = {
        f"fit, k = {CLUSTERS}": partial(DiffusionPowerKMeans(CLUSTERS, random_state=0).fit, X),
        "KMeans(n_init=1)": partial(KMeans(CLUSTERS, n_init=1, random_state=0).fit, X),
    }
    took = timing.alternate(pinned(calls, threads), repeats, warm_up=True)
    print(f"\n{n} x {PIXELS} rows\n")
    print_seconds(took, "KMeans(n_init=1)")


def grown(n: int, threads: int) -> tuple[np.ndarray, float, float]:
    """Wall-clock and CPU seconds, ARI and megabytes of a fit to n rows of two moons."""
    model = DiffusionPowerKMeans(2, random_state=0, n_jobs=threads).fit(moons(5000)[0])
    X, y = moons(n)
    before = timing.peak_memory()
    seconds = spent(partial(model.fit, X))
    megabytes = timing.peak_memory() - before
    return seconds, float(adjusted_rand_score(y, model.labels_)), megabytes


def growth(sizes: list[int], threads: int) -> None:
    print("\nTwo moons\n")
    tables.print_heading("rows", "s", "CPU s", "ARI", "MB above the input")
    for n in sizes:
        seconds, ari, megabytes = timing.in_own_process(grown, n, threads)
        tables.print_row(n, *(f"{s:.2f}" for s in seconds), f"{ari:.4f}", f"{megabytes:.0f}")


def spectral(first: int) -> None:
    print("\nSpectralClustering, nearest neighbors, two moons\n")
    tables.print_heading("rows", "s", "ARI")
    n, seconds = first, 0.0
    while seconds < MINUTE:
        X, y = make_moons(n, noise=0.06, random_state=0)
        model = SpectralClustering(2, affinity="nearest_neighbors", random_state=0)
        seconds, labels = timing.timed(partial(model.fit_predict, X))
        tables.print_row(n, f"{seconds:.2f}", f"{adjusted_rand_score(y, labels):.3f}")
        n *= 2


def faces(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows about k points, in whose columns three directions of light vary most."""
    random = np.random.default_rng(0)
    y = np.arange(n) * k // n
    light = 3 * random.standard_normal((n, 3)) @ random.standard_normal((3, d))
    return random.standard_normal((k, d))[y] + light + 1.2 * random.standard_normal((n, d)), y


def letters(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """k groups in 40 directions of many columns."""
    random = np.random.default_rng(0)
    y, basis = np.arange(n) % k, random.standard_normal((40, d)) / np.sqrt(40)
    inside = random.standard_normal((n, 40)) * np.linspace(1.5, 0.5, 40)
    points = 1.3 * random.standard_normal((k, 40))[y] + inside
    return points @ basis + 0.3 * random.standard_normal((n, d)), y


def small_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    wine = load_wine(return_X_y=True)
    return {
        "digits": load_digits(return_X_y=True),
        "wine": (scale(wine[0]), wine[1]),
        "moons": make_moons(2000, noise=0.06, random_state=0),
        "five blobs": make_blobs(2000, 10, centers=5, cluster_std=2.0, random_state=0)[:2],
        "thirty blobs": make_blobs(3000, 50, centers=30, cluster_std=4.0, random_state=1)[:2],
        "faces": faces(200, 500, 20),
        "letters": letters(1500, 617, 26),
    }


def small(repeats: int) -> None:
    print("\nSmall sets, CPU seconds as multiples of SpectralClustering's\n")
    tables.print_heading("set", "rows x columns", "k", "ms", "fit", 'n_clusters="auto"', "noise")
    found = []
    for name, (X, y) in small_sets().items():
        k, turns = len(np.unique(y)), []
        for seed in range(repeats):
            models = [
                SpectralClustering(k, affinity="nearest_neighbors", random_state=seed),
                DiffusionPowerKMeans(k, random_state=seed, n_jobs=1),
                DiffusionPowerKMeans("auto", random_state=seed, n_jobs=1),
                DiffusionPowerKMeans(k, noise="auto", random_state=seed, n_jobs=1),
            ]
            turns.append([spent(partial(model.fit, X))[1] for model in models])
        peer, *ours = np.array(turns).T
        ratios = [np.median(each / peer) for each in ours]
        found.append(ratios)
        cells = (f"{ratio:.2f}" for ratio in ratios)
        size = f"{X.shape[0]} x {X.shape[1]}"
        tables.print_row(name, size, k, f"{1e3 * np.median(peer):.0f}", *cells)
    means = np.exp(np.mean(np.log(found), axis=0))
    tables.print_row("geometric mean", "", "", "", *(f"{mean:.2f}" for mean in means))


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument(
        "--apart",
        type=float,
        default=0.35,
        help="spread of the centers in each column, in standard deviations: at 0.35 clusters of 50 "
        "columns overlap",
    )
    parser.add_argument("--only-small", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", "Graph is not fully connected|.*connected components")
    small(args.repeats)
    if args.only_small:
        return

    def rows(n: int) -> int:
        return int(args.scale * n)

    against_product(rows(1_000_000), args.apart, args.repeats, args.threads)
    images(rows(70_000), args.apart, args.repeats, args.threads)
    growth([rows(10**power) for power in (5, 6, 7)], args.threads)
    spectral(rows(10_000))


if __name__ == "__main__":
    main()
