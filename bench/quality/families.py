"""Score labels of generated families beside other methods, the number of clusters known.

    python -m bench.quality.families [--draws N] [--first N] [--views]

Families are heavy tails, overlapping Gaussians, counts and their logarithms, Gaussians cut off at
zero, small clusters that touch a large cluster, unequal sizes, and spirals and rings. Noise counts
in no score. Prints the mean ARI of each family.

--views: families of views instead, beside the best single view and the columns side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import SpectralClustering

from bench import commands, tables
from bench.scores import NOISE, rand_index
from rffpk import DiffusionPowerKMeans, PowerKMeans, RFFMultiKernelPowerKMeans

Rows = tuple[Any, np.ndarray]  # rows, or a list of views, and their classes
Random = np.random.Generator


def gaussians(
    random: Random, k: int, d: int, apart: float, n: int = 1500, ratio: float = 1.0
) -> Rows:
    """Draw Gaussian clusters of deviation one, with centers of deviation `apart`.

    Each cluster has `ratio` times the rows of the cluster before it.
    """
    shares = ratio ** np.arange(k)
    y = random.choice(k, n, p=shares / shares.sum())
    return apart * random.standard_normal((k, d))[y] + random.standard_normal((n, d)), y


def tails(random: Random, k: int, d: int, apart: float, freedom: int) -> Rows:
    """Draw clusters with rows about the centers by a t distribution."""
    y = random.integers(k, size=1500)
    centers = apart * random.standard_normal((k, d))
    scale = np.sqrt(random.chisquare(freedom, (len(y), 1)) / freedom)
    return centers[y] + random.standard_normal((len(y), d)) / scale, y


def counts(random: Random, k: int, d: int, logarithms: bool = False) -> Rows:
    rates, y = random.gamma(0.5, 3.0, (k, d)), random.integers(k, size=1500)
    numbers = random.poisson(rates[y]).astype(float)
    return np.log1p(numbers) if logarithms else numbers, y


def cut_off(random: Random, k: int, d: int) -> Rows:
    X, y = gaussians(random, k, d, 1.5)
    return np.maximum(X, 0), y


def touching(random: Random, d: int) -> Rows:
    """Draw three clusters of 80 rows, each 4.5 deviations from a cluster of 1500 rows."""
    y = np.repeat(np.arange(4), [1500, 80, 80, 80])
    angle = 2 * np.pi * np.arange(3) / 3
    centers = np.zeros((4, d))
    centers[1:, :2] = 4.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    return centers[y] + random.standard_normal((len(y), d)), y


def curves(random: Random, kind: str, noise: int) -> Rows:
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


FAMILIES = {
    "heavy tails": {
        f"t with {freedom}, {k} in {d} columns": partial(
            tails, k=k, d=d, apart=apart, freedom=freedom
        )
        for freedom in (2, 3)
        for k, d, apart in ((5, 2, 9.0), (8, 8, 3.5), (15, 5, 5.0))
    },
    "overlapping Gaussians": {
        f"{k} in {d} columns": partial(gaussians, k=k, d=d, apart=apart)
        for k, d, apart in ((12, 2, 5.0), (12, 6, 1.8), (12, 15, 1.0), (4, 6, 1.3))
    },
    "counts": {f"{k} in {d} columns": partial(counts, k=k, d=d) for k, d in ((3, 8), (6, 20))},
    "logarithms of counts": {
        f"{k} in {d} columns": partial(counts, k=k, d=d, logarithms=True)
        for k, d in ((3, 8), (6, 20))
    },
    "cut-off Gaussians": {
        f"{k} in {d} columns": partial(cut_off, k=k, d=d) for k, d in ((4, 5), (8, 12))
    },
    "small clusters that touch": {f"{d} columns": partial(touching, d=d) for d in (2, 6)},
    "unequal sizes": {
        f"{k} in {d} columns": partial(gaussians, k=k, d=d, apart=apart, ratio=0.5)
        for k, d, apart in ((5, 2, 6.0), (6, 8, 2.5))
    },
    "spirals and rings": {
        f"{kind}, {noise} rows of noise": partial(curves, kind=kind, noise=noise)
        for kind in ("spirals", "rings")
        for noise in (0, 120)
    },
}


def views(random: Random, k: int, widths: tuple[int, ...], apart: tuple[float, ...]) -> Rows:
    """Draw views of the same Gaussian clusters; with `apart` zero a view is noise."""
    y = random.integers(k, size=1000)
    return [
        of_view * random.standard_normal((k, d))[y] + random.standard_normal((len(y), d))
        for d, of_view in zip(widths, apart)
    ], y


def words_and_numbers(random: Random, k: int) -> Rows:
    """Draw a wide view of counts of words beside a narrow view of numbers."""
    numbers, y = views(random, k, (4,), (2.0,))
    shared, own = random.dirichlet(np.full(2000, 0.05)), random.dirichlet(np.full(2000, 0.05), k)
    words = [random.multinomial(60, (shared + own[c]) / 2) for c in y]
    return [np.array(words, dtype=float), *numbers], y


def different(random: Random, d: int) -> Rows:
    """Draw six clusters. Each of two views separates three pairs of clusters."""
    y = random.integers(6, size=1000)
    pairs = y // 2, (y + 1) % 6 // 2
    centers = 5 * random.standard_normal((2, 3, d))
    return [
        of_view[pair] + random.standard_normal((len(y), d)) for of_view, pair in zip(centers, pairs)
    ], y


VIEWS = {
    "a view of noise": {
        f"{len(widths)} views": partial(views, k=4, widths=widths, apart=apart)
        for widths, apart in (((6, 8), (3.0, 0.0)), ((8, 3, 8), (1.6, 0.0, 1.6)))
    },
    "words beside numbers": {"5 clusters": partial(words_and_numbers, k=5)},
    "views of different clusters": {f"{d} columns": partial(different, d=d) for d in (2, 5)},
}
METHODS: dict[str, Any] = {
    "DiffusionPowerKMeans": DiffusionPowerKMeans,
    "PowerKMeans": PowerKMeans,
    "SpectralClustering": partial(SpectralClustering, affinity="nearest_neighbors"),
}


def draws(
    number: int = 2, first: int = 0, families: dict[str, Any] = FAMILIES
) -> Iterator[tuple[str, str, Any, np.ndarray]]:
    """Yield the name of each set, its family, rows and classes."""
    for i, (family, makers) in enumerate(families.items()):
        for j, (name, make) in enumerate(makers.items()):
            for draw in range(first, first + number):
                X, y = make(np.random.default_rng([draw, i, j]))
                yield f"{family}, {name}, draw {draw}", family, X, y


def of_rows(X: np.ndarray, y: np.ndarray, k: int) -> dict[str, float]:
    fits = ((name, make(k, random_state=0).fit(X)) for name, make in METHODS.items())
    return {name: rand_index(y, model.labels_) for name, model in fits}


def of_views(xs: list[np.ndarray], y: np.ndarray, k: int) -> dict[str, float]:
    def of(cls: Any, X: Any) -> float:
        return rand_index(y, cls(k, random_state=0).fit(X).labels_)

    together = np.hstack([x / np.sqrt(x.var(axis=0).sum()) for x in xs])
    return {
        "RFFMultiKernelPowerKMeans": of(RFFMultiKernelPowerKMeans, xs),
        "best single view": max(of(RFFMultiKernelPowerKMeans, [x]) for x in xs),
        "PowerKMeans, side by side": of(PowerKMeans, together),
        "DiffusionPowerKMeans, side by side": of(DiffusionPowerKMeans, together),
    }


def main() -> None:
    args = commands.arguments(__doc__, draws=2, first=0, views=False)
    scores: dict[str, list[list[float]]] = {}
    families, of_set = (VIEWS, of_views) if args.views else (FAMILIES, of_rows)
    for _, family, X, y in draws(args.draws, args.first, families):
        by_method = of_set(X, y, int(y.max()) + 1)
        scores.setdefault(family, []).append([*by_method.values()])
    tables.print_heading("family", "sets", *by_method)
    for family, rows in scores.items():
        tables.print_row(family, len(rows), *tables.cells(np.mean(rows, axis=0)))
    table = np.array([aris for rows in scores.values() for aris in rows])
    tables.print_row("all", len(table), *tables.cells(table.mean(axis=0)))


if __name__ == "__main__":
    main()
