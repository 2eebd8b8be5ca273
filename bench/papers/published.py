"""List what the papers report, in percent: ACC, NMI, purity (None if they do not report it)."""

from __future__ import annotations

import re

Scores = tuple[float | None, float | None, float | None]


# Experiments and data sets, and below them the scores of each method.
_VALUES = """
rff-kpkm | yale |
    kernel k-means 58.18 61.49 25.39; spectral 41.67 47.00 44.00; power k-means 57.58 65.90 59.39;
    KPK 49.70 58.33 52.73; RFF-KPKM 61.21 68.18 61.21
rff-kpkm | leaves100 |
    kernel k-means 60.19 81.45 64.06; spectral 32.86 62.32 36.81; power k-means 62.06 82.75 65.88;
    KPK 61.81 80.87 65.00; RFF-KPKM 64.13 82.89 66.88
ip-rff-mkpkm | hw2 |
    RFF-MKPKM 83.00 - -; IP-RFF-MKPKM 90.15 81.56 90.15; MKPK 86.54 75.06 85.12
kpk | yale |
    KPK - 59.21 -; kernel k-means - 51.99 -; power k-means - 17.14 -; spectral - 52.41 -
kpk | seeds |
    KPK - 75.02 -; kernel k-means - 72.47 -; power k-means - 73.84 -; spectral - 72.39 -
kpk | lung_discrete |
    KPK - 82.61 -; kernel k-means - 53.20 -; power k-means - 69.67 -; spectral - 73.40 -
kpk | coil20 |
    KPK - 80.82 -; kernel k-means - 68.82 -; power k-means - 76.98 -; spectral - 70.83 -
kpk | glioma |
    KPK - 62.97 -; kernel k-means - 40.85 -; power k-means - 59.31 -; spectral - 25.09 -
kpk, k-means++ | yale |
    KPK - 63.24 -; kernel k-means - 55.46 -; power k-means - 17.64 -; spectral - 57.54 -
kpk, k-means++ | seeds |
    KPK - 76.48 -; kernel k-means - 71.56 -; power k-means - 74.82 -; spectral - 73.82 -
kpk, k-means++ | lung_discrete |
    KPK - 84.23 -; kernel k-means - 58.25 -; power k-means - 67.19 -; spectral - 73.49 -
kpk, k-means++ | coil20 |
    KPK - 82.40 -; kernel k-means - 69.13 -; power k-means - 75.30 -; spectral - 72.64 -
kpk, k-means++ | glioma |
    KPK - 64.12 -; kernel k-means - 43.15 -; power k-means - 59.03 -; spectral - 28.76 -
mkpk | yale |
    kernel k-means - 42.07 -; spectral - 44.79 -; MKKM - 50.06 -; RMKKM - 55.58 -; MKPK - 54.82 -
mkpk | coil20 |
    kernel k-means - 63.57 -; spectral - 54.34 -; MKKM - 70.64 -; RMKKM - 77.34 -; MKPK - 77.63 -
smkc | leaves100 |
    single best view 58.36 78.08 61.77; MKKM 43.13 69.83 46.63; MKKM-MR 76.74 89.61 79.69; LKAM
    80.12 90.04 82.94; ONKC 80.87 91.96 83.78; LMKKM 43.23 69.88 46.95; SimpleMKKM 81.14 92.39
    83.98; SMKC 81.10 92.50 84.12
smkc | mfeat |
    single best view 86.45 75.79 86.45; MKKM 63.85 65.17 66.04; MKKM-MR 82.21 73.85 82.21; LKAM
    94.16 90.03 94.21; ONKC 88.03 78.82 88.03; LMKKM 64.41 65.61 65.64; SimpleMKKM 92.58 86.44
    92.58; SMKC 94.95 89.48 94.95
mkc-ae | mfeat |
    SimpleMKKM 90.50 83.62 90.50; MKC-AE 91.40 84.38 91.40
"""


def _parsed(text: str) -> dict[str, dict[str, dict[str, Scores]]]:
    """Return scores by experiment, data set and method."""
    table: dict[str, dict[str, dict[str, Scores]]] = {}
    for block in re.split(r"\n(?=\S)", text.strip()):
        experiment, dataset, values = block.split(" |")
        rows = (row.split() for row in values.split(";"))
        scores = {" ".join(row[:-3]): (*map(_number, row[-3:]),) for row in rows}
        table.setdefault(experiment, {})[dataset.strip()] = scores
    return table


def _number(text: str) -> float | None:
    return None if text == "-" else float(text)


PUBLISHED = _parsed(_VALUES)

# Sets of the papers that are not public, too large to ship, or not in the data folder.
NOT_AVAILABLE = {
    "rff-kpkm": "Caltech101-20, CIFAR10 features, YTF10, YTF20; Yale has 1024 pixels, not 4096",
    "ip-rff-mkpkm": "LGG, Caltech101-7, Caltech101-20, NUS-WIDE-SCENE, NUS-WIDE-OBJECT, CIFAR10",
    "kpk": "JAFFE, TOX-171, Lung, Isolet",
    "mkpk": "JAFFE, ORL",
    "smkc": "Synthetic3d, Wiki, Handwritten, ALOI-100, AwA, Cifar10, Cifar100, YtVideo, Winnipeg",
    "mkc-ae": "Flo17, CCV, Flo102, Reuters, NUSWIDE, AwA, MNIST, YtVideo",
    "famkkm": "Pollen, Caltech102-10, -20, -30, flower102, ALOI-100: all of its sets",
}
