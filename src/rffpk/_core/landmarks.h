/* Landmark features: the nearest landmarks of each row, their weights, and the combination of their
 * coordinates. Rows are in the lanes of the vectors.
 *
 * A tile meets the landmarks in blocks: STEP rows' products with a block stay in the first-level
 * cache until the nearest have been taken from them. Products decide which landmarks are nearest,
 * but for rows whose landmarks are so near that products cancel; the distances of those are then
 * computed again from differences, without cancellation. */
#ifndef RFFPK_LANDMARKS_H
#define RFFPK_LANDMARKS_H

#include "products.h"
#include "tile.h"
#include "vecmath.h"

enum { BLOCK_LINES = RFFPK_LANDMARK_BLOCK };

/* ---- landmarks, packed once a pass: center | norms | points by blocks | coordinates ---------- */

static size_t packed_landmarks(const rffpk_landmarks *lm, size_t q)
{
    const size_t n = lm->n_landmarks;
    return round_up(lm->d, PAD) + round_up(n, PAD) + round_up(n * lm->d, PAD) +
           n * round_up(q, PAD);
}

/* The mean of a column of the landmarks, rounded to a multiple of a power of two that is not above
 * its range: small whole numbers remain such when it is subtracted, and their ties remain ties. */
static real column_center(const real *column, size_t n, size_t d)
{
    double low = column[0], high = column[0], sum = 0;
    for (size_t t = 0; t < n; t++) {
        const double y = column[t * d];
        low = y < low ? y : low;
        high = y > high ? y : high;
        sum += y;
    }
    int exponent;
    frexp(high - low, &exponent);
    const double unit = ldexp(1, exponent - 1);
    return (real)(high > low ? unit * rint(sum / (double)n / unit) : low);
}

static void pack_landmarks(const rffpk_landmarks *lm, size_t q, real *out)
{
    const size_t n = lm->n_landmarks, d = lm->d;
    const real *points = lm->points;
    real *center = out, *norms = center + round_up(d, PAD), *packed = norms + round_up(n, PAD);
    for (size_t i = 0; i < d; i++)
        center[i] = column_center(points + i, n, d);
    for (size_t t = 0; t < n; t++) {
        double norm = 0;
        for (size_t i = 0; i < d; i++) {
            const real y = points[t * d + i] - center[i];
            norm += (double)y * y;
        }
        norms[t] = (real)norm;
    }
    out = packed;
    for (size_t from = 0, lines, h; from < n; from += lines) {
        lines = n - from < BLOCK_LINES ? n - from : BLOCK_LINES;
        for (size_t first = 0; first < lines; first += h) {
            h = even_share(lines, PANEL, first);
            for (size_t i = 0; i < d; i++)
                for (size_t t = from + first; t < from + first + h; t++)
                    *out++ = -2 * (points[t * d + i] - center[i]);
        }
    }
    out = packed + round_up(n * d, PAD);
    for (size_t t = 0; t < n; t++)
        for (size_t f = 0; f < round_up(q, PAD); f++)
            *out++ = f < q ? ((const real *)lm->coordinates)[t * q + f] : 0;
}

/* ---- which landmarks are nearest ------------------------------------------------------------ */

static void subtract(const real *center, size_t d, real *x, size_t cols, size_t stride)
{
    for (size_t i = 0; i < d; i++)
        for (size_t col = 0; col < cols; col += W)
            store(x + i * stride + col, load(x + i * stride + col) - center[i]);
}

/* Inserts d of landmark `now` into the ascending near[0..r) where it is less; at: their landmarks.
 * A landmark that is as near as an earlier one comes after it. */
INLINE void insert(const size_t r, vec d, vec now, vec *near, vec *at)
{
    UNROLL
    for (size_t s = r - 1; s > 0; s--) {
        const lanes here = less(d, near[s]), before = less(d, near[s - 1]);
        near[s] = pick(before, near[s - 1], pick(here, d, near[s]));
        at[s] = pick(before, at[s - 1], pick(here, now, at[s]));
    }
    const lanes first = less(d, near[0]);
    near[0] = pick(first, d, near[0]);
    at[0] = pick(first, now, at[0]);
}

/* Updates the r nearest of STEP rows with a block of landmarks. r is a constant at most calls.
 * Landmarks that are nearer than the r-th of any lane are listed first, without branches: which
 * they are is hard to predict. */
INLINE void keep_nearest(const size_t r, const real *products, const real *norms, size_t first,
                         size_t lines, size_t stride, real *near_lines, real *at_lines)
{
    for (size_t col = 0; col < STEP; col += W) {
        const real *line = products + col;
        const vec bound = load(near_lines + (r - 1) * stride + col);
        size_t listed[BLOCK_LINES], count = 0;
        for (size_t t = 0; t < lines; t++) {
            listed[count] = t;
            count += (size_t)any(less(load(line + t * stride) + norms[t], bound));
        }
        if (!count)
            continue;
        vec near[RFFPK_MOST_NEIGHBOURS], at[RFFPK_MOST_NEIGHBOURS];
        UNROLL
        for (size_t s = 0; s < r; s++) {
            near[s] = load(near_lines + s * stride + col);
            at[s] = load(at_lines + s * stride + col);
        }
        for (size_t i = 0; i < count; i++) {
            const size_t t = listed[i];
            insert(r, load(line + t * stride) + norms[t], splat((real)(first + t)), near, at);
        }
        UNROLL
        for (size_t s = 0; s < r; s++) {
            store(near_lines + s * stride + col, near[s]);
            store(at_lines + s * stride + col, at[s]);
        }
    }
}

