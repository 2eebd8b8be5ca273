"""Measure fusions of many rows by landmarks: seconds, labels and peak memory.

Views of 10, 20 and 50 columns of ten Gaussian clusters, float32.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from bench import commands, tables
from bench.timing import peak_memory, seconds
from rffpk import MKKM, AverageMKKM, SimpleMKKM


def main() -> None:
    args = commands.arguments(__doc__, rows=1_000_000, landmarks=1000)
    random = np.random.default_rng(0)
    y = random.integers(10, size=args.rows)
    views = []
    for d in (10, 20, 50):
        views.append(random.standard_normal((args.rows, d), dtype=np.float32))
        views[-1] += (1.5 * random.standard_normal((10, d), dtype=np.float32))[y]
    before, size = peak_memory() / 1e3, sum(view.nbytes for view in views) / 1e9
    tables.print_heading("method", "s", "NMI", "data, GB", "peak, GB")
    for estimator in (SimpleMKKM, MKKM, AverageMKKM):
        model = estimator(10, n_landmarks=args.landmarks, random_state=0)
        elapsed = seconds(partial(model.fit, views))
        nmi = normalized_mutual_info_score(y, model.labels_)
        memory = f"{size:.2f}", f"{peak_memory() / 1e3:.2f}"
        name = f"{estimator.__name__}, {args.landmarks} landmarks"
        tables.print_row(name, f"{elapsed:.1f}", f"{nmi:.3f}", *memory)
    print(f"\nBefore the fits the peak was {before:.2f} GB.")


if __name__ == "__main__":
    main()
