"""
Clusters that are not round
===========================

Each line has the same rows twice. `PowerKMeans` (left) compares distances to centroids, as
k-means does, so that its border is a straight line through both moons and both rings.
`DiffusionPowerKMeans` (right) follows chains of neighbors, so that each moon and each ring is a
cluster. Faint rows belong to both clusters nearly alike: they lie at the border.
"""

from matplotlib import pyplot
from sklearn.datasets import make_circles, make_moons

from rffpk import DiffusionPowerKMeans, PowerKMeans, plot

shapes = [
    make_moons(600, noise=0.07, random_state=0)[0],
    make_circles(600, factor=0.45, noise=0.05, random_state=0)[0],
]
figure, axes = pyplot.subplots(2, 2, figsize=(9, 7), layout="constrained")
for row, X in zip(axes, shapes):
    for ax, cls in zip(row, (PowerKMeans, DiffusionPowerKMeans)):
        model = cls(2, random_state=0).fit(X)
        ax.scatter(*X.T, s=0)
        plot.clusters(model, X, places=X, ax=ax)
        ax.set_title(cls.__name__)
