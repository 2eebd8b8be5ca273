/* The tile: a block of rows, and the sizes of its parts. */
#ifndef RFFPK_TILE_H
#define RFFPK_TILE_H

#include "contract.h"
#include "simd.h"

/* Rows are stored feature-major, with one line of `stride` numbers for each feature. So a vector
 * holds one feature of neighboring rows, and every step runs along lines. The last lines of phi let
 * one product, g phi', give N, Q and G. */
typedef struct {
    size_t most_rows, stride, lines; /* lines of phi */
    size_t begin, rows, cols;        /* the first row; the number of rows; the number rounded up to
                                      * whole steps, for which all lines are computed */
    size_t d, scratch;               /* largest d of the views in `x`; numbers in `strip` */
    real *x;                         /* (d, rows): the rows of one view, transposed */
    real *phi;    /* (lines, rows): shifted features | ||phi_l||^2 of each view | ones; if views are
                   * missing, for each view 1 where a row has it, else 0 | padding */
    real *dist;   /* (k, rows): squared distances d, then d' */
    real *g;      /* (k, rows): p v u^m, the weights of the sums; (1, rows) if `one_hot` */
    real *u_m;    /* (k, rows): u^m, with typicality */
    real *rest_m; /* (k, rows): (1 - u)^m, with typicality */
    real *norm;   /* (rows,): sum_l alpha_l ||phi_l||^2 */
    real *least;  /* (rows,): the least distance; shares the memory of `norm`, which is used
                   * before */
    real *p;      /* (rows,): row weights, 0 beyond the last row */
    real *label;  /* (rows,): number of the nearest centroid */
    real *eta;    /* (rows,), if views are missing: reference distances */
    real *y;      /* (q + 1, rows), with bounds: coordinates, and lengths of the remainders */
    size_t block_lines, r_most; /* for views with landmarks: lines of `block`, largest r */
    real *near;    /* (r, rows): squared distances to the nearest landmarks, then their weights z */
    real *at;      /* (r, rows): the numbers of the nearest landmarks */
    real *block;   /* (block_lines, rows): products of STEP rows with a block of landmarks */
    real *strip;   /* (scratch,): for the structured projection, sparse rows, or bounds */
    double c_norm; /* ||c||^2, where the features are the columns of sparse rows */
} tile;

_Static_assert(MOST_CENTROIDS <= (whole)1 << (MANTISSA_BITS + 1), "`real` holds every label");

/* Return F_l. */
static size_t features_of(const rffpk_view *v) { return v->D ? 2 * v->D : v->d; }

/* Return the number of columns of x. */
static size_t columns_of(const rffpk_view *v)
{
    return v->landmarks.points ? v->landmarks.d : v->d;
}

/* Whether the features are the columns of sparse rows. */
static int sparse_columns(const rffpk_problem *pr)
{
    return pr->n_views == 1 && pr->views->indptr && !pr->views->D;
}

/* Whether each row is added only to the sums of its nearest centroid. The tile then has no lines of
 * weights, which would be nearly all 0. */
static int one_hot(const rffpk_problem *pr)
{
    return rffpk_is_hard(pr) && pr->n_views && pr->k >= RFFPK_ONE_HOT_CLUSTERS;
}

/* Return the number of sums of a cluster: N_j | Q_jl | G_j. */
static size_t moments_of(const rffpk_problem *pr) { return pr->F + pr->n_views + rffpk_counts(pr); }

/* Return how many lines of phi distances are computed from. They are the features, and all other
 * lines if views are missing: then the squared norms of a row and of the centroids depend on the
 * views of the row. */
static size_t depth_of(const rffpk_problem *pr) { return pr->present ? moments_of(pr) : pr->F; }

/* Return the number of sums E_j of the clusters, or E_l of the views. */
static size_t excess_of(const rffpk_problem *pr) { return pr->present ? pr->n_views : pr->k; }

/* Return the lines that count rows. They are ones, or for each view 1 where a row has it, else
 * 0. */
static real *counts_of(const rffpk_problem *pr, const tile *t)
{
    return t->phi + (pr->F + pr->n_views) * t->stride;
}

static void fill(real *line, real value, size_t cols)
{
    for (size_t col = 0; col < cols; col += W)
        store(line + col, splat(value));
}

/* Take the next rows, from `begin` on. */
static void take_rows(tile *t, size_t begin, size_t end)
{
    t->begin = begin;
    t->rows = end - begin < t->most_rows ? end - begin : t->most_rows;
    t->cols = round_up(t->rows, STEP);
}

/* Return W rows of the tile, from column `col` on, as a tile whose lines hold only these rows. */
static tile slice(const tile *t, size_t col)
{
    tile s = *t;
    s.begin += col;
    s.rows = t->rows < col ? 0 : t->rows - col < W ? t->rows - col : W;
    s.cols = s.stride = W;
    return s;
}

/* A squared distance below this fraction of ||phi||^2 + ||theta||^2 is computed from differences.
 * The error of an expanded square is about sqrt(F) eps times this sum. Below the limit the square
 * has lost all but 8 of its bits in single precision, and half of its bits in double precision. */
static real cancelling(size_t F)
{
    const double part = RFFPK_BITS == 32 ? 0x1p-15 : 0x1p-26;
    return (real)(part * sqrt((double)F));
}

static void load_row_weights(const rffpk_problem *pr, tile *t)
{
    const real *weight = pr->weight;
    for (size_t r = 0; r < t->rows; r++)
        t->p[r] = weight ? weight[t->begin + r] : 1;
    for (size_t r = t->rows; r < t->cols; r++)
        t->p[r] = 0;
}

#endif
