/* Landmark features: find the nearest landmarks of each row, weigh them, and combine their
 * coordinates. Rows are in the lanes of the vectors.
 *
 * STEP rows are compared with one block of landmarks at a time. The products with a block stay in
 * the first-level cache until the nearest landmarks have been taken from them. Products decide
 * which landmarks are nearest. Where products cancel, because the nearest landmarks are very near a
 * row, the distances of the row are computed again from differences.
 *
 * Blocks are grouped into parts. Each block and each part has a ball around the mean of its
 * landmarks. If neighbors in memory are neighbors in space, for landmarks and for rows, most balls
 * are too far away to contain a nearest landmark of STEP rows. These balls are skipped. */
#ifndef RFFPK_LANDMARKS_H
#define RFFPK_LANDMARKS_H

#include "products.h"
#include "tile.h"
#include "vecmath.h"

enum {
    BLOCK_LINES = RFFPK_LANDMARK_BLOCK,
    BLOCKS = 4, /* blocks of a part; more where there are many landmarks */
    PART_LINES = BLOCKS * BLOCK_LINES,
    MOST_PARTS = PART_LINES,
    LEAST_PARTS = 4,
    FEW_NEAR = BLOCK_LINES / 2
};

/* ---- landmarks, packed once a pass ----------------------------------------------------------- */

/* Balls around the means of consecutive landmarks. */
typedef struct {
    real *norms;  /* (count,): squared norms of the means */
    real *radii;  /* (count,): distance of the mean to its farthest landmark */
    real *panels; /* (count, d): means times -2, in groups of balls that are multiplied together */
} ball_pack;

/* The arrays that are packed one after another. The center is subtracted from all points. */
typedef struct {
    size_t part_lines, n_parts; /* landmarks of every part but the last, in whole PART_LINES */
    real *center;               /* (d,) */
    real *norms;                /* (n,): squared norms of the landmarks */
    real *largest;              /* (1,): the largest norm */
    ball_pack parts, blocks;
    real *means;       /* (n_blocks, d): scratch memory for the means */
    real *points;      /* (n, d): the landmarks times -2, in panels of each block */
    real *coordinates; /* (n, q), padded to whole vectors */
} landmark_pack;

static size_t landmarks_lay_out(const rffpk_landmarks *lm, size_t q, real *memory,
                                landmark_pack *pk)
{
    const size_t n = lm->n_landmarks, d = lm->d, square = (size_t)PART_LINES * MOST_PARTS;
    pk->part_lines = (n + square - 1) / square * PART_LINES;
    pk->n_parts = (n + pk->part_lines - 1) / pk->part_lines;
    const size_t m = pk->n_parts, b = (n + BLOCK_LINES - 1) / BLOCK_LINES;
    const size_t numbers[] = {d, n, 1,     m,     m,     m * d,
                              b, b, b * d, b * d, n * d, n * round_up(q, PAD)};
    real **to[] = {&pk->center,        &pk->norms,        &pk->largest,      &pk->parts.norms,
                   &pk->parts.radii,   &pk->parts.panels, &pk->blocks.norms, &pk->blocks.radii,
                   &pk->blocks.panels, &pk->means,        &pk->points,       &pk->coordinates};
    size_t end = 0;
    for (int i = 0; i < 12; i++) {
        *to[i] = memory ? memory + end : NULL;
        end += round_up(numbers[i], PAD);
    }
    return end;
}

static size_t packed_landmarks(const rffpk_landmarks *lm, size_t q)
{
    landmark_pack pk;
    return landmarks_lay_out(lm, q, NULL, &pk);
}

/* Return the mean of a column of the landmarks, rounded to a multiple of a power of two that is not
 * above the range of the column. Small whole numbers then remain whole after the center is
 * subtracted, and ties remain ties. */
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

