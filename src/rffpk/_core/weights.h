/* The fifth stage: a rule turns the distances of a row into its weights. All distances are squared
 * distances. */
#ifndef RFFPK_WEIGHTS_H
#define RFFPK_WEIGHTS_H

#include "tile.h"
#include "vecmath.h"

/* ---- the power mean and the hard rule -------------------------------------------------------- */

/* `memberships`, (k, rows) or NULL, may be t->dist. */
typedef void weigh_rule(const rffpk_problem *, tile *t, real *memberships, double *totals);

/* Store the nearest centroid of each row and its distance. Return the distances. */
INLINE vec nearest(const rffpk_problem *pr, tile *t, size_t col)
{
    vec least = load(t->dist + col);
    vec at = splat(0);
    for (size_t j = 1; j < pr->k; j++) {
        const vec d = load(t->dist + j * t->stride + col);
        const ivec less = d < least;
        least = SELECT(less, d, least);
        at = SELECT(less, splat((real)j), at);
    }
    store(t->label + col, at);
    store(t->least + col, least);
    return least;
}

/* Add the sum of the least distances. For the hard rule it is the soft total, too. */
static void total_nearest(const tile *t, double *totals)
{
    vec hard_sum = splat(0);
    for (size_t col = 0; col < t->cols; col += W)
        hard_sum += load(t->p + col) * load(t->least + col);
    const double sum = sum_lanes(hard_sum);
    totals[0] += sum;
    totals[1] += sum;
}

/* g <- p at the nearest centroid, 0 elsewhere; not written if `one_hot` */
static void weigh_hard(const rffpk_problem *pr, tile *t, real *memberships, double *totals)
{
    const size_t cols = t->cols;
    const int dense = !one_hot(pr);
    for (size_t col = 0; col < cols; col += W) {
        nearest(pr, t, col);
        const vec p = load(t->p + col), label = load(t->label + col);
        for (size_t j = 0; j < pr->k && (dense || memberships); j++) {
            const ivec here = label == splat((real)j);
            if (dense)
                store(t->g + j * t->stride + col, SELECT(here, p, splat(0)));
            if (memberships)
                store(memberships + j * t->stride + col, SELECT(here, splat(1), splat(0)));
        }
    }
    total_nearest(t, totals);
}

/* With r_j = d_min / d_j and S = sum_j r_j^(-s): v_j = r_j^(1-s) S^(1/s) / S, M' = d_min S^(1/s).
 * `memberships` receives r_j^(-s) / S. s = -1 (`harmonic`) needs no powers. */
INLINE void weigh_soft(const rffpk_problem *pr, const int harmonic, tile *t, real *memberships,
                       double *totals)
{
    const size_t cols = t->cols;
    const vec minus_s = splat((real)-pr->s), inverse_s = splat((real)(1 / pr->s));
    vec soft_sum = splat(0), hard_sum = splat(0);
    for (size_t col = 0; col < cols; col += W) {
        const vec least = nearest(pr, t, col);
        vec total = splat(0);
        for (size_t j = 0; j < pr->k; j++) {
            const vec d = load(t->dist + j * t->stride + col);
            const vec r = SELECT(d == least, splat(1), least / d);
            const vec e = harmonic ? r : exp2_nonpositive(log2_positive(r) * minus_s);
            total += e;
            store(t->g + j * t->stride + col, r * e);
            if (memberships)
                store(memberships + j * t->stride + col, e);
        }
        const vec inverse = 1 / total;
        const vec root = harmonic ? inverse : exp2_nonpositive(log2_positive(total) * inverse_s);
        const vec p = load(t->p + col);
        const vec scale = p * root * inverse;
        for (size_t j = 0; j < pr->k; j++) {
            real *g = t->g + j * t->stride + col;
            store(g, load(g) * scale);
            if (memberships) {
                real *u = memberships + j * t->stride + col;
                store(u, load(u) * inverse);
            }
        }
        soft_sum += p * least * root;
        hard_sum += p * least;
    }
    totals[0] += sum_lanes(soft_sum);
    totals[1] += sum_lanes(hard_sum);
}

