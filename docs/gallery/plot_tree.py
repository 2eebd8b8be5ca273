"""
Clusters inside clusters
========================

Left: how the twelve clusters of one fit merge. The height of a joint is how far
apart its two branches are. Joints at 240 join groups, joints below 40 join the blobs of a
group: the long gap between says that three clusters are a natural cut.

Middle and right: the same fit, cut at twelve and at three clusters. Each of the three is a
union of four of the twelve.
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
