"""Default fits of many clusters, on both sides of the sizes from which rows see few centroids.

    python tests/default_fits.py COUNT

Makes so many fits. Prints each fit that raises, or whose labels differ from `predict`.
"""

import sys
import traceback

import numpy as np

from rffpk import DiffusionPowerKMeans, PowerKMeans

LEAST, MOST = 26, 30  # multiply-adds of a pass over all centroids, as powers of two
NARROW = 27.3, 28.7  # half of the fits are in this range
ROWS = 5, 150_000  # at least so many for each cluster, and at most so many


def draw(seed):
    """Draw an estimator, its rows, and a text that describes them."""
    random = np.random.default_rng(seed)
    if seed % 100 == 99:
        X, text = mixture(random, 20_000, 32, 100, 3.0)
        return DiffusionPowerKMeans(100, noise="auto", random_state=0), X, f"diffusion {text}"
    n, k = 0, 1
    while not ROWS[0] * k <= n <= ROWS[1]:
        work = random.uniform(*(NARROW if seed % 2 else (LEAST, MOST)))
        k, d = (int(np.exp(random.uniform(*np.log(ends)))) for ends in [(100, 1000), (2, 400)])
        n = int(2**work / (k * d))
    X, text = mixture(random, n, d, int(k * random.uniform(0.8, 1.2)), None)
    dtype, metric = random.choice(["f2", "f4", "f8"]), random.choice(["euclidean", "cosine"])
    model = PowerKMeans(k, metric=str(metric), random_state=int(random.integers(100)))
    return model, X.astype(dtype), f"k={k} {metric} {dtype} {text} 2^{work:.2f}"


def mixture(random, n, d, groups, apart):
    apart = 10 ** random.uniform(np.log10(0.2), 2) if apart is None else apart
    centers = apart * random.standard_normal((groups, d))
    X = centers[random.integers(groups, size=n)] + random.standard_normal((n, d))
    return X, f"{n} x {d}, {groups} groups {apart:.2f} apart"


def fit(seed):
    """Describe a fit that is not as it should be; return None for a correct fit."""
    model, X, text = draw(seed)
    try:
        labels = model.fit(X).labels_
    except Exception:
        return f"{seed}: {text}\n{traceback.format_exc()}"
    known = labels >= 0
    wrong = np.mean(model.predict(X[known]) != labels[known]) if "diff" not in text else 0.0
    return None if wrong == 0 else f"{seed}: {text}: {wrong:.2%} of the labels are others"


def main():
    found = [text for text in map(fit, range(int(sys.argv[1]))) if text is not None]
    print("\n".join([*found, f"{len(found)} of {sys.argv[1]}"]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
