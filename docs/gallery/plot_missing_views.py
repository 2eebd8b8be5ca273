"""
Rows without some views
=======================

Two halves of the same digits are two views. From left to right more rows lack one of them, up
to all rows. Nothing is filled in: distances use the views that a row has.

Look at how slowly the agreement falls until most rows lack a half. Rows with both halves tie
the views together; at the right end no such row is left.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

from rffpk import RFFMultiKernelPowerKMeans

X, y = load_digits(return_X_y=True)
random = np.random.RandomState(0)
order, half = random.rand(len(X)), random.rand(len(X)) < 0.5
shares, found = np.linspace(0, 1, 6), []
for share in shares:
    upper, lower = X[:, :32].copy(), X[:, 32:].copy()
    upper[(order < share) & half] = np.nan
    lower[(order < share) & ~half] = np.nan
    model = RFFMultiKernelPowerKMeans(10, allow_missing_views=True, random_state=0)
    found.append(normalized_mutual_info_score(y, model.fit([upper, lower]).labels_))
figure, axes = pyplot.subplots(layout="constrained")
axes.plot(shares, found, "o-")
axes.set(ylim=(0, 1), xlabel="share of the rows that lack a half", ylabel="agreement (NMI)")
