import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rffpk import clustering_accuracy, purity_score

labelings = st.integers(1, 60).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
    )
)


@given(labelings)
def test_accuracy_is_that_of_the_best_permutation(pair):
    y, labels = map(np.array, pair)
    assert clustering_accuracy(y, labels) == pytest.approx(
        oracles.best_matching_accuracy(y, labels)
    )


@given(labelings, st.permutations(range(5)))
def test_names_of_clusters_do_not_matter(pair, names):
    y, labels = map(np.array, pair)
    renamed = np.array(names)[labels]
    assert clustering_accuracy(y, renamed) == clustering_accuracy(y, labels)
    assert purity_score(y, renamed) == purity_score(y, labels)
    assert clustering_accuracy(y, labels) == clustering_accuracy(labels, y)
    assert clustering_accuracy(y, labels) <= purity_score(y, labels)


def test_purity_by_hand_and_strings():
    assert purity_score(["a", "a", "b", "b", "b"], [0, 0, 0, 1, 1]) == pytest.approx(4 / 5)
    assert purity_score([0, 0, 1], [0, 1, 2]) == 1
    assert clustering_accuracy([0, 0, 1], [0, 1, 2]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("score", [clustering_accuracy, purity_score])
def test_bad_labels_are_refused(score):
    with pytest.raises(ValueError, match="inconsistent"):
        score([0, 1], [0])
    with pytest.raises(ValueError, match="1d|shape"):
        score(np.zeros((2, 2)), [0, 1])
    with pytest.raises(ValueError, match="empty"):
        score([], [])
