"""
The number of clusters
======================

Right: eight blobs, which are near each other in pairs.

Left: the good numbers of clusters, at most five. The height of a point says how far apart the
clusters of this number are: it is the logarithm of an eigengap, a ratio of two eigenvalues of a
graph of neighbors, as the mean over several graphs. The largest value is chosen, the dashed
line, if it is above the dotted line and the graphs agree. The other points are numbers that you
may try: six or fifteen clusters exist, but are hardly apart.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import make_blobs

from rffpk import plot, select_n_clusters

centers = np.array([[x + s, y] for x in (0, 12) for y in (0, 12) for s in (-2.2, 2.2)])
X, _ = make_blobs(1200, centers=centers, cluster_std=0.6, random_state=3)
selection = select_n_clusters(X, random_state=0)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.axhline(1.5, color="grey", linestyle=":", label="far apart above this line")
plot.validity(selection, ax=left)
right.scatter(*X[selection.rows].T, c=selection.labels[0], s=6, cmap="tab10")
right.set(title=f"{selection.n_clusters} clusters", xlabel="x", ylabel="y")
