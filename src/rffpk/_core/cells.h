/* The nearest points of each row, searched in a few cells of the points. */
#ifndef RFFPK_CELLS_H
#define RFFPK_CELLS_H

#include "near.h"
#include "products.h"

enum { CELL_BLOCK = RFFPK_CELL_BLOCK, CELL_ROWS = RFFPK_CELL_ROWS };
_Static_assert(CELL_BLOCK % STEP == 0, "a block is whole steps of a product");
_Static_assert(CELL_BLOCK == 64, "a block has one bit for each point");

/* The workspace of one thread, for at most CELL_ROWS rows. */
typedef struct {
    size_t enough;    /* a row with more candidates than this drops all but the r nearest */
    size_t most;      /* capacity of a row: `enough` candidates and another block */
    real *shifted;    /* (PANEL, d): rows minus a center, padded to whole vectors */
    real *block;      /* (CELL_BLOCK,): squared distances of a row to a block, less its own
                       * square */
    real *bound;      /* (CELL_ROWS,): points at this distance or beyond are not candidates */
    size_t *count;    /* (CELL_ROWS,): number of candidates of each row */
    real *squares;    /* (CELL_ROWS, most): squared distances of the candidates, from products */
    int32_t *points;  /* (CELL_ROWS, most): numbers of the candidates */
    size_t *ends;     /* (c + 1,): cell j has visitors[ends[j]:ends[j + 1]] */
    size_t *visitors; /* (CELL_ROWS p,): offsets of rows, grouped by the cell that they visit */
} cell_rows;

static size_t cells_lay_out(const rffpk_cells *pr, char *memory, cell_rows *c)
{
    c->enough = 2 * pr->r + CELL_BLOCK / 4;
    c->most = round_up(c->enough + CELL_BLOCK, PAD);
    const size_t bytes[] = {PANEL * round_up(pr->d, W) * sizeof(real),
                            CELL_BLOCK * sizeof(real),
                            CELL_ROWS * sizeof(real),
                            CELL_ROWS * sizeof(size_t),
                            CELL_ROWS * c->most * sizeof(real),
                            CELL_ROWS * c->most * sizeof(int32_t),
                            (pr->c + 1) * sizeof(size_t),
                            CELL_ROWS * pr->p * sizeof(size_t)};
    void *at[8];
    size_t end = 0;
    for (int i = 0; i < 8; i++) {
        at[i] = memory ? memory + end : NULL;
        end += round_up(bytes[i], RFFPK_ALIGN);
    }
    *c = (cell_rows){c->enough, c->most, at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]};
    return end;
}

static size_t cells_bytes(const rffpk_cells *pr)
{
    cell_rows c;
    return cells_lay_out(pr, NULL, &c);
}

/* Count the numbers that are below a bound. Infinite numbers fill the last vector. */
INLINE size_t count_below(const real *numbers, size_t n, real bound)
{
    vec total = splat(0);
    for (size_t i = 0; i < n; i += W)
        total += pick(less(load(numbers + i), splat(bound)), splat(1), splat(0));
    return (size_t)sum_lanes(total);
}

/* Find the least and the largest of n numbers, without the infinite padding. */
INLINE void find_range(const real *numbers, size_t n, real *least, real *largest)
{
    vec low = load(numbers), high = splat(numbers[0]);
    const vec end = splat((real)INFINITY);
    for (size_t i = 0; i < n; i += W) {
        const vec now = load(numbers + i), below = pick(less(now, end), now, high);
        low = pick(less(now, low), now, low);
        high = pick(less(high, below), below, high);
    }
    *least = *largest = numbers[0];
    real lows[W], highs[W];
    memcpy(lows, &low, sizeof low);
    memcpy(highs, &high, sizeof high);
    for (int i = 0; i < W; i++) {
        *least = lows[i] < *least ? lows[i] : *least;
        *largest = highs[i] > *largest ? highs[i] : *largest;
    }
}

/* Drop all candidates of a row but the r nearest. Among equally near candidates the row keeps the
 * candidates that it met first.
 *
 * Bisection finds the r-th least distance: `below` candidates, at most r, are nearer than `low`,
 * and more than r are nearer than `high`. It ends when `below` is r, or when no number is left
 * between `low` and `high`. Bisection only counts, and counting takes a vector of candidates at a
 * time. */
