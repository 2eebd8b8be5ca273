"""Compare labels and time at half and twice each tuning constant of `rffpk.system.tuning`.

Fits the models to the small data sets of scikit-learn and to a draw of each generated family of
`bench.quality.families`. Each field of the groups has its value, half of it and twice it in turn.
Prints the change of the mean ARI with the classes, the number of fits with other labels, and the
mean objective and the CPU time over their usual values. The help names models and groups.

A field whose fits all keep their labels is flat on these sets. Fields that act on many rows are
flat on small sets: --rows N adds a mixture of N rows with K clusters, and --alone takes three such
mixtures alone, whose clusters overlap.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs
from sklearn.preprocessing import scale

import rffpk
from bench import commands, tables
from bench.datasets import Labelled
from bench.quality.families import draws
from bench.scores import rand_index
from bench.timing import cpu_timed
from rffpk.system.tuning import TUNING

MODELS: dict[str, Callable[[int], Any]] = {
    "plain": lambda k: rffpk.PowerKMeans(k, random_state=0),
    "fourier": lambda k: rffpk.RFFKernelPowerKMeans(k, random_state=0),
    "diffusion": lambda k: rffpk.DiffusionPowerKMeans(k, random_state=0),
    "auto": lambda k: rffpk.DiffusionPowerKMeans("auto", noise="auto", random_state=0),
    "smkc": lambda k: rffpk.SMKC(k, random_state=0),
}


def data_sets(n: int, k: int, alone: bool) -> Iterator[Labelled]:
    """Yield real and generated sets, and a mixture of n rows if n is positive.

    With `alone` yield three mixtures."""
    for seed in range(3 if alone else bool(n)):
        spread = 5.0 if alone else 2.5
        yield make_blobs(n, 10, centers=k, cluster_std=spread, random_state=seed)
    if alone:
        return
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        X, y = load(return_X_y=True)
        yield scale(X) if load is not load_digits else X, y
    yield from (labelled for _, labelled in draws(1))


def scaled(value: Any, factor: float) -> Any:
    """Return a number, or the numbers in a tuple, times a factor; whole numbers stay whole."""
    if isinstance(value, tuple):
        return tuple(scaled(part, factor) for part in value)
    if isinstance(value, int):
        return max(1, round(factor * value))
    return value if value is None else factor * value


class Fits(NamedTuple):
    """What all fits gave."""

    labels: list[np.ndarray]
    ari: float  # the mean
    objective: float  # the geometric mean


def fits(names: list[str], sets: list[Labelled]) -> Fits:
    """Fit all models to all sets."""
    labels, aris, logs = [], [], []
    for X, y in sets:
        for name in names:
            model = MODELS[name](len(np.unique(y[y >= 0]))).fit(X)
            labels.append(model.labels_)
            aris.append(rand_index(y, labels[-1]))
            logs.append(np.log(max(getattr(model, "inertia_", 1.0), 1e-300)))
    return Fits(labels, float(np.mean(aris)), float(np.exp(np.mean(logs))))


def compared(names: list[str], sets: list[Labelled], base: tuple[float, Fits]) -> tuple[str, ...]:
    """Return the cells of a row: ARI, fits with other labels, objective and time."""
    try:
        seconds, new = cpu_timed(lambda: fits(names, sets))
    except (ValueError, ArithmeticError, LookupError) as error:
        return type(error).__name__, "", "", ""
    before, old = base
    changed = sum(not np.array_equal(*pair) for pair in zip(new.labels, old.labels))
    return (
        f"{new.ari - old.ari:+.4f}",
        f"{changed} of {len(new.labels)}",
        f"{new.objective / old.objective:.4f}",
        f"{seconds / before:.2f}",
    )


def main() -> None:
    groups = [*vars(TUNING)]
    models = commands.Names(MODELS, ["plain", "diffusion"])
    args = commands.arguments(
        __doc__, words=", ".join(groups), models=models, rows=0, clusters=15, alone=False
    )
    sets = [*data_sets(args.rows, args.clusters, args.alone)]
    fits(args.models, sets[:4])  # imports what fits need
    base = cpu_timed(lambda: fits(args.models, sets))
    seconds, old = base
    print(f"{len(old.labels)} fits, mean ARI {old.ari:.4f}, {seconds:.1f} CPU seconds\n")
    cells = "change of the ARI", "other labels", "objective", "time"
    tables.print_heading(
        "field", "value", *(f"{x}: {cell}" for x in ("half", "twice") for cell in cells)
    )
    for name in args.words or groups:
        before = getattr(TUNING, name)
        for field, value in dataclasses.asdict(before).items():
            row = list[str]()
            for factor in (0.5, 2.0):
                changed = dataclasses.replace(before, **{field: scaled(value, factor)})
                setattr(TUNING, name, changed)
                row += compared(args.models, sets, base)
            setattr(TUNING, name, before)
            tables.print_row(f"{name}.{field}", value, *row)


if __name__ == "__main__":
    main()
