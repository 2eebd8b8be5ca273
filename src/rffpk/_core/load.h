/* The first stage: transpose rows to lines of the tile. Numbers of small types are widened, and
 * rows are scaled to length one, on the way. So no copy of the rows is made. */
#ifndef RFFPK_LOAD_H
#define RFFPK_LOAD_H

#include "tile.h"

#include <math.h>

/* ---- numbers of small types ------------------------------------------------------------------ */

static size_t bytes_of(enum rffpk_number numbers)
{
    switch (numbers) {
    case RFFPK_FLOAT16:
    case RFFPK_BFLOAT16: return 2;
    case RFFPK_INT8:
    case RFFPK_UINT8: return 1;
    default: return sizeof(real);
    }
}

static float float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Widen a half-precision number. Its exponent has the bias 15, and the exponent of a float has the
 * bias 127. Numbers whose exponent bits are all ones are infinite or NaN in both types. */
static float widen_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    if ((h & 0x7c00) == 0x7c00)
        return float_of_bits(sign | 0x7f800000 | rest);
    const float size = float_of_bits(rest) * 0x1p112f;
    return sign ? -size : size;
}

INLINE real widen_one(const int numbers, const char *p)
{
    uint16_t two;
    real one;
    switch (numbers) {
    case RFFPK_FLOAT16: memcpy(&two, p, sizeof two); return (real)widen_half(two);
    case RFFPK_BFLOAT16:
        memcpy(&two, p, sizeof two);
        return (real)float_of_bits((uint32_t)two << 16);
    case RFFPK_INT8: return (real) * (const int8_t *)p;
    case RFFPK_UINT8: return (real) * (const uint8_t *)p;
    default: memcpy(&one, p, sizeof one); return one;
    }
}

/* Load W numbers from any address, and widen them. */
INLINE vec widen(const int numbers, const char *p)
{
    if (numbers == RFFPK_REAL)
        return load_anywhere((const real *)p);
#if defined(__AVX512F__) && !defined(RFFPK_PLAIN) && RFFPK_BITS == 32
    switch (numbers) {
    case RFFPK_FLOAT16: return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
    case RFFPK_BFLOAT16:
        return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)),
                                      16);
    case RFFPK_INT8:
        return (vec)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
    default:
        return (vec)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
    }
#elif defined(__AVX2__) && defined(__F16C__) && !defined(RFFPK_PLAIN) && RFFPK_BITS == 32
    switch (numbers) {
    case RFFPK_FLOAT16: return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    case RFFPK_BFLOAT16:
        return (vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)),
                                      16);
    case RFFPK_INT8:
        return (vec)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
    default:
        return (vec)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
    }
#else
    real lane[W];
    for (int i = 0; i < W; i++)
        lane[i] = widen_one(numbers, p + i * bytes_of(numbers));
    return load_anywhere(lane);
#endif
}

/* Load the d numbers at `from` into a line. Numbers of the line beyond d stay as they are. */
static void load_line(enum rffpk_number numbers, const char *from, size_t d, real *line)
{
    const size_t size = bytes_of(numbers);
    size_t f = 0;
    for (; f + W <= d; f += W)
        store(line + f, widen((int)numbers, from + f * size));
    for (; f < d; f++)
        line[f] = widen_one((int)numbers, from + f * size);
}

/* ---- transposition --------------------------------------------------------------------------- */

/* Transpose W rows of x, which are `x_step` bytes apart, to W lines of out. */
INLINE void transpose_block(const int numbers, const char *x, size_t x_step, real *out,
                            size_t stride)
{
    vec v[W];
    UNROLL
    for (int r = 0; r < W; r++)
        v[r] = widen(numbers, x + r * x_step);
    transpose_lanes(v);
    UNROLL
    for (int r = 0; r < W; r++)
        store(out + r * stride, v[r]);
}

/* Prefetch the bytes of x from `soon` to `until`, or to `end` if that is less. Return the end. */
INLINE size_t prefetch(const char *x, size_t soon, size_t until, size_t end)
{
    until = until < end ? until : end;
    for (; soon < until; soon += RFFPK_ALIGN)
        PREFETCH(x + soon);
    return soon;
}

/* Transpose rows of x (rows, d) to lines of out (d, cols). Columns of out beyond `rows` are zero,
 * so that all numbers computed from them are finite.
 *
 * `left` rows begin at x, including rows of later tiles. After each block of W rows and W columns,
 * the loop prefetches as many bytes as a block has, from rows after the next W rows. It prefetches
 * no more at once, because the processor waits when it is asked for more memory than it can
 * fetch. */
