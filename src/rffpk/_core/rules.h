/* Rules: how the distances of a row become its weights. Distances are squared throughout. */
#ifndef RFFPK_RULES_H
#define RFFPK_RULES_H

#include "contract.h"
#include "vecmath.h"

/* A tile is a block of up to `rows` rows, stored feature-major: one line of `stride` numbers for
 * each feature, so that a vector holds the same feature of neighbouring rows and every step runs
 * along lines.
 *
 * The last lines of phi let one product, g phi', give N, Q and G. */
typedef struct {
    size_t rows, stride, lines;
    size_t d, scratch; /* largest d of the projected dense views; numbers of `strip` */
    real *x;           /* (d, rows): the rows of one view, transposed */
    real *phi; /* (lines, rows): shifted features | ||phi_l||^2 of each view | ones, or of each view
                * 1 where a row has it, else 0 | padding */
    real *dist;  /* (k, rows): squared distances */
    real *g;     /* (k, rows): p v u^m, the weights of the sums; (1, rows) if `one_hot` */
    real *um;    /* (k, rows): u^m and ... */
    real *wm;    /* ... (k, rows): (1 - u)^m, with typicality */
    real *q;     /* (rows,): sum_l alpha_l ||phi_l||^2, then the least distance */
    real *p;     /* (rows,): row weights, 0 beyond the last row */
    real *label; /* (rows,): number of the nearest centroid */
    real *eta;   /* (rows,), if views are missing: reference distances */
    size_t block_lines, r_most; /* of views with landmarks: lines of `block`, largest r */
    real *near;  /* (r, rows): squared distances to the nearest landmarks, then their weights */
    real *at;    /* (r, rows): the numbers of these landmarks */
    real *block; /* (block_lines, rows): products of some rows with a block of landmarks */
    real *strip; /* (scratch,): of the structured projection, and of sparse rows */
} tile;

_Static_assert(MOST_CENTROIDS <= (whole)1 << (MANTISSA_BITS + 1), "`real` holds every label");

static void fill(real *line, real value, size_t cols)
{
    for (size_t col = 0; col < cols; col += W)
        store(line + col, splat(value));
}

/* `memberships`, (k, rows) or NULL, may be t->dist. */
typedef void weigh_rule(const rffpk_problem *, tile *t, size_t cols, real *memberships,
                        double *totals);

/* Stores the nearest centroid of each row and its distance, which replaces q; returns the latter.
 */
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
    store(t->q + col, least);
    return least;
}

/* out <- the second least distance of each row */
static void second_nearest(const rffpk_problem *pr, const tile *t, size_t cols, real *out)
{
    for (size_t col = 0; col < cols; col += W) {
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

/* Whether each row is added to the sums of its nearest centroid alone, without lines of weights
 * that are nearly all 0. */
static int one_hot(const rffpk_problem *pr)
{
    return pr->rule == RFFPK_HARD && pr->n_views && pr->k >= RFFPK_ONE_HOT_CLUSTERS;
}

/* g = p at the nearest centroid, 0 elsewhere; g is not needed if `one_hot` */
static void weigh_hard(const rffpk_problem *pr, tile *t, size_t cols, real *memberships,
                       double *totals)
{
    const int dense = !one_hot(pr);
    vec hard_sum = splat(0);
    for (size_t col = 0; col < cols; col += W) {
        const vec p = load(t->p + col);
        hard_sum += p * nearest(pr, t, col);
        const vec label = load(t->label + col);
        for (size_t j = 0; j < pr->k && (dense || memberships); j++) {
            const ivec here = label == splat((real)j);
            if (dense)
                store(t->g + j * t->stride + col, SELECT(here, p, splat(0)));
            if (memberships)
                store(memberships + j * t->stride + col, SELECT(here, splat(1), splat(0)));
        }
    }
    const double sum = sum_lanes(hard_sum);
    totals[0] += sum;
    totals[1] += sum;
}

/* With r_j = d_min / d_j and S = sum_j r_j^(-s): v_j = r_j^(1-s) S^(1/s) / S, M' = d_min S^(1/s).
 * `memberships` receives r_j^(-s) / S. For s = -1 (`harmonic`) no power has to be computed. */
INLINE void weigh_soft(const rffpk_problem *pr, const int harmonic, tile *t, size_t cols,
                       real *memberships, double *totals)
{
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

static void weigh_power(const rffpk_problem *pr, tile *t, size_t cols, real *memberships,
                        double *totals)
{
    weigh_soft(pr, 0, t, cols, memberships, totals);
}

static void weigh_harmonic(const rffpk_problem *pr, tile *t, size_t cols, real *memberships,
                           double *totals)
{
    weigh_soft(pr, 1, t, cols, memberships, totals);
}

/* Fills um and wm with u^m and (1-u)^m and replaces d by d' = u^m d + (1-u)^m eta. With
 * r = min(d/eta, eta/d), e = r^(1/(m-1)) and h = (1 + e)^(1-m): d' = h min(d, eta); the larger of
 * u^m and (1-u)^m is h/(1 + e), and the smaller is r e times that. For m = 2 (`squares`) no power
 * has to be computed. `missing`: the reference distances are those of t->eta. */
INLINE void apply_typicality(const rffpk_problem *pr, const int squares, const int missing, tile *t,
                             size_t cols)
{
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
            store(t->um + at, SELECT(inside, large, small));
            store(t->wm + at, SELECT(inside, small, large));
        }
    }
}

/* E_j += sum of p v_j (1-u_j)^m; g, which was p v, becomes p v u^m. */
static void weigh_typicality(const rffpk_problem *pr, tile *t, size_t cols, double *excess)
{
    for (size_t j = 0; j < pr->k; j++) {
        vec sum = splat(0);
        for (size_t at = j * t->stride; at < j * t->stride + cols; at += W) {
            const vec g = load(t->g + at);
            sum += g * load(t->wm + at);
            store(t->g + at, g * load(t->um + at));
        }
        excess[j] += sum_lanes(sum);
    }
}

/* The same if views are missing: `present` has a line for each view, and so has E. */
static void weigh_typicality_of_views(const rffpk_problem *pr, const real *present, tile *t,
                                      size_t cols, double *excess)
{
    fill(t->eta, 0, cols); /* which is not needed any more */
    for (size_t j = 0; j < pr->k; j++)
        for (size_t col = 0; col < cols; col += W) {
            const size_t at = j * t->stride + col;
            const vec g = load(t->g + at);
            store(t->eta + col, load(t->eta + col) + g * load(t->wm + at));
            store(t->g + at, g * load(t->um + at));
        }
    for (size_t l = 0; l < pr->n_views; l++) {
        vec sum = splat(0);
        for (size_t col = 0; col < cols; col += W)
            sum += load(t->eta + col) * load(present + l * t->stride + col);
        excess[l] += sum_lanes(sum);
    }
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
    default: return NULL;
    }
}

#endif
