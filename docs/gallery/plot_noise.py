"""
Noise around clusters
=====================

Left: four blobs in uniform noise. Crosses are the rows with the label -1; no centroid lies
among them. Noise inside a blob cannot be told from its rows.

Right: the outlier scores of all rows. They have two hills, the rows of clusters at the left and
noise at the right. ``noise="auto"`` puts its threshold, the dashed line, into the valley
between.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import make_blobs

from rffpk import PowerKMeans, plot

X, _ = make_blobs(800, centers=4, cluster_std=0.7, random_state=3)
X = np.vstack([X, np.random.RandomState(0).uniform(-13, 13, (300, 2))])
model = PowerKMeans(4, noise="auto", random_state=0).fit(X)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
plot.clusters(model, X, ax=left)
right.hist(model.outlier_scores_, bins=40, range=(0, 1))
right.axvline(0.5, color="black", linestyle="--", label="threshold: noise is at its right")
right.set(xlabel="outlier score", ylabel="rows")
right.legend()
