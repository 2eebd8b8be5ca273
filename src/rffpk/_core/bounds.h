/* A faster fourth stage for many centroids. It computes squared distances only to the centroids
 * that can be the nearest of a row. Every other centroid keeps a lower bound of its distance.
 *
 * Let y be the coordinates of a vector x in q orthonormal directions, and r the length of the
 * remainder. Then <x, c> <= <y, y_c> + r r_c, so a product with q + 1 columns in place of F bounds
 * every distance. Bounds are lowered by all rounding errors, so that the labels equal the labels of
 * make_distances. */
#ifndef RFFPK_BOUNDS_H
#define RFFPK_BOUNDS_H

#include "distances.h"

static size_t bounded_lines(const rffpk_problem *pr) { return pr->basis ? pr->q + 1 : 0; }

/* Scratch memory for W rows, stored one after another. */
static size_t bounded_scratch(const rffpk_problem *pr)
{
    return pr->basis ? W * round_up(pr->F, W) : 0;
}

/* ---- panels of the directions (q, F) | panels of the centroids (k, q + 1), times -2 ---------- */

static size_t packed_basis(const rffpk_problem *pr) { return round_up(pr->q * pr->F, PAD); }

static size_t packed_bounds(const rffpk_problem *pr)
{
    return pr->basis ? packed_basis(pr) + round_up(pr->k * (pr->q + 1), PAD) : 0;
}

static void pack_bounds(const rffpk_problem *pr, real *packed)
{
    if (!pr->basis)
        return;
    pack(pr->basis, pr->F, 1, pr->q, pr->F, 1, packed);
    pack(pr->coordinates, pr->q + 1, 1, pr->k, pr->q + 1, -2, packed + packed_basis(pr));
}

/* ---- a tile ---------------------------------------------------------------------------------- */

/* Relative error of a bound: each coordinate is a sum of F products, and a length has q
 * coordinates. */
static real bound_error(const rffpk_problem *pr)
{
    return (real)((sqrt((double)pr->q) + 2) * (double)(pr->F + pr->q + 16)) * EPS;
}

/* Compute the coordinates of the rows and the lengths of the remainders. Lengths are rounded up, so
 * that the bounds hold. */
static void make_coordinates(const rffpk_problem *pr, const real *basis, tile *t)
{
    real *rest = t->y + pr->q * t->stride;
    const vec more = splat(1 + bound_error(pr));
    product(basis, pr->q, pr->F, t->phi, t->y, t->cols, t->stride);
    for (size_t col = 0; col < t->cols; col += W) {
        vec left = load(t->norm + col) * more;
        for (size_t i = 0; i < pr->q; i++)
            left -= load(t->y + i * t->stride + col) * load(t->y + i * t->stride + col);
        store(rest + col, SELECT(left > 0, left, splat(0)));
    }
    for (size_t col = 0; col < t->cols; col++)
        rest[col] = SQRT(rest[col]);
}

enum { AT_ONCE = W < 4 ? W : 4 };
enum { PAIRS = 16 }; /* row-centroid pairs that are computed together: whole vectors */
_Static_assert(PAIRS % W == 0, "the distances of the pairs are whole vectors");

/* The state of W rows. */
typedef struct {
    const real *norms; /* (k,): squared norms of the centroids */
    const real *x;     /* (W, width) */
    real part;         /* distances below this fraction of the squared norms cancel */
    size_t width, col;
    real least[W] ALIGNED, second[W] ALIGNED; /* computed distances: the least two of each row */
    real reach[W] ALIGNED; /* a centroid with a bound below `reach` may be the nearest */
    real at[W] ALIGNED;    /* the centroid with the least bound */
    size_t pairs;          /* length of the queue, which has centroids and rows */
    size_t centroid[PAIRS], row[PAIRS];
} bounded_rows;

/* Bound on the difference of two distances that are at most `least` and computed in two ways. */
INLINE real tie(const rffpk_problem *pr, real norm, real least)
{
    return (real)(2 * (double)(pr->F + 16)) * EPS * (3 * norm + 2 * least);
}

/* Copy the rows out of the tile. */
static void copy_rows(const tile *t, size_t col, size_t width, real *x)
{
    for (size_t f = 0; f < width; f += W) {
        vec v[W];
        UNROLL
        for (int i = 0; i < W; i++)
            v[i] = load(t->phi + (f + i) * t->stride + col);
        transpose_lanes(v);
        UNROLL
        for (int i = 0; i < W; i++)
            store(x + i * width + f, v[i]);
    }
}

/* Replace the products of coordinates by lower bounds, and store the centroid with the least bound
 * of each row. */
static void bound(const rffpk_problem *pr, tile *t, bounded_rows *b)
{
    const vec less_than = splat(1 - 2 * bound_error(pr));
    const vec norm = load(t->norm + b->col);
    vec least = splat(INFINITY), at = splat(0);
    for (size_t j = 0; j < pr->k; j++) {
        real *d = t->dist + j * t->stride + b->col;
        const vec bounded = (norm + b->norms[j]) * less_than + load(d);
        const vec squared = SELECT(bounded < 0, splat(0), bounded);
        const lanes lower = less(squared, least);
        store(d, squared);
        least = pick(lower, squared, least);
        at = pick(lower, splat((real)j), at);
    }
    store(b->at, at);
}

