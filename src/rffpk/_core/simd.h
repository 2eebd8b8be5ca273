/* Vectors of the instruction set that this file is compiled for.
 *
 * The file is compiled once for each instruction set and type. RFFPK_BITS is 32 or 64. RFFPK_PLAIN
 * asks for plain C, where a vector is one number. All other code is common to the instruction sets.
 * It uses the operators of GCC's and Clang's vector extension, which are plain C for W = 1. */
#ifndef RFFPK_SIMD_H
#define RFFPK_SIMD_H

#include "contract.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if (defined(__AVX512F__) || defined(__AVX2__)) && !defined(RFFPK_PLAIN)
#include <immintrin.h>
#endif

#if RFFPK_BITS == 32
#define MANTISSA_BITS 23
#define MOST_CENTROIDS RFFPK_MOST_CENTROIDS_F32
typedef float real;
#define SQRT sqrtf
typedef int32_t whole;
typedef uint32_t unsigned_whole;
#else
#define MANTISSA_BITS 52
#define MOST_CENTROIDS RFFPK_MOST_CENTROIDS_F64
typedef double real;
#define SQRT sqrt
typedef int64_t whole;
typedef uint64_t unsigned_whole;
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define PREFETCH(p) __builtin_prefetch(p, 0, 2) /* into the second-level cache */
#define ALIGNED __attribute__((aligned(64)))
#define PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define UNROLL PRAGMA(unroll)
#else
#define UNROLL PRAGMA(GCC unroll 16)
#endif
/* For the kernels of a stage. Inlined beside other kernels, kernels are up to 12 % slower (GCC
 * 12). */
#define NOINLINE __attribute__((noinline))
#else
#define INLINE static inline
#define PREFETCH(p) ((void)(p))
#define ALIGNED
#define UNROLL
#define NOINLINE
#endif

/* The number of registers determines the shape of the products. A product has PANEL lines of
 * coefficients times COLS vectors of rows for projection and distances, and GROUP clusters times 4
 * features for the sums. The accumulators take 24 of 32 registers, or 12 of 16. The remaining
 * registers hold operands. */
#if defined(RFFPK_PLAIN)
#define VECTOR_BYTES (RFFPK_BITS / 8)
enum { PANEL = 4, COLS = 4, GROUP = 2 };
#define PANEL_IS_6 0
#define GROUP_IS_4 0
#elif defined(__AVX512F__)
#define VECTOR_BYTES 64
enum { PANEL = 6, COLS = 4, GROUP = 4 };
#define PANEL_IS_6 1
#define GROUP_IS_4 1
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
enum { PANEL = 6, COLS = 2, GROUP = 2 };
#define PANEL_IS_6 1
#define GROUP_IS_4 0
#else
#define VECTOR_BYTES 16
enum { PANEL = 6, COLS = 2, GROUP = 2 };
#define PANEL_IS_6 1
#define GROUP_IS_4 0
#endif

#define EPS ((real)1 / ((whole)1 << MANTISSA_BITS))
/* The least positive number of full precision. */
#define LEAST ((real)(RFFPK_BITS == 32 ? 0x1p-126 : 0x1p-1022))
#define W (VECTOR_BYTES * 8 / RFFPK_BITS) /* numbers in a vector */

enum {
    STEP = COLS * W,                 /* rows of a step of a product */
    PAD = RFFPK_ALIGN / sizeof(real) /* numbers between lines, against cache-set conflicts */
};

static size_t round_up(size_t a, size_t to) { return (a + to - 1) / to * to; }

#ifdef RFFPK_PLAIN
typedef real vec;
typedef whole ivec;
typedef unsigned_whole uvec;
#define SELECT(mask, a, b) ((mask) ? (a) : (b))
#else
typedef real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef whole ivec __attribute__((vector_size(VECTOR_BYTES)));
typedef unsigned_whole uvec __attribute__((vector_size(VECTOR_BYTES)));
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

/* Arithmetic that wraps around. C allows overflow for unsigned integers only. */
INLINE ivec shift_left(ivec i, int by) { return (ivec)((uvec)i << by); }
INLINE ivec add(ivec a, ivec b) { return (ivec)((uvec)a + (uvec)b); }
INLINE ivec minus(ivec a, ivec b) { return (ivec)((uvec)a - (uvec)b); }

