"""
The number of clusters
======================

Right: nested groups. Four far groups consist of three near ones each.

Left: the good numbers of clusters, at most five, and one cluster. The height of a bar is the
sum of three criteria: eigengaps of neighbor graphs, the
heights of a tree of small clusters, and density modes. Bars above the dashed line, which
is the sum of one cluster, are levels: ``n_clusters="coarse"`` takes the first, "fine" the last
and "auto" the highest bar.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import make_blobs

from rffpk import select_n_clusters

inner = np.array([[0, 0], [7, 0], [3.5, 6]])
centers = np.vstack([np.add(inner, [x, y]) for x in (0, 40) for y in (0, 40)])
X, _ = make_blobs(1200, centers=centers, cluster_std=1.0, random_state=3)
selection = select_n_clusters(X, random_state=0)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
numbers = sorted({1, *selection.numbers.tolist()})
scores = (selection.eigengaps, selection.heights, selection.modes)
bottom = selection.scores - np.sum(scores, axis=0)  # what one cluster begins with
for each, name in zip(scores, ("eigengaps", "heights of the tree", "modes of the density")):
    shown, below = ([values[k - 1] for k in numbers] for values in (each, bottom))
    left.bar(range(len(numbers)), shown, 0.6, below, label=name)
    bottom = bottom + each
left.axhline(selection.scores[0], color="black", linestyle="--", linewidth=1)
left.set_xticks(range(len(numbers)), numbers)
left.set(xlabel="number of clusters", ylabel="score")
left.legend()
finest = selection.numbers.tolist().index(selection.number("fine"))
right.scatter(*X[selection.rows].T, c=selection.labels[finest], s=6, cmap="tab20")
right.set(title=f"{selection.number('fine')} clusters", xlabel="x", ylabel="y")
