"""
Kernel weights of the fusion methods
====================================

The upper half of digits, once more the same, and the lower half. A kernel that is there twice
counts twice in the mean of the kernels; `MKKMMR` gives less to kernels that resemble each other.
"""

from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

from rffpk import LKAM, MKKM, MKKMMR, AverageMKKM, SimpleMKKM

X, y = load_digits(return_X_y=True)
X, y = X[:1000], y[:1000]
views = [X[:, :32], X[:, :32], X[:, 32:]]
figure, axes = pyplot.subplots(layout="constrained")
classes = (AverageMKKM, MKKM, SimpleMKKM, MKKMMR, LKAM)
for place, cls in enumerate(classes):
    model = cls(10, random_state=0).fit(views)
    score = normalized_mutual_info_score(y, model.labels_)
    left = 0.0
    for color, weight in zip(("C0", "C9", "C1"), model.kernel_weights_):
        axes.barh(place, weight, left=left, color=color)
        left += weight
    axes.text(1.01, place, f"NMI {score:.2f}", va="center")
axes.legend(["upper half", "the same", "lower half"], ncols=3, loc="lower left",
            bbox_to_anchor=(0, 1))  # fmt: skip
axes.set(xlim=(0, 1.2), xlabel="weight of the kernel")
axes.set_yticks(range(len(classes)), [cls.__name__ for cls in classes])