/* p must be aligned like a vector. */
INLINE vec load(const real *p) { return *(const vec *)p; }

INLINE void store(real *p, vec v) { *(vec *)p = v; }

INLINE vec load_anywhere(const real *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

#ifndef RFFPK_PLAIN
INLINE vec select_lanes(ivec mask, vec a, vec b)
{
    return from_bits((bits_of(a) & mask) | (bits_of(b) & ~mask));
}
#endif

/* The lanes where a comparison holds. AVX-512 has mask registers for them, which compilers do not
 * use for comparisons of the vector extension. */
#if defined(__AVX512F__) && !defined(RFFPK_PLAIN) && RFFPK_BITS == 32
typedef __mmask16 lanes;
INLINE lanes less(vec a, vec b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ); }
INLINE vec pick(lanes l, vec a, vec b)
{
    return (vec)_mm512_mask_blend_ps(l, (__m512)b, (__m512)a);
}
INLINE int any(lanes l) { return l != 0; }
#elif defined(__AVX512F__) && !defined(RFFPK_PLAIN)
typedef __mmask8 lanes;
INLINE lanes less(vec a, vec b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ); }
INLINE vec pick(lanes l, vec a, vec b)
{
    return (vec)_mm512_mask_blend_pd(l, (__m512d)b, (__m512d)a);
}
INLINE int any(lanes l) { return l != 0; }
#else
typedef ivec lanes;
INLINE lanes less(vec a, vec b) { return a < b; }
INLINE vec pick(lanes l, vec a, vec b) { return SELECT(l, a, b); }
INLINE int any(lanes l)
{
#if defined(RFFPK_PLAIN)
    return l != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)l, (__m256i)l);
#else
    uint64_t word[2];
    memcpy(word, &l, sizeof l);
    return (word[0] | word[1]) != 0;
#endif
}
#endif

INLINE vec lesser(vec a, vec b) { return pick(less(a, b), a, b); }
INLINE vec larger(vec a, vec b) { return pick(less(b, a), a, b); }

/* Return a number whose bit i is 1 if lane i holds. */
INLINE unsigned ones_of(lanes l)
{
#if defined(RFFPK_PLAIN)
    return l != 0;
#elif defined(__AVX512F__)
    return l;
#elif defined(__AVX2__) && RFFPK_BITS == 32
    return (unsigned)_mm256_movemask_ps((__m256)l);
#elif defined(__AVX2__)
    return (unsigned)_mm256_movemask_pd((__m256d)l);
#else
    unsigned ones = 0;
    for (int i = 0; i < W; i++)
        ones |= (unsigned)(l[i] != 0) << i;
    return ones;
#endif
}

#define ALL_LANES ((unsigned)((1ull << W) - 1))

/* Return the number of the lowest bit that is 1. There must be such a bit. */
INLINE int lowest(uint64_t bits)
{
#if defined(__GNUC__)
    return __builtin_ctzll(bits);
#else
    int number = 0;
    for (; !(bits & 1); bits >>= 1)
        number++;
    return number;
#endif
}

INLINE real sum_lanes(vec v)
{
    real lane[W], total = 0;
    memcpy(lane, &v, sizeof v);
    for (int i = 0; i < W; i++)
        total += lane[i];
    return total;
}

/* The shuffles of two vectors for which processors have instructions. A vector has blocks of 128
 * bits, which hold BLOCK numbers. ONES and TWOS interleave single numbers or pairs, from the lower
 * or the upper half of each block. BLOCKS gather whole blocks, with even or odd numbers. */
