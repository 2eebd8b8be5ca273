/* Compare the rows of one cluster with the few centroids that are near its own. */
#ifndef RFFPK_NEAR_H
#define RFFPK_NEAR_H

#include "load.h"

/* Rows and centroids whose products are computed together. The accumulators and operands fit into
 * the registers. */
enum { NEAR_ROWS = VECTOR_BYTES < 64 ? 2 : 4, NEAR_CENTROIDS = 4 };
enum { NEAR_PANEL = NEAR_ROWS * NEAR_CENTROIDS };
enum { NEAR_VECTORS = NEAR_PANEL / W };
_Static_assert(NEAR_PANEL % W == 0, "the products of a panel are whole vectors");

/* The workspace of one thread, for one cluster. */
typedef struct {
    size_t lines, stride; /* centroids, in whole panels; features, in whole vectors */
    real *theta;          /* (lines, stride): the near centroids, padded with zeros */
    real *half;           /* (lines, NEAR_ROWS): half the squared norms, by panels; infinity in the
                           * padding */
    real *shift;          /* (stride,) */
    real *x;              /* (NEAR_ROWS, stride): shifted rows */
    real *square;         /* (NEAR_ROWS,) */
    real part;            /* distances below this fraction of the squared norms cancel */
} near_cluster;

/* The largest scores x.theta - |theta|^2 / 2 so far, for each place of a panel; the second largest
 * scores; and the panels of the largest scores. */
typedef struct {
    vec most[NEAR_VECTORS], next[NEAR_VECTORS], panel[NEAR_VECTORS];
} near_scores;

static near_cluster near_lay_out(const rffpk_near *pr, real *memory)
{
    near_cluster c;
    c.lines = round_up(pr->n_near, NEAR_CENTROIDS);
    c.stride = round_up(pr->d, W);
    c.theta = memory;
    c.shift = c.theta + c.lines * c.stride;
    c.x = c.shift + c.stride;
    c.half = c.x + NEAR_ROWS * c.stride;
    c.square = c.half + NEAR_ROWS * c.lines;
    c.part = cancelling(pr->d);
    return c;
}

static size_t near_bytes(const rffpk_near *pr)
{
    const size_t lines = round_up(pr->n_near, NEAR_CENTROIDS);
    const size_t vectors = (lines + 1 + NEAR_ROWS) * round_up(pr->d, W);
    return (vectors + NEAR_ROWS * lines + NEAR_ROWS) * sizeof(real);
}

/* Return the squared norm of a line of whole vectors. */
INLINE real square_of_line(const real *line, size_t stride)
{
    vec total = splat(0);
    for (size_t f = 0; f < stride; f += W)
        total += load(line + f) * load(line + f);
    return sum_lanes(total);
}

static void near_load_centroids(const rffpk_near *pr, size_t j, near_cluster *c)
{
    memset(c->theta, 0, (c->lines + 1) * c->stride * sizeof(real)); /* with the shift */
    memcpy(c->shift, pr->shift, pr->d * sizeof(real));
    for (size_t i = 0; i < c->lines; i++) {
        real *line = c->theta + i * c->stride, half = (real)INFINITY;
        if (i < pr->n_near) {
            const size_t from = (size_t)pr->near[j * pr->n_near + i];
            memcpy(line, (const real *)pr->theta + from * pr->d, pr->d * sizeof(real));
            half = square_of_line(line, c->stride) / 2;
        }
        real *place = c->half + i / NEAR_CENTROIDS * NEAR_PANEL + i % NEAR_CENTROIDS;
        for (size_t r = 0; r < NEAR_ROWS; r++)
            place[r * NEAR_CENTROIDS] = half;
    }
}

static void near_prefetch_row(const rffpk_near *pr, size_t row)
{
    const size_t bytes = pr->d * bytes_of(pr->numbers);
    for (size_t at = 0; at < bytes; at += RFFPK_ALIGN)
        PREFETCH((const char *)pr->x + row * bytes + at);
}

static void near_load_row(const rffpk_near *pr, size_t row, size_t at, near_cluster *c)
{
    const char *from = (const char *)pr->x + row * pr->d * bytes_of(pr->numbers);
    real *line = c->x + at * c->stride;
    load_line(pr->numbers, from, pr->d, line);
    const real scale = pr->unit ? unit_scale(line, c->stride) : 1;
    for (size_t f = 0; f < c->stride; f += W)
        store(line + f, load(line + f) * scale - load(c->shift + f));
    c->square[at] = square_of_line(line, c->stride);
}

/* Compute the scores of the NEAR_ROWS rows with a panel of centroids, and update the largest
 * scores. */
INLINE void near_score(const near_cluster *c, size_t line, near_scores *found)
{
    vec acc[NEAR_PANEL];
    const real *theta = c->theta + line * c->stride;
    UNROLL
    for (int i = 0; i < NEAR_PANEL; i++)
        acc[i] = splat(0);
    for (size_t f = 0; f < c->stride; f += W) {
        vec x[NEAR_ROWS];
        UNROLL
        for (int r = 0; r < NEAR_ROWS; r++)
            x[r] = load(c->x + r * c->stride + f);
        UNROLL
        for (int i = 0; i < NEAR_CENTROIDS; i++) {
            const vec at = load(theta + i * c->stride + f);
            UNROLL
            for (int r = 0; r < NEAR_ROWS; r++)
                acc[r * NEAR_CENTROIDS + i] += x[r] * at;
        }
    }
    const vec panel = splat((real)(line / NEAR_CENTROIDS));
    UNROLL
    for (int v = 0; v < NEAR_VECTORS; v++) {
        const vec score = fold_lanes(acc + v * W) - load(c->half + line * NEAR_ROWS + v * W);
        const lanes more = less(found->most[v], score);
        const vec lower = pick(more, found->most[v], score);
        found->panel[v] = pick(more, panel, found->panel[v]);
        found->most[v] = pick(more, score, found->most[v]);
        found->next[v] = pick(less(found->next[v], lower), lower, found->next[v]);
    }
}

