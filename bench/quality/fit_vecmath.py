"""Fit the polynomials of src/rffpk/_core/vecmath.h: tables in C, and the error of each.

Each function is interpolated at Chebyshev nodes in 60 digits, which is within a small factor of the
best uniform approximation, and the coefficients are rounded to the target precision. Errors are
before this rounding, relative to the machine epsilon of the type. Needs mpmath.
"""

from __future__ import annotations

import mpmath as mp

from bench import commands

mp.mp.dps = 60


def interpolate(f, lo, hi, degree):
    """Return coefficients, lowest first, of the Chebyshev interpolant of `f` on [lo, hi]."""
    nodes = [
        (lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * degree + 2))
        for i in range(degree + 1)
    ]
    vandermonde = mp.matrix([[x**j for j in range(degree + 1)] for x in nodes])
    return list(mp.lu_solve(vandermonde, mp.matrix([f(x) for x in nodes])))


def worst(f, coefs, lo, hi):
    grid = [lo + (hi - lo) * mp.mpf(i) / 400 for i in range(401)]
    return max(abs(mp.polyval(coefs[::-1], x) / f(x) - 1) for x in grid)


def away_from_zero(f, limit):
    return lambda z: f(z) if abs(z) > 1e-40 else limit


HALF_PI = mp.pi / 2
QUARTER = mp.mpf("0.25")
LOG_Z = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2

# name: (function, interval, degree in float32, degree in float64)
FITS = {
    "SIN": (
        away_from_zero(lambda z: mp.sin(HALF_PI * mp.sqrt(z)) / mp.sqrt(z), HALF_PI),
        (mp.mpf(0), QUARTER),
        (3, 6),
    ),
    "COS": (
        away_from_zero(lambda z: (mp.cos(HALF_PI * mp.sqrt(z)) - 1) / z, -(HALF_PI**2) / 2),
        (mp.mpf(0), QUARTER),
        (3, 6),
    ),
    "EXP2": (
        away_from_zero(lambda x: (mp.mpf(2) ** x - 1) / x, mp.log(2)),
        (mp.mpf("-0.5"), mp.mpf("0.5")),
        (5, 10),
    ),
    "LOG2": (
        away_from_zero(lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.log(2), 2 / mp.log(2)),
        (mp.mpf(0), LOG_Z),
        (3, 7),
    ),
}


def main() -> None:
    commands.arguments(__doc__)
    for bits, digits, suffix, eps in ((32, 10, "f", 2.0**-23), (64, 18, "", 2.0**-52)):
        print(f"/* {bits} bits */")
        for name, (f, (lo, hi), degrees) in FITS.items():
            coefs = interpolate(f, lo, hi, degrees[bits == 64])
            error = float(worst(f, coefs, lo, hi)) / eps
            terms = ", ".join(mp.nstr(c, digits) + suffix for c in coefs)
            print(f"static const real {name}_POLY[] = {{{terms}}}; /* {error:.2g} eps */")


if __name__ == "__main__":
    main()
