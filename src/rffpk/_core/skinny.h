/* The skinny product: few lines of coefficients times a large matrix in memory, such as an exact
 * kernel. */
#ifndef RFFPK_SKINNY_H
#define RFFPK_SKINNY_H

#include "products.h"

/* A block of the matrix is SKINNY_DEPTH lines of SKINNY_COLS columns. */
enum { SKINNY_DEPTH = RFFPK_SKINNY_DEPTH, SKINNY_COLS = RFFPK_SKINNY_BYTES / sizeof(real) };
_Static_assert(SKINNY_COLS % STEP == 0, "a block of the skinny product is whole steps");

/* c += a b for h lines and STEP columns. `next` is the following block of the matrix. Each of
 * `parts` calls prefetches part number `part` of it. */
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

/* c += a b for all lines of coefficients and SKINNY_COLS columns. */
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

static size_t skinny_bytes(size_t lines) { return lines * RFFPK_SKINNY_BYTES; }

static void skinny_pack(const void *coefficients, size_t lines, size_t depth, void *packed)
{
    for (size_t i = 0; i < depth; i += SKINNY_DEPTH) {
        const size_t here = depth - i < SKINNY_DEPTH ? depth - i : SKINNY_DEPTH;
        pack((const real *)coefficients + i, depth, 1, lines, here, 1, (real *)packed + i * lines);
    }
}

static void skinny(const void *packed, const void *matrix, size_t lines, size_t depth,
                   size_t stride, size_t begin, size_t end, void *out, size_t out_stride,
                   void *workspace)
{
    for (; begin < end; begin += SKINNY_COLS) {
        const real *columns = (const real *)matrix + begin;
        const size_t cols = end - begin < SKINNY_COLS ? end - begin : SKINNY_COLS;
        memset(workspace, 0, skinny_bytes(lines));
        for (size_t i = 0; i < depth; i += SKINNY_DEPTH) {
            const size_t here = depth - i < SKINNY_DEPTH ? depth - i : SKINNY_DEPTH;
            const int last = i + 2 * SKINNY_DEPTH > depth;
            const real *b = columns + i * stride, *next = last ? b : b + SKINNY_DEPTH * stride;
            skinny_block((const real *)packed + i * lines, lines, here, b, workspace, here, stride,
                         next);
        }
        for (size_t line = 0; line < lines; line++)
            memcpy((real *)out + line * out_stride + begin,
                   (const real *)workspace + line * SKINNY_COLS, cols * sizeof(real));
    }
}

#endif