static void weigh_power(const rffpk_problem *pr, tile *t, real *memberships, double *totals)
{
    weigh_soft(pr, 0, t, memberships, totals);
}

static void weigh_harmonic(const rffpk_problem *pr, tile *t, real *memberships, double *totals)
{
    weigh_soft(pr, 1, t, memberships, totals);
}

/* Return the sum of p M', without weights. */
static double sum_of_power_means(const rffpk_problem *pr, tile *t)
{
    const vec minus_s = splat((real)-pr->s), inverse_s = splat((real)(1 / pr->s));
    vec sum = splat(0);
    for (size_t col = 0; col < t->cols; col += W) {
        const vec least = nearest(pr, t, col);
        const vec reach = least * splat((real)pr->reach) + splat(LEAST);
        vec total = splat(0);
        for (size_t j = 0; j < pr->k; j++) {
            const vec d = load(t->dist + j * t->stride + col);
            if (pr->basis && !any(less(d, reach)))
                continue;
            const vec r = SELECT(d == least, splat(1), least / d);
            total += exp2_nonpositive(log2_positive(r) * minus_s);
        }
        sum += load(t->p + col) * least * exp2_nonpositive(log2_positive(total) * inverse_s);
    }
    return sum_lanes(sum);
}

static void weigh_both(const rffpk_problem *pr, tile *t, real *memberships, double *totals)
{
    double hard[2] = {0, 0};
    totals[0] += sum_of_power_means(pr, t);
    weigh_hard(pr, t, memberships, hard);
    totals[1] += hard[1];
}

/* The function of a problem's rule, chosen outside the loops; NULL where the rule is unknown. */
static weigh_rule *rule_of(const rffpk_problem *pr)
{
    switch (pr->rule) {
    case RFFPK_TYPICALITY:
        if (pr->s == -INFINITY)
            return weigh_hard;
        /* fall through */
    case RFFPK_POWER: return pr->s == -1 ? weigh_harmonic : weigh_power;
    case RFFPK_HARD: return weigh_hard;
    case RFFPK_BOTH: return weigh_both;
    default: return NULL;
    }
}

/* ---- typicality ------------------------------------------------------------------------------ */

/* t->eta <- the sum of alpha_l eta_l over the views of each row. */
static void combine_eta(const rffpk_problem *pr, tile *t)
{
    const real *present = counts_of(pr, t);
    fill(t->eta, 0, t->cols);
    for (size_t l = 0; l < pr->n_views; l++)
        for (size_t col = 0; col < t->cols; col += W)
            store(t->eta + col, load(t->eta + col) + load(present + l * t->stride + col) *
                                                         (real)(pr->alpha[l] * pr->eta[l]));
}

/* u_m <- u^m, rest_m <- (1-u)^m, and d <- d' = u^m d + (1-u)^m eta. With r = min(d/eta, eta/d), e =
 * r^(1/(m-1)) and h = (1 + e)^(1-m), d' is h min(d, eta). The larger of u^m and (1-u)^m is h/(1 +
 * e), and the smaller is r e times the larger. m = 2 (`squares`) needs no powers. With `missing`
 * the reference distances are in t->eta. */
INLINE void apply_typicality(const rffpk_problem *pr, const int squares, const int missing, tile *t)
{
    const size_t cols = t->cols;
    const vec p = splat((real)(1 / (pr->m - 1))), minus = splat((real)(1 - pr->m));
    for (size_t j = 0; j < pr->k; j++) {
        const vec same = splat((real)(missing ? 0 : pr->eta[j]));
        for (size_t at = j * t->stride; at < j * t->stride + cols; at += W) {
            const vec eta = missing ? load(t->eta + (at - j * t->stride)) : same;
            const vec d = load(t->dist + at);
            const ivec inside = d < eta;
            const vec least = SELECT(inside, d, eta);
            const vec r = least / SELECT(inside, eta, d);
            const vec e = squares ? r : exp2_nonpositive(log2_positive(r) * p);
            const vec q = 1 / (1 + e);
            const vec h = squares ? q : exp2_nonpositive(log2_positive(1 + e) * minus);
            const vec large = h * q, small = large * r * e;
            store(t->dist + at, least * h);
            store(t->u_m + at, SELECT(inside, large, small));
            store(t->rest_m + at, SELECT(inside, small, large));
        }
    }
}

