/* Landmark features: the nearest landmarks of each row, their weights, and the combination of their
 * coordinates. Rows are in the lanes of the vectors.
 *
 * STEP rows meet the landmarks in blocks: their products with a block stay in the first-level cache
 * until the nearest have been taken from them. Products decide which landmarks are nearest, but for
 * rows whose landmarks are so near that products cancel; the distances of those are then computed
 * again from differences, without cancellation.
 *
 * Blocks are in parts, and blocks and parts in balls around their means. Where landmarks that
 * follow each other are near each other, and rows are, too, most balls are too far from STEP rows
 * to have one of their nearest landmarks, and are left out. */
#ifndef RFFPK_LANDMARKS_H
#define RFFPK_LANDMARKS_H

#include "products.h"
#include "tile.h"
#include "vecmath.h"

enum {
    BLOCK_LINES = RFFPK_LANDMARK_BLOCK,
    BLOCKS = 4, /* of a part, or more where landmarks are many */
    PART_LINES = BLOCKS * BLOCK_LINES,
    MOST_PARTS = PART_LINES,
    LEAST_PARTS = 4,
    FEW_NEAR = BLOCK_LINES / 2
};

/* ---- landmarks, packed once a pass ---------------------------------------------------------- */

/* Balls around the means of some landmarks that follow each other. */
typedef struct {
    real *norms;  /* (count,), of the means, ... */
    real *radii;  /* ... (count,): how far their landmarks are from them, ... */
    real *panels; /* ... (count, d): and the means times -2, those of some balls after the others */
} ball_pack;

/* What is packed, one after the other. All points are less the center. */
typedef struct {
    size_t part_lines, n_parts; /* landmarks of a part, whole PART_LINES, but for the last one */
    real *center;               /* (d,) */
    real *norms;                /* (n,), ... */
    real *largest;              /* ... (1,): the largest of these */
    ball_pack parts, blocks;
    real *means;       /* (n_blocks, d), in work */
    real *points;      /* (n, d): the points times -2, in panels of each block */
    real *coordinates; /* (n, q), lines of whole vectors */
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

/* Balls of so many landmarks each; `some` of them are multiplied together. */
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

/* STEP rows, from column `col` on, look for landmarks whose places are below these. */
static void begin_search(size_t r, size_t col, const vec *below, const tile *t)
{
    for (size_t s = 0; s < r; s++)
        for (int j = 0; j < COLS; j++) {
            store(t->near + s * t->stride + col + j * W, below[j]);
            store(t->at + s * t->stride + col + j * W, splat(0));
        }
}

/* The roots of numbers, those of negative ones zero. */
INLINE vec roots(vec v)
{
    real numbers[W] ALIGNED;
    store(numbers, pick(less(v, splat(0)), splat(0), v));
    for (int i = 0; i < W; i++)
        numbers[i] = SQRT(numbers[i]);
    return load(numbers);
}

/* What STEP rows are looking for. */
typedef struct {
    vec squares[COLS]; /* of the rows */
    vec slack[COLS];   /* what rounding adds to squared distances, at most */
    vec reach[COLS];   /* how far the nearest landmarks are, at most */
} search;

/* Squared distances of rows to the mean of a ball, by products with this. */
INLINE vec apart(const search *s, int j, const real *line, real norm)
{
    return load(line + j * W) + norm + s->squares[j];
}

/* Whether a ball may have one of the nearest landmarks: it is not beyond the reach of all rows. */
INLINE int is_near(const search *s, const real *line, real norm, real radius)
{
    unsigned beyond = ALL_LANES;
    for (int j = 0; j < COLS; j++) {
        const vec most = s->reach[j] + radius;
        beyond &= ones_of(less(most * most, apart(s, j, line, norm) - s->slack[j]));
    }
    return beyond != ALL_LANES;
}

/* STEP rows meet a part of the landmarks; if there is a search, those blocks alone that it reaches.
 */
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

/* No less than the r-th least of n lines of W rows: the r-th least of the least of some groups, or
 * of all lines where r is large. */
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

/* Rows reach no farther than to what they find in the first landmarks of a part. */
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

/* needed[part] <- whether it may have one of the nearest landmarks of STEP rows, from column `col`
 * on. They reach no farther than to the farthest landmark of the nearest part. Where parts are
 * beyond this, they look at that part first. The number of parts that are needed. */
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

/* t->at <- the nearest landmarks of each row, nearest first, by ||y||^2 - 2 x y */
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
        vec below[COLS]; /* the place of the r-th nearest landmark, and slack */
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

/* ---- their weights and features ------------------------------------------------------------- */

/* t->near <- ||x - y||^2 of the nearest landmarks. x: the rows as they are, (rows, d) */
static void measure_nearest(const rffpk_landmarks *lm, const real *x, tile *t)
{
    const size_t d = lm->d, rows = t->rows, cols = t->cols, filled = d / W * W;
    for (size_t col = 0; col < cols; col += W) {
        const real *a[W];
        real last[W][W] ALIGNED; /* columns that fill no vector, with rows in the lanes */
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

/* phi[f] <- sum_s z_s C[at_s][f], f < q, by differences from the first: where all coordinates are
 * the same, phi is just these, whichever of such landmarks a row has. */
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

/* t->x: the transposed rows x. phi <- their features; t->at and t->near <- their nearest landmarks
 * and the weights of these. */
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