static void keep_nearest_of(size_t r, const real *products, const real *norms, size_t first,
                            size_t lines, size_t stride, real *near, real *at)
{
    switch (r) { /* the code for a constant is faster */
    case 1: keep_nearest(1, products, norms, first, lines, stride, near, at); break;
    case 2: keep_nearest(2, products, norms, first, lines, stride, near, at); break;
    case 3: keep_nearest(3, products, norms, first, lines, stride, near, at); break;
    case 4: keep_nearest(4, products, norms, first, lines, stride, near, at); break;
    case 5: keep_nearest(5, products, norms, first, lines, stride, near, at); break;
    case 6: keep_nearest(6, products, norms, first, lines, stride, near, at); break;
    case 7: keep_nearest(7, products, norms, first, lines, stride, near, at); break;
    case 8: keep_nearest(8, products, norms, first, lines, stride, near, at); break;
    default: keep_nearest(r, products, norms, first, lines, stride, near, at);
    }
}

/* The nearest landmarks again, of W rows from column `col` on: by differences, of those rows whose
 * nearest ones are all within a squared distance `bound` > 0. A sum ends where all are beyond. */
NOINLINE static void find_by_differences(const rffpk_landmarks *lm, const real *center, size_t col,
                                         vec bound, tile *t)
{
    enum { COLUMNS = 8 }; /* between two looks at the bound */
    const size_t r = lm->n_neighbours, d = lm->d;
    const real *y = lm->points;
    vec near[RFFPK_MOST_NEIGHBOURS], at[RFFPK_MOST_NEIGHBOURS];
    for (size_t s = 0; s < r; s++) {
        near[s] = splat((real)INFINITY);
        at[s] = splat(0);
    }
    for (size_t now = 0; now < lm->n_landmarks; now++, y += d) {
        vec sum = splat(0);
        for (size_t i = 0; i < d && any(less(sum, bound));) {
            const size_t end = d - i < COLUMNS ? d : i + COLUMNS;
            for (; i < end; i++) {
                const vec apart = load(t->x + i * t->stride + col) - (y[i] - center[i]);
                sum += apart * apart;
            }
        }
        if (any(less(sum, bound)) && any(less(sum, near[r - 1])))
            insert(r, sum, splat((real)now), near, at);
    }
    for (size_t s = 0; s < r; s++) {
        real *line = t->at + s * t->stride + col;
        store(line, pick(less(splat(0), bound), at[s], load(line)));
    }
}

/* Rows whose r-th distance cancels look for their nearest landmarks again: the order of the
 * products is that of rounding errors there. Its landmark has nearly the square of the row. */
static void find_again(const rffpk_landmarks *lm, const real *center, tile *t)
{
    const real part = 2 * cancelling(lm->d);
    const real *last = t->near + (lm->n_neighbours - 1) * t->stride;
    for (size_t col = 0; col < t->cols; col += W) {
        vec square = splat(0);
        for (size_t i = 0; i < lm->d; i++) {
            const vec x = load(t->x + i * t->stride + col);
            square += x * x;
        }
        const lanes wanted = less(square + load(last + col), square * part);
        if (any(wanted)) /* rounding adds less than the part itself to the r-th distance */
            find_by_differences(lm, center, col, pick(wanted, 2 * part * square, splat(0)), t);
    }
}

/* t->at <- the nearest landmarks of each row, nearest first, by ||y||^2 - 2 x y */
static void find_nearest(const rffpk_landmarks *lm, const real *packed, unsigned stages, tile *t)
{
    const size_t d = lm->d, r = lm->n_neighbours, cols = t->cols;
    const real *center = packed, *norms = center + round_up(d, PAD);
    const real *points = norms + round_up(lm->n_landmarks, PAD);
    if (stages & RFFPK_LOAD)
        subtract(center, d, t->x, cols, t->stride);
    for (size_t s = 0; s < r; s++)
        for (size_t col = 0; col < cols; col += W) {
            store(t->near + s * t->stride + col, splat((real)INFINITY));
            store(t->at + s * t->stride + col, splat(0));
        }
    for (size_t from = 0, lines; from < lm->n_landmarks; from += lines) {
        lines = lm->n_landmarks - from < BLOCK_LINES ? lm->n_landmarks - from : BLOCK_LINES;
        for (size_t col = 0; col < cols; col += STEP) {
            if (stages & RFFPK_PROJECT)
                product(points + from * d, lines, d, t->x + col, t->block, STEP, t->stride);
            if (stages & RFFPK_SINCOS)
                keep_nearest_of(r, t->block, norms + from, from, lines, t->stride, t->near + col,
                                t->at + col);
        }
    }
    if (stages == RFFPK_ALL_STAGES)
        find_again(lm, center, t);
}

