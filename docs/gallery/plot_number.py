"""
The number of clusters
======================

Scores of good numbers of clusters, for blobs that are near each other in pairs.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import make_blobs

from rffpk import plot, select_n_clusters

centers = np.array([[x + s, y] for x in (0, 12) for y in (0, 12) for s in (-2.2, 2.2)])
X, _ = make_blobs(1200, centers=centers, cluster_std=0.6, random_state=3)
selection = select_n_clusters(X, random_state=0)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot.validity(selection, ax=left)
right.scatter(*X[selection.rows].T, c=selection.labels[0], s=6, cmap="tab10")
right.set(title=f"{selection.n_clusters} clusters", xlabel="x", ylabel="y")
