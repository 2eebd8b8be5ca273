"""Write Markdown from the results: a table for each paper and set, and the claims."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from bench import tables
from bench.papers.cells import EXPERIMENTS, Cell, methods_of, stored_name
from bench.papers.methods import AVERAGED
from bench.papers.published import NOT_AVAILABLE, PUBLISHED

Records = dict[str, dict[str, Any]]
Earlier = dict[tuple[str, str, str], list[str]]

METRICS = ("ACC", "NMI", "purity")


def best_variant(group: list[Cell], results: Records) -> tuple[Cell, np.ndarray] | None:
    """Return the point of a method's grid with the best mean ACC, by the labels.

    Where the method is averaged, it is the mean of all points.
    """
    if group and group[0].method in AVERAGED:
        rows = mean_of_grid(group, results)
        return None if rows is None else (group[0], rows)
    scored = [(cell, np.array(results[cell.key]["rows"])) for cell in group if cell.key in results]
    scored = [(cell, rows) for cell, rows in scored if len(rows)]
    return max(scored, key=lambda pair: pair[1][:, 0].mean(), default=None)


def mean_of_grid(group: list[Cell], results: Records) -> np.ndarray | None:
    """Return the means over the points of a grid, for each repeat."""
    points = [np.array(results[c.key]["rows"]) for c in group if c.key in results]
    points = [rows for rows in points if len(rows)]
    least = min(map(len, points), default=0)
    return np.mean([rows[:least] for rows in points], axis=0) if least else None


def groups(experiment: str, data: Path) -> dict[tuple[str, str], dict[str, list[Cell]]]:
    """Group the cells of all available data sets by set and method, then by protocol."""
    grouped: dict[tuple[str, str], dict[str, list[Cell]]] = {}
    for dataset in EXPERIMENTS[experiment]:
        if not (data / f"{stored_name(dataset)}.npz").exists():
            continue
        for method in methods_of(experiment, dataset.split(":")[0]):
            protocols = grouped.setdefault((dataset, method.name), {"paper": [], "defaults": []})
            protocols[method.protocol] += [
                Cell(experiment, dataset, method.name, method.protocol, variant)
                for variant in method.grid
            ]
    return grouped


def earlier_rows(page: str) -> Earlier:
    """Read the entries of the tables of a page, by the heading and the first two entries."""
    rows: Earlier = {}
    heading = ""
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("| "):
            parts = [part.strip() for part in line.strip().strip("|").split("|")]
            rows[heading, parts[0], parts[1]] = parts
    return rows


# The entries of a row that a protocol determines.
HALVES = {"paper": [*range(2, 7), 8], "defaults": list(range(9, 14))}


def table(experiment: str, data: Path, results: Records, earlier: Earlier) -> str:
    """Return the table of an experiment.

    It has the entries of an earlier table where there are no results, and no rows without entries.
    """
    grouped = groups(experiment, data)
    lines = [f"### {experiment}", ""]
    if experiment in NOT_AVAILABLE:
        lines += [f"Not in the data folder: {NOT_AVAILABLE[experiment]}.", ""]
    missing = set(EXPERIMENTS[experiment]) - {dataset for dataset, _ in grouped}
    if missing:
        lines += [f"Missing here: {', '.join(sorted(missing))}.", ""]
    scores = ("ACC", "NMI", "purity", "s", "repeats")
    defaults = ("ACC, defaults", *scores[1:])
    lines.append(tables.heading(("set", "method", *scores, "published", "difference", *defaults)))
    for (dataset, method), protocols in grouped.items():
        of_set = PUBLISHED.get(experiment, {}).get(dataset.split(":")[0], {})
        reported = of_set.get(method.split(", ")[0])  # of a method in any variant
        best = {name: best_variant(group, results) for name, group in protocols.items()}
        values = difference = ""
        if reported:
            values = ", ".join("-" if r is None else f"{r:.2f}" for r in reported)
        if reported and best["paper"]:
            pairs = zip(best["paper"][1].mean(axis=0), reported)
            difference = ", ".join("-" if r is None else f"{m - r:+.1f}" for m, r in pairs)
        parts = [
            *(dataset, method),
            *_half(protocols["paper"], best["paper"], results),
            *(values, difference),
            *_half(protocols["defaults"], best["defaults"], results, reported),
        ]
        old = earlier.get((experiment, dataset, method), [])
        for name, entries in HALVES.items():
            if best[name] is None and len(old) == len(parts) and old[entries[0]]:
                for entry in entries:
                    parts[entry] = old[entry]
        if {parts[6], parts[13]} - {"", "not run"}:
            lines.append(tables.line(parts))
    return "\n".join(lines) + "\n"


def _half(
    group: list[Cell], best: tuple[Cell, np.ndarray] | None, results: Records, reported: Any = None
) -> list[str]:
    """Return scores, seconds and repeats of a protocol, in bold from the `reported` score on."""
    if not group:
        return [""] * 5
    if best is None:
        notes = {results[cell.key]["note"] for cell in group if cell.key in results} or {"not run"}
        return ["", "", "", "", "; ".join(sorted(notes))]
    cell, rows = best
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    scores = [f"{m:.1f} ± {d:.1f}" for m, d in zip(mean[:3], deviation[:3])]
    if reported:
        column = 1 if reported[0] is None else 0
        if mean[column] >= reported[column]:
            scores[column] = f"**{scores[column]}**"
    notes = [str(len(rows)), results[cell.key]["note"]]
    if cell.method in AVERAGED:
        notes.append(f"mean of {len(group)}")
    elif len(group) > 1:
        done = sum(bool(results.get(point.key, {}).get("rows")) for point in group)
        points = str(done) if done == len(group) else f"{done} of {len(group)}"
        notes.append(f"best of {points}: {cell.variant}")
    return [*scores, f"{mean[3]:.2f}", "; ".join(filter(None, notes))]


# ---- claims -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A claim that `ours` is at least as good as `theirs`, or with `alike` as good, on all sets."""

    ours: str
    theirs: str
    experiments: tuple[str, ...]
    metric: str = "ACC"
    protocol: str = "paper"
    alike: bool = False
    quicker: bool = False  # the paper also claims that it is faster
    grid: str = "best"  # or "mean"
    note: str = ""


