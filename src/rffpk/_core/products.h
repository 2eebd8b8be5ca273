/* Products of coefficients with lines, for projection and distances. A line has one feature of many
 * rows. Lines are `stride` numbers apart. */
#ifndef RFFPK_PRODUCTS_H
#define RFFPK_PRODUCTS_H

#include "simd.h"

/* Return the height of the block that begins at line `from`. Lines are divided evenly into as few
 * blocks as possible, of at most `most` lines. */
static size_t even_share(size_t lines, size_t most, size_t from)
{
    const size_t blocks = (lines + most - 1) / most;
    const size_t low = lines / blocks, higher = lines % blocks;
    return from < higher * (low + 1) ? low + 1 : low;
}

/* out <- scale * a[line][depth], in panels (depth, height) one after another */
static void pack(const real *a, size_t line_step, size_t depth_step, size_t lines, size_t depth,
                 double scale, real *out)
{
    for (size_t from = 0, h; from < lines; from += h) {
        h = even_share(lines, PANEL, from);
        for (size_t i = 0; i < depth; i++)
            for (size_t r = 0; r < h; r++)
                *out++ = (real)(scale * a[(from + r) * line_step + i * depth_step]);
    }
}

/* acc <- h lines of the product for STEP rows; h is a constant at every call. */
INLINE void panel_products(const int h, const real *a, const real *b, size_t depth, size_t stride,
                           vec acc[PANEL][COLS])
{
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
}

/* Compute h lines of the product for STEP rows, and store them in c. */
INLINE void panel_step(const int h, const real *a, const real *b, real *c, size_t depth,
                       size_t stride)
{
    vec acc[PANEL][COLS];
    panel_products(h, a, b, depth, stride, acc);
    UNROLL
    for (int r = 0; r < h; r++) {
        UNROLL
        for (int j = 0; j < COLS; j++)
            store(c + r * stride + j * W, acc[r][j]);
    }
}

/* c[line] <- sum_i a[line][i] b[i] for `cols` rows. a is packed in panels (depth, height), whose
 * heights come from even_share with PANEL. */
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

#endif
