/* Vectors of the width that the instruction set of this compilation has.
 *
 * Compiled once per instruction set and type: RFFPK_BITS is 32 or 64; RFFPK_PLAIN asks for plain
 * C, in which a "vector" is one number. Everything else is written once, with the operators of
 * GCC's and Clang's vector extension, which are C's own for W = 1. */
#ifndef RFFPK_SIMD_H
#define RFFPK_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if RFFPK_BITS == 32
typedef float real;
typedef int32_t whole;
typedef uint32_t bare;
#else
typedef double real;
typedef int64_t whole;
typedef uint64_t bare;
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define UNROLL PRAGMA(unroll)
#else
#define UNROLL PRAGMA(GCC unroll 16)
#endif
#else
#define INLINE static inline
#define UNROLL
#endif

/* Registers decide the shape of the products: PANEL rows of coefficients times COLS vectors of
 * data rows for projection and distances, GROUP clusters times 4 features for the sums. The
 * accumulators fill what the loads leave free: 24 of 32 registers, 12 of 16. */
#if defined(RFFPK_PLAIN)
#define VECTOR_BYTES (RFFPK_BITS / 8)
enum { PANEL = 4, COLS = 4, GROUP = 2 };
#elif defined(__AVX512F__)
#define VECTOR_BYTES 64
enum { PANEL = 6, COLS = 4, GROUP = 4 };
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
enum { PANEL = 6, COLS = 2, GROUP = 2 };
#else
#define VECTOR_BYTES 16
enum { PANEL = 6, COLS = 2, GROUP = 2 };
#endif

#define W (VECTOR_BYTES * 8 / RFFPK_BITS) /* numbers in a vector */

#ifdef RFFPK_PLAIN
typedef real vec;
typedef whole ivec;
typedef bare uvec;
#define SELECT(mask, a, b) ((mask) ? (a) : (b))
#else
typedef real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef whole ivec __attribute__((vector_size(VECTOR_BYTES)));
typedef bare uvec __attribute__((vector_size(VECTOR_BYTES)));
#define SELECT(mask, a, b) select_lanes(mask, a, b)
#endif

INLINE ivec bits_of(vec v)
{
    ivec i;
    memcpy(&i, &v, sizeof i);
    return i;
}

INLINE vec from_bits(ivec i)
{
    vec v;
    memcpy(&v, &i, sizeof v);
    return v;
}

INLINE vec splat(real a) { return (vec){0} + a; }

INLINE ivec isplat(whole a) { return (ivec){0} + a; }

INLINE ivec shift_left(ivec i, int by) { return (ivec)((uvec)i << by); }

INLINE vec load(const real *p) /* aligned */ { return *(const vec *)p; }

INLINE void store(real *p, vec v) { *(vec *)p = v; }

#ifndef RFFPK_PLAIN
INLINE vec select_lanes(ivec mask, vec a, vec b)
{
    return from_bits((bits_of(a) & mask) | (bits_of(b) & ~mask));
}
#endif

INLINE vec larger(vec a, vec b) { return SELECT(a > b, a, b); }

INLINE real sum_lanes(vec v)
{
    real lane[W], total = 0;
    memcpy(lane, &v, sizeof v);
    for (int i = 0; i < W; i++)
        total += lane[i];
    return total;
}

/* Sums of adjacent pairs: of a in the first half, of b in the second. */
#if W > 1
#if W == 2
#define EVEN 0, 2
#define ODD 1, 3
#elif W == 4
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#elif W == 8
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#endif
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef PICK
#define PICK(a, b, ...) __builtin_shuffle(a, b, (ivec){__VA_ARGS__})
#endif
INLINE vec pair_sums(vec a, vec b) { return PICK(a, b, EVEN) + PICK(a, b, ODD); }
#else
INLINE vec pair_sums(vec a, vec b) { return a + b; } /* never called: nothing to fold */
#endif

/* Lane i of the result is the sum of the lanes of v[i]; v is overwritten. */
INLINE vec fold_lanes(vec v[W])
{
    UNROLL
    for (int half = W / 2; half > 0; half /= 2) {
        UNROLL
        for (int i = 0; i < half; i++)
            v[i] = pair_sums(v[2 * i], v[2 * i + 1]);
    }
    return v[0];
}

#endif
