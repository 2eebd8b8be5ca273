"""How many starts exact kernels need: objectives over the best of twenty k-means++ runs.

    python -m bench.quality.starts --data DIR [--seeds N] [--sets NAME ...]

Both use the same kernel, kernel power k-means with the default n_init and with 1, 3, 8 and 16:
mean (worst) over the seeds, and the mean seconds of a default fit and of the twenty runs.
"""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from bench import commands, tables
from bench.datasets import single_view
from bench.timing import seconds
from rffpk import KernelKMeans, KernelPowerKMeans

SETS = ("glioma", "lung_discrete", "yale", "seeds", "tr11", "binaryalphadigs", "coil20")
COUNTS = ("auto", 1, 3, 8, 16)


def starts(data: Path, name: str, seeds: int) -> None:
    X, y = single_view(data, name)
    X = StandardScaler().fit_transform(X)
    k = len(np.unique(y))
    ratios: dict[int | str, list[float]] = {c: [] for c in COUNTS}
    times: dict[str, list[float]] = {"auto": [], "20": []}
    for seed in range(seeds):
        peer = KernelKMeans(k, n_init=20, random_state=seed)
        times["20"].append(seconds(partial(peer.fit, X)))
        for count in COUNTS:
            model = KernelPowerKMeans(k, n_init=count, random_state=seed)
            spent = seconds(partial(model.fit, X))
            ratios[count].append(model.inertia_ / peer.inertia_)
            if count == "auto":
                times["auto"].append(spent)
    cells = [f"{np.mean(r):.4f} ({max(r):.4f})" for r in ratios.values()]
    tables.print_row(name, len(X), k, *cells, *(f"{np.mean(t):.2f}" for t in times.values()))


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    counts = (f"n_init={c}" for c in COUNTS)
    tables.print_heading("set", "n", "k", *counts, "s, auto", "s, 20 runs")
    for name in args.sets:
        starts(args.data, name, args.seeds)


if __name__ == "__main__":
    main()
