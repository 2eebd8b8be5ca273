/* Sparse rows: projection, distances and sums that visit the entries alone.
 *
 * Where the columns of sparse rows are themselves the features, and there is no other view, phi =
 * x - c for the shift c is not formed: <phi, theta> = <x, theta> - <c, theta>, and sum g phi =
 * sum g x - (sum g) c. Centroids and sums have one line of numbers for each column of x, so that an
 * entry meets those of all clusters side by side. Beside other views such rows are written out, a
 * tile at a time. */
#ifndef RFFPK_SPARSE_H
#define RFFPK_SPARSE_H

#include "hadamard.h"
#include "products.h"
#include "rules.h"

enum {
    BUNCH = 4,     /* vectors of centroids, or of phases, that a row is multiplied with at a time */
    AHEAD = 8,     /* entries ahead, whose lines are prefetched */
    SUMS_STEP = 8, /* lines of sums are multiples of this many numbers: a cache line */
    SPREAD = 256   /* lines of sums that are read again for each cluster, in a cache */
};

/* Whether the features are the columns of sparse rows. */
static int sparse_columns(const rffpk_problem *pr)
{
    return pr->n_views == 1 && pr->views->indptr && !pr->views->D;
}

static size_t centroids_line(const rffpk_problem *pr) { return round_up(pr->k, W); }

static size_t sums_line(const rffpk_problem *pr) { return round_up(pr->k, SUMS_STEP); }

/* The entries of a row. */
typedef struct {
    const real *values;
    const int32_t *columns;
    size_t count, ahead; /* ahead: entries of this row and of those after it */
} entries;

static entries entries_of(const rffpk_view *v, size_t row, size_t end)
{
    const int64_t first = v->indptr[row];
    return (entries){(const real *)v->x + first, v->indices + first,
                     (size_t)(v->indptr[row + 1] - first), (size_t)(v->indptr[end] - first)};
}

/* out[r] = sum over the entries of value * table[column][r], for h vectors; h is a constant at
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

/* out[i] = sum over the entries of value * table[column][i], i < n. Numbers of out up to the next
 * multiple of W may be written. */
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

/* ---- projection ----------------------------------------------------------------------------- */

/* The columns of rows beside other views, written out with their zeros. */
static void load_sparse(const rffpk_view *v, size_t begin, size_t rows, size_t cols, real *phi,
                        size_t stride)
{
    for (size_t f = 0; f < v->d; f++)
        memset(phi + f * stride, 0, cols * sizeof(real));
    for (size_t r = 0; r < rows; r++) {
        const entries e = entries_of(v, begin + r, begin + rows);
        for (size_t a = 0; a < e.count; a++)
            phi[(size_t)e.columns[a] * stride + r] += e.values[a];
    }
}

/* Scratch of the projection of W rows, and of what `sparse_distances` and `sparse_sums` need. */
static size_t sparse_scratch(const rffpk_problem *pr, const rffpk_view *v)
{
    if (v->signs)
        return (v->p + v->d) * W;
    if (v->D)
        return round_up(v->D, W) * W;
    if (!sparse_columns(pr))
        return 0;
    return round_up(centroids_line(pr), PAD) + sums_line(pr) * sizeof(double) / sizeof(real);
}

/* phases[f] = sum over the entries of each row of value * Omega[column][f], in quarter turns. */
static void project_sparse(const rffpk_view *v, size_t begin, size_t rows, size_t cols, real *out,
                           real *phases, size_t stride)
{
    const size_t D = v->D, line = round_up(D, W);
    const real quarters = (real)0.63661977236758134308;
    for (size_t col = 0; col < cols; col += W) {
        for (size_t r = 0; r < W; r++)
            if (col + r < rows)
                gather(entries_of(v, begin + col + r, begin + rows), v->omega, D, out + r * line);
            else
                memset(out + r * line, 0, line * sizeof(real));
        for (size_t f = 0; f < D; f += W) {
            vec w[W];
            for (size_t r = 0; r < W; r++)
                w[r] = load(out + r * line + f);
            transpose_lanes(w);
            for (size_t i = 0; i < W && f + i < D; i++)
                store(phases + (f + i) * stride + col, w[i] * quarters);
        }
    }
}

/* The structured projection of W rows at a time, written out with their zeros. */
static void project_sparse_structured(const real *signs, const rffpk_view *v, size_t begin,
                                      size_t rows, size_t cols, real *scratch, real *phases,
                                      size_t stride)
{
    real *x = scratch + v->p * W;
    for (size_t col = 0; col < cols; col += W) {
        memset(x, 0, v->d * W * sizeof(real));
        for (size_t r = 0; r < W && col + r < rows; r++) {
            const entries e = entries_of(v, begin + col + r, begin + rows);
            for (size_t a = 0; a < e.count; a++)
                x[(size_t)e.columns[a] * W + r] += e.values[a];
        }
        const real *these = signs;
        for (size_t first = 0; first < v->D; first += v->p, these += 3 * v->p)
            hadamard_thrice(these, v->p, x, W, v->d, scratch, phases + first * stride + col, stride,
                            v->D - first < v->p ? v->D - first : v->p);
    }
}