CLAIMS = [
    *(Claim("KPK", theirs, ("kpk",), "NMI", note="random starts")
      for theirs in ("kernel k-means", "power k-means", "spectral")),
    *(Claim("KPK", theirs, ("kpk, k-means++",), "NMI", note="k-means++ starts")
      for theirs in ("kernel k-means", "power k-means", "spectral")),
    Claim("KPK", "kernel k-means", ("kpk, more sets",), "NMI", note="sets not in the paper"),
    *(Claim("RFF-KPKM", theirs, ("rff-kpkm",))
      for theirs in ("KPK", "power k-means", "kernel k-means", "spectral")),
    *(Claim("MKPK", theirs, ("mkpk",), "NMI")
      for theirs in ("kernel k-means", "spectral", "MKKM", "RMKKM")),
    Claim("IP-RFF-MKPKM", "RFF-MKPKM", ("ip-rff-mkpkm",), note="typicality"),
    Claim("IP-RFF-MKPKM", "RFF-MKPKM", ("ip-rff-mkpkm",), grid="mean",
          note="typicality, mean of the grid"),
    Claim("IP-RFF-MKPKM, standardised", "RFF-MKPKM, standardised", ("ip-rff-mkpkm",), grid="mean",
          note="typicality, mean of the grid"),
    Claim("IP-RFF-MKPKM", "RFF-MKPKM", ("smkc", "famkkm"), protocol="defaults",
          note="typicality, our defaults"),
    *(Claim("FAMKKM", theirs, ("famkkm",), quicker="only" in theirs, note="best of nine points")
      for theirs in ("FAMKKM, partitions only", "FAMKKM, kernels only", "AverageMKKM", "MKKM",
                     "SimpleMKKM")),
    *(Claim("SMKC", theirs, ("smkc",), quicker=theirs == "SimpleMKKM")
      for theirs in ("SimpleMKKM", "MKKM", "MKKM-MR", "LKAM", "ONKC", "LMKKM", "single best view")),
    Claim("SMKC", "SimpleMKKM", ("famkkm",), quicker=True, note="sets not in the paper"),
    Claim("MKC-AE", "SimpleMKKM", ("mkc-ae",), alike=True, quicker=True),
]  # fmt: skip

