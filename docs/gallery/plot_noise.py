"""
Noise around clusters
=====================

Typicality tells rows of a cluster from rows that are far from all: they get the label -1.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import make_blobs

from rffpk import RFFMultiKernelPowerKMeans, plot

X, _ = make_blobs(800, centers=4, cluster_std=0.7, random_state=3)
X = np.vstack([X, np.random.RandomState(0).uniform(-13, 13, (300, 2))])
model = RFFMultiKernelPowerKMeans(
    4, kernels="linear", eta="within", noise_threshold=0.2, random_state=0
).fit(X)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
plot.clusters(model, X, ax=left)
plot.noise(model, X, right)
