/* The pass over a slot of rows, tile by tile.
 *
 * A tile holds up to `rows` rows feature-major: one line of `stride` numbers per feature, rows in
 * the lanes of the vectors, so that every step below is a stream over lines.
 *
 *     x     (d, rows)          the rows of one view, transposed
 *     phi   (F + L + 1, rows)  shifted features | ||phi_l||^2 of each view | ones
 *     dist  (k, rows)          squared distances
 *     g     (k, rows)          p v, what the sums are weighted with
 *
 * With the last L + 1 lines of phi one product, g phi', gives N, Q and G at once. */
#include "contract.h"
#include "simd.h"
#include "vecmath.h"

#include <math.h>

#define JOIN3(a, b, c) a##_##b##_f##c
#define NAME(isa, bits) JOIN3(rffpk, isa, bits)

enum {
    STEP = COLS * W,                 /* rows are processed in steps of this many */
    FEATURES_AT_ONCE = 4,            /* lines of phi in one block of the sums */
    PAD = RFFPK_ALIGN / sizeof(real) /* keeps lines out of step with the sets of the cache */
};

/* A tile should stay in the second-level cache with room for coefficients. Flat within 5 %
 * between 256 KiB and 768 KiB on a 1 MiB cache (Zen 4). */
#define TILE_BYTES ((size_t)512 << 10)
enum { MAX_TILE_ROWS = 256, MIN_TILE_ROWS = 64 };

typedef struct {
    size_t rows, stride, lines;
    real *x, *phi, *dist, *g, *q, *p, *label;
} tile;

static size_t round_up(size_t a, size_t to) { return (a + to - 1) / to * to; }

static size_t features_of(const rffpk_view *v) { return v->D ? 2 * v->D : v->d; }

static size_t largest_d(const rffpk_problem *pr)
{
    size_t d = 0;
    for (size_t l = 0; l < pr->n_views; l++)
        if (pr->views[l].D && pr->views[l].d > d)
            d = pr->views[l].d;
    return d;
}

static size_t moments_of(const rffpk_problem *pr) { return pr->F + pr->n_views + 1; }

/* The shape of the tiles, and, given memory, where their parts lie. Returns the bytes needed. */
static size_t lay_out(const rffpk_problem *pr, real *memory, tile *t)
{
    const size_t d = largest_d(pr);
    t->lines = round_up(moments_of(pr), FEATURES_AT_ONCE);
    const size_t total = d + t->lines + 2 * pr->k + 3;
    t->rows = MAX_TILE_ROWS;
    while (t->rows > MIN_TILE_ROWS && total * t->rows * sizeof(real) > TILE_BYTES)
        t->rows /= 2;
    t->stride = t->rows + PAD;
    t->x = memory;
    t->phi = t->x + d * t->stride;
    t->dist = t->phi + t->lines * t->stride;
    t->g = t->dist + pr->k * t->stride;
    t->q = t->g + pr->k * t->stride;
    t->p = t->q + t->stride;
    t->label = t->p + t->stride;
    return total * t->stride * sizeof(real);
}

static size_t workspace_bytes(const rffpk_problem *pr)
{
    tile t;
    return lay_out(pr, NULL, &t);
}

/* ---- coefficients of the two products, packed once a pass ---------------------------------- */

/* Line i of a product belongs to a panel; panels differ in height by one at most. */
static size_t panel_height(size_t lines, size_t from)
{
    const size_t panels = (lines + PANEL - 1) / PANEL;
    const size_t low = lines / panels, high_panels = lines % panels;
    return from < high_panels * (low + 1) ? low + 1 : low;
}

static size_t packed_omega(const rffpk_view *v) { return round_up(v->d * v->D, PAD); }

static size_t prepared_bytes(const rffpk_problem *pr)
{
    size_t total = round_up(pr->k * pr->F, PAD) + round_up(pr->k, PAD);
    for (size_t l = 0; l < pr->n_views; l++)
        total += packed_omega(&pr->views[l]);
    return total * sizeof(real);
}

