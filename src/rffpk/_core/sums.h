/* The last stage: add the weighted rows to the sums N, Q and G of the clusters. */
#ifndef RFFPK_SUMS_H
#define RFFPK_SUMS_H

#include "products.h"
#include "tile.h"

enum { FEATURES_AT_ONCE = 4 }; /* lines of phi in one block of the sums */

/* to[f] += from[f]. The usual n becomes a constant, which the compiler turns into one vector
 * sum. */
INLINE void add_line(double *to, const real *from, size_t n)
{
    if (n == FEATURES_AT_ONCE) {
        UNROLL
        for (int f = 0; f < FEATURES_AT_ONCE; f++)
            to[f] += from[f];
    } else {
        for (size_t f = 0; f < n; f++)
            to[f] += from[f];
    }
}

/* out[r][f] += sum over the rows of g[r] phi[f], for h clusters. FEATURES_AT_ONCE lines of phi are
 * multiplied; the first `valid` of their sums are added. */
INLINE void moments_block(const int h, const real *g, const real *phi, size_t cols, size_t stride,
                          double *out, size_t width, size_t valid)
{
    enum { SUMS = GROUP * FEATURES_AT_ONCE, FOLDS = (SUMS + W - 1) / W };
    vec acc[FOLDS * W];
    UNROLL
    for (int i = 0; i < FOLDS * W; i++)
        acc[i] = splat(0);
    for (size_t col = 0; col < cols; col += W) {
        vec line[FEATURES_AT_ONCE];
        UNROLL
        for (int f = 0; f < FEATURES_AT_ONCE; f++)
            line[f] = load(phi + f * stride + col);
        UNROLL
        for (int r = 0; r < h; r++) {
            const vec weight = load(g + r * stride + col);
            UNROLL
            for (int f = 0; f < FEATURES_AT_ONCE; f++)
                acc[r * FEATURES_AT_ONCE + f] += weight * line[f];
        }
    }
    real sums[FOLDS * W] ALIGNED;
    UNROLL
    for (int i = 0; i < FOLDS; i++) {
        vec part[W];
        UNROLL
        for (int lane = 0; lane < W; lane++)
            part[lane] = acc[i * W + lane];
        store(sums + i * W, fold_lanes(part));
    }
    UNROLL
    for (int r = 0; r < h; r++)
        add_line(out + r * width, sums + r * FEATURES_AT_ONCE, valid);
}

/* moments[j][f] += sum over the rows of g[j] phi[f], for j < k and f < width. The number of lines
 * of phi is the next multiple of FEATURES_AT_ONCE. */
NOINLINE static void add_moments(const real *g, size_t k, const real *phi, size_t width,
                                 size_t cols, size_t stride, double *moments)
{
    for (size_t f = 0; f < width; f += FEATURES_AT_ONCE) {
        const size_t left = width - f, valid = left < FEATURES_AT_ONCE ? left : FEATURES_AT_ONCE;
        const real *lines = phi + f * stride;
        for (size_t j = 0, h; j < k; j += h) {
            h = even_share(k, GROUP, j);
            const real *weights = g + j * stride;
            double *out = moments + j * width + f;
            switch (h) {
            case 1: moments_block(1, weights, lines, cols, stride, out, width, valid); break;
            case 2: moments_block(2, weights, lines, cols, stride, out, width, valid); break;
#if GROUP_IS_4
            case 3: moments_block(3, weights, lines, cols, stride, out, width, valid); break;
            case 4: moments_block(4, weights, lines, cols, stride, out, width, valid); break;
#endif
            }
        }
    }
}

/* moments[label][f] += p phi[f] for every row and f < width. It is the product of add_moments for
 * weights that are 0 except at one cluster of each row. Lines of phi are read up to the next
 * multiple of W. */
NOINLINE static void add_rows(const real *label, const real *p, const real *phi, size_t width,
                              size_t cols, size_t stride, double *moments)
{
    for (size_t col = 0; col < cols; col += W)
        for (size_t f = 0; f < width; f += W) {
            const size_t valid = width - f < W ? width - f : W;
            vec v[W];
            UNROLL
            for (int i = 0; i < W; i++)
                v[i] = load(phi + (f + i) * stride + col);
            transpose_lanes(v);
            for (int r = 0; r < W; r++) {
                real row[W] ALIGNED;
                store(row, v[r] * p[col + r]);
                double *to = moments + (size_t)label[col + r] * width + f;
                if (valid == W) {
                    for (int i = 0; i < W; i++)
                        to[i] += row[i];
                } else {
                    for (size_t i = 0; i < valid; i++)
                        to[i] += row[i];
                }
            }
        }
}

#endif
