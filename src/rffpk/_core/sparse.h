/* Sparse rows: projection, distances and sums that visit only the entries.
 *
 * The columns of sparse rows may be the features of the only view. Then phi = x - c for the shift c
 * is not formed. Instead <phi, theta> = <x, theta> - <c, theta>, and sum g phi = sum g x - (sum g)
 * c. Centroids and sums have one line for each column of x. So an entry finds the numbers of all
 * clusters side by side. If there are other views, sparse rows are written out with their zeros, a
 * tile at a time. */
#ifndef RFFPK_SPARSE_H
#define RFFPK_SPARSE_H

#include "tile.h"
#include "vecmath.h"

enum {
    BUNCH = 4,     /* vectors of centroids, or of phases, that are summed at a time */
    AHEAD = 8,     /* how many entries ahead lines are prefetched */
    SUMS_STEP = 8, /* a line of sums has a multiple of this many numbers: a cache line */
    SPREAD = 256   /* lines of sums that stay in a cache while they are read for each cluster */
};

static size_t centroids_line(const rffpk_problem *pr) { return round_up(pr->k, W); }

static size_t sums_line(const rffpk_problem *pr) { return round_up(pr->k, SUMS_STEP); }

/* The entries of a row of the tile. Rows beyond the last row have none. */
typedef struct {
    const real *values;
    const int32_t *columns;
    size_t count, ahead; /* ahead: entries of this row and of the later rows of the tile */
} entries;

static entries entries_of(const rffpk_view *v, const tile *t, size_t r)
{
    if (r >= t->rows)
        return (entries){NULL, NULL, 0, 0};
    const int64_t *row = v->indptr + t->begin + r, first = *row;
    return (entries){(const real *)v->x + first, v->indices + first, (size_t)(row[1] - first),
                     (size_t)(v->indptr[t->begin + t->rows] - first)};
}

/* out[r] <- sum over the entries of value * table[column][r], for h vectors. h is a constant at
 * every call. Lines of the table are `stride` numbers apart, at any address. */
INLINE void gather_bunch(const int h, entries e, const real *table, size_t stride, real *out)
{
    vec acc[BUNCH];
    UNROLL
    for (int r = 0; r < h; r++)
        acc[r] = splat(0);
    for (size_t a = 0; a < e.count; a++) {
        const real *line = table + (size_t)e.columns[a] * stride;
        if (a + AHEAD < e.ahead) {
            const real *next = table + (size_t)e.columns[a + AHEAD] * stride;
            UNROLL
            for (int r = 0; r < h; r++)
                PREFETCH(next + r * W);
        }
        UNROLL
        for (int r = 0; r < h; r++)
            acc[r] += load_anywhere(line + r * W) * e.values[a];
    }
    UNROLL
    for (int r = 0; r < h; r++)
        store(out + r * W, acc[r]);
}

/* out[i] <- sum over the entries of value * table[column][i], for i < n. Numbers of out up to the
 * next multiple of W may be overwritten. */
static void gather(entries e, const real *table, size_t n, real *out)
{
    size_t i = 0;
    for (; i + BUNCH * W <= n; i += BUNCH * W)
        gather_bunch(BUNCH, e, table + i, n, out + i);
    switch ((n - i) / W) {
    case 3: gather_bunch(3, e, table + i, n, out + i); break;
    case 2: gather_bunch(2, e, table + i, n, out + i); break;
    case 1: gather_bunch(1, e, table + i, n, out + i); break;
    }
    for (i += (n - i) / W * W; i < n; i++) {
        real sum = 0;
        for (size_t a = 0; a < e.count; a++)
            sum += e.values[a] * table[(size_t)e.columns[a] * n + i];
        out[i] = sum;
    }
}

/* ---- projection ------------------------------------------------------------------------------ */

/* phi <- the columns of the rows, with their zeros. */
static void load_sparse(const rffpk_view *v, real *phi, const tile *t)
{
    memset(phi, 0, v->d * t->stride * sizeof(real));
    for (size_t r = 0; r < t->rows; r++) {
        const entries e = entries_of(v, t, r);
        for (size_t a = 0; a < e.count; a++)
            phi[(size_t)e.columns[a] * t->stride + r] += e.values[a];
    }
}

