"""View weights by entropy: NMI and the largest weight on multi-view sets.

    python -m bench.quality.views --data DIR [--sets NAME ...] [--seeds N] [--plain]

For each set, with k the number of classes: NMI of the labels (means of the seeds) for single views
(mean and best by the labels) and for all views by `weight_entropy`, and the largest view weight.
Columns of each view are standardised where they are not counts. --plain: without typicality.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from bench import commands, tables
from bench.datasets import MULTI_VIEW, prepared_views
from rffpk import RFFMultiKernelPowerKMeans

ENTROPIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 1e6)


def score(
    views: list[np.ndarray], y: np.ndarray, seeds: int, **parameters: object
) -> tuple[float, float]:
    """Mean NMI, and the mean of the largest view weight."""
    found = []
    for seed in range(seeds):
        model = RFFMultiKernelPowerKMeans(
            len(np.unique(y)), random_state=seed, kernels=None, **parameters
        )
        model.fit(views)
        nmi = normalized_mutual_info_score(y, model.labels_)
        found.append((nmi, model.kernel_weights_.max()))
    return tuple(np.mean(found, axis=0))  # type: ignore[return-value]


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--plain", action="store_true", help="without typicality")
    parser.add_argument("--sets", nargs="+", choices=MULTI_VIEW, default=MULTI_VIEW)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    common = {"typicality": "auto" if not args.plain else None}
    entropies = (f"{e:g}" for e in ENTROPIES)
    tables.print_heading("set", "views", "single views: mean, best", *entropies)
    for name in args.sets:
        views, y = prepared_views(args.data, name)
        single = [score([view], y, args.seeds, **common)[0] for view in views]
        cells = []
        for entropy in ENTROPIES:
            nmi, largest = score(views, y, args.seeds, weight_entropy=entropy, **common)
            cells.append(f"{nmi:.3f} ({largest:.2f})")
        tables.print_row(name, len(views), f"{np.mean(single):.3f}, {max(single):.3f}", *cells)


if __name__ == "__main__":
    main()