/* ---- their weights and features ------------------------------------------------------------- */

/* t->near <- ||x - y||^2 of the nearest landmarks. x: the rows as they are, (rows, d) */
static void measure_nearest(const rffpk_landmarks *lm, const real *x, tile *t)
{
    const size_t d = lm->d, rows = t->rows, cols = t->cols;
    for (size_t col = 0; col < cols; col += W)
        for (size_t at = col; at < col + lm->n_neighbours * t->stride; at += t->stride) {
            vec sums[W];
            real rest[W] ALIGNED;
            for (size_t lane = 0; lane < W; lane++) {
                const size_t row = col + lane < rows ? col + lane : rows - 1;
                const real *a = x + row * d;
                const real *b = (const real *)lm->points + (size_t)t->at[at + lane] * d;
                vec sum = splat(0);
                size_t i = 0;
                for (; i + W <= d; i += W) {
                    const vec off = load_anywhere(a + i) - load_anywhere(b + i);
                    sum += off * off;
                }
                sums[lane] = sum;
                rest[lane] = 0;
                for (; i < d; i++)
                    rest[lane] += (a[i] - b[i]) * (a[i] - b[i]);
            }
            store(t->near + at, fold_lanes(sums) + load(rest));
        }
}

/* t->near: squared distances d become exp((d_min - d) scale), 0 where that is small, over their
 * sum. */
static void weigh_nearest(const rffpk_landmarks *lm, tile *t)
{
    const double log2_e = 1.44269504088896340736;
    const size_t end = lm->n_neighbours * t->stride, cols = t->cols;
    for (size_t col = 0; col < cols; col += W) {
        vec least = load(t->near + col), total = splat(0), sum = splat(0);
        for (size_t at = col; at < end; at += t->stride) {
            const vec d = load(t->near + at);
            least = SELECT(d < least, d, least);
            total += d;
        }
        const vec twice_mean = total * (real)(2.0 / (double)lm->n_neighbours);
        const vec local = SELECT(twice_mean > 0, twice_mean, splat(1));
        const vec width = lm->scale > 0 ? splat((real)(1 / lm->scale)) : local;
        for (size_t at = col; at < end; at += t->stride) {
            const vec e = exp2_nonpositive((least - load(t->near + at)) / width * (real)log2_e);
            const vec kept = SELECT(e < (real)lm->least_weight, splat(0), e);
            store(t->near + at, kept);
            sum += kept;
        }
        for (size_t at = col; at < end; at += t->stride)
            store(t->near + at, load(t->near + at) / sum);
    }
}

/* phi[f] <- sum_s z_s C[at_s][f], f < q */
static void combine(const rffpk_landmarks *lm, size_t q, const real *coordinates, real *phi,
                    const tile *t)
{
    for (size_t col = 0; col < t->cols; col += W)
        for (size_t f = 0; f < q; f += W) {
            vec v[W];
            for (size_t lane = 0; lane < W; lane++) {
                vec sum = splat(0);
                for (size_t s = 0; s < lm->n_neighbours; s++) {
                    const size_t at = s * t->stride + col + lane;
                    sum +=
                        load(coordinates + (size_t)t->at[at] * round_up(q, PAD) + f) * t->near[at];
                }
                v[lane] = sum;
            }
            transpose_lanes(v);
            for (size_t i = 0; i < W && f + i < q; i++)
                store(phi + (f + i) * t->stride + col, v[i]);
        }
}

/* t->x: the transposed rows x. phi <- their features; t->at and t->near <- their nearest landmarks
 * and the weights of these. */
NOINLINE static void landmark_features(const rffpk_landmarks *lm, size_t q, const real *x,
                                       const real *packed, unsigned stages, real *phi, tile *t)
{
    find_nearest(lm, packed, stages, t);
    if (!(stages & RFFPK_SINCOS))
        return;
    measure_nearest(lm, x, t);
    weigh_nearest(lm, t);
    combine(lm, q, packed + packed_landmarks(lm, 0), phi, t);
}

/* The nearest landmarks of view l and their weights, beside those of the views before it. */
static void write_neighbours(const rffpk_problem *pr, size_t l, const tile *t,
                             const rffpk_rows *out)
{
    size_t before = 0, width = 0;
    for (size_t i = 0; i < pr->n_views; i++) {
        before = i == l ? width : before;
        width += pr->views[i].landmarks.points ? pr->views[i].landmarks.n_neighbours : 0;
    }
    for (size_t row = 0; row < t->rows; row++)
        for (size_t s = 0; s < pr->views[l].landmarks.n_neighbours; s++) {
            const size_t to = (t->begin + row) * width + before + s, from = s * t->stride + row;
            if (out->neighbours)
                out->neighbours[to] = (int32_t)t->at[from];
            if (out->neighbour_weights)
                ((real *)out->neighbour_weights)[to] = t->near[from];
        }
}

#endif
