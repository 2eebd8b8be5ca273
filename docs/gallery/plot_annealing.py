"""
How annealing proceeds
======================

Left: the objective after each pass over the rows. Points that are joined belong to one exponent
s; along them the objective never rises. Each drop between them is a step of s. The squares at
the end are passes of k-means.

Right: the solid line is -s, which begins at one and grows. The dashed line counts the centroids
that differ. They merge at first, because a soft objective has few distinct centroids, and
separate again as s falls: that is why the start matters little.
"""

from matplotlib import pyplot
from sklearn.datasets import load_digits

from rffpk import Annealing, PowerKMeans, plot

X, _ = load_digits(return_X_y=True)
model = PowerKMeans(10, annealing=Annealing(start=-1.0), random_state=0).fit(X)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
plot.convergence(model, left)
plot.exponent(model, right)
