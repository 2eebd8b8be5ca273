/* The products of a tile: projection and distances (coefficients times lines) and sums (lines times
 * lines); the skinny product; the transposition of rows. A line is one feature of many rows; lines
 * are `stride` numbers apart. */
#ifndef RFFPK_PRODUCTS_H
#define RFFPK_PRODUCTS_H

#include "simd.h"

enum {
    STEP = COLS * W,     /* rows that are processed together */
    FEATURES_AT_ONCE = 4 /* lines of phi in one block of the sums */
};

/* Lines are divided evenly among as few blocks of at most `most` lines as hold them all: the height
 * of the block that begins at line `from`. */
static size_t even_share(size_t lines, size_t most, size_t from)
{
    const size_t blocks = (lines + most - 1) / most;
    const size_t low = lines / blocks, higher = lines % blocks;
    return from < higher * (low + 1) ? low + 1 : low;
}

/* h lines of the product, for STEP rows; h is a constant at every call. */
INLINE void panel_step(const int h, const real *a, const real *b, real *c, size_t depth,
                       size_t stride)
{
    vec acc[PANEL][COLS];
    UNROLL
    for (int r = 0; r < h; r++) {
        UNROLL
        for (int j = 0; j < COLS; j++)
            acc[r][j] = splat(0);
    }
    for (size_t i = 0; i < depth; i++, a += h, b += stride) {
        vec line[COLS];
        UNROLL
        for (int j = 0; j < COLS; j++)
            line[j] = load(b + j * W);
        UNROLL
        for (int r = 0; r < h; r++) {
            UNROLL
            for (int j = 0; j < COLS; j++)
                acc[r][j] += line[j] * a[r];
        }
    }
    UNROLL
    for (int r = 0; r < h; r++) {
        UNROLL
        for (int j = 0; j < COLS; j++)
            store(c + r * stride + j * W, acc[r][j]);
    }
}

/* c[line] = sum_i a[line][i] b[i] for `cols` rows. a is packed in panels (depth, height) of at most
 * PANEL lines, whose heights even_share gives. */
static void product(const real *packed, size_t lines, size_t depth, const real *b, real *c,
                    size_t cols, size_t stride)
{
    for (size_t col = 0; col < cols; col += STEP)
        for (size_t from = 0, h; from < lines; from += h) {
            h = even_share(lines, PANEL, from);
            const real *a = packed + from * depth, *bb = b + col;
            real *cc = c + from * stride + col;
            switch (h) {
            case 1: panel_step(1, a, bb, cc, depth, stride); break;
            case 2: panel_step(2, a, bb, cc, depth, stride); break;
            case 3: panel_step(3, a, bb, cc, depth, stride); break;
            case 4: panel_step(4, a, bb, cc, depth, stride); break;
#if PANEL_IS_6
            case 5: panel_step(5, a, bb, cc, depth, stride); break;
            case 6: panel_step(6, a, bb, cc, depth, stride); break;
#endif
            }
        }
}

/* ---- few lines times a large matrix in memory ----------------------------------------------- */

/* A block of the matrix is SKINNY_DEPTH lines of SKINNY_COLS columns. */
enum { SKINNY_DEPTH = RFFPK_SKINNY_DEPTH, SKINNY_COLS = RFFPK_SKINNY_BYTES / sizeof(real) };
_Static_assert(SKINNY_COLS % STEP == 0, "a block of the skinny product is whole steps");

/* c += a b for h lines and STEP columns. `next` is the block of the matrix that follows: each of
 * `parts` calls prefetches its `part` of it. */
INLINE void skinny_step(const int h, const real *a, const real *b, real *c, size_t depth,
                        size_t stride, const real *next, size_t part, size_t parts)
{
    vec acc[PANEL][COLS];
    UNROLL
    for (int r = 0; r < h; r++) {
        UNROLL
        for (int j = 0; j < COLS; j++)
            acc[r][j] = load(c + r * SKINNY_COLS + j * W);
    }
    for (size_t i = 0; i < depth; i++, a += h, b += stride, next += stride) {
        vec line[COLS];
        UNROLL
        for (int j = 0; j < COLS; j++)
            line[j] = load(b + j * W);
        for (size_t j = part; j < COLS; j += parts)
            PREFETCH(next + j * W);
        UNROLL
        for (int r = 0; r < h; r++) {
            UNROLL
            for (int j = 0; j < COLS; j++)
                acc[r][j] += line[j] * a[r];
        }
    }
    UNROLL
    for (int r = 0; r < h; r++) {
        UNROLL
        for (int j = 0; j < COLS; j++)
            store(c + r * SKINNY_COLS + j * W, acc[r][j]);
    }
}

