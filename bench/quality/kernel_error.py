"""Measure the error of the approximated rbf kernel by the sampling of the frequencies.

    python -m bench.quality.kernel_error [--seeds N] [--frequencies D] [--columns d ...]

Rows are Gaussian, gamma is 1 / (2 mean ||x - y||^2), errors are averaged over all pairs of rows and
over seeds. Bias is the error of the mean over seeds, which averaging over features does not remove.
"""

from __future__ import annotations

import itertools

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from bench import commands, tables
from rffpk import RandomFourierFeatures

SAMPLINGS = ("iid", "orthogonal", "structured")
COLUMNS = (2, 4, 8, 16, 32, 50, 64, 128, 512, 2048)


def errors(d: int, D: int, sampling: str, seeds: int, n: int = 150) -> list[float]:
    """Return the mean error of the kernel, and its bias."""
    X = np.random.default_rng(0).standard_normal((n, d))
    total, absolute = np.zeros((n, n)), 0.0
    for seed in range(seeds):
        mapped = RandomFourierFeatures(D, sampling=sampling, random_state=seed).fit(X)
        phi = mapped.transform(X)
        error = phi @ phi.T - rbf_kernel(X, gamma=mapped.gamma_)
        total += error / seeds
        absolute += float(np.abs(error).mean()) / seeds
    return [absolute, float(np.abs(total).mean())]


def main() -> None:
    args = commands.arguments(__doc__, seeds=40, frequencies=128, columns=COLUMNS)
    tables.print_heading("d", *(name for s in SAMPLINGS for name in (s, "bias")))
    for d in args.columns:
        pairs = (errors(d, args.frequencies, s, args.seeds) for s in SAMPLINGS)
        tables.print_row(d, *tables.cells(itertools.chain(*pairs), ".4f"))


if __name__ == "__main__":
    main()
