"""Score labels of rows that lack views: NMI by the share of missing rows.

    python -m bench.quality.missing --data DIR [--sets NAME ...] [--seeds N]
        [--methods NAME ...] [--patterns NAME ...] [--shares X ...] [--split]

For each set, with k the number of classes, NMI of the labels of all rows (means of the seeds). A
share of the rows lacks each view. "random": each row for itself; a row that would lack all views
keeps one. "blocks": that share of consecutive rows, in a random order. The block of each of L views
begins an L-th of the rows later than the block of the view before. "classes": blocks in the order
of the file, which is by class in most files, so that whole classes lack a view. With --split, NMI
of the rows that have all views and of the rest stand beside that of all rows.

Methods: `RFFMultiKernelPowerKMeans` with random and with diffusion features, with
allow_missing_views=True. "Means in place" is random features on means of the columns in place of
missing rows. "Complete rows" is a fit to the rows that have all views, from two a cluster on, which
labels the rest by `predict`. If the package imml is installed, also methods of it for incomplete
views that need no Octave. Columns of each view are standardised where they are not counts.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from bench import commands, tables
from bench.datasets import MULTI_VIEW, prepared_views
from rffpk import RFFMultiKernelPowerKMeans

SHARES = (0.1, 0.2, 0.3, 0.5)
SETS = ("mfeat", "msrc_v1", "landuse21", "leaves100", "3sources", "bbcsport")

Views = list[np.ndarray]
Method = Callable[[Views, int, int], np.ndarray | None]


def lacks_at_random(n: int, n_views: int, share: float, random: np.random.Generator) -> np.ndarray:
    return random.random((n, n_views)) < share


def lacks_by_class(n: int, n_views: int, share: float, random: np.random.Generator) -> np.ndarray:
    begins = random.integers(n) + n * np.arange(n_views) // n_views
    return (np.arange(n)[:, None] - begins) % n < share * n


def lacks_in_blocks(n: int, n_views: int, share: float, random: np.random.Generator) -> np.ndarray:
    return random.permutation(lacks_by_class(n, n_views, share, random))


PATTERNS = {"random": lacks_at_random, "blocks": lacks_in_blocks, "classes": lacks_by_class}


def without(views: Views, lacks: np.ndarray, random: np.random.Generator) -> Views:
    """Return the views, NaN in the rows that lack them."""
    lacks = lacks.copy()
    lacks[np.arange(len(lacks)), random.integers(len(views), size=len(lacks))] &= ~lacks.all(axis=1)
    return [np.where(lack[:, None], np.nan, view) for view, lack in zip(views, lacks.T)]


def model(k: int, seed: int, kernels: str | None = None) -> Any:
    return RFFMultiKernelPowerKMeans(
        k, allow_missing_views=True, random_state=seed, kernels=kernels, typicality="auto"
    )


def whole_rows(views: Views) -> np.ndarray:
    """Return which rows have all views."""
    return ~np.any([np.isnan(view[:, 0]) for view in views], axis=0)


def imputed(views: Views, k: int, seed: int) -> np.ndarray:
    filled = [np.where(np.isnan(view), np.nanmean(view, axis=0), view) for view in views]
    return model(k, seed).fit(filled).labels_


def complete_rows(views: Views, k: int, seed: int) -> np.ndarray | None:
    whole = whole_rows(views)
    if whole.sum() < 2 * k:
        return None
    return model(k, seed).fit([view[whole] for view in views]).predict(views)


def of_imml(name: str) -> Method:
    """Return a method of the package imml, without results where it fails or is missing."""

    def labels(views: Views, k: int, seed: int) -> np.ndarray | None:
        try:
            peer = getattr(importlib.import_module("imml.cluster"), name)
            return np.asarray(peer(n_clusters=k, random_state=seed).fit_predict(views))
        except Exception as error:  # of any kind: a cell of the table stays empty
            print(f"imml, {name}: {error!r}"[:200], file=sys.stderr)
            return None

    return labels


METHODS: dict[str, Method] = {
    "random features": lambda views, k, seed: model(k, seed).fit(views).labels_,
    "diffusion features": lambda views, k, seed: model(k, seed, "diffusion").fit(views).labels_,
    "means in place": imputed,
    "complete rows": complete_rows,
    **{f"imml {name}": of_imml(name) for name in ("EEIMVC", "LFIMVC", "OPIMC", "NEMO")},
}


def score(
    method: Method, name: str, views: Views, y: np.ndarray, share: float, seeds: int, split: bool
) -> str:
    """Return the mean NMI of the seeds, or nothing where the method has no result.

    With `split` the NMI of the rows that have all views follows, and that of the rest.
    """
    scores = []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        lacking = without(views, PATTERNS[name](len(y), len(views), share, random), random)
        labels = method(lacking, len(np.unique(y)), seed)
        if labels is None:
            return ""
        whole = whole_rows(lacking)
        parts = [np.full(len(y), True), whole, ~whole] if split and share else [slice(None)]
        scores.append([normalized_mutual_info_score(y[part], labels[part]) for part in parts])
    return ", ".join(tables.cells(np.mean(scores, axis=0)))


def main() -> None:
    args = commands.arguments(
        __doc__, data=commands.NEEDS_DATA, seeds=5, sets=commands.Names(MULTI_VIEW, SETS),
        methods=commands.Names(METHODS), patterns=commands.Names(PATTERNS), shares=SHARES,
        split=False,
    )  # fmt: skip
    tables.print_heading("set", "views", "missing", *args.methods)
    for name in args.sets:
        views, y = prepared_views(args.data, name)
        cases = [("random", 0.0), *((p, share) for p in args.patterns for share in args.shares)]
        for pattern, share in cases:
            common = pattern, views, y, share, args.seeds, args.split
            missing = f"{share:.0%}, {pattern}" if share else "nothing"
            cells = (score(METHODS[method], *common) for method in args.methods)
            tables.print_row(name, len(views), missing, *cells)


if __name__ == "__main__":
    main()