/* out: panel after panel, (depth, height) each, of scale * a[line][depth] */
static void pack(const real *a, size_t line_step, size_t depth_step, size_t lines, size_t depth,
                 double scale, real *out)
{
    for (size_t from = 0, h; from < lines; from += h) {
        h = panel_height(lines, from);
        for (size_t i = 0; i < depth; i++)
            for (size_t r = 0; r < h; r++)
                *out++ = (real)(scale * a[(from + r) * line_step + i * depth_step]);
    }
}

static void pack_theta(const rffpk_problem *pr, real *packed, real *norms)
{
    const real *theta = pr->theta;
    for (size_t from = 0, h; from < pr->k; from += h) {
        h = panel_height(pr->k, from);
        for (size_t l = 0, f = 0; l < pr->n_views; l++)
            for (size_t i = 0; i < features_of(&pr->views[l]); i++, f++)
                for (size_t r = 0; r < h; r++)
                    *packed++ = (real)(-2 * pr->alpha[l] * theta[(from + r) * pr->F + f]);
    }
    for (size_t j = 0; j < pr->k; j++) {
        double norm = 0;
        for (size_t l = 0, f = 0; l < pr->n_views; l++)
            for (size_t i = 0; i < features_of(&pr->views[l]); i++, f++)
                norm += pr->alpha[l] * theta[j * pr->F + f] * theta[j * pr->F + f];
        norms[j] = (real)norm;
    }
}

static void prepare(const rffpk_problem *pr, void *prepared)
{
    const double quarters = 0.63661977236758134308; /* 2/pi: phases in quarter turns */
    real *out = prepared;
    for (size_t l = 0; l < pr->n_views; l++) {
        const rffpk_view *v = &pr->views[l];
        if (v->D)
            pack(v->omega, 1, v->D, v->D, v->d, quarters, out);
        out += packed_omega(v);
    }
    pack_theta(pr, out, out + round_up(pr->k * pr->F, PAD));
}

/* ---- products ------------------------------------------------------------------------------ */

/* h lines of the product for STEP rows; h is a constant at every call */
INLINE void panel_step(const int h, const real *a, const real *b, real *c, size_t depth,
                       size_t stride)
{
    vec acc[PANEL][COLS];
    UNROLL
    for (int r = 0; r < h; r++) {
        UNROLL
        for (int j = 0; j < COLS; j++)
            acc[r][j] = splat(0);
    }
    for (size_t i = 0; i < depth; i++, a += h, b += stride) {
        vec line[COLS];
        UNROLL
        for (int j = 0; j < COLS; j++)
            line[j] = load(b + j * W);
        UNROLL
        for (int r = 0; r < h; r++) {
            UNROLL
            for (int j = 0; j < COLS; j++)
                acc[r][j] += line[j] * a[r];
        }
    }
    UNROLL
    for (int r = 0; r < h; r++) {
        UNROLL
        for (int j = 0; j < COLS; j++)
            store(c + r * stride + j * W, acc[r][j]);
    }
}

/* c[line] = sum_i a[line][i] b[i] for all lines and `cols` rows of the tile */
static void product(const real *packed, size_t lines, size_t depth, const real *b, real *c,
                    size_t cols, size_t stride)
{
    for (size_t col = 0; col < cols; col += STEP)
        for (size_t from = 0, h; from < lines; from += h) {
            h = panel_height(lines, from);
            const real *a = packed + from * depth, *bb = b + col;
            real *cc = c + from * stride + col;
            switch (h) {
            case 1: panel_step(1, a, bb, cc, depth, stride); break;
            case 2: panel_step(2, a, bb, cc, depth, stride); break;
            case 3: panel_step(3, a, bb, cc, depth, stride); break;
            case 4: panel_step(4, a, bb, cc, depth, stride); break;
#ifndef RFFPK_PLAIN
            case 5: panel_step(5, a, bb, cc, depth, stride); break;
            default: panel_step(6, a, bb, cc, depth, stride); break;
#endif
            }
        }
}