/* Pack balls of `lines` landmarks. The means of `some` balls are multiplied together. */
static void pack_balls(const rffpk_landmarks *lm, const landmark_pack *pk, size_t lines,
                       size_t some, ball_pack *balls)
{
    const size_t n = lm->n_landmarks, d = lm->d, count = (n + lines - 1) / lines;
    for (size_t ball = 0; ball < count; ball++) {
        const size_t from = ball * lines, end = from + lines < n ? from + lines : n;
        const real *points = lm->points;
        real *mean = pk->means + ball * d;
        double norm = 0, largest = 0;
        for (size_t i = 0; i < d; i++) {
            double sum = 0;
            for (size_t t = from; t < end; t++)
                sum += points[t * d + i] - pk->center[i];
            mean[i] = (real)(sum / (double)(end - from));
            norm += (double)mean[i] * mean[i];
        }
        for (size_t t = from; t < end; t++) {
            double square = 0;
            for (size_t i = 0; i < d; i++) {
                const double apart = points[t * d + i] - pk->center[i] - mean[i];
                square += apart * apart;
            }
            largest = square > largest ? square : largest;
        }
        balls->norms[ball] = (real)norm;
        balls->radii[ball] = (real)sqrt(largest) * (1 + 4 * EPS);
    }
    for (size_t first = 0; first < count; first += some) {
        const size_t h = count - first < some ? count - first : some;
        pack(pk->means + first * d, d, 1, h, d, -2, balls->panels + first * d);
    }
}

static void pack_landmarks(const rffpk_landmarks *lm, size_t q, real *memory)
{
    const size_t n = lm->n_landmarks, d = lm->d;
    const real *points = lm->points;
    landmark_pack pk;
    landmarks_lay_out(lm, q, memory, &pk);
    for (size_t i = 0; i < d; i++)
        pk.center[i] = column_center(points + i, n, d);
    for (size_t t = 0; t < n; t++) {
        double norm = 0;
        for (size_t i = 0; i < d; i++) {
            const real y = points[t * d + i] - pk.center[i];
            norm += (double)y * y;
        }
        pk.norms[t] = (real)norm;
        *pk.largest = t && *pk.largest > pk.norms[t] ? *pk.largest : pk.norms[t];
    }
    pack_balls(lm, &pk, BLOCK_LINES, BLOCKS, &pk.blocks);
    pack_balls(lm, &pk, pk.part_lines, pk.n_parts, &pk.parts);
    real *out = pk.points;
    for (size_t from = 0, lines, h; from < n; from += lines) {
        lines = n - from < BLOCK_LINES ? n - from : BLOCK_LINES;
        for (size_t first = 0; first < lines; first += h) {
            h = even_share(lines, PANEL, first);
            for (size_t i = 0; i < d; i++)
                for (size_t t = from + first; t < from + first + h; t++)
                    *out++ = -2 * (points[t * d + i] - pk.center[i]);
        }
    }
    out = pk.coordinates;
    for (size_t t = 0; t < n; t++)
        for (size_t f = 0; f < round_up(q, PAD); f++)
            *out++ = f < q ? ((const real *)lm->coordinates)[t * q + f] : 0;
}

/* ---- which landmarks are nearest ------------------------------------------------------------- */

static void subtract(const real *center, size_t d, real *x, size_t cols, size_t stride)
{
    for (size_t i = 0; i < d; i++)
        for (size_t col = 0; col < cols; col += W)
            store(x + i * stride + col, load(x + i * stride + col) - center[i]);
}

/* Insert the distance d of landmark `now` into the ascending distances near[0..r), if it is less
 * than the last of them. `at` has the landmarks of the distances. Among ties the earlier landmark
 * comes first. */
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

/* Update the r nearest landmarks of STEP rows with a block of landmarks. r is a constant at most
 * calls. First list the landmarks that are nearer than the r-th landmark in any lane, without
 * branches: a branch would be hard to predict. */
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

/* Find the nearest landmarks of W rows, from column `col` on, again by differences. Only rows with
 * `bound` > 0 change: all of their nearest landmarks are within this squared distance. A sum over
 * columns ends as soon as it exceeds the bound in all lanes. */
NOINLINE static void find_by_differences(const rffpk_landmarks *lm, const real *center, size_t col,
                                         vec bound, tile *t)
{
    enum { COLUMNS = 8 }; /* columns between two comparisons with the bound */
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

/* Search again for the nearest landmarks of rows whose r-th distance cancels. Rounding errors
 * decide the order of the products there, because the landmark has nearly the square of the row. */
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
        if (any(wanted)) /* rounding adds less than this fraction to the r-th distance */
            find_by_differences(lm, center, col, pick(wanted, 2 * part * square, splat(0)), t);
    }
}

/* Begin the search for STEP rows, from column `col` on: only landmarks with ||y||^2 - 2 x y less
 * than `below` can be among the nearest. */
