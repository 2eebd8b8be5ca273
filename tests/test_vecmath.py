"""The tile's own sin, cos, log2 and exp2 against mpmath-free float64 and longdouble oracles."""

import numpy as np
import pytest

from rffpk import _core

# The bounds that _core/vecmath.h states.
CHECK = """
import numpy as np
from rffpk import _core
for dtype in (np.float32, np.float64):
    eps, tiny, top = (getattr(np.finfo(dtype), a) for a in ("eps", "tiny", "max"))
    rng = np.random.default_rng(0)
    wide = np.longdouble

    quarters = np.concatenate([
        rng.uniform(-8, 8, 100_000), np.arange(-64, 64) / 4, rng.uniform(-1e6, 1e6, 10_000),
        np.linspace(-1e-6, 1e-6, 101), [0.0],
    ]).astype(dtype)
    reduced = quarters.astype(wide) - 4 * np.rint(quarters.astype(wide) / 4)
    phase = reduced * (np.arctan(wide(1)) * 2)
    for f, values in zip((np.sin, np.cos), _core.vecmath("sincos", quarters)):
        error = np.abs(values - f(phase)).max() / eps
        assert error <= 1, (f, dtype, error)
    huge = dtype(2) ** rng.integers(22, np.finfo(dtype).maxexp, 4000) * rng.uniform(-1, 1, 4000)
    huge = huge.astype(dtype)
    reduced = np.fmod(huge.astype(wide), wide(4)) * (np.arctan(wide(1)) * 2)
    for f, values in zip((np.sin, np.cos), _core.vecmath("sincos", huge)):
        error = np.abs(values - f(reduced)).max() / eps
        assert error <= 1, (f, dtype, "huge", error)
    assert np.isnan(_core.vecmath("sincos", np.array([np.inf, -np.inf, np.nan], dtype))).all()

    x = np.concatenate([
        np.exp2(rng.uniform(np.log2(tiny) - 5, np.log2(top), 100_000)),
        rng.uniform(0.5, 2, 100_000), 1 + np.linspace(-1e-3, 1e-3, 2001), [1.0, tiny, top],
    ]).astype(dtype)
    exact = np.log2(x.astype(wide))
    error = (np.abs(_core.vecmath("log2", x) - exact) / (1 + np.abs(exact))).max() / eps
    assert error <= 1.5, ("log2", dtype, error)
    assert np.isneginf(_core.vecmath("log2", np.zeros(3, dtype))).all()
    assert (_core.vecmath("log2", np.ones(3, dtype)) == 0).all()

    low = np.finfo(dtype).minexp
    x = np.concatenate([rng.uniform(low, 0, 100_000), rng.uniform(-2, 0, 100_000), [0, low]])
    x = x.astype(dtype)
    exact = np.exp2(x.astype(wide))
    error = np.abs(_core.vecmath("exp2", x) / exact - 1).max() / eps
    assert error <= 1.5, ("exp2", dtype, error)
    below = np.array([low - 1, 10 * low, -top, -np.inf], dtype)
    assert (_core.vecmath("exp2", below) == 0).all()
print(_core.ISA)
"""


@pytest.mark.parametrize("isa", _core.isa_levels())
def test_error_bounds_hold_for_every_instruction_set(python, isa):
    assert python(CHECK, RFFPK_ISA=isa).strip() == isa


def test_a_length_that_is_no_multiple_of_the_vector(dtype):
    for n in range(1, 40):
        x = np.linspace(0.1, 2, n).astype(dtype)
        np.testing.assert_allclose(_core.vecmath("log2", x), np.log2(x), rtol=1e-5, atol=1e-6)
