"""Error of SMKC's subspace by the number of anchors, compared with the rate of the paper's bound.

    python -m bench.quality.smkc [--rows N] [--repeats N]

The figure of the paper's section 6.3 on generated data: the distance of the subspace with s anchors
from that with all rows as anchors, and c sqrt(1/s - 1/n) with the least c that bounds it. Kernels
are neither centered nor normalised.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bench import commands, tables
from bench.datasets import uneven_views
from bench.scores import subspace_distance
from rffpk import SMKC

PLAIN = partial(SMKC, standardize=False, tol=1e-6)
COUNTS = (50, 100, 200, 400, 800, 1600, 3200)


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    k, n = 10, args.rows
    xs = uneven_views(n, (20, 30), k, noise=3.0)
    H = PLAIN(k, anchors=n, random_state=0).fit(xs).embedding_
    counts = [s for s in COUNTS if s < n]
    errors = []
    for s in counts:
        models = [
            PLAIN(k, anchors=s, n_init=1, random_state=r).fit(xs) for r in range(args.repeats)
        ]
        errors.append(np.mean([subspace_distance(model.embedding_, H) for model in models]))
    rates = [np.sqrt(1 / s - 1 / n) for s in counts]
    c = max(error / rate for error, rate in zip(errors, rates))
    tables.print_heading("s", "error", f"c sqrt(1/s - 1/n), c = {c:.1f}", "ratio")
    for s, error, rate in zip(counts, errors, rates):
        tables.print_row(s, f"{error:.3f}", f"{c * rate:.3f}", f"{error / (c * rate):.2f}")


if __name__ == "__main__":
    main()