#define BLOCK (128 / RFFPK_BITS)
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef PICK
#define PICK(a, b, ...) __builtin_shuffle(a, b, (ivec){__VA_ARGS__})
#endif
#if W == 16
#define ONES_LOW(a, b) PICK(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define ONES_HIGH(a, b) PICK(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define TWOS_LOW(a, b) PICK(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define TWOS_HIGH(a, b) PICK(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define BLOCKS_EVEN(a, b) PICK(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define BLOCKS_ODD(a, b) PICK(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#elif W == 8 && RFFPK_BITS == 32
#define ONES_LOW(a, b) PICK(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define ONES_HIGH(a, b) PICK(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define TWOS_LOW(a, b) PICK(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define TWOS_HIGH(a, b) PICK(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define BLOCKS_EVEN(a, b) PICK(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define BLOCKS_ODD(a, b) PICK(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#elif W == 8
#define ONES_LOW(a, b) PICK(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define ONES_HIGH(a, b) PICK(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define BLOCKS_EVEN(a, b) PICK(a, b, 0, 1, 4, 5, 8, 9, 12, 13)
#define BLOCKS_ODD(a, b) PICK(a, b, 2, 3, 6, 7, 10, 11, 14, 15)
#elif W == 4 && RFFPK_BITS == 32
#define ONES_LOW(a, b) PICK(a, b, 0, 4, 1, 5)
#define ONES_HIGH(a, b) PICK(a, b, 2, 6, 3, 7)
#define TWOS_LOW(a, b) PICK(a, b, 0, 1, 4, 5)
#define TWOS_HIGH(a, b) PICK(a, b, 2, 3, 6, 7)
#elif W == 4
#define ONES_LOW(a, b) PICK(a, b, 0, 4, 2, 6)
#define ONES_HIGH(a, b) PICK(a, b, 1, 5, 3, 7)
#define BLOCKS_EVEN(a, b) PICK(a, b, 0, 1, 4, 5)
#define BLOCKS_ODD(a, b) PICK(a, b, 2, 3, 6, 7)
#elif W == 2
#define ONES_LOW(a, b) PICK(a, b, 0, 2)
#define ONES_HIGH(a, b) PICK(a, b, 1, 3)
#endif

/* v[i] <- low + high of the pair (v[2 i], v[2 i + 1]), for i < half */
#define FOLD_STEP(LOW, HIGH, half)                                                                 \
    UNROLL                                                                                         \
    for (int i = 0; i < (half); i++)                                                               \
        v[i] = LOW(v[2 * i], v[2 * i + 1]) + HIGH(v[2 * i], v[2 * i + 1]);

/* Return a vector whose lane i is the sum of the lanes of v[i]. v is overwritten. */
INLINE vec fold_lanes(vec v[W])
{
#if W > 1
    FOLD_STEP(ONES_LOW, ONES_HIGH, W / 2)
#endif
#ifdef TWOS_LOW
    FOLD_STEP(TWOS_LOW, TWOS_HIGH, W / 4)
#endif
#ifdef BLOCKS_EVEN
    UNROLL
    for (int half = W / BLOCK / 2; half > 0; half /= 2) {
        FOLD_STEP(BLOCKS_EVEN, BLOCKS_ODD, half)
    }
#endif
    return v[0];
}

/* Exchange lane j of v[i] and lane i of v[j]. */
INLINE void transpose_lanes(vec v[W])
{
#if W == 1
    (void)v;
#else
    vec t[W];
    UNROLL
    for (int i = 0; i < W; i += 2) {
        t[i] = ONES_LOW(v[i], v[i + 1]);
        t[i + 1] = ONES_HIGH(v[i], v[i + 1]);
    }
    /* v[i + c]: column c of each block, for the BLOCK rows that begin with row i */
    UNROLL
    for (int i = 0; i < W; i += BLOCK) {
#ifdef TWOS_LOW
        v[i] = TWOS_LOW(t[i], t[i + 2]);
        v[i + 1] = TWOS_HIGH(t[i], t[i + 2]);
        v[i + 2] = TWOS_LOW(t[i + 1], t[i + 3]);
        v[i + 3] = TWOS_HIGH(t[i + 1], t[i + 3]);
#else
        v[i] = t[i];
        v[i + 1] = t[i + 1];
#endif
    }
#endif
#ifdef BLOCKS_EVEN
    UNROLL
    for (int done = BLOCK; done < W; done *= 2) {
        UNROLL
        for (int i = 0; i < W / 2; i += BLOCK) {
            UNROLL
            for (int c = 0; c < BLOCK; c++) {
                t[i + c] = BLOCKS_EVEN(v[2 * i + c], v[2 * i + BLOCK + c]);
                t[W / 2 + i + c] = BLOCKS_ODD(v[2 * i + c], v[2 * i + BLOCK + c]);
            }
        }
        UNROLL
        for (int i = 0; i < W; i++)
            v[i] = t[i];
    }
#endif
}

#endif
