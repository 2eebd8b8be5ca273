/* The pass over a slot of rows, tile by tile. The stages are in view_features.h; in distances.h or
 * bounds.h; in weights.h; and in sums.h. nearest.h replaces distances.h and weights.h. Compiled
 * once for each instruction set and type. */
#include "bounds.h"
#include "contract.h"
#include "csr.h"
#include "distances.h"
#include "near.h"
#include "nearest.h"
#include "cells.h"
#include "skinny.h"
#include "sums.h"
#include "tile.h"
#include "vecmath.h"
#include "view_features.h"
#include "weights.h"

#define JOIN3(a, b, c) a##_##b##_f##c
#define NAME(isa, bits) JOIN3(rffpk, isa, bits)

/* ---- memory of a tile ------------------------------------------------------------------------ */

enum { MIN_TILE_ROWS = 64 }; /* the fewest rows in whole steps of all instruction sets */
_Static_assert(MIN_TILE_ROWS % STEP == 0, "a tile is whole steps");

/* Return the numbers of scratch memory of a view. */
static size_t scratch_of(const rffpk_problem *pr, const rffpk_view *v)
{
    if (v->signs)
        return structured_scratch(v);
    return v->indptr ? sparse_scratch(pr, v) : 0;
}

/* Fill in the sizes that depend on the views. */
static void shape_views(const rffpk_problem *pr, tile *t)
{
    t->d = t->scratch = t->block_lines = t->r_most = 0;
    for (const rffpk_view *v = pr->views; v < pr->views + pr->n_views; v++) {
        if (transposed(v) && columns_of(v) > t->d)
            t->d = columns_of(v);
        if (v->landmarks.points)
            t->block_lines = PART_LINES;
        if (v->landmarks.points && v->landmarks.n_neighbours > t->r_most)
            t->r_most = v->landmarks.n_neighbours;
        if (scratch_of(pr, v) > t->scratch)
            t->scratch = scratch_of(pr, v);
    }
    if (bounded_scratch(pr) > t->scratch)
        t->scratch = bounded_scratch(pr);
}

/* Fill in the shape of the tiles. Return the number of lines, of `stride` numbers, of a tile. */
static size_t shape(const rffpk_problem *pr, tile *t)
{
    shape_views(pr, t);
    t->lines = round_up(moments_of(pr), one_hot(pr) && W > FEATURES_AT_ONCE ? W : FEATURES_AT_ONCE);
    if (sparse_columns(pr))
        t->lines = 1; /* the squared norms */
    const size_t lines_per_centroid = pr->rule == RFFPK_TYPICALITY ? 4 : 2;
    const size_t of_centroids = one_hot(pr) ? pr->k + 1 : lines_per_centroid * pr->k;
    const size_t of_rows = pr->present ? 4 : 3;
    const size_t total = t->d + t->lines + of_centroids + of_rows + bounded_lines(pr) +
                         2 * t->r_most + t->block_lines;
    /* The product of many weights with features reads and writes all sums once a tile. More rows
     * pay off there, even beyond the cache. */
    const int many = pr->k >= RFFPK_ONE_HOT_CLUSTERS && !one_hot(pr);
    const size_t least_rows = many ? 2 * MIN_TILE_ROWS : MIN_TILE_ROWS;
    t->most_rows = RFFPK_MAX_TILE_ROWS;
    while (t->most_rows > least_rows && total * t->most_rows * sizeof(real) > RFFPK_TILE_BYTES)
        t->most_rows /= 2;
    t->stride = t->most_rows + PAD;
    return total;
}

static size_t workspace_bytes(const rffpk_problem *pr)
{
    tile t;
    const size_t total = shape(pr, &t);
    return (total * t.stride + t.scratch) * sizeof(real);
}

static tile lay_out(const rffpk_problem *pr, real *memory)
{
    tile t;
    shape(pr, &t);
    t.x = memory;
    t.phi = t.x + t.d * t.stride;
    t.dist = t.phi + t.lines * t.stride;
    t.g = t.dist + pr->k * t.stride;
    t.u_m = t.g + (one_hot(pr) ? 1 : pr->k) * t.stride;
    t.rest_m = t.u_m + (pr->rule == RFFPK_TYPICALITY ? pr->k * t.stride : 0);
    t.norm = t.rest_m + (pr->rule == RFFPK_TYPICALITY ? pr->k * t.stride : 0);
    t.least = t.norm;
    t.p = t.norm + t.stride;
    t.label = t.p + t.stride;
    t.eta = t.label + t.stride;
    t.y = pr->present ? t.eta + t.stride : t.eta;
    t.near = t.y + bounded_lines(pr) * t.stride;
    t.at = t.near + t.r_most * t.stride;
    t.block = t.at + t.r_most * t.stride;
    t.strip = t.block + t.block_lines * t.stride;
    return t;
}

/* ---- computed once a pass: coefficients of the views, then coefficients of the centroids ----- */

static size_t prepared_bytes(const rffpk_problem *pr)
{
    const size_t of_theta = sparse_columns(pr) ? packed_sparse_theta(pr) : packed_theta(pr);
    return (packed_views(pr) + of_theta + packed_bounds(pr)) * sizeof(real);
}

static void prepare(const rffpk_problem *pr, void *prepared)
{
    pack_views(pr, prepared);
    real *packed = (real *)prepared + packed_views(pr);
    (sparse_columns(pr) ? pack_sparse_theta : pack_theta)(pr, packed);
    pack_bounds(pr, packed + packed_theta(pr));
}

