"""Error of the approximated rbf kernel by the sampling of the frequencies and the dimension.

    python -m bench.quality.kernel_error [--seeds N] [--frequencies D] [--dimensions d ...]

Rows are Gaussian, gamma is 1 / (2 mean ||x - y||^2), errors are averaged over all pairs of rows and
over seeds. Shown are |error| and the bias (the error of the mean over seeds), which averaging over
features does not remove.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from bench import commands, tables
from rffpk import RandomFourierFeatures

SAMPLINGS = ("iid", "orthogonal", "structured")


def errors(d: int, D: int, sampling: str, seeds: int, n: int = 150) -> tuple[float, float]:
    X = np.random.default_rng(0).standard_normal((n, d))
    total, absolute = np.zeros((n, n)), 0.0
    for seed in range(seeds):
        mapped = RandomFourierFeatures(D, sampling=sampling, random_state=seed).fit(X)
        phi = mapped.transform(X)
        error = phi @ phi.T - rbf_kernel(X, gamma=mapped.gamma_)
        total += error / seeds
        absolute += float(np.abs(error).mean()) / seeds
    return absolute, float(np.abs(total).mean())


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--frequencies", type=int, default=128)
    parser.add_argument(
        "--dimensions", type=int, nargs="+", default=[2, 4, 8, 16, 32, 50, 64, 128, 512, 2048]
    )
    args = parser.parse_args()
    tables.print_heading("d", *(name for s in SAMPLINGS for name in (s, "bias")))
    for d in args.dimensions:
        cells = [errors(d, args.frequencies, s, args.seeds) for s in SAMPLINGS]
        tables.print_row(d, *(f"{value:.4f}" for cell in cells for value in cell))


if __name__ == "__main__":
    main()