static void keep_first(const rffpk_cells *pr, size_t at, cell_rows *c)
{
    const size_t n = c->count[at], r = pr->r;
    real *squares = c->squares + at * c->most, low, high;
    int32_t *points = c->points + at * c->most;
    if (n < r)
        return;
    for (size_t i = n; i % W; i++)
        squares[i] = (real)INFINITY;
    find_range(squares, n, &low, &high);
    size_t below = count_below(squares, n, high);
    if (below <= r)
        low = high;
    else
        below = 0;
    real middle = low + (high - low) / 2;
    while (below < r && low < middle && middle < high) {
        const size_t here = count_below(squares, n, middle);
        high = here > r ? middle : high;
        low = here > r ? low : middle;
        below = here > r ? below : here;
        middle = low + (high - low) / 2;
    }
    size_t to = 0, equal = r - below;
    for (size_t from = 0; from < n; from += W) {
        unsigned kept = ALL_LANES & ~ones_of(less(splat(low), load(squares + from)));
        for (; kept; kept &= kept - 1) {
            const size_t i = from + (size_t)lowest(kept);
            const size_t is_equal = squares[i] == low;
            squares[to] = squares[i];
            points[to] = points[i];
            to += !is_equal | (equal > 0);
            equal -= is_equal & (equal > 0);
        }
    }
    c->count[at] = r;
    c->bound[at] = low;
}

/* List the rows that visit each cell with their visits [first, last). */
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
    for (size_t j = 0; j < pr->c; j++) /* ends[j + 1] is where cell j begins now */
        c->ends[j] = c->ends[j + 1];
    c->ends[pr->c] = (end - begin) * (last - first);
}

/* Add the points of a block that are near a row to its candidates. `near` has one bit for each
 * point. `own`, the squared distance of the row to the center, is missing in c->block. */
NOINLINE static void keep_near(const rffpk_cells *pr, size_t block, uint64_t near, size_t at,
                               real own, cell_rows *c)
{
    const int32_t *numbers = pr->numbers + block * CELL_BLOCK;
    size_t to = at * c->most + c->count[at];
    for (; near; near &= near - 1, to++) {
        const int i = lowest(near);
        c->squares[to] = c->block[i] + own;
        c->points[to] = numbers[i];
    }
    c->count[at] = to - at * c->most;
    if (c->count[at] > c->enough)
        keep_first(pr, at, c);
}

/* Compare h rows with a block of points; h is a constant at every call. */
INLINE void meet_block(const int h, const rffpk_cells *pr, size_t block, const size_t *places,
                       const real *own, cell_rows *c)
{
    const size_t d = pr->d, stride = round_up(d, W);
    for (size_t col = 0; col < CELL_BLOCK; col += STEP) {
        const real *points = (const real *)pr->blocks + block * d * CELL_BLOCK + col;
        const real *squares = (const real *)pr->squares + block * CELL_BLOCK + col;
        vec acc[PANEL][COLS];
        UNROLL
        for (int r = 0; r < h; r++) {
            UNROLL
            for (int j = 0; j < COLS; j++)
                acc[r][j] = load(squares + j * W);
        }
        for (size_t i = 0; i < d; i++, points += CELL_BLOCK) {
            vec line[COLS];
            UNROLL
            for (int j = 0; j < COLS; j++)
                line[j] = load(points + j * W);
            UNROLL
            for (int r = 0; r < h; r++) {
                UNROLL
                for (int j = 0; j < COLS; j++)
                    acc[r][j] += line[j] * c->shifted[(size_t)r * stride + i];
            }
        }
        UNROLL
        for (int r = 0; r < h; r++) {
            const vec bound = splat(c->bound[places[r]] - own[r]);
            uint64_t near = 0;
            UNROLL
            for (int j = 0; j < COLS; j++)
                near |= (uint64_t)ones_of(less(acc[r][j], bound)) << (col + (size_t)j * W);
            if (!near)
                continue;
            UNROLL
            for (int j = 0; j < COLS; j++)
                store(c->block + col + j * W, acc[r][j]);
            keep_near(pr, block, near, places[r], own[r], c);
        }
    }
}

