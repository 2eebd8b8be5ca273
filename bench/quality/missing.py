"""Rows without some of their views: NMI by the share of what is missing.

    python -m bench.quality.missing --data DIR [--sets NAME ...] [--seeds N]
        [--methods NAME ...] [--patterns NAME ...] [--shares X ...] [--split]

For each set, with k the number of classes, NMI of the labels of all rows (means of the seeds). A
share of the rows lacks each view. "random": each row for itself; a row that would lack all views
keeps one. "blocks": that share of consecutive rows, in a random order, in which the block of each
view begins an L-th of the rows later than that of the view before. "classes": the same in the order
of the file, which is by class in most files, so that whole classes lack a view. With --split, NMI
of the rows that have all views and of those that lack some stand beside that of all rows.

Methods: `RFFMultiKernelPowerKMeans` with random and with diffusion features, with
allow_missing_views=True; the first of them on means of the columns in place of what is missing; the
first fitted to the rows that have all views, from two a cluster on, the others being labelled by
`predict`. If the package imml is installed, also methods of it for incomplete views that need no
Octave. Columns of each view are standardised where they are not counts.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable

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
    """The views, NaN in the rows that lack them."""
    lacks = lacks.copy()
    lacks[np.arange(len(lacks)), random.integers(len(views), size=len(lacks))] &= ~lacks.all(axis=1)
    return [np.where(lack[:, None], np.nan, view) for view, lack in zip(views, lacks.T)]


def random_features(views: Views, k: int, seed: int, **parameters: object) -> np.ndarray:
    model = RFFMultiKernelPowerKMeans(
        k,
        allow_missing_views=True,
        random_state=seed,
        kernels=None,
        typicality="auto",
        **parameters,
    )
    return model.fit(views).labels_


def diffusion(views: Views, k: int, seed: int) -> np.ndarray:
    return random_features(views, k, seed, kernels="diffusion")


def imputed(views: Views, k: int, seed: int) -> np.ndarray:
    filled = [np.where(np.isnan(view), np.nanmean(view, axis=0), view) for view in views]
    return random_features(filled, k, seed)


def complete_rows(views: Views, k: int, seed: int) -> np.ndarray | None:
    whole = ~np.any([np.isnan(view[:, 0]) for view in views], axis=0)
    if whole.sum() < 2 * k:
        return None
    model = RFFMultiKernelPowerKMeans(
        k, allow_missing_views=True, random_state=seed, kernels=None, typicality="auto"
    )
    return model.fit([view[whole] for view in views]).predict(views)


METHODS: dict[str, Method] = {
    "random features": random_features,
    "diffusion features": diffusion,
    "means in place": imputed,
    "complete rows": complete_rows,
}


def of_imml(name: str) -> Method:
    """A method of the package imml; no result where it is not installed, or fails."""

    def labels(views: Views, k: int, seed: int) -> np.ndarray | None:
        try:
            model = getattr(importlib.import_module("imml.cluster"), name)
            found = model(n_clusters=k, random_state=seed).fit_predict(views)
        except Exception as error:  # of any kind: a cell of the table stays empty
            print(f"imml, {name}: {error!r}"[:200], file=sys.stderr)
            return None
        return np.asarray(found)

    return labels


METHODS |= {f"imml {name}": of_imml(name) for name in ("EEIMVC", "LFIMVC", "OPIMC", "NEMO")}


def score(
    method: Method, name: str, views: Views, y: np.ndarray, share: float, seeds: int, split: bool
) -> str:
    """Mean NMI of the seeds; empty where the method has no result. With `split` also that of the
    rows that have all views, and of the others."""
    found = []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        lacks = PATTERNS[name](len(y), len(views), share, random)
        given = without(views, lacks, random)
        labels = method(given, len(np.unique(y)), seed)
        if labels is None:
            return ""
        whole = ~np.any([np.isnan(view[:, 0]) for view in given], axis=0)
        parts = [np.full(len(y), True), whole, ~whole] if split and share else [slice(None)]
        found.append([normalized_mutual_info_score(y[part], labels[part]) for part in parts])
    return ", ".join(f"{mean:.3f}" for mean in np.mean(found, axis=0))


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", choices=MULTI_VIEW, default=SETS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--patterns", nargs="+", choices=PATTERNS, default=[*PATTERNS])
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES)
    parser.add_argument("--split", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = {name: METHODS[name] for name in args.methods}
    tables.print_heading("set", "views", "missing", *methods)
    for name in args.sets:
        views, y = prepared_views(args.data, name)
        cases = [
            ("random", 0.0),
            *((pattern, share) for pattern in args.patterns for share in args.shares),
        ]
        for pattern, share in cases:
            given = pattern, views, y, share, args.seeds, args.split
            cells = (score(each, *given) for each in methods.values())
            what = f"{share:.0%}, {pattern}" if share else "nothing"
            tables.print_row(name, len(views), what, *cells)


if __name__ == "__main__":
    main()
