"""
The weights of views
====================

Three views of the same digits, the last of which is noise: its weight falls.
"""

import numpy as np
from sklearn.datasets import load_digits

from rffpk import RFFMultiKernelPowerKMeans, plot

X, _ = load_digits(return_X_y=True)
noise = np.random.RandomState(0).standard_normal((len(X), 10))
model = RFFMultiKernelPowerKMeans(10, weight_entropy=0.05, random_state=0)
model.fit([X[:, :32], X[:, 32:], noise])
plot.view_weights(model, ["upper half", "lower half", "noise"])
