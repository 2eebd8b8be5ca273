/* The fourth stage: squared distances of the rows to the centroids. */
#ifndef RFFPK_DISTANCES_H
#define RFFPK_DISTANCES_H

#include "products.h"
#include "tile.h"

/* ---- centroids, packed once a pass: panels of (k, depth_of) numbers | squared norms ---------- */

static size_t packed_theta(const rffpk_problem *pr)
{
    return round_up(pr->k * depth_of(pr), PAD) + round_up(pr->k, PAD);
}

/* Return norm + alpha_l ||theta_jl||^2 for the view l, whose features begin at f. */
static double weighted_norm(const rffpk_problem *pr, size_t j, size_t l, size_t f, double norm)
{
    const real *theta = (const real *)pr->theta + j * pr->F + f;
    for (size_t i = 0; i < features_of(&pr->views[l]); i++)
        norm += pr->alpha[l] * theta[i] * theta[i];
    return norm;
}

/* Pack a panel of h centroids, from the centroid `from` on, to be multiplied with lines of phi. The
 * features meet -2 alpha_l theta_jl. If views are missing, ||phi_l||^2 meets alpha_l, and the
 * counts meet alpha_l ||theta_jl||^2. Return the end of the panel. */
static real *pack_panel(const rffpk_problem *pr, size_t from, size_t h, real *packed)
{
    const real *theta = pr->theta;
    for (size_t l = 0, f = 0; l < pr->n_views; l++)
        for (size_t i = 0; i < features_of(&pr->views[l]); i++, f++)
            for (size_t r = 0; r < h; r++)
                *packed++ = (real)(-2 * pr->alpha[l] * theta[(from + r) * pr->F + f]);
    if (!pr->present)
        return packed;
    for (size_t l = 0; l < pr->n_views; l++)
        for (size_t r = 0; r < h; r++)
            *packed++ = (real)pr->alpha[l];
    for (size_t l = 0, f = 0; l < pr->n_views; l++) {
        for (size_t r = 0; r < h; r++)
            *packed++ = (real)weighted_norm(pr, from + r, l, f, 0);
        f += features_of(&pr->views[l]);
    }
    return packed;
}

static void pack_theta(const rffpk_problem *pr, real *packed)
{
    real *norms = packed + round_up(pr->k * depth_of(pr), PAD);
    for (size_t from = 0, h; from < pr->k; from += h) {
        h = even_share(pr->k, PANEL, from);
        packed = pack_panel(pr, from, h, packed);
    }
    for (size_t j = 0; j < pr->k; j++) {
        double norm = 0;
        for (size_t l = 0, f = 0; l < pr->n_views; l++) {
            norm = weighted_norm(pr, j, l, f, norm);
            f += features_of(&pr->views[l]);
        }
        norms[j] = (real)norm;
    }
}

/* ---- distances that cancel ------------------------------------------------------------------- */

/* Compute squared distances of W rows, from column `col` on, to one centroid, as sums of squared
 * differences. */
NOINLINE static vec by_differences(const rffpk_problem *pr, const tile *t, size_t j, size_t col)
{
    const real *theta = (const real *)pr->theta + j * pr->F, *phi = t->phi + col;
    vec total = splat(0);
    for (size_t l = 0; l < pr->n_views; l++) {
        vec sum = splat(0);
        for (size_t f = 0; f < features_of(&pr->views[l]); f++, theta++, phi += t->stride) {
            const vec apart = load(phi) - *theta;
            sum += apart * apart;
        }
        if (pr->present)
            sum *= load(counts_of(pr, t) + l * t->stride + col);
        total += sum * (real)pr->alpha[l];
    }
    return total;
}

/* Return the squared distance of a row. `squared` comes from an expanded square. Below `least` it
 * is computed again as a sum of squared differences. */
INLINE real refined(const rffpk_problem *pr, const tile *t, size_t j, size_t row, real squared,
                    real least)
{
    if (!(squared < least))
        return squared; /* also NaN */
    real line[W] ALIGNED;
    store(line, by_differences(pr, t, j, row / W * W));
    return line[row % W];
}

/* Recompute the distances of W rows that cancel. */
NOINLINE static void refine(const rffpk_problem *pr, const real *norms, tile *t, size_t col)
{
    const real part = cancelling(pr->F);
    for (size_t j = 0; j < pr->k; j++) {
        real *d = t->dist + j * t->stride + col;
        const lanes close = less(load(d), (load(t->norm + col) + norms[j]) * part);
        if (any(close))
            store(d, pick(close, by_differences(pr, t, j, col), load(d)));
    }
}

/* ---- a tile ---------------------------------------------------------------------------------- */

/* dist[j] <- norm + ||theta_j||^2 - 2 phi theta_j. If views are missing, the product contains the
 * first two terms. NaN stays, and is detected later. */
INLINE void expand(const rffpk_problem *pr, const int missing, const real *norms, tile *t)
{
    const real part = cancelling(pr->F);
    for (size_t col = 0; col < t->cols; col += W) {
        const vec norm = load(t->norm + col);
        lanes close = less(norm, norm); /* none */
        for (size_t j = 0; j < pr->k; j++) {
            real *d = t->dist + j * t->stride + col;
            const vec size = norm + norms[j];
            const vec squared = missing ? load(d) : size + load(d);
            close |= less(squared, size * part);
            store(d, squared);
        }
        if (any(close))
            refine(pr, norms, t, col);
    }
}

static void make_distances(const rffpk_problem *pr, const real *theta, tile *t)
{
    const real *norms = theta + round_up(pr->k * depth_of(pr), PAD);
    product(theta, pr->k, depth_of(pr), t->phi, t->dist, t->cols, t->stride);
    if (pr->present)
        expand(pr, 1, norms, t);
    else
        expand(pr, 0, norms, t);
}

/* dist[j] <- max(0, ||phi||^2 + ||theta_j||^2 - 2 <phi, theta_j>), from given inner products.
 * Beyond the last row it is 1. */
static void distances_from(const rffpk_problem *pr, const rffpk_gram *gram, size_t n, tile *t)
{
    const real *diagonal = (const real *)gram->diagonal + t->begin, *squares = gram->squares;
    for (size_t j = 0; j < pr->k; j++) {
        const real *products = (const real *)gram->products + j * n + t->begin;
        real *d = t->dist + j * t->stride;
        for (size_t r = 0; r < t->rows; r++) {
            const real squared = diagonal[r] + squares[j] - 2 * products[r];
            d[r] = squared < 0 ? 0 : squared;
        }
        for (size_t r = t->rows; r < t->cols; r++)
            d[r] = 1;
    }
}

#endif