/* The same for all lines of coefficients and SKINNY_COLS columns. */
static void skinny_block(const real *packed, size_t lines, size_t whole_depth, const real *b,
                         real *c, size_t depth, size_t stride, const real *next_block)
{
    const size_t parts = (lines + PANEL - 1) / PANEL;
    for (size_t from = 0, h, part = 0; from < lines; from += h, part++) {
        h = even_share(lines, PANEL, from);
        for (size_t col = 0; col < SKINNY_COLS; col += STEP) {
            const real *a = packed + from * whole_depth, *bb = b + col, *next = next_block + col;
            real *cc = c + from * SKINNY_COLS + col;
            switch (h) {
            case 1: skinny_step(1, a, bb, cc, depth, stride, next, part, parts); break;
            case 2: skinny_step(2, a, bb, cc, depth, stride, next, part, parts); break;
            case 3: skinny_step(3, a, bb, cc, depth, stride, next, part, parts); break;
            case 4: skinny_step(4, a, bb, cc, depth, stride, next, part, parts); break;
#if PANEL_IS_6
            case 5: skinny_step(5, a, bb, cc, depth, stride, next, part, parts); break;
            case 6: skinny_step(6, a, bb, cc, depth, stride, next, part, parts); break;
#endif
            }
        }
    }
}

/* to[f] += from[f]. The usual n is made a constant, which the compiler turns into one vector sum.
 */
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

/* out[r][f] += sum over the rows of g[r] phi[f], for h clusters and the first `valid` of
 * FEATURES_AT_ONCE lines. */
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

/* moments[j][f] += sum over the rows of g[j] phi[f], j < k, f < width. The number of lines of phi
 * is the next multiple of FEATURES_AT_ONCE. */
static void add_moments(const real *g, size_t k, const real *phi, size_t width, size_t cols,
                        size_t stride, double *moments)
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

/* moments[label][f] += p phi[f] for every row, f < width: the product above for weights that are 0
 * except at one cluster of each row. Lines of phi are read up to the next multiple of W. */
static void add_rows(const real *label, const real *p, const real *phi, size_t width, size_t cols,
                     size_t stride, double *moments)
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

/* W rows of x, `x_step` numbers apart, become W lines of out. */
INLINE void transpose_block(const real *x, size_t x_step, real *out, size_t stride)
{
    vec v[W];
    UNROLL
    for (int r = 0; r < W; r++)
        v[r] = load_anywhere(x + r * x_step);
    transpose_lanes(v);
    UNROLL
    for (int r = 0; r < W; r++)
        store(out + r * stride, v[r]);
}

/* Rows of x (rows, d) become lines of out (d, cols). Columns of out beyond `rows` are zero, so that
 * all that is computed from them is finite. Rows before `end` are prefetched. */
static void transpose(const real *x, const real *end, size_t d, size_t rows, size_t cols, real *out,
                      size_t stride)
{
    for (size_t from = 0; from < cols; from += W) {
        const size_t here = from >= rows ? 0 : rows - from < W ? rows - from : W;
        const real *row = x + from * d;
        size_t i = 0;
        if (here == W && d >= W) {
            for (; i + W <= d; i += W)
                transpose_block(row + i, d, out + i * stride + from, stride);
            if (i < d) /* the last block overlaps the previous one */
                transpose_block(row + d - W, d, out + (d - W) * stride + from, stride);
            i = d;
        }
        if ((size_t)(end - x) > (from + (RFFPK_PREFETCH_BLOCKS + 1) * W) * d)
            for (size_t at = 0; at < W * d; at += RFFPK_ALIGN / sizeof(real))
                PREFETCH(row + RFFPK_PREFETCH_BLOCKS * W * d + at);
        for (; i < d; i++) {
            real *line = out + i * stride + from;
            for (size_t r = 0; r < here; r++)
                line[r] = row[r * d + i];
            for (size_t r = here; r < W; r++)
                line[r] = 0;
        }
    }
}

#endif
