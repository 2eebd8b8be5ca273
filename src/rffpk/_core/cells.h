/* Rows that look for their nearest points in a few cells of these. */
#ifndef RFFPK_CELLS_H
#define RFFPK_CELLS_H

#include "near.h"
#include "products.h"

enum { CELL_BLOCK = RFFPK_CELL_BLOCK, CELL_ROWS = RFFPK_CELL_ROWS };
/* Rows whose products with a block are made together, some panels. */
enum { CELL_GROUP = 8 * PANEL };
_Static_assert(CELL_BLOCK % STEP == 0, "a block is whole steps of a product");
_Static_assert(CELL_BLOCK == 64, "a block has one bit for each point");

typedef struct {
    real square; /* the squared distance, by products */
    int32_t number;
} cell_point;

/* What a thread has of some rows in work. */
typedef struct {
    size_t most;    /* points that a row keeps: r, and some of a block and before it for others */
    real *products; /* (CELL_GROUP, CELL_BLOCK) */
    real *packed;   /* (CELL_GROUP, d), rows, less a center, in panels */
    real *shifted;  /* (CELL_GROUP, d): the same as lines of whole vectors */
    real *own;      /* (CELL_GROUP,): their squared norms */
    real *bound;    /* (CELL_ROWS,): points as far as this are not among the nearest */
    size_t *count;  /* (CELL_ROWS,): points that are kept, ... */
    cell_point *points; /* ... (CELL_ROWS, most) */
    cell_point *other;  /* (most,) */
    size_t *ends;       /* (c + 1,): rows that visit a cell, by places among ... */
    size_t *visitors;   /* ... (CELL_ROWS p,) */
} cell_rows;

static size_t cells_lay_out(const rffpk_cells *pr, char *memory, cell_rows *c)
{
    const size_t most = 4 * (pr->r + CELL_BLOCK), group = CELL_GROUP * round_up(pr->d, W);
    const size_t bytes[] = {CELL_GROUP * CELL_BLOCK * sizeof(real),
                            group * sizeof(real),
                            group * sizeof(real),
                            CELL_GROUP * sizeof(real),
                            CELL_ROWS * sizeof(real),
                            CELL_ROWS * sizeof(size_t),
                            CELL_ROWS * most * sizeof(cell_point),
                            most * sizeof(cell_point),
                            (pr->c + 1) * sizeof(size_t),
                            CELL_ROWS * pr->p * sizeof(size_t)};
    void *at[10];
    size_t end = 0;
    for (int i = 0; i < 10; i++) {
        at[i] = memory ? memory + end : NULL;
        end += round_up(bytes[i], RFFPK_ALIGN);
    }
    *c = (cell_rows){most, at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9]};
    return end;
}

static size_t cells_bytes(const rffpk_cells *pr)
{
    cell_rows c;
    return cells_lay_out(pr, NULL, &c);
}

INLINE int is_before(cell_point a, cell_point b)
{
    return (a.square < b.square) | ((a.square == b.square) & (a.number < b.number));
}

/* The r first of n points, r at most n, come before the others: quickselect without branches that
 * are hard to predict, and without reading what has just been written. */
static void put_first(cell_point *points, size_t n, size_t r, cell_point *other)
{
    for (size_t low = 0, high = n - 1; low < high;) {
        const cell_point pivot = points[r - 1];
        points[r - 1] = points[high];
        size_t at = low, end = high;
        for (size_t i = low; i < high; i++) {
            const int before = is_before(points[i], pivot);
            other[at] = other[end] = points[i];
            at += (size_t)before;
            end -= (size_t)!before;
        }
        other[at] = pivot;
        memcpy(points + low, other + low, (high + 1 - low) * sizeof(cell_point));
        low = at < r - 1 ? at + 1 : at == r - 1 ? high : low;
        high = at > r - 1 ? at - 1 : high;
    }
}

/* Of the points that a row keeps those that are not among its r nearest are dropped. */
static void keep_first(const rffpk_cells *pr, size_t at, cell_rows *c)
{
    cell_point *points = c->points + at * c->most;
    if (c->count[at] < pr->r)
        return;
    put_first(points, c->count[at], pr->r, c->other);
    c->count[at] = pr->r;
    c->bound[at] = 0;
    for (size_t i = 0; i < pr->r; i++)
        c->bound[at] = points[i].square > c->bound[at] ? points[i].square : c->bound[at];
}

/* Lists the rows that visit each cell by their visits [first, last). */
static void list_visitors(const rffpk_cells *pr, size_t begin, size_t end, size_t first,
                          size_t last, cell_rows *c)
{
    memset(c->ends, 0, (pr->c + 1) * sizeof(size_t));
    for (size_t i = begin; i < end; i++)
        for (size_t s = first; s < last; s++)
            c->ends[pr->visits[(size_t)pr->order[i] * pr->p + s] + 1]++;
    for (size_t j = 0; j < pr->c; j++)
        c->ends[j + 1] += c->ends[j];
    for (size_t i = end; i-- > begin;)
        for (size_t s = first; s < last; s++)
            c->visitors[--c->ends[pr->visits[(size_t)pr->order[i] * pr->p + s] + 1]] = i - begin;
    for (size_t j = 0; j < pr->c; j++) /* where a cell ended another begins */
        c->ends[j] = c->ends[j + 1];
    c->ends[pr->c] = (end - begin) * (last - first);
}