/* Find the largest and second largest scores of each place of a panel, over all panels. */
INLINE void near_search(const near_cluster *c, real *most, real *next, real *panel)
{
    near_scores found;
    for (int v = 0; v < NEAR_VECTORS; v++) {
        found.most[v] = found.next[v] = splat(-(real)INFINITY);
        found.panel[v] = splat(0);
    }
    for (size_t line = 0; line < c->lines; line += NEAR_CENTROIDS)
        near_score(c, line, &found);
    memcpy(most, found.most, sizeof found.most);
    memcpy(next, found.next, sizeof found.next);
    memcpy(panel, found.panel, sizeof found.panel);
}

/* Return the squared distance of two lines of whole vectors, by differences. */
INLINE real near_apart(const real *x, const real *theta, size_t stride)
{
    vec total = splat(0);
    for (size_t f = 0; f < stride; f += W) {
        const vec apart = load(x + f) - load(theta + f);
        total += apart * apart;
    }
    return sum_lanes(total);
}

/* Return the number of the nearest centroid to a row, and set the two least squared distances. All
 * distances are computed by differences. */
NOINLINE static size_t near_refine(const rffpk_near *pr, const near_cluster *c, const real *x,
                                   real *nearest, real *second)
{
    size_t number = 0;
    *nearest = *second = (real)INFINITY;
    for (size_t i = 0; i < pr->n_near; i++) {
        const real d = near_apart(x, c->theta + i * c->stride, c->stride);
        if (d < *nearest) {
            *second = *nearest;
            *nearest = d;
            number = i;
        } else if (d < *second) {
            *second = d;
        }
    }
    return number;
}

/* Choose the nearest centroid to a row, the first among ties, from the largest scores of its
 * places. Store the two least squared distances. If the least distance cancels, all distances are
 * computed by differences. It cancels where row and centroid have nearly the same square. */
INLINE int32_t near_choose(const rffpk_near *pr, const near_cluster *c, size_t j, size_t row,
                           size_t line, const real *most, const real *next, const real *panel)
{
    const real square = c->square[line];
    real best = -(real)INFINITY, second = best;
    size_t number = 0;
    for (size_t i = 0; i < NEAR_CENTROIDS; i++) {
        const size_t here = (size_t)panel[i] * NEAR_CENTROIDS + i;
        const int first = most[i] > best || (most[i] == best && here < number);
        const real lower = most[i] > best ? best : most[i];
        second = lower > second ? lower : second;
        second = next[i] > second ? next[i] : second;
        best = most[i] > best ? most[i] : best;
        number = first ? here : number;
    }
    real nearest = square - 2 * best, other = square - 2 * second;
    if (nearest < 2 * square * c->part)
        number = near_refine(pr, c, c->x + line * c->stride, &nearest, &other);
    ((real *)pr->nearest)[row] = nearest > 0 ? nearest : 0;
    ((real *)pr->second)[row] = other > 0 ? other : 0;
    return pr->labels[row] = pr->near[j * pr->n_near + number];
}

/* Add a row to the sums of its cluster. */
INLINE void near_add(const rffpk_near *pr, size_t j, size_t row, const real *x)
{
    const real p = pr->weight ? ((const real *)pr->weight)[row] : 1;
    double *stay = pr->stay + j * pr->d;
    for (size_t f = 0; f < pr->d; f++)
        stay[f] += (double)(p * x[f]);
}

static void near_cluster_rows(const rffpk_near *pr, size_t j, void *workspace)
{
    near_cluster c = near_lay_out(pr, workspace);
    memset(pr->stay + j * pr->d, 0, pr->d * sizeof(double));
    if (pr->ends[j] == pr->ends[j + 1])
        return;
    near_load_centroids(pr, j, &c);
    memset(c.x, 0, NEAR_ROWS * c.stride * sizeof(real));
    const int32_t *order = pr->order + pr->ends[j];
    const size_t n = (size_t)(pr->ends[j + 1] - pr->ends[j]);
    for (size_t begin = 0; begin < n; begin += NEAR_ROWS) {
        const size_t rows = n - begin < NEAR_ROWS ? n - begin : NEAR_ROWS;
        for (size_t r = 0; r < rows; r++)
            near_load_row(pr, (size_t)order[begin + r], r, &c);
        for (size_t r = begin + rows; r < n && r < begin + rows + NEAR_ROWS; r++)
            near_prefetch_row(pr, (size_t)order[r]);
        real most[NEAR_PANEL], next[NEAR_PANEL], panel[NEAR_PANEL];
        near_search(&c, most, next, panel);
        for (size_t r = 0; r < rows; r++) {
            const size_t row = (size_t)order[begin + r], at = r * NEAR_CENTROIDS;
            const int32_t label = near_choose(pr, &c, j, row, r, most + at, next + at, panel + at);
            if (label == (int32_t)j)
                near_add(pr, j, row, c.x + r * c.stride);
        }
    }
}

#endif
