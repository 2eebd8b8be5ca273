"""
Sparse rows
===========

Ten thousand texts of some thirty words about four topics, in a vocabulary of twenty thousand.
They are bags of words in a sparse matrix, which is never written out as an array.

Each point is a text, and its color is the cluster. Each arm is a topic; two that cover each
other in one picture are apart in the other. Texts near the middle have few words of their own
topic, and there the clusters differ from the topics.
"""

import numpy as np
from matplotlib import pyplot
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score

from rffpk import PowerKMeans

random = np.random.RandomState(0)
topic = random.randint(4, size=10_000)
common = random.zipf(1.5, size=(10_000, 20)) % 5_000
any_topic = random.randint(4, size=(10_000, 10))
about = np.where(random.rand(10_000, 10) < 0.6, topic[:, None], any_topic)
special = 5_000 + 3_750 * about + random.zipf(1.5, size=(10_000, 10)) % 3_750
words = np.hstack([common, special])
rows = np.repeat(np.arange(10_000), words.shape[1])
counts = sparse.csr_array((np.ones(words.size), (rows, words.ravel())), shape=(10_000, 20_000))
X = TfidfTransformer().fit_transform(counts)
labels = PowerKMeans(4, random_state=0).fit(X).labels_
components = TruncatedSVD(4, random_state=0).fit_transform(X)
figure, axes = pyplot.subplots(1, 2, figsize=(10, 5), layout="constrained")
for ax, (first, second) in zip(axes, [(1, 2), (2, 3)]):
    for cluster in range(4):
        points = components[labels == cluster]
        ax.scatter(points[:, first], points[:, second], s=2, label=f"cluster {cluster}")
    ax.set(xlabel=f"component {first + 1}", ylabel=f"component {second + 1}")
axes[0].legend(markerscale=5)
figure.suptitle(f"agreement with the topics (ARI) {adjusted_rand_score(topic, labels):.2f}")
