"""
Clusters inside clusters
========================

One fit with twelve clusters, the tree by which they merge, and two of its cuts.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import make_blobs

from rffpk import PowerKMeans, plot

square = 2.5 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
centers = np.vstack([square + corner for corner in ([0, 0], [12, 0], [6, 10])])
X, _ = make_blobs(1200, centers=centers, cluster_std=0.5, random_state=0)
model = PowerKMeans(12, random_state=0).fit(X)
figure, axes = pyplot.subplots(1, 3, figsize=(12, 4), layout="constrained")
plot.tree(model, axes[0])
for ax, n in zip(axes[1:], (12, 3)):
    ax.scatter(*X.T, c=model.cut(n), s=8, cmap="tab20")
    ax.set_title(f"{n} clusters")
