/* The fourth and the fifth stage in one, for the hard rule and many centroids. If only the least
 * distance of each row is needed, the distances are not stored. The bits equal the bits of
 * distances.h and weights.h. */
#ifndef RFFPK_NEAREST_H
#define RFFPK_NEAREST_H

#include "distances.h"
#include "weights.h"

/* Every number of centroids from this number on is a sum of terms PANEL and PANEL - 1. So all
 * panels have one of two heights. */
enum { TWO_HEIGHTS = (PANEL - 1) * (PANEL - 1) };

/* Whether there are many centroids, and only the least distance of each row is needed. */
static int only_nearest(const rffpk_problem *pr, const rffpk_rows *out)
{
    const unsigned stages = RFFPK_DISTANCES | RFFPK_WEIGHTS;
    const int asked = out->distances || out->memberships || out->second;
    return one_hot(pr) && pr->k >= TWO_HEIGHTS && pr->rule == RFFPK_HARD && !asked &&
           (pr->stages & stages) == stages && !pr->present && !pr->basis && !sparse_columns(pr);
}

/* The state of STEP rows: the squared norms, and the least distances so far with the numbers of
 * their centroids. */
typedef struct {
    vec norm[COLS], least[COLS], at[COLS];
} nearest_rows;

/* Compare the rows with h centroids, from the centroid `from` on. `norms` has the squared norms of
 * all centroids. With `careful` distances that cancel are computed again. h and `careful` are
 * constants at every call. */
INLINE void meet_panel(const int h, const int careful, const rffpk_problem *pr, const real *packed,
                       const real *norms, size_t from, const tile *t, size_t col, nearest_rows *s)
{
    const real part = cancelling(pr->F);
    vec acc[PANEL][COLS];
    panel_products(h, packed + from * pr->F, t->phi + col, pr->F, t->stride, acc);
    UNROLL
    for (int r = 0; r < h; r++) {
        const real number = (real)(from + r), square = norms[from + r];
        UNROLL
        for (int j = 0; j < COLS; j++) {
            const vec size = s->norm[j] + square;
            vec squared = size + acc[r][j];
            if (careful) {
                const lanes close = less(squared, size * part);
                if (any(close))
                    squared = pick(close, by_differences(pr, t, from + r, col + j * W), squared);
            }
            if (from + r == 0)
                s->least[j] = squared; /* NaN stays, and is detected later */
            const lanes nearer = less(squared, s->least[j]);
            s->least[j] = pick(nearer, squared, s->least[j]);
            s->at[j] = pick(nearer, splat(number), s->at[j]);
        }
    }
}

/* Compare the rows with all centroids. */
INLINE void meet_all(const int careful, const rffpk_problem *pr, const real *packed,
                     const real *norms, const tile *t, size_t col, nearest_rows *s)
{
    for (int j = 0; j < COLS; j++)
        s->least[j] = s->at[j] = splat(0);
    for (size_t from = 0, h; from < pr->k; from += h) {
        h = even_share(pr->k, PANEL, from);
        if (h == PANEL)
            meet_panel(PANEL, careful, pr, packed, norms, from, t, col, s);
        else
            meet_panel(PANEL - 1, careful, pr, packed, norms, from, t, col, s);
    }
}

NOINLINE static void meet_carefully(const rffpk_problem *pr, const real *packed, const real *norms,
                                    const tile *t, size_t col, nearest_rows *s)
{
    meet_all(1, pr, packed, norms, t, col, s);
}

/* Find the nearest centroid of each row, and its distance. A distance can only cancel if the least
 * distance is below a fraction of the largest norms. If the distances of STEP rows cancel, the next
 * rows are compared carefully at once. */
NOINLINE static void find_nearest_of_all(const rffpk_problem *pr, const real *packed, tile *t)
{
    const real *norms = packed + round_up(pr->k * depth_of(pr), PAD), part = cancelling(pr->F);
    real largest = 0;
    for (size_t j = 0; j < pr->k; j++)
        largest = norms[j] > largest ? norms[j] : largest;
    int careful = 0;
    for (size_t col = 0; col < t->cols; col += STEP) {
        nearest_rows s;
        for (int j = 0; j < COLS; j++)
            s.norm[j] = load(t->norm + col + j * W);
        if (!careful)
            meet_all(0, pr, packed, norms, t, col, &s);
        else
            meet_carefully(pr, packed, norms, t, col, &s);
        int close = 0;
        for (int j = 0; j < COLS; j++)
            close |= any(less(s.least[j], (s.norm[j] + largest) * part));
        if (close && !careful)
            meet_carefully(pr, packed, norms, t, col, &s);
        careful = close;
        for (int j = 0; j < COLS; j++) {
            store(t->label + col + j * W, s.at[j]);
            store(t->least + col + j * W, s.least[j]);
        }
    }
}

#endif
