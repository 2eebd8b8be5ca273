/* Structured projection: phases = scale H S1 H S2 H S3 x with the Walsh-Hadamard matrix H of order
 * p in its natural order, x filled up with zeros, and signs S (Yu et al. 2016). A column of W rows
 * is transformed at a time: p vectors, which stay in the first-level cache up to p = 256. */
#ifndef RFFPK_HADAMARD_H
#define RFFPK_HADAMARD_H

#include "simd.h"

/* One pass of 2^stages lines `h` apart, in registers; each line times its sign where given */
INLINE void butterflies(const int stages, real *lines, size_t h, const real *signs)
{
    enum { MOST = 8 };
    const int n = 1 << stages;
    vec v[MOST];
    UNROLL
    for (int i = 0; i < n; i++) {
        v[i] = load(lines + i * h * W);
        if (signs)
            v[i] *= signs[i * h];
    }
    UNROLL
    for (int half = 1; half < n; half *= 2) {
        UNROLL
        for (int i = 0; i < n; i++)
            if (!(i & half)) {
                const vec a = v[i], b = v[i + half];
                v[i] = a + b;
                v[i + half] = a - b;
            }
    }
    UNROLL
    for (int i = 0; i < n; i++)
        store(lines + i * h * W, v[i]);
}

INLINE void hadamard_stages(const int stages, real *lines, size_t p, size_t h, const real *signs)
{
    for (size_t base = 0; base < p; base += h << stages)
        for (size_t i = base; i < base + h; i++)
            butterflies(stages, lines + i * W, h, signs ? signs + i : NULL);
}

/* lines <- H (signs lines), p lines of W numbers */
static void hadamard(real *lines, size_t p, const real *signs)
{
    for (size_t h = 1; h < p;) {
        if (h * 8 <= p) {
            hadamard_stages(3, lines, p, h, signs);
            h *= 8;
        } else if (h * 4 <= p) {
            hadamard_stages(2, lines, p, h, signs);
            h *= 4;
        } else {
            hadamard_stages(1, lines, p, h, signs);
            h *= 2;
        }
        signs = NULL;
    }
}

/* signs: three rows of p for each block of p frequencies, as they are applied; the scale is in the
 * first. x has d lines, phases D. */
static void project_structured(const real *signs, size_t d, size_t D, size_t p, const real *x,
                               real *phases, real *strip, size_t cols, size_t stride)
{
    for (size_t first = 0; first < D; first += p, signs += 3 * p) {
        const size_t here = D - first < p ? D - first : p;
        for (size_t col = 0; col < cols; col += W) {
            for (size_t i = 0; i < d; i++)
                store(strip + i * W, load(x + i * stride + col));
            for (size_t i = d; i < p; i++)
                store(strip + i * W, splat(0));
            for (int round = 0; round < 3; round++)
                hadamard(strip, p, signs + round * p);
            for (size_t i = 0; i < here; i++)
                store(phases + (first + i) * stride + col, load(strip + i * W));
        }
    }
}

#endif