/* out[r][f] += sum over the rows of g[r] phi[f], for h clusters and FEATURES_AT_ONCE lines */
INLINE void moments_block(const int h, const real *g, const real *phi, size_t cols, size_t stride,
                          double *out, size_t width, size_t valid)
{
    enum { SUMS = GROUP * FEATURES_AT_ONCE, FOLDS = (SUMS + W - 1) / W };
    vec acc[FOLDS * W];
    UNROLL
    for (int i = 0; i < FOLDS * W; i++)
        acc[i] = splat(0);
    for (size_t col = 0; col < cols; col += W) {
        vec line[FEATURES_AT_ONCE];
        UNROLL
        for (int f = 0; f < FEATURES_AT_ONCE; f++)
            line[f] = load(phi + f * stride + col);
        UNROLL
        for (int r = 0; r < h; r++) {
            const vec weight = load(g + r * stride + col);
            UNROLL
            for (int f = 0; f < FEATURES_AT_ONCE; f++)
                acc[r * FEATURES_AT_ONCE + f] += weight * line[f];
        }
    }
    real sums[FOLDS * W];
    UNROLL
    for (int i = 0; i < FOLDS; i++) {
        const vec folded = fold_lanes(acc + i * W);
        memcpy(sums + i * W, &folded, sizeof folded);
    }
    for (int r = 0; r < h; r++)
        for (size_t f = 0; f < valid; f++)
            out[r * width + f] += sums[r * FEATURES_AT_ONCE + f];
}

static void add_moments(const rffpk_problem *pr, const tile *t, size_t cols, double *moments)
{
    const size_t width = moments_of(pr);
    for (size_t f = 0; f < width; f += FEATURES_AT_ONCE) {
        const size_t left = width - f, valid = left < FEATURES_AT_ONCE ? left : FEATURES_AT_ONCE;
        const real *phi = t->phi + f * t->stride;
        size_t j = 0;
        for (; j + GROUP <= pr->k; j += GROUP)
            moments_block(GROUP, t->g + j * t->stride, phi, cols, t->stride,
                          moments + j * width + f, width, valid);
        for (; j < pr->k; j++)
            moments_block(1, t->g + j * t->stride, phi, cols, t->stride, moments + j * width + f,
                          width, valid);
    }
}

/* ---- features ------------------------------------------------------------------------------ */

/* Columns of x beyond `rows` are zero, so that what is computed from them is finite. */
static void transpose(const real *x, size_t d, size_t rows, size_t cols, real *out, size_t stride)
{
    for (size_t from = 0; from < cols; from += W) {
        const size_t here = from >= rows ? 0 : rows - from < W ? rows - from : W;
        for (size_t i = 0; i < d; i++) {
            real *line = out + i * stride + from;
            for (size_t r = 0; r < here; r++)
                line[r] = x[(from + r) * d + i];
            for (size_t r = here; r < W; r++)
                line[r] = 0;
        }
    }
}

/* phi holds the phases in its lower D lines; sines go to the upper D. norm += ||phi||^2 */
static void fourier(const rffpk_view *v, real *phi, real *norm, size_t cols, size_t stride)
{
    const real scale = (real)(1 / sqrt((double)v->D));
    const real *shift = v->shift;
    for (size_t f = 0; f < v->D; f++) {
        real *sines = phi + f * stride, *cosines = sines + v->D * stride;
        for (size_t col = 0; col < cols; col += W) {
            vec s, c;
            sincos_quarters(load(cosines + col), &s, &c);
            s = s * scale - shift[f];
            c = c * scale - shift[v->D + f];
            store(sines + col, s);
            store(cosines + col, c);
            store(norm + col, load(norm + col) + (s * s + c * c));
        }
    }
}

static void identity(const rffpk_view *v, real *phi, real *norm, size_t cols, size_t stride)
{
    const real *shift = v->shift;
    for (size_t f = 0; f < v->d; f++)
        for (size_t col = 0; col < cols; col += W) {
            const vec y = load(phi + f * stride + col) - shift[f];
            store(phi + f * stride + col, y);
            store(norm + col, load(norm + col) + y * y);
        }
}