INLINE void transpose(const int numbers, const char *x, size_t left, size_t d, size_t rows,
                      size_t cols, real *out, size_t stride)
{
    const size_t size = bytes_of(numbers), line = d * size, end = left * line;
    const size_t far = W * line + RFFPK_PREFETCH_BYTES;
    size_t soon = far;
    for (size_t from = 0; from < cols; from += W) {
        const size_t here = from >= rows ? 0 : rows - from < W ? rows - from : W;
        const char *row = x + from * line;
        size_t i = 0;
        if (here == W && d >= W) {
            for (; i + W <= d; i += W) {
                transpose_block(numbers, row + i * size, line, out + i * stride + from, stride);
                soon = prefetch(x, soon, far + from * line + (i + W) * W * size, end);
            }
            if (i < d) /* the last block overlaps the previous one */
                transpose_block(numbers, row + (d - W) * size, line, out + (d - W) * stride + from,
                                stride);
            i = d;
        }
        soon = prefetch(x, soon, far + (from + W) * line, end);
        for (; i < d; i++) {
            real *to = out + i * stride + from;
            for (size_t r = 0; r < here; r++)
                to[r] = widen_one(numbers, row + r * line + i * size);
            for (size_t r = here; r < W; r++)
                to[r] = 0;
        }
    }
}

/* ---- unit rows ------------------------------------------------------------------------------- */

/* Rows are divided by their lengths. Rows whose largest number is below LEAST, such as zeros, stay
 * as they are. Rows are first divided by their largest number, so that squares neither overflow nor
 * underflow. */

INLINE vec larger_size(vec most, vec x)
{
    const vec size = pick(less(x, splat(0)), -x, x);
    return pick(less(most, size), size, most);
}

/* Return the factor that scales a row to length one. The row is a line of `stride` numbers, in
 * whole vectors. */
static real unit_scale(const real *line, size_t stride)
{
    vec most = splat(0), squares = splat(0);
    for (size_t f = 0; f < stride; f += W)
        most = larger_size(most, load(line + f));
    real lane[W], largest = 0;
    memcpy(lane, &most, sizeof most);
    for (int i = 0; i < W; i++)
        largest = lane[i] > largest ? lane[i] : largest;
    if (largest < LEAST)
        return 1;
    const real scale = 1 / largest;
    for (size_t f = 0; f < stride; f += W) {
        const vec x = load(line + f) * scale;
        squares += x * x;
    }
    return scale / (real)sqrt(sum_lanes(squares));
}

/* Scale the rows in `lines` (d, cols) to length one. `squares` and `scale` are lines of scratch
 * memory. */
static void scale_to_unit(real *lines, size_t d, size_t cols, size_t stride, real *squares,
                          real *scale)
{
    fill(scale, 0, cols);
    fill(squares, 0, cols);
    for (size_t f = 0; f < d; f++)
        for (size_t col = 0; col < cols; col += W) {
            const vec x = load(lines + f * stride + col);
            store(scale + col, larger_size(load(scale + col), x));
        }
    for (size_t col = 0; col < cols; col += W) {
        const vec largest = load(scale + col);
        store(scale + col, 1 / pick(less(largest, splat(LEAST)), splat(1), largest));
    }
    for (size_t f = 0; f < d; f++)
        for (size_t col = 0; col < cols; col += W) {
            const vec x = load(lines + f * stride + col) * load(scale + col);
            store(squares + col, load(squares + col) + x * x);
        }
    for (size_t col = 0; col < cols; col++)
        scale[col] = squares[col] >= 1 / (real)2 ? scale[col] / (real)sqrt(squares[col]) : 1;
    for (size_t f = 0; f < d; f++)
        for (size_t col = 0; col < cols; col += W) {
            real *line = lines + f * stride + col;
            store(line, load(line) * load(scale + col));
        }
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Return the address of the first row of the tile in a dense view. */
static const char *rows_of(const rffpk_view *v, const tile *t)
{
    return (const char *)v->x + t->begin * columns_of(v) * bytes_of(v->numbers);
}

/* Load the rows of a tile into lines of out. Later rows, up to `end`, may be prefetched. `scratch`
 * is a line of scratch memory. */
static void load_rows(const rffpk_view *v, size_t end, real *out, real *scratch, const tile *t)
{
    const char *x = rows_of(v, t);
    const size_t rows = t->rows, cols = t->cols, stride = t->stride, d = columns_of(v);
    const size_t left = rows ? end - t->begin : 0;
    switch (v->numbers) {
    case RFFPK_FLOAT16: transpose(RFFPK_FLOAT16, x, left, d, rows, cols, out, stride); break;
    case RFFPK_BFLOAT16: transpose(RFFPK_BFLOAT16, x, left, d, rows, cols, out, stride); break;
    case RFFPK_INT8: transpose(RFFPK_INT8, x, left, d, rows, cols, out, stride); break;
    case RFFPK_UINT8: transpose(RFFPK_UINT8, x, left, d, rows, cols, out, stride); break;
    default: transpose(RFFPK_REAL, x, left, d, rows, cols, out, stride); break;
    }
    if (v->unit)
        scale_to_unit(out, d, cols, stride, scratch, t->label); /* the labels are not needed yet */
}

#endif
