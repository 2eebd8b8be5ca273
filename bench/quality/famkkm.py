"""Accuracy of FAMKKM by lambda1 and lambda2, and of its approximations.

    python -m bench.quality.famkkm --data DIR [--set NAME] [--seeds N]

Means (standard deviations) of the seeds; k is the number of classes.
"""

from __future__ import annotations

import numpy as np

from bench import commands, tables
from bench.datasets import MULTI_VIEW, prepared_views
from rffpk import FAMKKM, clustering_accuracy

GRID = (0.01, 0.1, 1.0)
VARIANTS = (
    {},
    {"approximation": ("rff", 512)},
    {"approximation": ("nystroem", 256)},
)


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser)
    parser.add_argument("--set", default="mfeat", choices=MULTI_VIEW)
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    xs, y = prepared_views(args.data, args.set)
    k = len(np.unique(y))

    def accuracy(**parameters: object) -> str:
        found = [
            clustering_accuracy(y, FAMKKM(k, random_state=seed, **parameters).fit(xs).labels_)
            for seed in range(args.seeds)
        ]
        return f"{np.mean(found):.4f} ({np.std(found):.3f})"

    tables.print_heading("lambda1 \\ lambda2", *GRID)
    for lambda1 in GRID:
        tables.print_row(lambda1, *(accuracy(lambda1=lambda1, lambda2=value) for value in GRID))
    print()
    tables.print_heading("variant", "ACC")
    for variant in VARIANTS:
        title = ", ".join(f"{key}={value!r}" for key, value in variant.items()) or "defaults"
        tables.print_row(title, accuracy(**variant))


if __name__ == "__main__":
    main()
