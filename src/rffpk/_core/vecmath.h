/* sin, cos, log2 and exp2 of a vector.
 *
 * Error bounds, checked by tests/test_vecmath.py, with eps = 2^-23 or 2^-52:
 *   Sine and cosine of x quarter turns: absolute 1 eps, for every finite x.
 *   Log2 of x: absolute 1.5 eps + relative 1.5 eps, for every x > 0; -inf for 0.
 *   Exp2 of x: relative 1.5 eps, for x from MIN_EXPONENT to 0; 0 for smaller x.
 * Polynomials: bench/quality/fit_vecmath.py. */
#ifndef RFFPK_VECMATH_H
#define RFFPK_VECMATH_H

#include "simd.h"

#include <math.h>

#if RFFPK_BITS == 32
#define MIN_EXPONENT (-126)
static const real SIN_POLY[] = {1.570796322f, -0.6459634777f, 0.07968021765f, -0.004602149213f};
static const real COS_POLY[] = {-1.233700549f, 0.2536694104f, -0.02086152834f, 0.0009067398984f};
static const real EXP2_POLY[] = {0.693147188f,    0.2402265076f,   0.05550357114f,
                                 0.009618082557f, 0.001339086336f, 0.0001545316295f};
static const real LOG2_POLY[] = {2.88539008f, 0.9617988388f, 0.576715186f, 0.4317176975f};
#else
#define MIN_EXPONENT (-1022)
static const real SIN_POLY[] = {
    1.57079632679489661,     -0.645964097506244316,  0.0796926262460430031, -0.00468175413234097599,
    0.000160441150742190911, -3.5986433529823097e-6, 5.63393378153785395e-8};
static const real COS_POLY[] = {-1.23370055013616983,    0.253669507901047823,
                                -0.0208634807633407725,  0.000919260274546844619,
                                -2.52020390280291761e-5, 4.71067840550522711e-7,
                                -6.32939634496742351e-9};
static const real EXP2_POLY[] = {
    0.693147180559945309,   0.240226506959100982,    0.0555041086648215943,  0.00961812910760688853,
    0.00133335581464169353, 0.000154035304417360502, 1.52527338298361184e-5, 1.32154425879216897e-6,
    1.01780624458457735e-7, 7.0725859492692237e-9,   4.45496059818651839e-10};
static const real LOG2_POLY[] = {2.88539008177792681,  0.961796693925989729, 0.577078016345520229,
                                 0.412198585840900534, 0.320598534913959861, 0.262334352504183019,
                                 0.220913084231176796, 0.213658956943192694};
#endif

#define QUARTER_TURNS 0.63661977236758134308 /* 2/pi: radians as quarter turns */
#define EXPONENT_BIAS (1 - MIN_EXPONENT)
/* Adding ROUNDER = 1.5 * 2^MANTISSA_BITS rounds a number to an integer and leaves it in the low
 * bits. */
#define ROUNDER ((real)((whole)3 << (MANTISSA_BITS - 1)))

#define HORNER(table, x) horner(table, sizeof table / sizeof table[0], x)

INLINE vec horner(const real *table, int terms, vec x)
{
    vec y = splat(table[terms - 1]);
    UNROLL
    for (int i = terms - 2; i >= 0; i--)
        y = y * x + table[i];
    return y;
}

/* Compute the sine and cosine of x quarter turns. (The frequencies are multiplied by 2/pi
 * beforehand.) The reduction is then a subtraction without rounding error, however large x is.
 * Numbers of at least 2^(MANTISSA_BITS + 2) are whole turns and become 0. A multiple of eight
 * quarters is subtracted from smaller numbers, which brings them into the range of ROUNDER. NaN and
 * infinity become NaN. */
INLINE void sincos_quarters(vec x, vec *sine, vec *cosine)
{
    const real all_whole = (real)((whole)1 << MANTISSA_BITS) * 4;
    const vec eights = (x + 8 * ROUNDER) - 8 * ROUNDER;
    x -= SELECT((x < all_whole) & (x > -all_whole), eights, x);
    const vec rounded = x + ROUNDER;
    const vec r = x - (rounded - ROUNDER); /* -1/2 to 1/2 */
    const ivec quarter = bits_of(rounded);
    const vec z = r * r;
    const vec s = r * HORNER(SIN_POLY, z);
    const vec c = z * HORNER(COS_POLY, z) + 1;
    const ivec odd = (quarter & 1) != 0;
    const ivec flip_s = shift_left(quarter & 2, RFFPK_BITS - 2);
    const ivec flip_c = shift_left(add(quarter, (ivec){0} + 1) & 2, RFFPK_BITS - 2);
    *sine = from_bits(bits_of(SELECT(odd, c, s)) ^ flip_s);
    *cosine = from_bits(bits_of(SELECT(odd, s, c)) ^ flip_c);
}

INLINE vec log2_positive(vec x)
{
    const real least = (real)(RFFPK_BITS == 32 ? 1.17549435e-38 : 2.2250738585072014e-308);
    const real lift = (real)((whole)1 << (MANTISSA_BITS + 1));
    const ivec tiny = x < least;
    const vec scaled = SELECT(tiny, x * lift, x);
    /* the mantissa is in [sqrt(1/2), sqrt(2)): the exponent steps at the bits of sqrt(1/2) */
    const ivec root_half = bits_of(splat((real)0.70710678118654752));
    const ivec exponent = minus(bits_of(scaled), root_half) >> MANTISSA_BITS;
    const vec m = from_bits(minus(bits_of(scaled), shift_left(exponent, MANTISSA_BITS)));
    /* the small integer `exponent` as a real, through the low bits of ROUNDER */
    const vec e = from_bits(add(exponent, bits_of(splat(ROUNDER)))) - ROUNDER;
    const vec t = (m - 1) / (m + 1);
    const vec y =
        t * HORNER(LOG2_POLY, t * t) + (e - SELECT(tiny, splat(MANTISSA_BITS + 1), splat(0)));
    return SELECT(x > 0, y, splat(-(real)INFINITY));
}

INLINE vec exp2_nonpositive(vec x)
{
    const vec rounded = x + ROUNDER;
    const vec f = x - (rounded - ROUNDER);
    const ivec n = minus(bits_of(rounded), bits_of(splat(ROUNDER)));
    const vec scale = from_bits(shift_left(add(n, (ivec){0} + EXPONENT_BIAS), MANTISSA_BITS));
    const vec y = f * HORNER(EXP2_POLY, f) + 1;
    return SELECT(x >= MIN_EXPONENT, y * scale, splat(0));
}

/* ---- functions of arrays, for tests and benchmarks ------------------------------------------- */

/* Apply a function to h <= W numbers. In all calls except the last, h is the constant W. */
INLINE void vecmath_step(int which, const real *in, real *out, real *second, size_t h)
{
    vec x = splat(1), y, cosine;
    memcpy(&x, in, h * sizeof(real));
    if (which == 0) {
        sincos_quarters(x, &y, &cosine);
        memcpy(second, &cosine, h * sizeof(real));
    } else
        y = which == 1 ? log2_positive(x) : exp2_nonpositive(x);
    memcpy(out, &y, h * sizeof(real));
}

static void vecmath(int which, const void *in, void *out, size_t n)
{
    const real *x = in;
    real *y = out, *second = y + n;
    size_t i = 0;
    for (; i + W <= n; i += W)
        vecmath_step(which, x + i, y + i, second + i, W);
    if (i < n)
        vecmath_step(which, x + i, y + i, second + i, n - i);
}

#endif
