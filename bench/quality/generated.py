"""Draw rows whose number of clusters is known, in families, for `bench.quality.numbers`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.datasets import make_circles, make_moons

# A name, rows or a list of views, and right numbers.
Problem = tuple[str, np.ndarray | list[np.ndarray], list[int]]


def sizes(k: int, n: int, exponent: float) -> np.ndarray:
    """Return the sizes of k clusters by Zipf's law, at least 12 rows each."""
    share = np.arange(1.0, k + 1) ** -exponent
    return np.maximum((n * share / share.sum()).astype(int), 12)


def gaussians(k: int, d: int, n: int, exponent: float, apart: float, seed: int) -> np.ndarray:
    """Draw Gaussians of deviation one, whose centers are so far apart at least."""
    random, centers, side = np.random.RandomState(seed), np.zeros((0, d)), apart
    while len(centers) < k:
        center = random.uniform(-side, side, d)
        if not len(centers) or np.linalg.norm(centers - center, axis=1).min() > apart:
            centers = np.vstack([centers, center])
        else:
            side *= 1.005
    y = np.repeat(np.arange(k), sizes(k, n, exponent))
    return centers[y] + random.randn(len(y), d)


def separated() -> Iterator[Problem]:
    """Yield equal and unequal Gaussians, eight deviations apart at least.

    They are farther apart in many columns, where rows of one cluster are as far from each other as
    the root of twice the columns.
    """
    cases = [(2, 100), (2, 600), (3, 300), (4, 150), (5, 2000), (8, 800), (12, 3000), (20, 1500)]
    cases += [(30, 3000), (50, 2500), (100, 6000), (200, 10_000)]
    for number, (k, n) in enumerate(cases):
        for place, d in enumerate(np.roll((2, 5, 20, 384), number)):
            exponent = 1.0 * ((number + place // 2) % 2)
            apart = max(8.0, 1.0 * np.sqrt(d))
            yield "Gaussians", gaussians(k, d, n, exponent, apart, 100 * k + d), [k]


def plane() -> Iterator[Problem]:
    """Yield Gaussians in the plane that nearly touch, by the distance of the nearest centers."""
    for seed, (k, size) in enumerate(
        ((15, 40), (15, 330), (31, 100), (20, 150), (35, 150), (50, 150), (100, 100), (8, 100))
    ):
        for apart in (4.5, 6.0):
            yield "plane", gaussians(k, 2, k * size, 0, apart, 10 * seed), [k]
    random = np.random.RandomState(0)
    uneven = [random.randn(2000, 2) + place for place in ([0, 0], [20, 0], [10, 17])]
    corners = np.array([[50, 0], [50, 12], [50, 24], [62, 0], [62, 12]])
    small = [random.randn(100, 2) + corner for corner in corners]
    yield "plane", np.vstack([*uneven, *small]), [8]


def large() -> Iterator[Problem]:
    yield "many rows", gaussians(5, 10, 100_000, 0, 8, 0), [5]
    yield "many rows", gaussians(200, 20, 100_000, 1, 8, 1), [200]
    yield "many rows", gaussians(1000, 20, 100_000, 0, 10, 2), [1000]
    yield "many rows", gaussians(50, 2, 100_000, 0, 10, 3), [50]


def shapes() -> Iterator[Problem]:
    for seed in range(2):
        random = np.random.RandomState(seed)
        moons = make_moons(600, noise=0.05, random_state=seed)[0]
        yield "shapes", moons, [2]
        yield "shapes", make_circles(600, factor=0.4, noise=0.05, random_state=seed)[0], [2]
        yield "shapes", np.vstack([moons, [0.5, 3] + 0.1 * random.randn(20 + 200 * seed, 2)]), [3]
        angle = np.sqrt(random.rand(400)) * 3 * np.pi + 1
        arm = angle[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        yield "shapes", np.vstack([arm, -arm]) + 0.3 * random.randn(800, 2), [2]
        bands = [[0, 20 * j] + random.randn(m, 2) * [30, 1] for j, m in enumerate((900, 300, 90))]
        yield "shapes", np.vstack(bands), [3]
        turned = [
            30 * random.randn(8) + random.randn(150, 8) @ random.randn(8, 8) for _ in range(6)
        ]
        yield "shapes", np.vstack(turned), [6]
        scales = [[60 * j, 0, 0] + (1 + 4 * j) * random.randn(200, 3) for j in range(4)]
        yield "shapes", np.vstack(scales), [4]


def nested() -> Iterator[Problem]:
    for seed, (k, parts, d) in enumerate(((3, 3, 2), (4, 5, 5), (3, 10, 20), (5, 4, 50))):
        random = np.random.RandomState(seed)
        outer = gaussians(k, d, 12 * k, 0, 12, seed)[::12] * 8
        inner = [
            center + gaussians(parts, d, 60 * parts, 0, 8 + d / 10, 7 + random.randint(99))
            for center in outer
        ]
        yield "nested", np.vstack(inner), [k, k * parts]


def structureless() -> Iterator[Problem]:
    for d in (2, 3, 5, 10, 20, 50, 384):
        for n in (100, 300, 2000):
            random = np.random.RandomState(1000 * d + n)
            yield "uniform", random.rand(n, d), [1]
            yield "one Gaussian", random.randn(n, d) @ random.randn(d, d), [1]
            yield "heavy tails", random.standard_t(3, (n, d)), [1]
            yield "heavy tails", np.exp(random.randn(n, d)), [1]
    for n in (100, 1000, 3000):
        random = np.random.RandomState(n)
        for angle in (
            np.linspace(0, 2 * np.pi, n, endpoint=False),
            random.uniform(0, 2 * np.pi, n),
        ):
            ring = np.column_stack([np.cos(angle), np.sin(angle)])
            yield "one ring", ring + 0.05 * random.randn(n, 2), [1]
        yield "one line", np.column_stack([random.rand(n), np.zeros(n)]), [1]
        yield "one line", random.rand(n, 1) @ [[1.0, 2, 3]] + 0.02 * random.randn(n, 3), [1]


def words() -> Iterator[Problem]:
    """Yield tables: standardised numbers beside columns of zeros and ones for words."""
    for seed, (k, n, numbers, columns) in enumerate(
        ((3, 600, 3, 2), (5, 1000, 4, 4), (8, 2000, 6, 6), (4, 300, 2, 5))
    ):
        random = np.random.RandomState(seed)
        y = random.randint(k, size=n)
        left = 6 * random.permutation(np.eye(k))[y][:, :numbers] + random.randn(n, min(numbers, k))
        left = (left - left.mean(axis=0)) / left.std(axis=0)
        right = []
        for _ in range(columns):
            favourite = random.randint(4, size=k)[y]
            word = np.where(random.rand(n) < 0.9, favourite, random.randint(4, size=n))
            right.append(np.eye(4)[word])
        yield "words", np.hstack([left, *right]), [k]


def topics() -> Iterator[Problem]:
    """Yield rows of length one about k directions."""
    for seed, (k, n, exponent) in enumerate(
        ((10, 1000, 0), (30, 3000, 1.2), (100, 6000, 0), (200, 15_000, 1.2))
    ):
        random = np.random.RandomState(seed)
        centers = random.randn(k, 384) * 1.2
        y = np.repeat(np.arange(k), sizes(k, n, exponent))
        X = centers[y] + random.randn(len(y), 384)
        yield "topics", X / np.linalg.norm(X, axis=1, keepdims=True), [k]


def piles() -> Iterator[Problem]:
    for k, copies in ((2, 500), (3, 100), (10, 50), (30, 40)):
        random = np.random.RandomState(k)
        rows = np.repeat(10 * random.randn(k, 3), copies, axis=0)
        yield "piles", rows, [k]
        yield "piles", rows + 1e-6 * random.randn(*rows.shape), [k]


def towns() -> Iterator[Problem]:
    """Yield Gaussians in the plane that lines of few rows connect."""
    for k in (3, 6, 10, 20):
        random = np.random.RandomState(k)
        places = gaussians(k, 2, 12 * k, 0, 14, k)[::12]
        rows = [place + random.randn(100, 2) for place in places]
        for a, b in zip(places, places[1:]):
            rows.append(a + random.rand(15, 1) * (b - a) + 0.1 * random.randn(15, 2))
        yield "towns", np.vstack(rows), [k]


def views() -> Iterator[Problem]:
    """Yield lists of views.

    All views tell the clusters, or one view is noise, or each view tells a part of the clusters;
    then moons or circles and noise; and noise alone.
    """
    for seed in range(10):
        random = np.random.RandomState(seed)
        noise = [random.randn(1200, d) for d in (1, 2, 20)] + [random.rand(1200, 2)]
        for k, apart in ((3, 8), (8, 8), (20, 8), (6, 4.5)):
            y = random.randint(k, size=1200)
            first, second = (told(y, d, apart, random) for d in (2, 5))
            yield "all tell", [first, second], [k]
            yield "noise", [first, 100 * noise[seed % 4]], [k]
            yield "noise", [noise[3 - seed % 4], first, second], [k]
        for groups, apart in (([2, 3], 8), ([3, 3], 6), ([4, 3], 4.5), ([3, 4], 6)):
            ys = [random.randint(k, size=1200) for k in groups]
            parts = [told(y, d, apart, random) for y, d in zip(ys, (2, 3))]
            yield "parts", parts, [groups[0] * groups[1]]
        y = random.randint(4, size=1200)
        parts = [told(np.array(merged)[y], 2, 6, random) for merged in ([0, 0, 1, 2], [0, 1, 2, 2])]
        yield "merged", parts, [4]
        moons, _ = make_moons(1200, noise=0.06, random_state=seed)
        circles, _ = make_circles(1200, factor=0.4, noise=0.07, random_state=seed)
        yield "moons", [moons, noise[1]], [2]
        yield "circles", [circles, noise[3]], [2]
        for alone in (noise[:2], noise[1:], [x[:300] for x in noise]):
            yield "no clusters", alone, [1]


def told(y: np.ndarray, d: int, apart: float, random: np.random.RandomState) -> np.ndarray:
    """Draw Gaussians of these labels."""
    k = y.max() + 1
    centers = gaussians(k, d, 12 * k, 0, apart, random.randint(1000))[::12]
    return centers[y] + random.randn(len(y), d)


FAMILIES = (
    separated, plane, large, shapes, nested, words, topics, piles, towns, structureless, views,
)  # fmt: skip