_TIE = 0.5  # points
_LEVEL = 0.05  # of Wilcoxon's test


CLAIM_COLUMNS = (
    "claim", "difference, points", "for, against, neither", "verdict", "seconds", "quicker",
)  # fmt: skip


def claims(data: Path, results: Records, earlier: Earlier) -> str:
    """Return the table of the claims, with rows of an earlier table if they have more sets."""
    known = {title: row for (_, title, _), row in earlier.items()}
    lines = [
        "A data set counts for or against a claim if the means differ by more than half a point. "
        f"Methods whose repeats differ need p < {_LEVEL}, too (Wilcoxon's signed-rank test on "
        "repeats of one seed). Confirmed: some data set counts for it and none against it. "
        "Quicker: only where the paper claims it.",
        "",
        tables.heading(CLAIM_COLUMNS),
    ]
    rows = [_claim(claim, data, results) for claim in CLAIMS]
    rows = [max(row, known.get(row[0], row), key=_n_sets) for row in rows]
    return "\n".join([*lines, *map(tables.line, rows)]) + "\n"


def _n_sets(row: list[str]) -> int:
    """Count the data sets of a row of the claims."""
    return 0 if row[3] == "not run" else sum(map(int, row[2].split(", ")))


def _claim(claim: Claim, data: Path, results: Records) -> list[str]:
    column = METRICS.index(claim.metric)
    signs: list[int] = []
    texts, seconds = [], []
    for experiment in claim.experiments:
        grouped = groups(experiment, data)
        for dataset in EXPERIMENTS[experiment]:
            pair = [
                _rows(grouped.get((dataset, name), {}).get(claim.protocol, []), claim.grid, results)
                for name in (claim.ours, claim.theirs)
            ]
            if pair[0] is None or pair[1] is None:
                continue
            n = min(map(len, pair))
            gaps = pair[0][:n, column] - pair[1][:n, column]
            sign, text = _compared(gaps)
            signs.append(sign)
            texts.append(f"{dataset} {text}")
            seconds.append([rows[:, 3].mean() for rows in pair])
    relation = "~" if claim.alike else ">="
    title = f"{claim.ours} {relation} {claim.theirs} ({claim.metric})"
    title += f"; {claim.note}" if claim.note else ""
    if not signs:
        return [title, "-", "-", "not run", "-", "-"]
    wins, losses = signs.count(1), signs.count(-1)
    if claim.alike:
        wins = len(signs) - losses
    verdicts = {(True, False): "confirmed", (True, True): "partly", (False, True): "not"}
    verdict = verdicts.get((wins > 0, losses > 0), "no difference")
    ours, theirs = np.sum(seconds, axis=0)
    quicker = ("yes" if ours < theirs else "no") if claim.quicker else ""
    counts = f"{signs.count(1)}, {losses}, {signs.count(0)}"
    took = f"{ours:.2f} : {theirs:.2f}"
    return [title, "; ".join(texts), counts, verdict, took, quicker]


def _rows(group: list[Cell], grid: str, results: Records) -> np.ndarray | None:
    if grid == "mean":
        return mean_of_grid(group, results)
    best = best_variant(group, results)
    return None if best is None else best[1]


def _compared(gaps: np.ndarray) -> tuple[int, str]:
    """Return 1, 0 or -1 for better, no difference and worse, and the difference as text."""
    gap = float(gaps.mean())
    sign = int(np.sign(gap)) if abs(gap) > _TIE else 0
    if len(gaps) < 6 or gaps.std() < _TIE / 5:  # too few or equal repeats
        return sign, f"{gap:+.1f}"
    p = wilcoxon(gaps).pvalue
    return (sign if p < _LEVEL else 0), f"{gap:+.1f} (p = {p:.1g})"
