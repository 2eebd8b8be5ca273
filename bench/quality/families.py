"""Score labels of generated families beside other methods, the number of clusters known.

Families are heavy tails, overlapping Gaussians, counts and their logarithms, Gaussians cut off at
zero, small clusters that touch a large cluster, unequal sizes, and spirals and rings. Noise counts
in no score. Prints the mean ARI of each family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

import numpy as np

from bench import commands, peers, tables
from bench.datasets import Labelled
from bench.peers import fit
from bench.scores import NOISE, rand_index

Random = np.random.Generator


def gaussians(
    random: Random, k: int, d: int, apart: float, n: int = 1500, ratio: float = 1.0
) -> Labelled:
    """Draw Gaussian clusters of deviation one, with centers of deviation `apart`.

    Each cluster has `ratio` times the rows of the cluster before it.
    """
    shares = ratio ** np.arange(k)
    y = random.choice(k, n, p=shares / shares.sum())
    return apart * random.standard_normal((k, d))[y] + random.standard_normal((n, d)), y


def tails(random: Random, k: int, d: int, apart: float, freedom: int) -> Labelled:
    """Draw clusters with rows about the centers by a t distribution."""
    y = random.integers(k, size=1500)
    centers = apart * random.standard_normal((k, d))
    scale = np.sqrt(random.chisquare(freedom, (len(y), 1)) / freedom)
    return centers[y] + random.standard_normal((len(y), d)) / scale, y


def counts(random: Random, k: int, d: int, logarithms: bool = False) -> Labelled:
    rates, y = random.gamma(0.5, 3.0, (k, d)), random.integers(k, size=1500)
    numbers = random.poisson(rates[y]).astype(float)
    return np.log1p(numbers) if logarithms else numbers, y


def cut_off(random: Random, k: int, d: int) -> Labelled:
    X, y = gaussians(random, k, d, 1.5)
    return np.maximum(X, 0), y


def touching(random: Random, d: int) -> Labelled:
    """Draw three clusters of 80 rows, each 4.5 deviations from a cluster of 1500 rows."""
    y = np.repeat(np.arange(4), [1500, 80, 80, 80])
    angle = 2 * np.pi * np.arange(3) / 3
    centers = np.zeros((4, d))
    centers[1:, :2] = 4.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    return centers[y] + random.standard_normal((len(y), d)), y


def curves(random: Random, kind: str, noise: int) -> Labelled:
    """Draw three rings, or arms of a spiral, in a square of uniform noise."""
    y = random.integers(3, size=1200)
    if kind == "rings":
        angle, radius = random.uniform(0, 2 * np.pi, len(y)), 1.0 + y
    else:
        turn = np.sqrt(random.uniform(0.05, 1, len(y)))
        angle, radius = 6.5 * turn + 2 * np.pi * y / 3, 3.2 * turn
    radius = radius + 0.07 * random.standard_normal(len(y))
    rows = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return (
        np.vstack([rows, random.uniform(-3.5, 3.5, (noise, 2))]),
        np.append(y, np.full(noise, NOISE)),
    )


FAMILIES: dict[str, list[Callable[[Random], Labelled]]] = {
    "heavy tails": [
        partial(tails, k=k, d=d, apart=apart, freedom=freedom)
        for freedom in (2, 3)
        for k, d, apart in ((5, 2, 9.0), (8, 8, 3.5), (15, 5, 5.0))
    ],
    "overlapping Gaussians": [
        partial(gaussians, k=k, d=d, apart=apart)
        for k, d, apart in ((12, 2, 5.0), (12, 6, 1.8), (12, 15, 1.0), (4, 6, 1.3))
    ],
    "counts": [partial(counts, k=k, d=d) for k, d in ((3, 8), (6, 20))],
    "logarithms of counts": [
        partial(counts, k=k, d=d, logarithms=True) for k, d in ((3, 8), (6, 20))
    ],
    "cut-off Gaussians": [partial(cut_off, k=k, d=d) for k, d in ((4, 5), (8, 12))],
    "small clusters that touch": [partial(touching, d=d) for d in (2, 6)],
    "unequal sizes": [
        partial(gaussians, k=k, d=d, apart=apart, ratio=0.5)
        for k, d, apart in ((5, 2, 6.0), (6, 8, 2.5))
    ],
    "spirals and rings": [
        partial(curves, kind=kind, noise=noise)
        for kind in ("spirals", "rings")
        for noise in (0, 120)
    ],
}
METHODS = ("DiffusionPowerKMeans", "PowerKMeans", "SpectralClustering")


def draws(number: int = 2, first: int = 0) -> Iterator[tuple[str, Labelled]]:
    """Yield families, rows and classes."""
    for i, (family, makers) in enumerate(FAMILIES.items()):
        for j, make in enumerate(makers):
            for draw in range(first, first + number):
                yield family, make(np.random.default_rng([draw, i, j]))


def main() -> None:
    args = commands.arguments(__doc__, draws=2, first=0)
    scores: dict[str, list[list[float]]] = {}
    for family, (X, y) in draws(args.draws, args.first):
        fits = (fit(peers.METHODS[name])(X, int(y.max()) + 1, 0) for name in METHODS)
        scores.setdefault(family, []).append([rand_index(y, labels) for labels in fits])
    scores["all"] = [*chain(*scores.values())]
    tables.print_heading("family", "sets", *METHODS)
    for family, rows in scores.items():
        tables.print_row(family, len(rows), *tables.cells(np.mean(rows, axis=0)))


if __name__ == "__main__":
    main()