/* Return the size of the scratch memory: for the projection of W rows, or for `sparse_distances`
 * and `sparse_sums`. */
static size_t sparse_scratch(const rffpk_problem *pr, const rffpk_view *v)
{
    if (v->D)
        return round_up(v->D, W) * W;
    if (!sparse_columns(pr))
        return 0;
    return round_up(centroids_line(pr), PAD) + sums_line(pr) * sizeof(double) / sizeof(real);
}

/* phases[f] <- sum over the entries of each row of value * Omega[column][f], in quarter turns */
static void project_sparse(const rffpk_view *v, real *phases, tile *t)
{
    const size_t D = v->D, line = round_up(D, W);
    for (size_t col = 0; col < t->cols; col += W) {
        for (size_t r = 0; r < W; r++)
            gather(entries_of(v, t, col + r), v->omega, D, t->strip + r * line);
        for (size_t f = 0; f < D; f += W) {
            vec w[W];
            for (size_t r = 0; r < W; r++)
                w[r] = load(t->strip + r * line + f);
            transpose_lanes(w);
            for (size_t i = 0; i < W && f + i < D; i++)
                store(phases + (f + i) * t->stride + col, w[i] * (real)QUARTER_TURNS);
        }
    }
}

/* ---- columns as features --------------------------------------------------------------------- */

/* The packed centroids. (F, centroids_line) numbers -2 alpha theta_jf are followed by a line alpha
 * (||theta_j||^2 + 2 <c, theta_j>), and by a line with the rounding errors of this line. */
static size_t packed_sparse_theta(const rffpk_problem *pr)
{
    return round_up((pr->F + 2) * centroids_line(pr), PAD);
}

static void pack_sparse_theta(const rffpk_problem *pr, real *packed)
{
    const rffpk_view *v = pr->views;
    const real *theta = pr->theta, *shift = v->shift;
    const size_t F = pr->F, line = centroids_line(pr);
    for (size_t f = 0; f < F; f++)
        for (size_t j = 0; j < line; j++)
            packed[f * line + j] = j < pr->k ? (real)(-2 * pr->alpha[0] * theta[j * F + f]) : 0;
    for (size_t j = 0; j < line; j++) {
        double norm = 0;
        for (size_t f = 0; f < F && j < pr->k; f++)
            norm += theta[j * F + f] * ((double)theta[j * F + f] + 2 * (double)shift[f]);
        packed[F * line + j] = (real)(pr->alpha[0] * norm);
        packed[(F + 1) * line + j] = (real)(pr->alpha[0] * norm - (double)packed[F * line + j]);
    }
}

/* ||c||^2 */
static double squared_shift(const rffpk_view *v)
{
    const real *shift = v->shift;
    double sum = 0;
    for (size_t f = 0; f < v->d; f++)
        sum += (double)shift[f] * shift[f];
    return sum;
}

/* Return ||x - c||^2. It is computed in double precision, because it cancels where rows are near
 * c. */
static double squared_norm(entries e, const real *shift, double c_norm)
{
    double sum = c_norm;
    for (size_t a = 0; a < e.count; a++)
        sum += (double)e.values[a] * (e.values[a] - 2 * (double)shift[e.columns[a]]);
    return sum > 0 ? sum : 0;
}

/* Return the product of a row with one column of the table that `gather` takes, summed in double
 * precision. */
static double inner_product(entries e, const real *table, size_t stride)
{
    double sum = 0;
    for (size_t a = 0; a < e.count; a++)
        sum += (double)e.values[a] * table[(size_t)e.columns[a] * stride];
    return sum;
}

/* The first line of phi <- ||phi||^2. dist[j] <- max(0, ||phi||^2 + ||theta_j||^2 - 2 <phi,
 * theta_j>). Distances that cancel are summed in double precision. */
