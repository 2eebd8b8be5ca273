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
passes = [r for r in model.history_ if r.get("kept") and r["stage"] in ("anneal", "hard")]
right.step(range(1, len(passes) + 1), [-r["s"] for r in passes], where="mid")
right.set(xlabel="pass over the rows", ylabel="-s (solid)", yscale="log")
count = right.twinx()
count.step(
    range(1, len(passes) + 1), [r["distinct"] for r in passes], "--", where="mid", color="C3"
)
count.set(ylabel="distinct centroids (dashed)", ylim=(0, 11))
