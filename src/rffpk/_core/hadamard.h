/* Structured projection: phases = scale H S1 H S2 H S3 x with the Walsh-Hadamard matrix H of order
 * p in its natural order, x padded with zeros, and signs S (Yu et al. 2016). W rows are transformed
 * at a time. They are p vectors, which stay in the first-level cache up to p = 256.
 *
 * The log2(p) stages of H commute. They run in groups that fit in registers. The second H runs the
 * groups in reverse order. The last group of one H and the first group of the next H then work on
 * the same lines, and share one loop. The first loop reads the lines of the rows, and the last loop
 * writes the phases. */
#ifndef RFFPK_HADAMARD_H
#define RFFPK_HADAMARD_H

#include "simd.h"

/* Stages of a full group, whose 2^FULL lines fit in the registers. All groups are full except the
 * last group, or the first group where p < 2^FULL. */
#if defined(__AVX512F__) && !defined(RFFPK_PLAIN)
enum { FULL = 4 };
#else
enum { FULL = 3 };
#endif

/* Return 1, hidden from the compiler. It then computes a - b * one as a fused multiply-add, if the
 * processor has such instructions, with the same bits as a - b. Many processors add and
 * multiply-add in different units, and butterflies keep both units busy. */
INLINE vec opaque_one(void)
{
    vec one = splat(1);
#if defined(__FMA__) && !defined(RFFPK_PLAIN)
    __asm__("" : "+x"(one));
#endif
    return one;
}

INLINE void butterflies(const int stages, vec *v)
{
    const vec one = opaque_one();
    UNROLL
    for (int half = 1; half < 1 << stages; half *= 2) {
        UNROLL
        for (int i = 0; i < 1 << stages; i++)
            if (!(i & half)) {
                const vec a = v[i], b = v[i + half];
                v[i] = a + b;
                v[i + half] = a - b * one;
            }
    }
}

/* strip <- first group of H S applied to `from`. Lines of `from` beyond `have` count as zero. */
INLINE void read_lines(const int stages, const real *from, size_t have, const real *signs,
                       real *strip, size_t p)
{
    const size_t n = (size_t)1 << stages;
    for (size_t i = 0; i < p; i += n, strip += n * W) {
        vec v[1 << FULL];
        UNROLL
        for (size_t r = 0; r < n; r++)
            v[r] = i + r < have ? load(from + (i + r) * W) * signs[i + r] : splat(0);
        butterflies(stages, v);
        UNROLL
        for (size_t r = 0; r < n; r++)
            store(strip + r * W, v[r]);
    }
}

/* strip <- a group of H applied to strip. With `twice` the group ends one H and, after the signs,
 * begins the next H. h is the distance between the lines that the first stage of the group adds.
 * All parameters before `signs` are constants, h at most calls only. Lines stay in registers only
 * where the compiler sees how they are combined. */
INLINE void transform(const int stages, const size_t h, const int twice, const real *signs,
                      real *strip, size_t p)
{
    const size_t n = (size_t)1 << stages;
    for (size_t base = 0; base < p; base += h * n)
        for (size_t i = base; i < base + h; i++) {
            vec v[1 << FULL];
            UNROLL
            for (size_t r = 0; r < n; r++)
                v[r] = load(strip + (i + r * h) * W);
            butterflies(stages, v);
            if (twice) {
                UNROLL
                for (size_t r = 0; r < n; r++)
                    v[r] *= signs[i + r * h];
                butterflies(stages, v);
            }
            UNROLL
            for (size_t r = 0; r < n; r++)
                store(strip + (i + r * h) * W, v[r]);
        }
}

/* to <- last group of H applied to strip. Only the first `want` lines are written. */
INLINE void write_lines(const int stages, const size_t h, const real *strip, real *to,
                        size_t stride, size_t want)
{
    const size_t n = (size_t)1 << stages;
    for (size_t i = 0; i < h; i++) {
        vec v[1 << FULL];
        UNROLL
        for (size_t r = 0; r < n; r++)
            v[r] = load(strip + (i + r * h) * W);
        butterflies(stages, v);
        UNROLL
        for (size_t r = 0; r < n; r++)
            if (i + r * h < want)
                store(to + (i + r * h) * stride, v[r]);
    }
}

/* call(stages, ...) with `stages` as a constant */
#define WITH_STAGES(call, stages, ...)                                                             \
    switch ((int)(stages)) {                                                                       \
    case 0: call(0, __VA_ARGS__); break;                                                           \
    case 1: call(1, __VA_ARGS__); break;                                                           \
    case 2: call(2, __VA_ARGS__); break;                                                           \
    case 3: call(3, __VA_ARGS__); break;                                                           \
    default: call(FULL, __VA_ARGS__);                                                              \
    }

/* call(stages, h, ...) with constants. h is a constant only for the distances up to p = 2^(3 FULL),
 * because a variable h takes as many registers as lines. */
#define WITH_DISTANCE(call, stages, h, ...)                                                        \
    if (h == (size_t)1 << FULL)                                                                    \
        WITH_STAGES(call, stages, (size_t)1 << FULL, __VA_ARGS__)                                  \
    else if (h == (size_t)1 << 2 * FULL)                                                           \
        WITH_STAGES(call, stages, (size_t)1 << 2 * FULL, __VA_ARGS__)                              \
    else                                                                                           \
        WITH_STAGES(call, stages, h, __VA_ARGS__)

/* to <- H S1 H S2 H S3 from. signs: p numbers each of S3, S2, S1. from: lines of W numbers. strip:
 * scratch memory for p lines of W numbers. */
static void hadamard_thrice(const real *signs, size_t p, const real *from, size_t have, real *strip,
                            real *to, size_t to_stride, size_t want)
{
    int first = 0, last = 0; /* stages of the first and of the last group; the last may have none */
    while (first < FULL && (size_t)1 << first < p)
        first++;
    const size_t second = (size_t)1 << first; /* h of the second group ... */
    size_t h = second;                        /* ... and of the last */
    while (p > h << last)
        if (++last > FULL) {
            h <<= FULL;
            last = 1;
        }

    WITH_STAGES(read_lines, first, from, have, signs, strip, p)
    for (size_t g = second; g < h; g <<= FULL)
        WITH_DISTANCE(transform, FULL, g, 0, NULL, strip, p)
    WITH_DISTANCE(transform, last, h, 1, signs + p, strip, p)
    for (size_t g = h >> FULL; g >= second; g >>= FULL)
        WITH_DISTANCE(transform, FULL, g, 0, NULL, strip, p)
    WITH_STAGES(transform, first, 1, 1, signs + 2 * p, strip, p)
    for (size_t g = second; g < h; g <<= FULL)
        WITH_DISTANCE(transform, FULL, g, 0, NULL, strip, p)
    WITH_DISTANCE(write_lines, last, h, strip, to, to_stride, want)
}

#endif
