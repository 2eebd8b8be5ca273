"""The core's own sin, cos, log2 and exp2 against longdouble oracles, by the bounds that
_core/vecmath.h states."""

import numpy as np
import pytest

from rffpk import _core

wide = np.longdouble


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_sines_and_cosines(isa, dtype, rng):
    """The errors, in eps, of quarter turns, also of huge numbers of them."""
    exponents = rng.integers(22, np.finfo(dtype).maxexp, 4000)
    huge = (dtype.type(2) ** exponents * rng.uniform(-1, 1, 4000)).astype(dtype)
    small = np.concatenate([
        rng.uniform(-8, 8, 100_000), np.arange(-64, 64) / 4, rng.uniform(-1e6, 1e6, 10_000),
        np.linspace(-1e-6, 1e-6, 101), [0.0],
    ]).astype(dtype)  # fmt: skip
    for quarters in small, huge:
        wider = quarters.astype(wide)
        reduced = wider - 4 * np.rint(wider / 4) if quarters is small else np.fmod(wider, wide(4))
        phase = reduced * (np.arctan(wide(1)) * 2)
        exact = np.stack([np.sin(phase), np.cos(phase)])
        assert np.abs(_core.vecmath("sincos", quarters) - exact).max() <= np.finfo(dtype).eps
    assert np.isnan(_core.vecmath("sincos", np.array([np.inf, -np.inf, np.nan], dtype))).all()


def test_logarithms(isa, dtype, rng):
    eps, tiny, top = (getattr(np.finfo(dtype), name) for name in ("eps", "tiny", "max"))
    x = np.concatenate([
        np.exp2(rng.uniform(np.log2(tiny) - 5, np.log2(top), 100_000)),
        rng.uniform(0.5, 2, 100_000), 1 + np.linspace(-1e-3, 1e-3, 2001), [1.0, tiny, top],
    ]).astype(dtype)  # fmt: skip
    exact = np.log2(x.astype(wide))
    assert (np.abs(_core.vecmath("log2", x) - exact) / (1 + np.abs(exact))).max() <= 1.5 * eps
    assert np.isneginf(_core.vecmath("log2", np.zeros(3, dtype))).all()
    assert (_core.vecmath("log2", np.ones(3, dtype)) == 0).all()


def test_powers_of_two(isa, dtype, rng):
    low = np.finfo(dtype).minexp
    x = np.concatenate([rng.uniform(low, 0, 100_000), rng.uniform(-2, 0, 100_000), [0, low]])
    x = x.astype(dtype)
    exact = np.exp2(x.astype(wide))
    assert np.abs(_core.vecmath("exp2", x) / exact - 1).max() <= 1.5 * np.finfo(dtype).eps
    below = np.array([low - 1, 10 * low, -np.finfo(dtype).max, -np.inf], dtype)
    assert (_core.vecmath("exp2", below) == 0).all()


def test_a_length_that_is_no_multiple_of_the_vector(isa, dtype):
    for n in range(1, 40):
        x = np.linspace(0.1, 2, n).astype(dtype)
        np.testing.assert_allclose(_core.vecmath("log2", x), np.log2(x), rtol=1e-5, atol=1e-6)
