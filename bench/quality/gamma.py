"""NMI of a Gaussian kernel by its gamma, in multiples of that of the mean distance.

    python -m bench.quality.gamma --data DIR [--seeds N]

`RFFKernelPowerKMeans` with k the number of classes, on the real sets of bench.quality.diffusion;
means of the seeds. The last column is the multiple of the best mean. Prints Markdown.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import normalize

from bench import commands, tables
from bench.quality.diffusion import is_text, real
from rffpk import RandomFourierFeatures, RFFKernelPowerKMeans

MULTIPLES = (0.25, 0.5, 1, 2, 4, 8, 16)


def score(X: np.ndarray, y: np.ndarray, multiple: float, seed: int) -> float:
    gamma = multiple * RandomFourierFeatures(1, random_state=seed).fit(X).gamma_
    model = RFFKernelPowerKMeans(len(np.unique(y)), gamma=gamma, random_state=seed)
    return float(normalized_mutual_info_score(y, model.fit(X).labels_))


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=4000, help="of a set, at most")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tables.print_heading("set", *(f"{multiple:g}" for multiple in MULTIPLES), "best")
    table = []
    for name, (X, y) in real(args.data, args.rows):
        rows = normalize(X) if is_text(name) else X
        found = [
            np.mean([score(rows, y, multiple, seed) for seed in range(args.seeds)])
            for multiple in MULTIPLES
        ]
        table.append(found)
        best = f"{MULTIPLES[int(np.argmax(found))]:g}"
        tables.print_row(name, *(f"{mean:.3f}" for mean in found), best)
    tables.print_row("mean", *(f"{mean:.3f}" for mean in np.mean(table, axis=0)), "")


if __name__ == "__main__":
    main()
