"""
Soft memberships
================

Two blobs and rows on the way between them. The color is the membership in one of the clusters.

Follow the way from left to right. In the middle picture, the default, the color changes along
it. At the left, where annealing ended, it jumps from one color to the other. At the right,
fuzzy c-means with m = 4, even rows inside the blobs belong to both.
"""

import numpy as np
from matplotlib import pyplot

from rffpk import PowerKMeans

random = np.random.default_rng(0)
way = np.c_[np.linspace(0, 8, 100), np.zeros(100)] + 0.3 * random.normal(size=(100, 2))
X = np.vstack([random.normal(size=(400, 2)), way])
X[200:400, 0] += 8
model = PowerKMeans(2, random_state=0).fit(X)
figure, axes = pyplot.subplots(1, 3, figsize=(12, 3), layout="constrained")
titles = "where annealing ended", "default", "fuzzy c-means, m = 4"
for ax, title, s in zip(axes, titles, (model.s_, model.membership_exponent_, -1 / 3)):
    u = model.predict_proba(X, s=s)[:, 0]
    points = ax.scatter(*X.T, c=u, s=12, cmap="cividis", vmin=0, vmax=1)
    ax.set(title=f"{title}: s = {s:.2g}", aspect="equal")
figure.colorbar(points, ax=axes, label="membership in one of the clusters")