static void begin_search(size_t r, size_t col, const vec *below, const tile *t)
{
    for (size_t s = 0; s < r; s++)
        for (int j = 0; j < COLS; j++) {
            store(t->near + s * t->stride + col + j * W, below[j]);
            store(t->at + s * t->stride + col + j * W, splat(0));
        }
}

/* Return the square roots of numbers; the roots of negative numbers are 0. */
INLINE vec roots(vec v)
{
    real numbers[W] ALIGNED;
    store(numbers, pick(less(v, splat(0)), splat(0), v));
    for (int i = 0; i < W; i++)
        numbers[i] = SQRT(numbers[i]);
    return load(numbers);
}

/* The state of a search for STEP rows. */
typedef struct {
    vec squares[COLS]; /* squared norms of the rows */
    vec slack[COLS];   /* upper bounds of the rounding errors of squared distances */
    vec reach[COLS];   /* upper bounds of the distances to the r nearest landmarks */
} search;

/* Return the squared distances of rows to the mean of a ball, from the products with the mean. */
INLINE vec apart(const search *s, int j, const real *line, real norm)
{
    return load(line + j * W) + norm + s->squares[j];
}

/* Whether a ball may contain a nearest landmark: it is within reach of at least one row. */
INLINE int is_near(const search *s, const real *line, real norm, real radius)
{
    unsigned beyond = ALL_LANES;
    for (int j = 0; j < COLS; j++) {
        const vec most = s->reach[j] + radius;
        beyond &= ones_of(less(most * most, apart(s, j, line, norm) - s->slack[j]));
    }
    return beyond != ALL_LANES;
}

/* Compare STEP rows with a part of the landmarks. If there is a search, only with the blocks within
 * its reach. */
static void meet_part(const rffpk_landmarks *lm, const landmark_pack *pk, size_t part, size_t col,
                      unsigned stages, const search *s, const tile *t)
{
    const size_t d = lm->d, n = lm->n_landmarks, begin = part * pk->part_lines;
    const size_t end = begin + pk->part_lines < n ? begin + pk->part_lines : n;
    unsigned char needed[BLOCKS];
    memset(needed, 1, BLOCKS);
    for (size_t from = begin, lines; from < end; from += lines) {
        const size_t block = from / BLOCK_LINES, i = block % BLOCKS;
        lines = end - from < BLOCK_LINES ? end - from : BLOCK_LINES;
        if (s && !i) {
            const size_t h = (end - from + BLOCK_LINES - 1) / BLOCK_LINES;
            const size_t count = h < BLOCKS ? h : BLOCKS;
            const ball_pack *balls = &pk->blocks;
            product(balls->panels + block * d, count, d, t->x + col, t->block, STEP, t->stride);
            for (size_t b = 0; b < count; b++)
                needed[b] = (unsigned char)is_near(
                    s, t->block + b * t->stride, balls->norms[block + b], balls->radii[block + b]);
        }
        if (!needed[i])
            continue;
        if (stages & RFFPK_PROJECT)
            product(pk->points + from * d, lines, d, t->x + col, t->block, STEP, t->stride);
        if (stages & RFFPK_SINCOS)
            keep_nearest_of(lm->n_neighbours, t->block, pk->norms + from, from, lines, t->stride,
                            t->near + col, t->at + col);
    }
}

/* Return an upper bound of the r-th least of n lines, for each of W rows. It is the r-th least of
 * the minima of groups, or of all lines where r is large. */
INLINE vec above_least(const size_t r, const real *products, const real *norms, size_t n,
                       size_t stride)
{
    const size_t groups = r <= FEW_NEAR ? BLOCK_LINES : n;
    vec near[RFFPK_MOST_NEIGHBOURS];
    UNROLL
    for (size_t s = 0; s < r; s++)
        near[s] = splat((real)INFINITY);
    for (size_t group = 0; group < groups; group++) {
        vec now = splat((real)INFINITY);
        for (size_t t = group; t < n; t += groups)
            now = lesser(load(products + t * stride) + norms[t], now);
        UNROLL
        for (size_t s = r - 1; s > 0; s--)
            near[s] = lesser(near[s], larger(now, near[s - 1]));
        near[0] = lesser(near[0], now);
    }
    return near[r - 1];
}

