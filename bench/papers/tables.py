"""Markdown from the results: a table for each paper and set, and the claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from bench.papers.cells import EXPERIMENTS, Cell, cells, published
from bench.papers.published import NOT_HAD, READINGS

Records = dict[str, dict[str, Any]]

METRICS = ("ACC", "NMI", "purity")


def best_variant(group: list[Cell], found: Records) -> tuple[Cell, np.ndarray] | None:
    """Of a method's grid the point with the best mean ACC, by the labels."""
    scored = [(cell, np.array(found[cell.key]["rows"])) for cell in group if cell.key in found]
    scored = [(cell, rows) for cell, rows in scored if len(rows)]
    return max(scored, key=lambda pair: pair[1][:, 0].mean(), default=None)


def groups(experiment: str, data: Path) -> dict[tuple[str, str], dict[str, list[Cell]]]:
    """Cells by data set and method, then by protocol."""
    grouped: dict[tuple[str, str], dict[str, list[Cell]]] = {}
    for cell in cells([experiment], data):
        protocols = grouped.setdefault((cell.dataset, cell.method), {"paper": [], "defaults": []})
        protocols[cell.protocol].append(cell)
    return grouped


def table(experiment: str, data: Path, found: Records) -> str:
    grouped = groups(experiment, data)
    lines = [f"### {experiment}", ""]
    if experiment in NOT_HAD:
        lines += [f"Not in the data folder: {NOT_HAD[experiment]}.", ""]
    missing = set(EXPERIMENTS[experiment]) - {dataset for dataset, _ in grouped}
    if missing:
        lines += [f"Missing here: {', '.join(sorted(missing))}.", ""]
    lines += [
        "| set | method | ACC | NMI | purity | s | repeats | published | difference "
        "| ACC, defaults | NMI | purity | s | repeats |",
        "|---" * 14 + "|",
    ]
    for (dataset, method), protocols in grouped.items():
        told = published((protocols["paper"] or protocols["defaults"])[0])
        best = {name: best_variant(group, found) for name, group in protocols.items()}
        beside = apart = ""
        if told:
            beside = ", ".join("-" if t is None else f"{t:.2f}" for t in told)
        if told and best["paper"]:
            mean = best["paper"][1].mean(axis=0)
            apart = ", ".join("-" if t is None else f"{m - t:+.1f}" for m, t in zip(mean, told))
        parts = [
            *(dataset, method, *_half(protocols["paper"], best["paper"], found), beside, apart),
            *_half(protocols["defaults"], best["defaults"], found, told),
        ]
        lines.append(f"| {' | '.join(parts)} |")
    return "\n".join(lines) + "\n"


def _half(
    group: list[Cell], best: tuple[Cell, np.ndarray] | None, found: Records, told: Any = None
) -> list[str]:
    """Scores, seconds and repeats under one protocol, in bold where they reach what was `told`."""
    if not group:
        return [""] * 5
    if best is None:
        notes = {found[cell.key]["note"] for cell in group if cell.key in found} or {"not run"}
        return ["", "", "", "", "; ".join(sorted(notes))]
    cell, rows = best
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    scores = [f"{m:.1f} ± {d:.1f}" for m, d in zip(mean[:3], deviation[:3])]
    if told:
        column = 1 if told[0] is None else 0
        if mean[column] >= told[column]:
            scores[column] = f"**{scores[column]}**"
    notes = [str(len(rows)), found[cell.key]["note"]]
    if len(group) > 1:
        notes.append(f"best of {len(group)}: {cell.variant}")
    return [*scores, f"{mean[3]:.2f}", "; ".join(filter(None, notes))]


# ---- claims -------------------------------------------------------------------------------------


def scores(
    experiment: str, dataset: str, method: str, protocol: str, data: Path, found: Records
) -> np.ndarray | None:
    protocols = groups(experiment, data).get((dataset, method), {})
    best = best_variant(protocols.get(protocol, []), found)
    return None if best is None else best[1]


CLAIMS = [
    ("KPK >= kernel k-means", "kpk", "KPK", "paper", "kernel k-means", "paper", "NMI"),
    ("KPK >= kernel k-means, k-means++ starts", "kpk, k-means++", "KPK", "paper",
     "kernel k-means", "paper", "NMI"),
    ("KPK >= power k-means", "kpk", "KPK", "paper", "power k-means", "paper", "NMI"),
    ("KPK >= spectral clustering", "kpk", "KPK", "paper", "spectral", "paper", "NMI"),
    ("RFF-KPKM >= KPK", "rff-kpkm", "RFF-KPKM", "paper", "KPK", "paper", "ACC"),
    ("typicality improves ACC (HW2)", "ip-rff-mkpkm", "IP-RFF-MKPKM", "paper", "RFF-MKPKM", "paper",
     "ACC"),
    ("typicality improves ACC (our defaults)", "famkkm", "IP-RFF-MKPKM", "defaults", "RFF-MKPKM",
     "defaults", "ACC"),
    ("FAMKKM >= partition fusion only", "famkkm", "FAMKKM", "paper", "FAMKKM, partitions only",
     "paper", "ACC"),
    ("FAMKKM >= kernel fusion only", "famkkm", "FAMKKM", "paper", "FAMKKM, kernels only", "paper",
     "ACC"),
    ("SMKC >= SimpleMKKM", "smkc", "SMKC", "paper", "SimpleMKKM", "paper", "ACC"),
    ("SMKC >= SimpleMKKM, other sets", "famkkm", "SMKC", "paper", "SimpleMKKM", "paper", "ACC"),
    ("MKC-AE ~ SimpleMKKM, in less time", "mkc-ae", "MKC-AE", "paper", "SimpleMKKM", "paper",
     "ACC"),
]  # fmt: skip

_TIE = 0.5  # points


def claims(data: Path, found: Records) -> str:
    lines = [
        "| claim | sets where it holds | difference, points | verdict | seconds |",
        "|---" * 5 + "|",
    ]
    for text, experiment, a, a_protocol, b, b_protocol, metric in CLAIMS:
        column = METRICS.index(metric)
        cells_, wins, ties, seconds = [], 0, 0, []
        for dataset in EXPERIMENTS[experiment]:
            pair = [
                scores(experiment, dataset, name, protocol, data, found)
                for name, protocol in ((a, a_protocol), (b, b_protocol))
            ]
            if pair[0] is None or pair[1] is None:
                continue
            n = min(len(pair[0]), len(pair[1]))
            gaps = pair[0][:n, column] - pair[1][:n, column]
            gap = float(gaps.mean())
            wins, ties = wins + (gap > _TIE), ties + (abs(gap) <= _TIE)
            p = wilcoxon(gaps).pvalue if n >= 6 and np.any(gaps) else float("nan")
            cells_.append(f"{dataset} {gap:+.1f}" + (f" (p = {p:.2g})" if p == p else ""))
            seconds.append([rows[:, 3].mean() for rows in pair])
        if not cells_:
            lines.append(f"| {text} | - | - | not run | - |")
            continue
        total = len(cells_)
        verdict = "confirmed" if wins + ties == total else "partly" if wins + ties else "not"
        took = " : ".join(f"{t:.2f}" for t in np.sum(seconds, axis=0))
        lines.append(
            f"| {text} ({metric}) | {wins} of {total}, {ties} ties | {'; '.join(cells_)} | "
            f"{verdict} | {took} |"
        )
    return "\n".join(lines) + "\n"


def readings() -> str:
    texts = {name: " ".join(text.split()) for name, text in READINGS.items()}
    return "\n".join(f"- **{name}**: {text}" for name, text in texts.items()) + "\n"
