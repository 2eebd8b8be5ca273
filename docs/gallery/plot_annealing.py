"""
How annealing proceeds
======================

The exponent falls, centroids that were together separate, and the objective falls along every line.
"""

from matplotlib import pyplot
from sklearn.datasets import load_digits

from rffpk import PowerKMeans, plot

X, _ = load_digits(return_X_y=True)
model = PowerKMeans(10, s0=-1.0, random_state=0).fit(X)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
plot.convergence(model, left)
plot.exponent(model, right)
