"""
Kernel weights of the fusion methods
====================================

Three kernels of the same digits: the upper half of the image, the upper half once more, and the
lower half. Each bar is one method, and the lengths of its parts are the weights of the kernels.

Look at the two blue parts together. In the mean of the kernels the repeated half counts twice.
`MKKM` gives it even more, and agrees less with the classes (NMI, at the right). `MKKMMR`
penalizes kernels that resemble each other, so the lower half gains weight.
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
