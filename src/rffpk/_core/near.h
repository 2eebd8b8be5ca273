/* Rows of one cluster beside the few centroids that are near its own. */
#ifndef RFFPK_NEAR_H
#define RFFPK_NEAR_H

#include "load.h"

/* Rows and centroids whose products are made together: their accumulators and operands fit into the
 * registers. */
enum { NEAR_ROWS = VECTOR_BYTES < 64 ? 2 : 4, NEAR_CENTROIDS = 4 };
enum { NEAR_PANEL = NEAR_ROWS * NEAR_CENTROIDS };
_Static_assert(NEAR_PANEL % W == 0, "the products of a panel are whole vectors");

/* What a thread has of a cluster in work. */
typedef struct {
    size_t lines, stride; /* of centroids, whole panels, and of features, whole vectors */
    real *theta;          /* (lines, stride), zeros beyond what is given */
    real *half;           /* (lines,): half the squared norms */
    real *shift;          /* (stride,) */
    real *x;              /* (NEAR_ROWS, stride): shifted rows */
    real *square;         /* (NEAR_ROWS,) */
    real *product;        /* (lines / NEAR_CENTROIDS, NEAR_ROWS, NEAR_CENTROIDS) */
} near_cluster;

static near_cluster near_lay_out(const rffpk_near *pr, real *memory)
{
    near_cluster c;
    c.lines = round_up(pr->n_near, NEAR_CENTROIDS);
    c.stride = round_up(pr->d, W);
    c.theta = memory;
    c.shift = c.theta + c.lines * c.stride;
    c.x = c.shift + c.stride;
    c.product = c.x + NEAR_ROWS * c.stride;
    c.half = c.product + NEAR_ROWS * c.lines;
    c.square = c.half + c.lines;
    return c;
}

static size_t near_bytes(const rffpk_near *pr)
{
    const size_t lines = round_up(pr->n_near, NEAR_CENTROIDS);
    const size_t vectors = (lines + 1 + NEAR_ROWS) * round_up(pr->d, W);
    return (vectors + (NEAR_ROWS + 1) * lines + NEAR_ROWS) * sizeof(real);
}

/* The squared norm of a line of whole vectors. */
INLINE real square_of_line(const real *line, size_t stride)
{
    vec total = splat(0);
    for (size_t f = 0; f < stride; f += W)
        total += load(line + f) * load(line + f);
    return sum_lanes(total);
}

static void near_load_centroids(const rffpk_near *pr, size_t j, near_cluster *c)
{
    memset(c->theta, 0, (c->lines + 1) * c->stride * sizeof(real)); /* and the shift */
    memcpy(c->shift, pr->shift, pr->d * sizeof(real));
    for (size_t i = 0; i < pr->n_near; i++) {
        const size_t from = (size_t)pr->near[j * pr->n_near + i];
        real *line = c->theta + i * c->stride;
        memcpy(line, (const real *)pr->theta + from * pr->d, pr->d * sizeof(real));
        c->half[i] = square_of_line(line, c->stride) / 2;
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

/* Products of all rows in work with a panel of centroids. */
INLINE void near_products(const near_cluster *c, size_t line)
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
    for (int i = 0; i < NEAR_PANEL; i += W)
        store(c->product + line * NEAR_ROWS + i, fold_lanes(acc + i));
}

/* The nearest of the centroids to a row in work, the first of equals, and the two least squared
 * distances. */
static void near_choose(const rffpk_near *pr, size_t j, size_t row, size_t at,
                        const near_cluster *c)
{
    size_t best = 0;
    real most = -(real)INFINITY, next = most;
    for (size_t i = 0; i < pr->n_near; i++) {
        const size_t panel = i / NEAR_CENTROIDS * NEAR_PANEL + at * NEAR_CENTROIDS;
        const real score = c->product[panel + i % NEAR_CENTROIDS] - c->half[i];
        if (score > most) {
            next = most;
            most = score;
            best = i;
        } else if (score > next) {
            next = score;
        }
    }
    const real nearest = c->square[at] - 2 * most, second = c->square[at] - 2 * next;
    pr->labels[row] = pr->near[j * pr->n_near + best];
    ((real *)pr->nearest)[row] = nearest > 0 ? nearest : 0;
    ((real *)pr->second)[row] = second > 0 ? second : 0;
}

/* Adds a row in work to the sums of its cluster if that stays the same. */
INLINE void near_add(const rffpk_near *pr, size_t j, size_t row, const real *x)
{
    if (pr->labels[row] != (int32_t)j)
        return;
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
        for (size_t line = 0; line < c.lines; line += NEAR_CENTROIDS)
            near_products(&c, line);
        for (size_t r = 0; r < rows; r++) {
            near_choose(pr, j, (size_t)order[begin + r], r, &c);
            near_add(pr, j, (size_t)order[begin + r], c.x + r * c.stride);
        }
    }
}

#endif
