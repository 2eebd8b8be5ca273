"""
Soft memberships
================

The same fit, seen at three exponents: the nearer s is to zero, the softer are the memberships.
"""

from matplotlib import pyplot
from sklearn.datasets import load_digits

from rffpk import RFFKernelPowerKMeans, plot

X, _ = load_digits(return_X_y=True)
model = RFFKernelPowerKMeans(10, random_state=0).fit(X)
figure, axes = pyplot.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, s in zip(axes, (-3.0, -10.0, -30.0)):
    plot.memberships(model, X, s=s, ax=ax)
    ax.set_title(f"s = {s:g}")
