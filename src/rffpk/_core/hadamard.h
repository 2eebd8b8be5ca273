/* Structured projection: phases = scale H S1 H S2 H S3 x with the Walsh-Hadamard matrix H of order
 * p in its natural order, x filled up with zeros, and signs S (Yu et al. 2016). A column of W rows
 * is transformed at a time: p vectors, which stay in the first-level cache up to p = 256.
 *
 * The stages of H commute. They are taken in groups that fit in registers, in one order and then
 * in the other, so that the last group of one H and the first of the next are one visit of the
 * lines; the first visit reads the rows' own lines and the last one writes the phases. */
#ifndef RFFPK_HADAMARD_H
#define RFFPK_HADAMARD_H

#include "simd.h"

/* Stages of a group: 2^FULL lines leave room in the registers. All groups but the last are full,
 * and where p is smaller, the first. */
#if defined(__AVX512F__) && !defined(RFFPK_PLAIN)
enum { FULL = 4 };
#else
enum { FULL = 3 };
#endif

INLINE void butterflies(const int stages, vec *v)
{
    UNROLL
    for (int half = 1; half < 1 << stages; half *= 2) {
        UNROLL
        for (int i = 0; i < 1 << stages; i++)
            if (!(i & half)) {
                const vec a = v[i], b = v[i + half];
                v[i] = a + b;
                v[i + half] = a - b;
            }
    }
}

/* strip <- first group of H S from, whose lines from `have` on are zero */
INLINE void read_lines(const int stages, const real *from, size_t stride, size_t have,
                       const real *signs, real *strip, size_t p)
{
    const size_t n = (size_t)1 << stages;
    for (size_t i = 0; i < p; i += n, strip += n * W) {
        vec v[1 << FULL];
        UNROLL
        for (size_t r = 0; r < n; r++)
            v[r] = i + r < have ? load(from + (i + r) * stride) * signs[i + r] : splat(0);
        butterflies(stages, v);
        UNROLL
        for (size_t r = 0; r < n; r++)
            store(strip + r * W, v[r]);
    }
}

/* strip <- a group of H strip; with signs, that group of H S group of H strip. `stages` and `h`,
 * the distance of the lines that the first of them adds, are constants at most calls. */
INLINE void turn(const int stages, const size_t h, const real *signs, real *strip, size_t p)
{
    const size_t n = (size_t)1 << stages;
    for (size_t base = 0; base < p; base += h * n)
        for (size_t i = base; i < base + h; i++) {
            vec v[1 << FULL];
            UNROLL
            for (size_t r = 0; r < n; r++)
                v[r] = load(strip + (i + r * h) * W);
            butterflies(stages, v);
            if (signs) {
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

/* to <- last group of H strip, of which `want` lines are wanted */
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

/* call(stages, ...) with constant stages */
#define WITH_STAGES(call, stages, ...)                                                             \
    switch (stages) {                                                                              \
    case 0: call(0, __VA_ARGS__); break;                                                           \
    case 1: call(1, __VA_ARGS__); break;                                                           \
    case 2: call(2, __VA_ARGS__); break;                                                           \
    case 3: call(3, __VA_ARGS__); break;                                                           \
    default: call(FULL, __VA_ARGS__);                                                              \
    }

/* to <- H S1 H S2 H S3 from. signs: rows of p for S3, S2, S1; the strip has p lines of W numbers.
 */
static void hadamard_thrice(const real *signs, size_t p, const real *from, size_t from_stride,
                            size_t have, real *strip, real *to, size_t to_stride, size_t want)
{
    int first = 0, last = 0; /* stages of those groups; the last one may have none */
    while (first < FULL && (size_t)1 << first < p)
        first++;
    const size_t second = (size_t)1 << first; /* distance of lines in the second group ... */
    size_t h = second;                        /* ... and in the last */
    while (p > h << last)
        if (++last > FULL) {
            h <<= FULL;
            last = 1;
        }

    WITH_STAGES(read_lines, first, from, from_stride, have, signs, strip, p)
    for (size_t g = second; g < h; g <<= FULL)
        turn(FULL, g, NULL, strip, p);
    if (h == 1 << FULL) /* a constant is faster */
        WITH_STAGES(turn, last, (size_t)1 << FULL, signs + p, strip, p)
    else
        WITH_STAGES(turn, last, h, signs + p, strip, p)
    for (size_t g = h >> FULL; g >= second; g >>= FULL)
        turn(FULL, g, NULL, strip, p);
    WITH_STAGES(turn, first, 1, signs + 2 * p, strip, p)
    for (size_t g = second; g < h; g <<= FULL)
        turn(FULL, g, NULL, strip, p);
    if (h == 1 << FULL)
        WITH_STAGES(write_lines, last, (size_t)1 << FULL, strip, to, to_stride, want)
    else
        WITH_STAGES(write_lines, last, h, strip, to, to_stride, want)
}

/* signs: three rows of p for each block of p frequencies, as they are applied; the scale is in the
 * first. x has d lines, phases D. */
static void project_structured(const real *signs, size_t d, size_t D, size_t p, const real *x,
                               real *phases, real *strip, size_t cols, size_t stride)
{
    for (size_t first = 0; first < D; first += p, signs += 3 * p)
        for (size_t col = 0; col < cols; col += W)
            hadamard_thrice(signs, p, x + col, stride, d, strip, phases + first * stride + col,
                            stride, D - first < p ? D - first : p);
}

#endif