NOINLINE static void sparse_distances(const rffpk_problem *pr, const real *theta, tile *t)
{
    const rffpk_view *v = pr->views;
    const size_t line = centroids_line(pr);
    const real *norms = theta + pr->F * line, *rests = norms + line;
    for (size_t r = 0; r < t->cols; r++) {
        const entries e = entries_of(v, t, r);
        const double square = squared_norm(e, v->shift, t->c_norm);
        const real own = (real)(pr->alpha[0] * square), part = cancelling(e.count + 1);
        gather(e, theta, line, t->strip);
        for (size_t j = 0; j < pr->k; j++) {
            real d = own + norms[j] + t->strip[j];
            if (RFFPK_BITS == 32 && d < (own + (real)fabs(norms[j])) * part) {
                const double known = pr->alpha[0] * square + norms[j] + rests[j];
                d = (real)(known + inner_product(e, theta + j, line));
            }
            t->dist[j * t->stride + r] = d < 0 ? 0 : d;
        }
        t->phi[r] = (real)square;
    }
}

/* Return the size of `sums`. It has a line sum g x of all clusters for each column, then the lines
 * sum g ||phi||^2 and sum g. */
static size_t sparse_sums_numbers(const rffpk_problem *pr) { return (pr->F + 2) * sums_line(pr); }

static void add_to_line(double *to, const double *g, double value, size_t line)
{
    for (size_t j = 0; j < line; j++)
        to[j] += value * g[j];
}

/* Add a row that belongs to the cluster `label` only. */
static void add_hard(const rffpk_problem *pr, entries e, double p, double norm, size_t label,
                     double *sums)
{
    const size_t line = sums_line(pr);
    double *last = sums + pr->F * line;
    for (size_t a = 0; a < e.count; a++)
        sums[(size_t)e.columns[a] * line + label] += p * e.values[a];
    last[label] += p * norm;
    last[line + label] += p;
}

/* Add a row with the weights g (line,). */
static void add_soft(const rffpk_problem *pr, entries e, const double *g, double norm, double *sums)
{
    const size_t line = sums_line(pr);
    double *last = sums + pr->F * line;
    for (size_t a = 0; a < e.count; a++) {
        if (a + AHEAD < e.ahead) {
            const double *next = sums + (size_t)e.columns[a + AHEAD] * line;
            for (size_t j = 0; j < line; j += SUMS_STEP)
                PREFETCH(next + j);
        }
        add_to_line(sums + (size_t)e.columns[a] * line, g, e.values[a], line);
    }
    add_to_line(last, g, norm, line);
    add_to_line(last + line, g, 1, line);
}

NOINLINE static void sparse_sums(const rffpk_problem *pr, const tile *t, double *sums)
{
    double *g = (double *)(t->strip + round_up(centroids_line(pr), PAD));
    for (size_t j = pr->k; j < sums_line(pr); j++)
        g[j] = 0;
    for (size_t r = 0; r < t->rows; r++) {
        const entries e = entries_of(pr->views, t, r);
        if (rffpk_is_hard(pr)) {
            add_hard(pr, e, t->p[r], t->phi[r], (size_t)t->label[r], sums);
            continue;
        }
        for (size_t j = 0; j < pr->k; j++)
            g[j] = t->g[j * t->stride + r];
        add_soft(pr, e, g, t->phi[r], sums);
    }
}

/* moments (k, F + 2) <- the sums, in the order of rffpk_sums */
static void spread_sums(const rffpk_problem *pr, const double *sums, double *moments)
{
    const size_t F = pr->F, line = sums_line(pr);
    const real *shift = pr->views->shift;
    const double *G = sums + (F + 1) * line;
    for (size_t from = 0; from < F + 2; from += SPREAD) {
        const size_t to = F + 2 - from < SPREAD ? F + 2 : from + SPREAD;
        for (size_t j = 0; j < pr->k; j++)
            for (size_t f = from; f < to; f++)
                moments[j * (F + 2) + f] = sums[f * line + j] - (f < F ? G[j] * shift[f] : 0);
    }
}

/* out[row] <- the features of the rows */
static void write_sparse_rows(const rffpk_view *v, const tile *t, real *out)
{
    const real *shift = v->shift;
    for (size_t r = 0; r < t->rows; r++, out += v->d) {
        const entries e = entries_of(v, t, r);
        for (size_t f = 0; f < v->d; f++)
            out[f] = -shift[f];
        for (size_t a = 0; a < e.count; a++)
            out[e.columns[a]] += e.values[a];
    }
}

#endif
