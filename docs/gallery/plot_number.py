"""
The number of clusters
======================

Two indices of validity against the number of clusters, for five blobs.
"""

from matplotlib import pyplot
from sklearn.datasets import make_blobs

from rffpk import plot, select_n_clusters

X, _ = make_blobs(600, centers=5, cluster_std=0.6, random_state=3)
selection = select_n_clusters(X, range(2, 10), random_state=0)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot.validity(selection, ax=left)
plot.validity(selection, "stability", ax=right)
