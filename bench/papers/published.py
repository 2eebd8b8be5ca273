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

# The choices that were made where a paper leaves them open or contradicts itself.
CHOICES = {
    "all": """k is the number of classes; purity, NMI (arithmetic mean) and ACC in percent. A
        paper's protocol is run for the methods and baselines of its tables; every estimator that
        accepts the data is also run with its defaults.""",
    "rff-kpkm": """sigma = 10^3 on the columns without scaling, iid frequencies, D = ceil(4
        log^3(2k)) (the main text; "4 D" is the appendix), s0 from -5 ... -25 by ACC, factor 1.04
        every three passes, k-means on the mapped data first, one start. The stopping rule is not
        stated: a relative change of the objective of 1e-6 here; KPK is annealed to the end. Kernel
        k-means starts from k-means++.""",
    "ip-rff-mkpkm": """HW2 is the pixel and the factor view of mfeat. lambda in {0.1, ..., 10^3}
        multiplies an entropy that is added to a sum over rows: weight_entropy = lambda / n. The
        reference distance is the mean: the paper's depends on the initial centroids, ours on the
        merged state. The exponent s falls every two passes. MKPK: s0 = -5, the same lambda,
        annealed to the end.""",
    "kpk": """Columns are standardised, constant ones left at zero; tr11, of words, has rows of
        length one. The initial weights are not stated. Here they are k rows, drawn at random or by
        k-means++ in the space of the kernel, and all methods of a repeat share them; "random
        labels" is an alternative. s0 = -1, factor 1.04 every 5 passes. The paper stops when the
        objective converges, which at s0 = -1 is before clusters separate ("until it rests": a
        relative change of 1e-4). Elsewhere s falls to the end, then k-means passes follow until the
        labels do not change. Power k-means does this on the columns. Spectral clustering has
        scikit-learn's ten starts.""",
    "mkpk": """lambda is not stated: weight_entropy = 1 and 0.1 are both shown. The paper quotes its
        baselines from Du et al. (2015). Their single-kernel columns are the best and the average of
        the twelve kernels. The average and the mean kernel are both shown here. Their MKKM has hard
        labels, ours eigenvectors.""",
    "smkc": """Views with standardised columns, counts of words with rows of length one; kernels
        centered and normalised, which is not stated (sigma^2, the mean squared distance, is).
        SimpleMKKM's figure on mfeat is reached so (92.4; 92.58 published) and not on plain kernels.
        20 starts of the final k-means, 50 for FAMKKM, whose paper averages over 50 repeats. Single
        best view by ACC: its leading eigenvectors as they are, then k-means; with rows of length
        one mfeat has 76.9. MKKM-MR has the 31 penalties of its paper here, every third one of them
        in famkkm. LKAM's paper searches 589 points and ONKC's 961, which would take about an hour
        and two to five hours for one set. Here LKAM has five numbers of neighbours and three
        penalties, and ONKC three rho and three penalties. Points that are not the best of their
        grid have two or three repeats. Repeats of MKKM-MR, LKAM, ONKC, MVC-LFA, CoregSC and LMKKM
        are of the k-means, as nothing else depends on the seed; "LMKKM, 400 landmarks" learns on
        random rows, new ones each time, LMKKM on all. FAMKKM's paper has 50 repeats. All this holds
        for mkc-ae and famkkm, too.""",
    "mkc-ae": """Digit: all six views of mfeat (which of them the authors use is not stated; pixels,
        Fourier, profile correlations and Karhunen-Loeve alone give SimpleMKKM 90.3). Landmarks k,
        200, 300, ..., 1000, the best by the labels, as in the paper; 1000 by default.""",
    "large": """Data sets of many rows, in none of the papers. Columns are standardised, bandwidths
        are of the mean distance. The left half is RFF-KPKM's protocol on all rows at s0 = -5,
        without a grid.""",
    "spectral": """scikit-learn's SpectralClustering with the same kernel as its affinity.""",
}