/* Compare the rows at `places` with the points of a cell. */
static void visit_cell(const rffpk_cells *pr, size_t begin, size_t cell, const size_t *places,
                       size_t rows, cell_rows *c)
{
    const real *center = (const real *)pr->centers + cell * pr->d;
    const size_t d = pr->d, stride = round_up(d, W);
    for (size_t from = 0, h; from < rows; from += h, places += h) {
        real own[PANEL];
        h = even_share(rows, PANEL, from);
        for (size_t i = 0; i < h; i++) {
            const real *x = (const real *)pr->x + (size_t)pr->order[begin + places[i]] * d;
            real *line = c->shifted + i * stride;
            for (size_t f = 0; f < d; f++)
                line[f] = x[f] - center[f];
            for (size_t f = d; f < stride; f++)
                line[f] = 0;
            own[i] = square_of_line(line, stride);
        }
        for (size_t block = (size_t)pr->ends[cell]; block < (size_t)pr->ends[cell + 1]; block++)
            switch (h) {
            case 1: meet_block(1, pr, block, places, own, c); break;
            case 2: meet_block(2, pr, block, places, own, c); break;
            case 3: meet_block(3, pr, block, places, own, c); break;
            case 4: meet_block(4, pr, block, places, own, c); break;
#if PANEL_IS_6
            case 5: meet_block(5, pr, block, places, own, c); break;
            case 6: meet_block(6, pr, block, places, own, c); break;
#endif
            }
    }
}

static void write_nearest(const rffpk_cells *pr, size_t row, size_t at, const cell_rows *c)
{
    const real *squares = c->squares + at * c->most;
    const int32_t *points = c->points + at * c->most;
    int32_t *to = pr->nearest + row * pr->r;
    const size_t n = c->count[at];
    size_t first = 0;
    for (size_t i = 1; i < n; i++)
        first = squares[i] < squares[first] ? i : first;
    for (size_t i = 0; i < pr->r; i++)
        to[i] = i < n ? points[i] : -1;
    if (n) {
        to[0] = points[first];
        to[first] = points[0];
    }
}

/* Find the nearest points of the rows. Each row visits its nearest cell first, because the points
 * there bound the distances that matter in the other cells. */
static void cells_rows(const rffpk_cells *pr, size_t begin, size_t end, void *workspace)
{
    cell_rows c;
    cells_lay_out(pr, workspace, &c);
    fill(c.bound, (real)INFINITY, CELL_ROWS);
    memset(c.count, 0, CELL_ROWS * sizeof(size_t));
    for (size_t first = 0, last = 1; first < pr->p; first = last, last = pr->p) {
        list_visitors(pr, begin, end, first, last, &c);
        for (size_t cell = 0; cell < pr->c; cell++)
            visit_cell(pr, begin, cell, c.visitors + c.ends[cell], c.ends[cell + 1] - c.ends[cell],
                       &c);
        for (size_t at = 0; at < end - begin; at++)
            keep_first(pr, at, &c);
    }
    for (size_t i = begin; i < end; i++)
        write_nearest(pr, (size_t)pr->order[i], i - begin, &c);
}

/* Compute squared distances of each row to r points. They are sums of squared differences, so that
 * equal points have distance zero. */
static void pairs_rows(const rffpk_pairs *pr, size_t begin, size_t end)
{
    const size_t d = pr->d, r = pr->r;
    const real *points = pr->points;
    for (size_t row = begin; row < end; row++) {
        const real *x = (const real *)pr->x + row * d;
        const int32_t *index = pr->index + row * r;
        for (size_t s = 0; row + 1 < end && s < r; s++)
            PREFETCH(points + (size_t)index[r + s] * d);
        for (size_t s = 0; s < r; s++) {
            const real *y = points + (size_t)index[s] * d;
            vec total = splat(0);
            real rest = 0;
            size_t f = 0;
            for (; f + W <= d; f += W) {
                const vec apart = load_anywhere(x + f) - load_anywhere(y + f);
                total += apart * apart;
            }
            for (; f < d; f++)
                rest += (x[f] - y[f]) * (x[f] - y[f]);
            ((real *)pr->squares)[row * r + s] = sum_lanes(total) + rest;
        }
    }
}

#endif
