"""
Clusters that are not round
===========================

k-means divides two moons by a straight line; diffusion features follow the neighborhoods of the
rows. The opacity of a point is its membership: rows between clusters are faint.
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