/* Rows at these places, less the center of a cell, in panels as `product` takes them. */
static void load_visitors(const rffpk_cells *pr, size_t begin, size_t cell, const size_t *places,
                          size_t rows, cell_rows *c)
{
    const real *center = (const real *)pr->centers + cell * pr->d;
    const size_t d = pr->d, stride = round_up(d, W);
    real *line = c->shifted, *to = c->packed;
    for (size_t i = 0; i < rows; i++, line += stride) {
        const real *x = (const real *)pr->x + (size_t)pr->order[begin + places[i]] * d;
        for (size_t f = 0; f < d; f++)
            line[f] = x[f] - center[f];
        for (size_t f = d; f < stride; f++)
            line[f] = 0;
        c->own[i] = square_of_line(line, stride);
    }
    for (size_t from = 0, h; from < rows; from += h) {
        h = even_share(rows, PANEL, from);
        for (size_t f = 0; f < d; f++)
            for (size_t i = 0; i < h; i++)
                *to++ = c->shifted[(from + i) * stride + f];
    }
}

/* Keeps the points of a block that are nearer than the bound of a row. */
INLINE void keep_near(const rffpk_cells *pr, size_t block, size_t at, real *products, real own,
                      cell_rows *c)
{
    const real *squares = (const real *)pr->squares + block * CELL_BLOCK;
    const vec bound = splat(c->bound[at]);
    uint64_t near = 0;
    for (size_t col = 0; col < CELL_BLOCK; col += W) {
        const vec found = load(products + col) + load(squares + col) + splat(own);
        near |= (uint64_t)ones_of(less(found, bound)) << col;
        store(products + col, found);
    }
    if (!near)
        return;
    const int32_t *numbers = pr->numbers + block * CELL_BLOCK;
    cell_point *to = c->points + at * c->most + c->count[at];
    for (; near; near &= near - 1) {
        const int i = lowest(near);
        *to++ = (cell_point){products[i], numbers[i]};
    }
    c->count[at] = (size_t)(to - (c->points + at * c->most));
    if (c->count[at] + CELL_BLOCK >= c->most)
        keep_first(pr, at, c);
}

static void visit_cell(const rffpk_cells *pr, size_t begin, size_t cell, cell_rows *c)
{
    for (size_t from = c->ends[cell], rows; from < c->ends[cell + 1]; from += rows) {
        const size_t left = c->ends[cell + 1] - from, *places = c->visitors + from;
        rows = left < CELL_GROUP ? left : CELL_GROUP;
        load_visitors(pr, begin, cell, places, rows, c);
        for (int64_t block = pr->ends[cell]; block < pr->ends[cell + 1]; block++) {
            product(c->packed, rows, pr->d,
                    (const real *)pr->blocks + (size_t)block * pr->d * CELL_BLOCK, c->products,
                    CELL_BLOCK, CELL_BLOCK);
            for (size_t i = 0; i < rows; i++)
                keep_near(pr, (size_t)block, places[i], c->products + i * CELL_BLOCK, c->own[i], c);
        }
    }
}

static void write_nearest(const rffpk_cells *pr, size_t row, size_t at, const cell_rows *c)
{
    cell_point *points = c->points + at * c->most;
    for (size_t i = 1; i < c->count[at]; i++) {
        const cell_point now = points[i];
        size_t to = i;
        for (; to && is_before(now, points[to - 1]); to--)
            points[to] = points[to - 1];
        points[to] = now;
    }
    for (size_t i = 0; i < pr->r; i++)
        pr->nearest[row * pr->r + i] = i < c->count[at] ? points[i].number : -1;
}

/* The nearest cell first: it bounds what the others may have. */
static void cells_rows(const rffpk_cells *pr, size_t begin, size_t end, void *workspace)
{
    cell_rows c;
    cells_lay_out(pr, workspace, &c);
    fill(c.bound, (real)INFINITY, CELL_ROWS);
    memset(c.count, 0, CELL_ROWS * sizeof(size_t));
    for (size_t first = 0, last = 1; first < pr->p; first = last, last = pr->p) {
        list_visitors(pr, begin, end, first, last, &c);
        for (size_t cell = 0; cell < pr->c; cell++)
            visit_cell(pr, begin, cell, &c);
        for (size_t at = 0; at < end - begin; at++)
            keep_first(pr, at, &c);
    }
    for (size_t i = begin; i < end; i++)
        write_nearest(pr, (size_t)pr->order[i], i - begin, &c);
}

#endif
