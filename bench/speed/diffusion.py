"""Measure fits of DiffusionPowerKMeans on small sets, beside SpectralClustering.

    OMP_NUM_THREADS=1 python -m bench.speed.diffusion [--repeats N]

CPU seconds of default fits of bundled and generated sets over the CPU seconds of
SpectralClustering: medians of ratios within a turn.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, load_wine, make_blobs, make_moons
from sklearn.preprocessing import scale

from bench import commands, tables
from bench.datasets import Labelled
from bench.timing import cpu_timed
from rffpk import DiffusionPowerKMeans


def faces(n: int, d: int, k: int) -> Labelled:
    """Draw rows about k points, in whose columns three directions of light vary most."""
    random = np.random.default_rng(0)
    y = np.arange(n) * k // n
    light = 3 * random.standard_normal((n, 3)) @ random.standard_normal((3, d))
    return random.standard_normal((k, d))[y] + light + 1.2 * random.standard_normal((n, d)), y


def letters(n: int, d: int, k: int) -> Labelled:
    """Draw k groups in 40 directions of many columns."""
    random = np.random.default_rng(0)
    y, basis = np.arange(n) % k, random.standard_normal((40, d)) / np.sqrt(40)
    inside = random.standard_normal((n, 40)) * np.linspace(1.5, 0.5, 40)
    points = 1.3 * random.standard_normal((k, 40))[y] + inside
    return points @ basis + 0.3 * random.standard_normal((n, d)), y


def small_sets() -> dict[str, Labelled]:
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


def main() -> None:
    args = commands.arguments(__doc__, repeats=3)
    tables.print_heading("set", "rows x columns", "k", "ms", "fit", 'n_clusters="auto"', "noise")
    table = []
    for name, (X, y) in small_sets().items():
        k, turns = len(np.unique(y)), []
        for seed in range(args.repeats):
            common = {"random_state": seed, "n_jobs": 1}
            models = [
                SpectralClustering(k, affinity="nearest_neighbors", random_state=seed),
                DiffusionPowerKMeans(k, **common),
                DiffusionPowerKMeans("auto", **common),
                DiffusionPowerKMeans(k, noise="auto", **common),
            ]
            turns.append([cpu_timed(partial(model.fit, X))[0] for model in models])
        peer, *ours = np.array(turns).T
        table.append([np.median(times / peer) for times in ours])
        size = f"{X.shape[0]} x {X.shape[1]}"
        tables.print_row(
            name, size, k, f"{1e3 * np.median(peer):.0f}", *tables.cells(table[-1], ".2f")
        )
    means = np.exp(np.mean(np.log(table), axis=0))
    tables.print_row("geometric mean", "", "", "", *tables.cells(means, ".2f"))


if __name__ == "__main__":
    main()