static void fill(real *line, real value, size_t cols)
{
    for (size_t col = 0; col < cols; col += W)
        store(line + col, splat(value));
}

/* Features of all views, their squared norms, and q = sum_l alpha_l ||phi_l||^2 */
static void make_features(const rffpk_problem *pr, const real *prepared, size_t begin, size_t rows,
                          size_t cols, tile *t)
{
    real *phi = t->phi;
    fill(t->q, 0, cols);
    for (size_t l = 0; l < pr->n_views; l++) {
        const rffpk_view *v = &pr->views[l];
        const real *x = (const real *)v->x + begin * v->d;
        real *norm = t->phi + (pr->F + l) * t->stride;
        fill(norm, 0, cols);
        if (v->D) {
            transpose(x, v->d, rows, cols, t->x, t->stride);
            product(prepared, v->D, v->d, t->x, phi + v->D * t->stride, cols, t->stride);
            fourier(v, phi, norm, cols, t->stride);
        } else {
            transpose(x, v->d, rows, cols, phi, t->stride);
            identity(v, phi, norm, cols, t->stride);
        }
        for (size_t col = 0; col < cols; col += W)
            store(t->q + col, load(t->q + col) + load(norm + col) * (real)pr->alpha[l]);
        prepared += packed_omega(v);
        phi += features_of(v) * t->stride;
    }
}

/* ---- distances and weights ----------------------------------------------------------------- */

/* dist[j] = max(0, q + ||theta_j||^2 - 2 phi theta_j); p and label of each row */
static void make_distances(const rffpk_problem *pr, const real *theta, const real *norms,
                           size_t cols, tile *t)
{
    product(theta, pr->k, pr->F, t->phi, t->dist, cols, t->stride);
    for (size_t col = 0; col < cols; col += W) {
        const vec q = load(t->q + col);
        for (size_t j = 0; j < pr->k; j++) {
            real *d = t->dist + j * t->stride + col;
            store(d, larger(q + norms[j] + load(d), splat(0)));
        }
    }
}

/* The least distance of each row, which takes the place of q, and its centroid. */
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

/* g = p at the nearest centroid, 0 elsewhere */
static void weigh_hard(const rffpk_problem *pr, tile *t, size_t cols, real *memberships,
                       double *totals)
{
    vec floor_sum = splat(0);
    for (size_t col = 0; col < cols; col += W) {
        const vec p = load(t->p + col);
        floor_sum += p * nearest(pr, t, col);
        const vec label = load(t->label + col);
        for (size_t j = 0; j < pr->k; j++) {
            const ivec here = label == splat((real)j);
            store(t->g + j * t->stride + col, SELECT(here, p, splat(0)));
            if (memberships)
                store(memberships + j * t->stride + col, SELECT(here, splat(1), splat(0)));
        }
    }
    const double sum = sum_lanes(floor_sum);
    totals[0] += sum;
    totals[1] += sum;
}

/* With r_j = d_min / d_j and S = sum_j r_j^(-s): v_j = r_j^(1-s) S^(1/s) / S, M' = d_min S^(1/s).
 * `memberships` receives r_j^(-s) / S. The exponent -1 needs no power. */
INLINE void weigh_rows(const rffpk_problem *pr, const int harmonic, tile *t, size_t cols,
                       real *memberships, double *totals)
{
    const vec minus_s = splat((real)-pr->s), inverse_s = splat((real)(1 / pr->s));
    vec soft_sum = splat(0), floor_sum = splat(0);
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
        floor_sum += p * least;
    }
    totals[0] += sum_lanes(soft_sum);
    totals[1] += sum_lanes(floor_sum);
}

static void weigh_power(const rffpk_problem *pr, tile *t, size_t cols, real *memberships,
                        double *totals)
{
    weigh_rows(pr, 0, t, cols, memberships, totals);
}