/* Replace d by d'. */
static void make_typical(const rffpk_problem *pr, tile *t)
{
    if (pr->present)
        combine_eta(pr, t);
    if (pr->present && pr->m == 2)
        apply_typicality(pr, 1, 1, t);
    else if (pr->present)
        apply_typicality(pr, 0, 1, t);
    else if (pr->m == 2)
        apply_typicality(pr, 1, 0, t);
    else
        apply_typicality(pr, 0, 0, t);
}

/* E_j += the sum of p v_j (1-u_j)^m. On entry g is p v; it becomes p v u^m. */
static void weigh_typicality(const rffpk_problem *pr, tile *t, double *excess)
{
    const size_t cols = t->cols;
    for (size_t j = 0; j < pr->k; j++) {
        vec sum = splat(0);
        for (size_t at = j * t->stride; at < j * t->stride + cols; at += W) {
            const vec g = load(t->g + at);
            sum += g * load(t->rest_m + at);
            store(t->g + at, g * load(t->u_m + at));
        }
        excess[j] += sum_lanes(sum);
    }
}

/* The function weigh_typicality for missing views, with E_l of each view in place of E_j. */
static void weigh_typicality_of_views(const rffpk_problem *pr, tile *t, double *excess)
{
    const size_t cols = t->cols;
    const real *present = counts_of(pr, t);
    fill(t->eta, 0, cols); /* the reference distances are not needed any more */
    for (size_t j = 0; j < pr->k; j++)
        for (size_t col = 0; col < cols; col += W) {
            const size_t at = j * t->stride + col;
            const vec g = load(t->g + at);
            store(t->eta + col, load(t->eta + col) + g * load(t->rest_m + at));
            store(t->g + at, g * load(t->u_m + at));
        }
    for (size_t l = 0; l < pr->n_views; l++) {
        vec sum = splat(0);
        for (size_t col = 0; col < cols; col += W)
            sum += load(t->eta + col) * load(present + l * t->stride + col);
        excess[l] += sum_lanes(sum);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* out <- the second least distance of each row */
static void second_nearest(const rffpk_problem *pr, const tile *t, real *out)
{
    for (size_t col = 0; col < t->cols; col += W) {
        vec least = load(t->dist + col), second = splat(INFINITY);
        for (size_t j = 1; j < pr->k; j++) {
            const vec d = load(t->dist + j * t->stride + col);
            const ivec less = d < least;
            const vec other = SELECT(less, least, d);
            second = SELECT(other < second, other, second);
            least = SELECT(less, d, least);
        }
        store(out + col, second);
    }
}

/* Compute the weights. `memberships` (k, rows), and `second`, the second least distances of the
 * rows, are NULL where they are not wanted. */
static void make_weights(const rffpk_problem *pr, weigh_rule *weigh, real *memberships,
                         real *second, tile *t, const rffpk_sums *sums)
{
    const int typicality = pr->rule == RFFPK_TYPICALITY;
    if (typicality)
        make_typical(pr, t);
    if (second) {
        second_nearest(pr, t, t->g); /* the lines of g are filled later */
        memcpy(second, t->g, t->rows * sizeof(real));
    }
    weigh(pr, t, memberships, sums->totals);
    if (typicality && pr->present)
        weigh_typicality_of_views(pr, t, sums->excess);
    else if (typicality)
        weigh_typicality(pr, t, sums->excess);
}

#endif