/* Compute inner products of AT_ONCE pairs. Their lanes are not summed yet. */
INLINE void pair_products(const rffpk_problem *pr, const bounded_rows *b, size_t first, vec *acc)
{
    const real *x[AT_ONCE], *theta[AT_ONCE];
    vec sum[AT_ONCE];
    UNROLL
    for (int i = 0; i < AT_ONCE; i++) {
        x[i] = b->x + b->row[first + i] * b->width;
        theta[i] = (const real *)pr->theta + b->centroid[first + i] * pr->F;
        sum[i] = splat(0);
    }
    for (size_t f = 0; f + W <= pr->F; f += W) {
        UNROLL
        for (int i = 0; i < AT_ONCE; i++)
            sum[i] += load(x[i] + f) * load_anywhere(theta[i] + f);
    }
    UNROLL
    for (int i = 0; i < AT_ONCE; i++)
        acc[i] = sum[i];
}

/* Replace the bound of centroid j and row r by the squared distance. */
INLINE void found(const rffpk_problem *pr, tile *t, bounded_rows *b, size_t j, size_t r, real inner)
{
    const real *x = b->x + r * b->width, *theta = (const real *)pr->theta + j * pr->F;
    for (size_t f = pr->F / W * W; f < pr->F; f++)
        inner += x[f] * theta[f];
    const real norm = t->norm[b->col + r], size = norm + b->norms[j];
    const real d = refined(pr, t, j, b->col + r, size - 2 * inner, size * b->part);
    t->dist[j * t->stride + b->col + r] = d;
    if (d < b->least[r]) {
        b->second[r] = b->least[r];
        b->least[r] = d;
        b->reach[r] = (real)pr->reach * (d + tie(pr, norm, d));
    } else if (d < b->second[r]) {
        b->second[r] = d;
    }
}

/* Compute the distances of the pairs in the queue, and empty it. */
NOINLINE static void measure(const rffpk_problem *pr, tile *t, bounded_rows *b)
{
    const size_t pairs = b->pairs;
    real inner[PAIRS] ALIGNED;
    for (size_t i = pairs; i < PAIRS; i++)
        b->centroid[i] = b->row[i] = 0;
    for (size_t first = 0; first < pairs; first += W) {
        vec acc[W];
        for (size_t i = 0; i < W; i += AT_ONCE)
            pair_products(pr, b, first + i, acc + i);
        store(inner + first, fold_lanes(acc));
    }
    for (size_t i = 0; i < pairs; i++)
        found(pr, t, b, b->centroid[i], b->row[i], inner[i]);
    b->pairs = 0;
}

INLINE void enqueue(const rffpk_problem *pr, tile *t, bounded_rows *b, size_t j, size_t r)
{
    const char *theta = (const char *)((const real *)pr->theta + j * pr->F);
    for (size_t at = 0; at < 8 * RFFPK_ALIGN; at += RFFPK_ALIGN)
        PREFETCH(theta + at);
    b->centroid[b->pairs] = j;
    b->row[b->pairs] = r;
    if (++b->pairs == PAIRS)
        measure(pr, t, b);
}

/* Recompute distances that are equal but for rounding, in the way of make_distances. Ties are then
 * decided alike. */
static void decide_ties(const rffpk_problem *pr, tile *t, const bounded_rows *b)
{
    real within[W] ALIGNED, line[STEP] ALIGNED;
    int some = 0;
    for (size_t r = 0; r < W; r++) {
        const real most = b->least[r] + tie(pr, t->norm[b->col + r], b->least[r]);
        const int tied = b->second[r] <= most;
        within[r] = tied ? most : -1;
        some |= tied;
    }
    if (!some)
        return;
    const size_t begin = b->col / STEP * STEP;
    for (size_t j = 0; j < pr->k; j++) {
        real *d = t->dist + j * t->stride + b->col;
        if (!any(less(load(d), load(within))))
            continue;
        panel_step(1, (const real *)pr->theta + j * pr->F, t->phi + begin, line, pr->F, t->stride);
        for (size_t r = 0; r < W; r++) {
            if (!(d[r] < within[r]))
                continue;
            const real size = t->norm[b->col + r] + b->norms[j];
            d[r] =
                refined(pr, t, j, b->col + r, size - 2 * line[b->col - begin + r], size * b->part);
        }
    }
}

static void make_bounded(const rffpk_problem *pr, const real *theta, const real *basis, tile *t)
{
    const size_t q = pr->q;
    bounded_rows b = {.norms = theta + round_up(pr->k * pr->F, PAD), .x = t->strip, .pairs = 0};
    b.part = cancelling(pr->F);
    b.width = round_up(pr->F, W);
    make_coordinates(pr, basis, t);
    product(basis + packed_basis(pr), pr->k, q + 1, t->y, t->dist, t->cols, t->stride);
    for (b.col = 0; b.col < t->cols; b.col += W) {
        copy_rows(t, b.col, b.width, t->strip);
        bound(pr, t, &b);
        for (size_t r = 0; r < W; r++) {
            b.least[r] = b.second[r] = INFINITY;
            enqueue(pr, t, &b, (size_t)b.at[r], r);
        }
        measure(pr, t, &b);
        for (size_t j = 0; j < pr->k; j++) {
            const real *d = t->dist + j * t->stride + b.col;
            for (unsigned open = ones_of(less(load(d), load(b.reach))); open; open &= open - 1) {
                const size_t r = (size_t)lowest(open);
                if (j != (size_t)b.at[r])
                    enqueue(pr, t, &b, j, r);
            }
        }
        measure(pr, t, &b);
        decide_ties(pr, t, &b);
    }
}

#endif