static void weigh_harmonic(const rffpk_problem *pr, tile *t, size_t cols, real *memberships,
                           double *totals)
{
    weigh_rows(pr, 1, t, cols, memberships, totals);
}

/* ---- the pass ------------------------------------------------------------------------------ */

/* out[row][line] = lines[line][row] */
static void write_rows(const real *lines, size_t n_lines, size_t rows, size_t stride, real *out)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n_lines; i++)
            out[r * n_lines + i] = lines[i * stride + r];
}

static void make_weights(const rffpk_problem *pr, size_t begin, size_t rows, size_t cols, tile *t)
{
    const real *weight = pr->weight;
    for (size_t r = 0; r < rows; r++)
        t->p[r] = weight ? weight[begin + r] : 1;
    for (size_t r = rows; r < cols; r++)
        t->p[r] = 0;
}

typedef void weigh_rule(const rffpk_problem *, tile *, size_t, real *, double *);

static int run(const rffpk_problem *pr, const void *prepared, size_t begin, size_t end,
               const rffpk_sums *sums, const rffpk_rows *out, void *workspace)
{
    weigh_rule *weigh;
    if (pr->rule == RFFPK_HARD)
        weigh = weigh_hard;
    else if (pr->rule == RFFPK_POWER)
        weigh = pr->s == -1 ? weigh_harmonic : weigh_power;
    else
        return RFFPK_UNKNOWN_RULE;

    tile t;
    lay_out(pr, workspace, &t);
    memset(sums->moments, 0, pr->k * moments_of(pr) * sizeof(double));
    memset(sums->excess, 0, pr->k * sizeof(double));
    memset(sums->totals, 0, 2 * sizeof(double));
    memset(t.phi, 0, t.lines * t.stride * sizeof(real)); /* the lines that only pad */
    fill(t.phi + (pr->F + pr->n_views) * t.stride, 1, t.rows);

    const real *theta = prepared;
    for (size_t l = 0; l < pr->n_views; l++)
        theta += packed_omega(&pr->views[l]);
    const real *norms = theta + round_up(pr->k * pr->F, PAD);

    for (; begin < end; begin += t.rows) {
        const size_t rows = end - begin < t.rows ? end - begin : t.rows;
        const size_t cols = round_up(rows, STEP);
        make_weights(pr, begin, rows, cols, &t);
        make_features(pr, prepared, begin, rows, cols, &t);
        if (out->features)
            write_rows(t.phi, pr->F, rows, t.stride, (real *)out->features + begin * pr->F);
        make_distances(pr, theta, norms, cols, &t);
        if (out->distances)
            write_rows(t.dist, pr->k, rows, t.stride, (real *)out->distances + begin * pr->k);
        /* memberships take the place of the distances, which are not needed after them */
        weigh(pr, &t, cols, out->memberships ? t.dist : NULL, sums->totals);
        if (out->memberships)
            write_rows(t.dist, pr->k, rows, t.stride, (real *)out->memberships + begin * pr->k);
        if (out->labels)
            for (size_t r = 0; r < rows; r++)
                out->labels[begin + r] = (int32_t)t.label[r];
        if (out->nearest)
            memcpy((real *)out->nearest + begin, t.q, rows * sizeof(real));
        add_moments(pr, &t, cols, sums->moments);
    }
    return RFFPK_OK;
}

static void vecmath(int which, const void *in, void *out, size_t n)
{
    for (size_t i = 0; i < n; i += W) {
        const size_t here = n - i < W ? n - i : W;
        vec x = splat(1), y, other;
        memcpy(&x, (const real *)in + i, here * sizeof(real));
        if (which == 0)
            sincos_quarters(x, &y, &other);
        else if (which == 1)
            sincos_quarters(x, &other, &y);
        else
            y = which == 2 ? log2_positive(x) : exp2_nonpositive(x);
        memcpy((real *)out + i, &y, here * sizeof(real));
    }
}

const rffpk_kernels NAME(RFFPK_ISA, RFFPK_BITS) = {prepared_bytes, workspace_bytes, prepare, run,
                                                   vecmath};
