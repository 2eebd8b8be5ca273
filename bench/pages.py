"""Write the tables of figures that pages of the documentation show.

    python -m bench pages [NAME ...] [--fill]

Writes `bench/results/pages/NAME.md`, by default of all names. With `--fill` the files are copied
into the pages, between the lines `<!-- figures NAME -->` and `<!-- end -->`. All tables together
take less than an hour on two cores. A test compares pages with files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from bench import commands, tables
from bench.datasets import bundled
from bench.timing import timed
from rffpk import DiffusionPowerKMeans, PowerKMeans

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "pages"
BLOCK = re.compile(r"(<!-- figures ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def first_fits() -> str:
    """Return seconds and ARI of four classes on digits and on two noisy moons."""
    classes = {
        "`KMeans(k, n_init=10)`": partial(KMeans, n_init=10),
        '`SpectralClustering(k, affinity="nearest_neighbors")`': partial(
            SpectralClustering, affinity="nearest_neighbors"
        ),
        "`PowerKMeans(k)`": PowerKMeans,
        "`DiffusionPowerKMeans(k)`": DiffusionPowerKMeans,
    }
    digits = seconds_and_ari(classes, *bundled("digits"))
    moons = seconds_and_ari(classes, *make_moons(1000, noise=0.08, random_state=0))
    columns = ["class", "digits: seconds", "ARI", "two moons: seconds", "ARI"]
    return tables.markdown(columns, [[name, *digits[name], *moons[name]] for name in classes])


def seconds_and_ari(
    classes: Mapping[str, Callable[..., Any]], X: np.ndarray, y: np.ndarray
) -> dict[str, list[str]]:
    """Return median seconds and mean ARI of each class over three seeds, as cells of a table."""
    k, cells = len(np.unique(y)), {}
    for name, make in classes.items():
        make(k, random_state=0).fit(X)  # a warm-up
        fits = [timed(partial(make(k, random_state=seed).fit_predict, X)) for seed in range(3)]
        seconds = np.median([wall for wall, _ in fits])
        score = np.mean([adjusted_rand_score(y, labels) for _, labels in fits])
        cells[name] = [f"{seconds:.2f}", f"{score:.2f}"]
    return cells


# A name for each table of the pages, and the function that returns the table.
TABLES: dict[str, Callable[[], str]] = {
    "first_fits": first_fits,
}


def pages() -> list[Path]:
    """Return the pages that may show tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def fill() -> None:
    """Copy the files of figures into the pages."""
    for page in pages():
        text = page.read_text()
        filled = BLOCK.sub(lambda block: block[1] + figures(block[2]) + block[4], text)
        if filled != text:
            page.write_text(filled)
            print(f"filled {page.relative_to(ROOT)}")


def figures(name: str) -> str:
    """Return the table of a file of figures."""
    return (RESULTS / f"{name}.md").read_text()


def main() -> None:
    args = commands.arguments(__doc__, words="tables, by default all", fill=False)
    if unknown := {*args.words} - {*TABLES}:
        commands.stop(f"no tables: {', '.join(sorted(unknown))}. Known: {', '.join(TABLES)}.")
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in args.words or TABLES:
        wall, table = timed(TABLES[name])
        (RESULTS / f"{name}.md").write_text(table + "\n")
        print(f"{name}: {wall:.0f} s", flush=True)
    if args.fill:
        fill()
