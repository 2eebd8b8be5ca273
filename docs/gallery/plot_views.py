"""
The weights of views
====================

Three views of the same digits: the upper half, the lower half, and random numbers. A bar is the
weight that the fit learned for a view; the dashed line is the mean. The weight of the noise
falls, because no clustering makes its distances small.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits

from rffpk import RFFMultiKernelPowerKMeans

X, _ = load_digits(return_X_y=True)
noise = np.random.RandomState(0).standard_normal((len(X), 10))
model = RFFMultiKernelPowerKMeans(10, kernels="rbf", weight_entropy=0.05, random_state=0)
model.fit([X[:, :32], X[:, 32:], noise])
figure, ax = pyplot.subplots(layout="constrained")
ax.bar(["upper half", "lower half", "noise"], model.kernel_weights_)
ax.axhline(model.kernel_weights_.mean(), color="black", linestyle="--", label="mean")
ax.set(ylabel="weight")
ax.legend()
