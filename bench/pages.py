"""Write the tables of figures that pages of the documentation show.

    python -m bench pages [NAME ...] [--fill]

Writes `bench/results/pages/NAME.md`, by default of all names. With `--fill` the files are copied
into the pages, between the lines `<!-- figures NAME -->` and `<!-- end -->`. All tables together
take less than an hour on two cores. A test compares pages with files.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import scale

from bench import commands, peers, records, tables, timing
from bench.datasets import Labelled, bundled, mixture
from bench.quality import diffusion, which
from bench.quality.generated import FAMILIES
from bench.speed import memory
from bench.timing import timed
from rffpk import DiffusionPowerKMeans, PowerKMeans, select_n_clusters

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "pages"
BLOCK = re.compile(r"(<!-- figures ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


# Titles of methods.
TITLES = {
    "KMeans": "`KMeans(n_init=10)`",
    "SpectralClustering": '`SpectralClustering(affinity="nearest_neighbors")`',
    "PowerKMeans": "`PowerKMeans`",
    "DiffusionPowerKMeans": "`DiffusionPowerKMeans`",
}


def headline() -> str:
    """Return the ARI of four classes on four data sets, and CPU seconds for 10^6 rows."""
    moons = make_moons(1000, noise=0.08, random_state=0)
    sets = [bundled("digits"), *map(scaled, ("breast cancer", "wine")), moons]
    many, rows = mixture(10**6, 1.0), []
    for name, title in TITLES.items():
        make, took = peers.METHODS[name], "not run"
        if name != "SpectralClustering":
            took = f"{cpu_seconds(make(10, random_state=0), many):.1f}"
        rows.append([title, *(f"{mean_ari(make, X, y):.2f}" for X, y in sets), took])
    columns = ["class", "digits", "breast cancer", "wine", "two moons", "seconds, 10⁶ rows"]
    return tables.markdown(columns, rows)


def scaled(name: str) -> Labelled:
    """Return a data set of scikit-learn with standardized columns."""
    X, y = bundled(name)
    return scale(X), y


def mean_ari(make: Any, X: np.ndarray, y: np.ndarray, seeds: int = 3) -> float:
    """Return the mean ARI of fits with the right number of clusters."""
    k = len(np.unique(y[y >= 0]))
    fits = (make(k, random_state=seed).fit_predict(X) for seed in range(seeds))
    return float(np.mean([adjusted_rand_score(y, labels) for labels in fits]))


def cpu_seconds(model: Any, X: Any) -> float:
    """Return the CPU seconds of a fit on one thread."""
    return timing.pinned(lambda: timing.cpu_timed(lambda: model.fit(X))[0], 1)


def real_sets() -> str:
    """Return mean NMI on real data sets, as `bench.quality.diffusion` recorded it."""
    table = records.by_method(RECORDS / "labels.jsonl", "group", "set")
    rows = []
    for method in ("DiffusionPowerKMeans", "SpectralClustering", "PowerKMeans", "KMeans"):
        groups = ([row[method] for (g, _), row in table.items() if g == group] for group in GROUPS)
        means = (np.mean([np.mean(record["NMI"]) for record in group]) for group in groups)
        rows.append([TITLES[method], *tables.cells(means, ".2f")])
    return tables.markdown(["class", *GROUPS.values()], rows)


RECORDS = ROOT / "bench" / "results"
GROUPS = {"real": "31 data sets used for tuning", "unseen": "17 other data sets"}


def which_class() -> str:
    """Return the ARI of small data sets, as `bench.quality.which` recorded it."""
    scores, methods = which.means(RECORDS / "which.jsonl"), [*which.METHODS][:4]
    rows = [
        [title, *tables.cells(map(scores[name].get, methods), ".2f")]
        for name, title in SMALL_SETS.items()
    ]
    names = ("KMeans(n_init=10)" if method == "KMeans" else method for method in methods)
    return tables.markdown(["data", *(f"`{name}`" for name in names)], rows)


SMALL_SETS = {
    "digits": "digits", "breast cancer": "breast cancer", "moons": "two moons",
    "circles": "two circles", "topics": "embeddings, cosine metric where a class has it",
    "blobs, 20 columns": "Gaussian blobs, 20 columns", "wine": "wine",
    "four segments, words": "customers, numbers and words",
    "seeds, cut": "seeds, a third of the columns as words",
    "penguins": "penguins, numbers and words",
}  # fmt: skip


def number_of_clusters() -> str:
    """Return how often `n_clusters="auto"` is right, on data sets on which it was not tuned."""
    rows = []
    for names, title in KINDS.items():
        families = [[*f()] for f in FAMILIES if f.__name__ in names]
        problems = [p for f in families for p in (f[132:] if "views" in names else f[1::2])]
        found = [(select_n_clusters(X, random_state=0), right) for _, X, right in problems]
        right = np.mean([s.n_clusters in k for s, k in found])
        listed = np.mean([not {*k}.isdisjoint(s.numbers.tolist()) for s, k in found])
        rows.append([title, len(found), f"{right:.0%}", f"{listed:.0%}"])
    return tables.markdown(["data", "data sets", "right", "right number is listed"], rows)


KINDS = {
    ("separated",): "2 to 200 separated Gaussians, 2 to 384 columns",
    ("plane",): "8 to 100 Gaussians in the plane that nearly touch",
    ("shapes", "nested", "towns"): "shapes, groups of groups, maps",
    ("words", "topics", "piles"): "tables with words, topics, rounded numbers",
    ("structureless",): "one cluster: uniform, Gaussian, heavy tails",
    ("views",): "two to four views",
}


def noise_shapes() -> str:
    """Return ARI with noise as a class, and the share of noise with the label -1."""
    methods: dict[str, Callable[[int], Any]] = {
        '`noise="auto"`': lambda k: DiffusionPowerKMeans(k, noise="auto", random_state=0),
        "`noise=0.09`": lambda k: DiffusionPowerKMeans(k, noise=0.09, random_state=0),
        "no `noise`": lambda k: DiffusionPowerKMeans(k, random_state=0),
        "scikit-learn `HDBSCAN`": lambda k: HDBSCAN(copy=True),
    }
    rows = []
    for name, (X, y) in diffusion.generated():
        if name.endswith(", noise"):
            k, cells = len(np.unique(y[y >= 0])), []
            for make in methods.values():
                labels = make(k).fit_predict(X)
                caught, lost = (labels[y < 0] == -1).mean(), (labels[y >= 0] == -1).mean()
                cells.append(f"{adjusted_rand_score(y, labels):.2f} ({caught:.0%}, {lost:.0%})")
            rows.append([name.removesuffix(", noise"), *cells])
    return tables.markdown(["data", *methods], rows)


def many_rows() -> str:
    """Return CPU seconds of fits of Gaussian clusters, by the number of rows."""
    classes = [
        ("`PowerKMeans(10)`", PowerKMeans(10, random_state=0)),
        ("`DiffusionPowerKMeans(10)`", DiffusionPowerKMeans(10, random_state=0)),
        ("scikit-learn `KMeans(10)`", KMeans(10, random_state=0)),
        ("scikit-learn `KMeans(10, n_init=10)`", KMeans(10, n_init=10, random_state=0)),
    ]
    data = {f"10{e}": mixture(n, 0.3) for e, n in zip("⁴⁵⁶", (10**4, 10**5, 10**6))}
    rows = [
        [name, *(f"{cpu_seconds(model, X):.2f}" for X in data.values())] for name, model in classes
    ]
    return tables.markdown(["class", *(f"{name} rows" for name in data)], rows)


def fit_memory() -> str:
    """Return the peak memory of fits beyond their rows."""
    rows = []
    for case in (
        memory.Case("PowerKMeans", 10**6, 50, 0),
        memory.Case("DiffusionPowerKMeans", 10**6, 50, 0),
        memory.Case("RFFKernelPowerKMeans", 10**6, 50, 0),
        memory.Case("PowerKMeans", 10**6, 50, 0, from_source=True),
        memory.Case("DiffusionPowerKMeans", 10**6, 50, 0, from_source=True),
        memory.Case("DiffusionPowerKMeans", 200_000, 50, 0),
        memory.Case("KernelPowerKMeans", 5000, 50, 0),
    ):
        beyond = timing.in_own_process(memory.measure, case) / 1e6
        source = " from a source" * case.from_source
        size = f"{case.n:,}".replace(",", " ")
        stored = 0 if case.from_source else 4 * case.n * case.d / 1e6
        beyond = float(f"{beyond:.2g}")
        rows.append([f"`{case.name}`{source}", size, f"{stored:.0f}", f"{beyond:.0f}"])
    return tables.markdown(["class", "rows", "MB of X", "MB beyond X"], rows)


def of_page(page: str) -> dict[str, Any]:
    """Run the Python blocks of a page, and return their names."""
    names: dict[str, Any] = {}
    text = (ROOT / "docs" / page).read_text()
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block, page, "exec"), names)
    return names


DRAWS = 10


def log_amounts() -> str:
    """Return the ARI of customers with skewed amounts, as they are and as logarithms."""
    page = of_page("for/tables.md")
    draws = [page["customers"](seed) for seed in range(DRAWS)]
    change = page["with_logarithms"]
    scores = {
        "as they are": [page["agreement"](frame, y) for frame, y in draws],
        "logarithms": [page["agreement"](change(frame), y) for frame, y in draws],
    }
    return spread("amounts", scores)


def spread(column: str, scores: Mapping[str, list[float]]) -> str:
    """Return the mean, the least and the largest of scores."""
    rows = [
        [name, *tables.cells([np.mean(own), min(own), max(own)], ".2f")]
        for name, own in scores.items()
    ]
    return tables.markdown([column, "mean", "least", "largest"], rows)


def cell_graphs() -> str:
    """Return the ARI of generated cells, by components and by a neighbor graph."""
    scores: dict[str, list[float]] = {}
    for X, y in map(of_page("for/cells.md")["cells"], range(DRAWS)):
        graph = kneighbors_graph(X, 15)
        fits = {
            "`DiffusionPowerKMeans`, neighbor graph": (DiffusionPowerKMeans, graph),
            "`DiffusionPowerKMeans`, principal components": (DiffusionPowerKMeans, X),
            "`PowerKMeans`, principal components": (PowerKMeans, X),
        }
        for name, (make, rows) in fits.items():
            model = make(8, random_state=0)
            if rows is graph:
                model.set_params(metric="precomputed")
            scores.setdefault(name, []).append(adjusted_rand_score(y, model.fit_predict(rows)))
    return spread("class and data", scores)


def topic_embeddings() -> str:
    """Return the ARI and CPU seconds of generated topics."""
    classes: dict[str, Callable[[int], Any]] = {
        '`PowerKMeans(k, metric="cosine", noise="auto")`': partial(
            PowerKMeans, metric="cosine", noise="auto"
        ),
        '`PowerKMeans(k, metric="cosine")`': partial(PowerKMeans, metric="cosine"),
        '`DiffusionPowerKMeans(k, metric="cosine", noise="auto")`': partial(
            DiffusionPowerKMeans, metric="cosine", noise="auto"
        ),
        "scikit-learn `KMeans(k)`": KMeans,
    }
    topics = of_page("for/topics.md")["topics"]
    data = {"20 topics": topics(5000, 20, 0), "200 topics, 10 % noise": topics(20_000, 200, 0.1)}
    return tables.markdown(
        ["class", *(f"{name}: {what}" for name in data for what in ("ARI", "seconds"))],
        [
            [name, *(cell for own in data.values() for cell in ari_and_cpu(make, *own))]
            for name, make in classes.items()
        ],
    )


def ari_and_cpu(make: Any, X: np.ndarray, y: np.ndarray) -> list[str]:
    """Return the ARI and the CPU seconds of a fit with the right number, as cells of a table."""
    model = make(len(np.unique(y[y >= 0])), random_state=0)
    seconds = cpu_seconds(model, X)
    return [f"{adjusted_rand_score(y, model.labels_):.2f}", f"{seconds:.1f}"]


def map_positions() -> str:
    """Return the ARI and CPU seconds of towns, roads and noise on a map."""
    page = of_page("for/positions.md")
    degrees, kinds = page["positions"](20_000, seed=0)
    X, rows = page["metres"](degrees, 48.7), []
    for name, make in {
        '`DiffusionPowerKMeans(12, noise="auto")`': partial(DiffusionPowerKMeans, noise="auto"),
        "`DiffusionPowerKMeans(12, noise=0.05)`": partial(DiffusionPowerKMeans, noise=0.05),
        "`DiffusionPowerKMeans(12)`": DiffusionPowerKMeans,
        '`PowerKMeans(12, noise="auto")`': partial(PowerKMeans, noise="auto"),
        "scikit-learn `KMeans(12)`": KMeans,
        "scikit-learn `HDBSCAN(min_cluster_size=100)`": lambda k, random_state: HDBSCAN(
            min_cluster_size=100, copy=True
        ),
    }.items():
        rows.append([name, *ari_and_cpu(make, X, kinds)])
    return tables.markdown(["class", "ARI", "seconds"], rows)


# A name for each table of the pages, and the function that returns the table.
TABLES: dict[str, Callable[[], str]] = {
    "headline": headline,
    "real_sets": real_sets,
    "which_class": which_class,
    "number_of_clusters": number_of_clusters,
    "noise_shapes": noise_shapes,
    "many_rows": many_rows,
    "fit_memory": fit_memory,
    "log_amounts": log_amounts,
    "cell_graphs": cell_graphs,
    "topic_embeddings": topic_embeddings,
    "map_positions": map_positions,
}


def fill() -> None:
    """Copy the files of figures into the pages."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))):
        text = page.read_text()
        filled = BLOCK.sub(
            lambda block: block[1] + (RESULTS / f"{block[2]}.md").read_text() + block[4], text
        )
        if filled != text:
            page.write_text(filled)
            print(f"filled {page.relative_to(ROOT)}")


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