/* Shorten the reach of the rows to the r-th nearest of the first landmarks of a part. */
NOINLINE static void look_at_part(const rffpk_landmarks *lm, const landmark_pack *pk, size_t part,
                                  size_t col, const tile *t, search *s)
{
    const size_t d = lm->d, r = lm->n_neighbours, begin = part * pk->part_lines;
    const size_t rest = lm->n_landmarks - begin, lines = rest < PART_LINES ? rest : PART_LINES;
    for (size_t from = 0; from < lines; from += BLOCK_LINES) {
        const size_t h = lines - from < BLOCK_LINES ? lines - from : BLOCK_LINES;
        product(pk->points + (begin + from) * d, h, d, t->x + col, t->block + from * t->stride,
                STEP, t->stride);
    }
    for (int j = 0; j < COLS; j++) {
        const real *products = t->block + j * W, *norms = pk->norms + begin;
        const vec last = r == 8 ? above_least(8, products, norms, lines, t->stride)
                                : above_least(r, products, norms, lines, t->stride);
        s->reach[j] = lesser(roots(last + s->squares[j] + s->slack[j]), s->reach[j]);
    }
}

/* needed[part] <- whether the part may contain a nearest landmark of STEP rows, from column `col`
 * on. Return the number of needed parts.
 *
 * The reach of a row first extends to the farthest landmark of the part that is nearest to STEP
 * rows. If it excludes a part, the search compares the rows with landmarks of the nearest part,
 * which shortens the reach. */
static size_t choose_parts(const rffpk_landmarks *lm, const landmark_pack *pk, size_t col,
                           const tile *t, search *s, unsigned char *needed)
{
    const size_t d = lm->d, n_parts = pk->n_parts, stride = t->stride;
    const real *norms = pk->parts.norms, *radii = pk->parts.radii;
    for (int j = 0; j < COLS; j++) {
        s->squares[j] = splat(0);
        for (size_t i = 0; i < d; i++) {
            const vec x = load(t->x + i * stride + col + j * W);
            s->squares[j] += x * x;
        }
        s->slack[j] = 4 * (real)(d + 8) * EPS * (s->squares[j] + *pk->largest) + LEAST;
    }
    product(pk->parts.panels, n_parts, d, t->x + col, t->block, STEP, stride);
    real least = (real)INFINITY;
    size_t nearest = 0, n_near = 0;
    for (size_t part = 0; part < n_parts; part++) {
        vec total = splat(0);
        for (int j = 0; j < COLS; j++)
            total += apart(s, j, t->block + part * stride, norms[part]);
        const real sum = sum_lanes(total);
        nearest = sum < least ? part : nearest;
        least = sum < least ? sum : least;
    }
    const int has_enough = lm->n_landmarks - nearest * pk->part_lines >= lm->n_neighbours;
    for (int j = 0; j < COLS; j++) {
        const vec high = apart(s, j, t->block + nearest * stride, norms[nearest]) + s->slack[j];
        s->reach[j] = has_enough ? roots(high) + radii[nearest] : splat((real)INFINITY);
    }
    for (size_t part = 0; part < n_parts; part++)
        n_near += (size_t)is_near(s, t->block + part * stride, norms[part], radii[part]);
    if (n_near < n_parts) {
        look_at_part(lm, pk, nearest, col, t, s);
        product(pk->parts.panels, n_parts, d, t->x + col, t->block, STEP, stride);
    }
    n_near = 0;
    for (size_t part = 0; part < n_parts; part++) {
        needed[part] =
            (unsigned char)is_near(s, t->block + part * stride, norms[part], radii[part]);
        n_near += needed[part];
    }
    return n_near;
}

/* t->at <- the nearest landmarks of each row, in ascending order of ||y||^2 - 2 x y. */
static void find_nearest(const rffpk_landmarks *lm, const landmark_pack *pk, unsigned stages,
                         tile *t)
{
    const vec end = splat((real)INFINITY);
    const int in_parts = pk->n_parts >= LEAST_PARTS && stages == RFFPK_ALL_STAGES;
    if (stages & RFFPK_LOAD)
        subtract(pk->center, lm->d, t->x, t->cols, t->stride);
    for (size_t col = 0; col < t->cols; col += STEP) {
        unsigned char needed[MOST_PARTS];
        size_t n_needed = pk->n_parts;
        search s;
        vec below[COLS]; /* upper bound of ||y||^2 - 2 x y for the r-th nearest landmark y */
        memset(needed, 1, pk->n_parts);
        if (in_parts)
            n_needed = choose_parts(lm, pk, col, t, &s, needed);
        for (int j = 0; j < COLS; j++) {
            below[j] = in_parts ? s.reach[j] * s.reach[j] - s.squares[j] + 2 * s.slack[j] : end;
            below[j] = pick(less(below[j], end), below[j], end);
        }
        begin_search(lm->n_neighbours, col, below, t);
        for (size_t part = 0; part < pk->n_parts; part++)
            if (needed[part])
                meet_part(lm, pk, part, col, stages, n_needed < pk->n_parts ? &s : NULL, t);
    }
    if (stages == RFFPK_ALL_STAGES)
        find_again(lm, pk->center, t);
}