/* ---- columns as features -------------------------------------------------------------------- */

/* out: (F, centroids_line) numbers -2 alpha theta_jf, then ||theta_j||^2 + 2 <c, theta_j>, times
 * alpha */
static size_t packed_sparse_theta(const rffpk_problem *pr)
{
    return round_up((pr->F + 1) * centroids_line(pr), PAD);
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

/* ||x - c||^2; in double, as it cancels where rows are near c */
static double squared_norm(entries e, const real *shift, double of_shift)
{
    double sum = of_shift;
    for (size_t a = 0; a < e.count; a++)
        sum += (double)e.values[a] * (e.values[a] - 2 * (double)shift[e.columns[a]]);
    return sum > 0 ? sum : 0;
}

/* norm <- ||phi||^2; dist[j] <- max(0, ||phi||^2 + ||theta_j||^2 - 2 <phi, theta_j>). Both are of
 * zeros beyond the last row. */
static void sparse_distances(const rffpk_problem *pr, const real *packed, double of_shift,
                             size_t begin, size_t rows, size_t cols, real *norm, tile *t)
{
    const rffpk_view *v = pr->views;
    const size_t line = centroids_line(pr);
    const real *norms = packed + pr->F * line;
    for (size_t r = 0; r < cols; r++) {
        const entries e =
            r < rows ? entries_of(v, begin + r, begin + rows) : (entries){NULL, NULL, 0, 0};
        const double square = squared_norm(e, v->shift, of_shift);
        gather(e, packed, line, t->strip);
        for (size_t j = 0; j < pr->k; j++) {
            const real d = (real)(pr->alpha[0] * square) + norms[j] + t->strip[j];
            t->dist[j * t->stride + r] = d < 0 ? 0 : d;
        }
        norm[r] = (real)square;
    }
}

/* Lines of `sums`: for each column, sum g x of all clusters; sum g ||phi||^2; sum g */
static size_t sparse_sums_numbers(const rffpk_problem *pr) { return (pr->F + 2) * sums_line(pr); }

static void add_to_line(double *to, const double *g, double value, size_t line)
{
    for (size_t j = 0; j < line; j++)
        to[j] += value * g[j];
}

static void sparse_sums(const rffpk_problem *pr, size_t begin, size_t rows, const real *norm,
                        const tile *t, double *sums)
{
    const rffpk_view *v = pr->views;
    const size_t line = sums_line(pr);
    double *g = (double *)(t->strip + round_up(centroids_line(pr), PAD));
    for (size_t j = pr->k; j < line; j++)
        g[j] = 0;
    for (size_t r = 0; r < rows; r++) {
        const entries e = entries_of(v, begin + r, begin + rows);
        double *last = sums + pr->F * line;
        if (pr->rule == RFFPK_HARD) {
            const double p = t->p[r];
            const size_t label = (size_t)t->label[r];
            for (size_t a = 0; a < e.count; a++)
                sums[(size_t)e.columns[a] * line + label] += p * e.values[a];
            last[label] += p * norm[r];
            last[line + label] += p;
            continue;
        }
        for (size_t j = 0; j < pr->k; j++)
            g[j] = t->g[j * t->stride + r];
        for (size_t a = 0; a < e.count; a++) {
            if (a + AHEAD < e.ahead) {
                const double *next = sums + (size_t)e.columns[a + AHEAD] * line;
                for (size_t j = 0; j < line; j += SUMS_STEP)
                    PREFETCH(next + j);
            }
            add_to_line(sums + (size_t)e.columns[a] * line, g, e.values[a], line);
        }
        add_to_line(last, g, norm[r], line);
        add_to_line(last + line, g, 1, line);
    }
}

/* moments = the moments (k, F + 2) of these sums */
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

/* out[row] = the features of the rows */
static void write_sparse_rows(const rffpk_view *v, size_t begin, size_t rows, real *out)
{
    const real *shift = v->shift;
    for (size_t r = 0; r < rows; r++, out += v->d) {
        const entries e = entries_of(v, begin + r, begin + rows);
        for (size_t f = 0; f < v->d; f++)
            out[f] = -shift[f];
        for (size_t a = 0; a < e.count; a++)
            out[e.columns[a]] += e.values[a];
    }
}

#endif
