"""
Sparse rows
===========

Bags of words of four topics as a sparse matrix, which is not written out: ten thousand texts of
some thirty words, in a vocabulary of twenty thousand. The points are the first features of the
diffusion map of the texts.
"""

import numpy as np
from matplotlib import pyplot
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score

from rffpk import DiffusionMap, PowerKMeans

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
features = DiffusionMap(metric="cosine", random_state=0).fit_transform(X)
figure, axes = pyplot.subplots(layout="constrained")
axes.scatter(features[:, 0], features[:, 1], c=labels, s=2, cmap="tab10")
axes.set_title(f"agreement with the topics (ARI) {adjusted_rand_score(topic, labels):.2f}")
axes.set(xlabel="first feature", ylabel="second feature")