/* ---- weights and features of the nearest landmarks ------------------------------------------- */

/* t->near <- ||x - y||^2 of the nearest landmarks y. x: the rows in C order, (rows, d) */
static void measure_nearest(const rffpk_landmarks *lm, const real *x, tile *t)
{
    const size_t d = lm->d, rows = t->rows, cols = t->cols, filled = d / W * W;
    for (size_t col = 0; col < cols; col += W) {
        const real *a[W];
        real last[W][W] ALIGNED; /* the columns beyond the last whole vector, with rows in the
                                  * lanes */
        for (size_t lane = 0; lane < W; lane++) {
            a[lane] = x + (col + lane < rows ? col + lane : rows - 1) * d;
            for (size_t i = filled; i < d; i++)
                last[i - filled][lane] = a[lane][i];
        }
        for (size_t at = col; at < col + lm->n_neighbours * t->stride; at += t->stride) {
            const real *b[W];
            vec sums[W], rest = splat(0);
            for (size_t lane = 0; lane < W; lane++) {
                b[lane] = (const real *)lm->points + (size_t)t->at[at + lane] * d;
                sums[lane] = splat(0);
                for (size_t i = 0; i < filled; i += W) {
                    const vec off = load_anywhere(a[lane] + i) - load_anywhere(b[lane] + i);
                    sums[lane] += off * off;
                }
            }
            for (size_t i = filled; i < d; i++) {
                real line[W] ALIGNED;
                for (size_t lane = 0; lane < W; lane++)
                    line[lane] = b[lane][i];
                const vec off = load(last[i - filled]) - load(line);
                rest += off * off;
            }
            store(t->near + at, filled ? fold_lanes(sums) + rest : rest);
        }
    }
}

/* t->near: replace squared distances d by weights. A weight is exp((d_min - d) scale), or 0 if that
 * is small, divided by the sum of the weights. */
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

/* phi[f] <- sum_s z_s C[at_s][f] for f < q, as C[at_0][f] plus weighted differences. If the nearest
 * landmarks have equal coordinates, phi then equals the coordinates exactly. */
static void combine(const rffpk_landmarks *lm, size_t q, const real *coordinates, real *phi,
                    const tile *t)
{
    for (size_t col = 0; col < t->cols; col += W)
        for (size_t f = 0; f < q; f += W) {
            vec v[W];
            for (size_t lane = 0; lane < W; lane++) {
                const real *at = t->at + col + lane, *z = t->near + col + lane;
                const vec first = load(coordinates + (size_t)at[0] * round_up(q, PAD) + f);
                vec sum = splat(0);
                for (size_t s = t->stride; s < lm->n_neighbours * t->stride; s += t->stride)
                    sum +=
                        (load(coordinates + (size_t)at[s] * round_up(q, PAD) + f) - first) * z[s];
                v[lane] = first + sum;
            }
            transpose_lanes(v);
            for (size_t i = 0; i < W && f + i < q; i++)
                store(phi + (f + i) * t->stride + col, v[i]);
        }
}

/* phi <- the landmark features of the transposed rows t->x. t->at and t->near receive the nearest
 * landmarks of the rows and their weights. */
NOINLINE static void landmark_features(const rffpk_landmarks *lm, size_t q, const real *x,
                                       const real *packed, unsigned stages, real *phi, tile *t)
{
    landmark_pack pk;
    landmarks_lay_out(lm, q, (real *)packed, &pk);
    find_nearest(lm, &pk, stages, t);
    if (!(stages & RFFPK_SINCOS))
        return;
    measure_nearest(lm, x, t);
    weigh_nearest(lm, t);
    combine(lm, q, pk.coordinates, phi, t);
}

/* Write the nearest landmarks of view l, and their weights, after the landmarks of earlier
 * views. */
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