static size_t sums_numbers(const rffpk_problem *pr)
{
    return sparse_columns(pr) ? sparse_sums_numbers(pr) : pr->k * moments_of(pr);
}

static void finish(const rffpk_problem *pr, const double *sums, double *moments)
{
    if (sparse_columns(pr))
        spread_sums(pr, sums, moments);
    else
        memcpy(moments, sums, sums_numbers(pr) * sizeof(double));
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* out (n, n_lines) <- lines[line][row], for the rows of the tile */
static void write_rows(const real *lines, size_t n_lines, const tile *t, void *out)
{
    real *to = (real *)out + t->begin * n_lines;
    for (size_t r = 0; r < t->rows; r++)
        for (size_t i = 0; i < n_lines; i++)
            to[r * n_lines + i] = lines[i * t->stride + r];
}

static void write_labels(const tile *t, int32_t *labels)
{
    for (size_t r = 0; r < t->rows; r++)
        labels[t->begin + r] = (int32_t)t->label[r];
}

static void make_sums(const rffpk_problem *pr, const tile *t, double *moments)
{
    if (sparse_columns(pr))
        sparse_sums(pr, t, moments);
    else if (one_hot(pr))
        add_rows(t->label, t->p, t->phi, moments_of(pr), t->cols, t->stride, moments);
    else
        add_moments(t->g, pr->k, t->phi, moments_of(pr), t->cols, t->stride, moments);
}

/* Run the stages of a tile. Memberships overwrite the distances, after the distances are written
 * out. */
static void run_tile(const rffpk_problem *pr, weigh_rule *weigh, const real *prepared, size_t end,
                     tile *t, const rffpk_sums *sums, const rffpk_rows *out)
{
    const int sparse = sparse_columns(pr);
    real *memberships = out->memberships ? t->dist : NULL;
    real *second = out->second ? (real *)out->second + t->begin : NULL;
    load_row_weights(pr, t);
    if (pr->present)
        load_present(pr, t);
    if (!sparse)
        make_features(pr, prepared, end, t, out);
    if (out->features && sparse)
        write_sparse_rows(pr->views, t, (real *)out->features + t->begin * pr->F);
    else if (out->features)
        write_rows(t->phi, pr->F, t, out->features);
    const real *theta = prepared + packed_views(pr);
    const int fused = only_nearest(pr, out);
    if (fused) {
        find_nearest_of_all(pr, theta, t);
        total_nearest(t, sums->totals);
    } else if (pr->stages & RFFPK_DISTANCES && pr->basis)
        make_bounded(pr, theta, theta + packed_theta(pr), t);
    else if (pr->stages & RFFPK_DISTANCES)
        (sparse ? sparse_distances : make_distances)(pr, theta, t);
    if (out->distances)
        write_rows(t->dist, pr->k, t, out->distances);
    if (pr->stages & RFFPK_WEIGHTS && !fused)
        make_weights(pr, weigh, memberships, second, t, sums);
    if (out->memberships)
        write_rows(t->dist, pr->k, t, out->memberships);
    if (out->labels)
        write_labels(t, out->labels);
    if (out->nearest)
        memcpy((real *)out->nearest + t->begin, t->least, t->rows * sizeof(real));
    if (pr->stages & RFFPK_SUMS)
        make_sums(pr, t, sums->moments);
}

static int run(const rffpk_problem *pr, const void *prepared, size_t begin, size_t end,
               const rffpk_sums *sums, const rffpk_rows *out, void *workspace)
{
    weigh_rule *weigh = rule_of(pr);
    if (!weigh)
        return RFFPK_UNKNOWN_RULE;
    tile t = lay_out(pr, workspace);
    memset(sums->moments, 0, sums_numbers(pr) * sizeof(double));
    memset(sums->excess, 0, excess_of(pr) * sizeof(double));
    memset(sums->totals, 0, 2 * sizeof(double));
    memset(t.phi, 0, t.lines * t.stride * sizeof(real)); /* zeros for the padding lines */
    if (sparse_columns(pr))
        t.c_norm = squared_shift(pr->views);
    else
        fill(counts_of(pr, &t), 1, t.most_rows);
    for (; begin < end; begin += t.most_rows) {
        take_rows(&t, begin, end);
        run_tile(pr, weigh, prepared, end, &t, sums, out);
    }
    return RFFPK_OK;
}

/* Compute only the weights, from inner products. */
static int weigh(const rffpk_problem *pr, const rffpk_gram *gram, size_t n, size_t begin,
                 size_t end, double *totals, void *workspace)
{
    weigh_rule *rule = rule_of(pr);
    if (!rule || pr->rule == RFFPK_TYPICALITY)
        return RFFPK_UNKNOWN_RULE;
    tile t = lay_out(pr, workspace);
    memset(totals, 0, 2 * sizeof(double));
    for (; begin < end; begin += t.most_rows) {
        take_rows(&t, begin, end);
        load_row_weights(pr, &t);
        distances_from(pr, gram, n, &t);
        rule(pr, &t, NULL, totals);
        for (size_t j = 0; j < pr->k; j++)
            memcpy((real *)gram->weights + j * n + begin, t.g + j * t.stride,
                   t.rows * sizeof(real));
        if (gram->labels)
            write_labels(&t, gram->labels);
    }
    return RFFPK_OK;
}

const rffpk_kernels NAME(RFFPK_ISA, RFFPK_BITS) = {
    prepared_bytes, workspace_bytes, sums_numbers, prepare,   run,        finish,
    weigh,          skinny_bytes,    skinny_pack,  skinny,    near_bytes, near_cluster_rows,
    cells_bytes,    cells_rows,      pairs_rows,   csr_lines, vecmath};
