"""Run passes of the hard rule in any order.

Centroids are added, removed and moved between passes. The results of a pass must be true, whatever
came before it.
"""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
from contracts.core import Identity, Unit
from contracts.hard_pass import Need, add, remove, step
from contracts.passes import make_rows, one_pass
from contracts.plan import TUNING
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from numpy.testing import assert_array_equal

LEAST, MOST = 20, 60  # centroids
booleans = st.booleans()


class HardPasses(RuleBasedStateMachine):
    """A run of passes, beside what NumPy computes of the same rows in float64."""

    @initialize(
        seed=st.integers(0, 2**16), d=st.sampled_from([2, 5, 40]), apart=st.floats(0.1, 10),
        weighted=booleans, unit=booleans, dtype=st.sampled_from([np.float32, np.float64]),
    )  # fmt: skip
    def begin(self, seed, d, apart, weighted, unit, dtype):
        self.limits = pytest.MonkeyPatch()
        self.random = random = np.random.default_rng(seed)
        k, n = int(random.integers(LEAST, 30)), int(random.integers(100, 500))
        centers = apart * random.standard_normal((k, d))
        X = (centers[random.integers(k, size=n)] + random.standard_normal((n, d))).astype(dtype)
        weight = random.choice([0, 0.5, 1, 2], n).astype(dtype) if weighted else None
        shifts = None if unit else [X.mean(axis=0)]
        rows = make_rows([X], [Unit(d) if unit else Identity(d)], weight, 1, shifts)
        self.rows = replace(rows, unit_centroids=unit)
        self.x = one_pass(rows, np.zeros((1, d)), -math.inf, want=("features",))[1]["features"]
        self.x = self.x.astype(np.float64)
        self.p = np.ones(n) if weight is None else weight.astype(np.float64)
        self.eps = float(np.finfo(dtype).eps)
        theta = self.x[random.choice(n, k, replace=False)]
        self.theta = self.rows.on_sphere(theta, theta)
        self.found = self.sums = self.settling = self.kept = None

    def distances(self):
        """Return squared distances of rows from centroids, and the error that passes may make."""
        at = self.theta.astype(self.rows.dtype).astype(np.float64)
        error = 40 * self.eps * ((self.x**2).sum(axis=1).max() + (at**2).sum(axis=1).max())
        return ((self.x[:, None] - at) ** 2).sum(axis=2), error

    def check_sums(self, sums, labels):
        """Check that the sums are the sums of the rows with each label."""
        N, G = np.zeros(self.theta.shape), np.bincount(labels, self.p, len(self.theta))
        np.add.at(N, labels, self.p[:, None] * self.x)
        scale = max(self.p.sum(), 1e-300) * max(np.abs(self.x).max(), 1e-300)
        np.testing.assert_allclose(sums.N, N, atol=50 * self.eps * scale)
        np.testing.assert_allclose(sums.G, G, atol=1e-6 * self.p.sum())

    @rule(every=booleans, second=booleans, bounded=booleans, missed=booleans)
    def visit(self, every, second, bounded, missed):
        need = Need(every, second, bounded and not second, missed)
        before, kept = self.found, copy.deepcopy(self.found)
        self.sums, self.found = step(self.rows, self.theta, before, need)[0:2]
        state = self.found
        if before is not None and before.bounds is None:
            assert_array_equal(before.labels, kept.labels)
        apart, error = self.distances()
        chosen = apart[np.arange(len(apart)), state.labels]
        self.check_sums(self.sums, state.labels)
        if state.every:
            assert (chosen <= apart.min(axis=1) + error).all()
        if before is not None and len(self.theta) == self.of_labels:
            # labels are no worse than the labels of the pass before
            assert (chosen <= apart[np.arange(len(apart)), kept.labels] + error).all()
        if need.every or before is None:
            assert state.every
        if state.own is not None:
            np.testing.assert_allclose(state.own, chosen, atol=error)
        if need.second:
            others = apart.copy()
            others[np.arange(len(apart)), state.labels] = math.inf
            assert (state.other >= others.min(axis=1) - error).all()
        if state.bounds is not None:
            assert (state.bounds.upper >= np.sqrt(chosen) - np.sqrt(error)).all()
        total = self.p @ chosen
        slack = error * self.p.sum()
        assert self.sums.hard == pytest.approx(total, rel=1e-5, abs=slack)
        assert state.cost <= total + slack
        self.of_labels = len(self.theta)

    @precondition(lambda self: self.sums is not None)
    @rule()
    def move(self):
        """Move centroids to the means of the rows, which costs no more."""
        if len(self.sums.G) == len(self.theta):
            self.theta = self.rows.centroids(self.sums, self.theta)
        self.sums = None

    @rule(size=st.sampled_from([0.0, 1e-6, 1e-2, 1.0]))
    def disturb(self, size):
        theta = self.theta + size * self.random.standard_normal(self.theta.shape)
        self.theta = self.rows.on_sphere(theta, theta)

    @precondition(lambda self: self.found is not None and len(self.theta) < MOST)
    @rule(count=st.integers(1, 10))
    def added(self, count):
        places = self.random.choice(len(self.x), count, replace=False)
        self.theta = np.vstack([self.theta, self.x[places]])
        self.found, self.settling = add(self.found, count), None

    @precondition(lambda self: self.found is not None and len(self.theta) > LEAST)
    @rule(data=st.data())
    def removed(self, data):
        count = data.draw(st.integers(1, len(self.theta) - LEAST))
        removed = np.zeros(len(self.theta), dtype=bool)
        removed[self.random.choice(len(self.theta), count, replace=False)] = True
        self.found = remove(self.rows, self.theta, self.found, removed)
        self.theta, self.sums, self.settling = self.theta[~removed], None, None
        self.of_labels = len(self.theta)

    @precondition(lambda self: self.found is not None)
    @rule()
    def keep(self):
        self.kept = self.theta, self.found, self.of_labels

    @precondition(lambda self: self.kept is not None)
    @rule()
    def undo(self):
        self.theta, self.found, self.of_labels = self.kept
        self.sums = self.settling = None

    @rule()
    def settle(self):
        """Run a pass by bounds of all centroids."""
        sums, self.settling = step(self.rows, self.theta, self.settling, Need(settles=True))
        apart, error = self.distances()
        labels = self.settling.labels
        assert (apart[np.arange(len(apart)), labels] <= apart.min(axis=1) + error).all()
        self.check_sums(sums, labels)

    @rule(part=st.sampled_from([0.0, 2e-3, 1.0]))
    def miss(self, part):
        """Set another limit of the rows that may miss their nearest centroid."""
        changed = replace(TUNING.hardpasses, most_missed=part)
        self.limits.setattr(TUNING, "hardpasses", changed)

    def teardown(self):
        self.limits.undo()


TestHardPasses = HardPasses.TestCase
TestHardPasses.settings = settings(stateful_step_count=40)
