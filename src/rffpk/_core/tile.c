/* The pass over a slot of rows, tile by tile. Compiled once per instruction set and type. */
#include "contract.h"
#include "simd.h"
#include "vecmath.h"
#include "products.h"
#include "hadamard.h"
#include "rules.h"
#include "landmarks.h"
#include "sparse.h"

#include <math.h>

#define JOIN3(a, b, c) a##_##b##_f##c
#define NAME(isa, bits) JOIN3(rffpk, isa, bits)

enum { MIN_TILE_ROWS = 64 };
_Static_assert(MIN_TILE_ROWS % STEP == 0, "a tile is whole steps");

static size_t features_of(const rffpk_view *v) { return v->D ? 2 * v->D : v->d; }

static size_t columns_of(const rffpk_view *v)
{
    return v->landmarks.points ? v->landmarks.d : v->d;
}

static size_t moments_of(const rffpk_problem *pr) { return pr->F + pr->n_views + rffpk_counts(pr); }

/* The lines of a tile that distances are computed from: features, and all others where the squared
 * norms of a row and of the centroids depend on which views it has. */
static size_t depth_of(const rffpk_problem *pr) { return pr->present ? moments_of(pr) : pr->F; }

/* E_j of the clusters, or E_l of the views. */
static size_t excess_of(const rffpk_problem *pr) { return pr->present ? pr->n_views : pr->k; }

static size_t sums_numbers(const rffpk_problem *pr)
{
    return sparse_columns(pr) ? sparse_sums_numbers(pr) : pr->k * moments_of(pr);
}

/* Numbers of scratch of a view. */
static size_t scratch_of(const rffpk_problem *pr, const rffpk_view *v)
{
    if (v->indptr)
        return sparse_scratch(pr, v);
    return v->signs ? v->p * W : 0;
}

/* Fills in the shape of the tiles; returns the number of lines, of `stride` numbers, of a tile. */
static size_t shape(const rffpk_problem *pr, tile *t)
{
    t->d = t->scratch = t->block_lines = t->r_most = 0;
    for (const rffpk_view *v = pr->views; v < pr->views + pr->n_views; v++) {
        if (!v->indptr && (v->D || v->landmarks.points) && columns_of(v) > t->d)
            t->d = columns_of(v);
        if (v->landmarks.points)
            t->block_lines = BLOCK_LINES;
        if (v->landmarks.points && v->landmarks.n_neighbours > t->r_most)
            t->r_most = v->landmarks.n_neighbours;
        if (scratch_of(pr, v) > t->scratch)
            t->scratch = scratch_of(pr, v);
    }
    t->lines = round_up(moments_of(pr), one_hot(pr) && W > FEATURES_AT_ONCE ? W : FEATURES_AT_ONCE);
    if (sparse_columns(pr))
        t->lines = 1; /* the squared norms */
    const size_t lines_per_centroid = pr->rule == RFFPK_TYPICALITY ? 4 : 2;
    const size_t of_centroids = one_hot(pr) ? pr->k + 1 : lines_per_centroid * pr->k;
    const size_t of_rows = pr->present ? 4 : 3;
    const size_t total = t->d + t->lines + of_centroids + of_rows + 2 * t->r_most + t->block_lines;
    t->rows = RFFPK_MAX_TILE_ROWS;
    while (t->rows > MIN_TILE_ROWS && total * t->rows * sizeof(real) > RFFPK_TILE_BYTES)
        t->rows /= 2;
    t->stride = t->rows + PAD;
    return total;
}

static size_t workspace_bytes(const rffpk_problem *pr)
{
    tile t;
    const size_t total = shape(pr, &t);
    return (total * t.stride + t.scratch) * sizeof(real);
}

static tile lay_out(const rffpk_problem *pr, real *memory)
{
    tile t;
    shape(pr, &t);
    t.x = memory;
    t.phi = t.x + t.d * t.stride;
    t.dist = t.phi + t.lines * t.stride;
    t.g = t.dist + pr->k * t.stride;
    t.um = t.g + (one_hot(pr) ? 1 : pr->k) * t.stride;
    t.wm = t.um + (pr->rule == RFFPK_TYPICALITY ? pr->k * t.stride : 0);
    t.q = t.wm + (pr->rule == RFFPK_TYPICALITY ? pr->k * t.stride : 0);
    t.p = t.q + t.stride;
    t.label = t.p + t.stride;
    t.eta = t.label + t.stride;
    t.near = pr->present ? t.eta + t.stride : t.eta;
    t.at = t.near + t.r_most * t.stride;
    t.block = t.at + t.r_most * t.stride;
    t.strip = t.block + t.block_lines * t.stride;
    return t;
}

/* ---- coefficients of the two products, packed once a pass ---------------------------------- */

static size_t sign_numbers(const rffpk_view *v) { return round_up(v->D, v->p) * 3; }

static size_t packed_view(const rffpk_view *v)
{
    if (v->landmarks.points)
        return packed_landmarks(&v->landmarks, v->d);
    if (v->signs)
        return round_up(sign_numbers(v), PAD);
    return v->indptr ? 0 : round_up(v->d * v->D, PAD); /* sparse rows take Omega as it is */
}

static size_t packed_theta(const rffpk_problem *pr)
{
    if (sparse_columns(pr))
        return packed_sparse_theta(pr);
    return round_up(pr->k * depth_of(pr), PAD) + round_up(pr->k, PAD);
}

static size_t prepared_bytes(const rffpk_problem *pr)
{
    size_t total = packed_theta(pr);
    for (size_t l = 0; l < pr->n_views; l++)
        total += packed_view(&pr->views[l]);
    return total * sizeof(real);
}

/* out: panels (depth, height) of scale * a[line][depth], one after the other */
static void pack(const real *a, size_t line_step, size_t depth_step, size_t lines, size_t depth,
                 double scale, real *out)
{
    for (size_t from = 0, h; from < lines; from += h) {
        h = even_share(lines, PANEL, from);
        for (size_t i = 0; i < depth; i++)
            for (size_t r = 0; r < h; r++)
                *out++ = (real)(scale * a[(from + r) * line_step + i * depth_step]);
    }
}

/* alpha_l ||theta_jl||^2 of the view l whose features begin at f, added to `norm` */
static double weighted_norm(const rffpk_problem *pr, size_t j, size_t l, size_t f, double norm)
{
    const real *theta = (const real *)pr->theta + j * pr->F + f;
    for (size_t i = 0; i < features_of(&pr->views[l]); i++)
        norm += pr->alpha[l] * theta[i] * theta[i];
    return norm;
}

static void pack_theta(const rffpk_problem *pr, real *packed, real *norms)
{
    const real *theta = pr->theta;
    for (size_t from = 0, h; from < pr->k; from += h) {
        h = even_share(pr->k, PANEL, from);
        for (size_t l = 0, f = 0; l < pr->n_views; l++)
            for (size_t i = 0; i < features_of(&pr->views[l]); i++, f++)
                for (size_t r = 0; r < h; r++)
                    *packed++ = (real)(-2 * pr->alpha[l] * theta[(from + r) * pr->F + f]);
        for (size_t l = 0; l < pr->n_views && pr->present; l++)
            for (size_t r = 0; r < h; r++)
                *packed++ = (real)pr->alpha[l];
        for (size_t l = 0, f = 0; l < pr->n_views && pr->present; l++) {
            for (size_t r = 0; r < h; r++)
                *packed++ = (real)weighted_norm(pr, from + r, l, f, 0);
            f += features_of(&pr->views[l]);
        }
    }
    for (size_t j = 0; j < pr->k; j++) {
        double norm = 0;
        for (size_t l = 0, f = 0; l < pr->n_views && !pr->present; l++) {
            norm = weighted_norm(pr, j, l, f, norm);
            f += features_of(&pr->views[l]);
        }
        norms[j] = (real)norm;
    }
}

/* The signs as numbers of type `real`; those of S3 are multiplied by the scale. */
static void pack_signs(const rffpk_view *v, double scale, real *out)
{
    for (size_t i = 0; i < sign_numbers(v); i++)
        out[i] = (real)(v->signs[i] * (i / v->p % 3 ? 1 : scale));
}

static void prepare(const rffpk_problem *pr, void *prepared)
{
    const double quarters = 0.63661977236758134308; /* 2/pi: phases in quarter turns */
    real *out = prepared;
    for (size_t l = 0; l < pr->n_views; l++) {
        const rffpk_view *v = &pr->views[l];
        if (v->landmarks.points)
            prepare_landmarks(&v->landmarks, v->d, out);
        else if (v->signs)
            pack_signs(v, quarters * v->scale, out);
        else if (v->D && !v->indptr)
            pack(v->omega, 1, v->D, v->D, v->d, quarters, out);
        out += packed_view(v);
    }
    if (sparse_columns(pr))
        pack_sparse_theta(pr, out);
    else
        pack_theta(pr, out, out + round_up(pr->k * depth_of(pr), PAD));
}

/* ---- features ------------------------------------------------------------------------------ */

/* phi <- features; on entry its last D lines hold the phases. norm += ||phi||^2 */
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

/* norm += ||phi - shift||^2, phi <- phi - shift, for features that are in phi already */
static void shift_features(const rffpk_view *v, real *phi, real *norm, size_t cols, size_t stride)
{
    const real *shift = v->shift;
    for (size_t f = 0; f < v->d; f++)
        for (size_t col = 0; col < cols; col += W) {
            const vec y = load(phi + f * stride + col) - shift[f];
            store(phi + f * stride + col, y);
            store(norm + col, load(norm + col) + y * y);
        }
}

/* 1 where a row has view l, else 0; 1 beyond the last row */
static void load_present(const rffpk_problem *pr, size_t l, size_t begin, size_t rows, size_t cols,
                         real *present)
{
    const size_t bytes = (pr->n_views + 7) / 8;
    const uint8_t *at = pr->present + begin * bytes + l / 8;
    for (size_t r = 0; r < rows; r++)
        present[r] = at[r * bytes] >> l % 8 & 1;
    for (size_t r = rows; r < cols; r++)
        present[r] = 1;
}

/* lines <- 0 in the rows that lack a view, whatever they hold there */
static void clear_missing(const real *present, real *lines, size_t n_lines, size_t cols,
                          size_t stride)
{
    for (size_t i = 0; i < n_lines; i++)
        for (size_t col = 0; col < cols; col += W) {
            real *line = lines + i * stride + col;
            store(line, SELECT(load(present + col) > 0, load(line), splat(0)));
        }
}

/* Features of all views, their squared norms, and q = sum_l alpha_l ||phi_l||^2; q is 0 if views
 * are missing, as the product with the centroids has it then. */
static void make_features(const rffpk_problem *pr, const real *prepared, size_t begin, size_t end,
                          size_t rows, size_t cols, tile *t, const rffpk_rows *out)
{
    real *phi = t->phi;
    fill(t->q, 0, cols);
    for (size_t l = 0; l < pr->n_views; l++) {
        const rffpk_view *v = &pr->views[l];
        const size_t columns = columns_of(v);
        const size_t x_begin = v->indptr ? 0 : begin * columns;
        const real *x = (const real *)v->x + x_begin, *x_end = x + (end - begin) * columns;
        real *norm = t->phi + (pr->F + l) * t->stride;
        const int projected = v->D || v->landmarks.points;
        fill(norm, 0, cols);
        if (pr->stages & RFFPK_LOAD && !v->indptr)
            transpose(x, x_end, columns, rows, cols, projected ? t->x : phi, t->stride);
        else if (pr->stages & RFFPK_LOAD && !projected)
            load_sparse(v, begin, rows, cols, phi, t->stride);
        if (v->landmarks.points) {
            landmark_features(&v->landmarks, v->d, x, prepared, pr->stages, rows, cols, phi, t);
            write_neighbours(pr, l, t, begin, rows, out);
        }
        if (v->D && pr->stages & RFFPK_PROJECT) {
            real *phases = phi + v->D * t->stride;
            if (v->indptr && v->signs)
                project_sparse_structured(prepared, v, begin, rows, cols, t->strip, phases,
                                          t->stride);
            else if (v->indptr)
                project_sparse(v, begin, rows, cols, t->strip, phases, t->stride);
            else if (v->signs)
                project_structured(prepared, v->d, v->D, v->p, t->x, phases, t->strip, cols,
                                   t->stride);
            else
                product(prepared, v->D, v->d, t->x, phases, cols, t->stride);
        }
        if (pr->stages & RFFPK_SINCOS)
            (v->D ? fourier : shift_features)(v, phi, norm, cols, t->stride);
        if (pr->present) {
            const real *present = t->phi + (pr->F + pr->n_views + l) * t->stride;
            clear_missing(present, phi, features_of(v), cols, t->stride);
            clear_missing(present, norm, 1, cols, t->stride);
        }
        for (size_t col = 0; col < cols && !pr->present; col += W)
            store(t->q + col, load(t->q + col) + load(norm + col) * (real)pr->alpha[l]);
        prepared += packed_view(v);
        phi += features_of(v) * t->stride;
    }
}

/* ---- distances and weights ----------------------------------------------------------------- */

/* dist[j] = max(0, q + ||theta_j||^2 - 2 phi theta_j) */
static void make_distances(const rffpk_problem *pr, const real *theta, const real *norms,
                           size_t cols, tile *t)
{
    product(theta, pr->k, depth_of(pr), t->phi, t->dist, cols, t->stride);
    for (size_t col = 0; col < cols; col += W) {
        const vec q = load(t->q + col);
        for (size_t j = 0; j < pr->k; j++) {
            real *d = t->dist + j * t->stride + col;
            const vec squared = q + norms[j] + load(d);
            store(d, SELECT(squared < 0, splat(0), squared)); /* NaN stays, and is detected later */
        }
    }
}

/* t->eta <- sum of alpha_l eta_l over the views of each row; `present` has a line for each view. */
static void combine_eta(const rffpk_problem *pr, const real *present, tile *t, size_t cols)
{
    fill(t->eta, 0, cols);
    for (size_t l = 0; l < pr->n_views; l++)
        for (size_t col = 0; col < cols; col += W)
            store(t->eta + col, load(t->eta + col) + load(present + l * t->stride + col) *
                                                         (real)(pr->alpha[l] * pr->eta[l]));
}

/* d and d' of a tile with typicality */
static void make_typical(const rffpk_problem *pr, const real *present, tile *t, size_t cols)
{
    if (pr->present)
        combine_eta(pr, present, t, cols);
    if (pr->present && pr->m == 2)
        apply_typicality(pr, 1, 1, t, cols);
    else if (pr->present)
        apply_typicality(pr, 0, 1, t, cols);
    else if (pr->m == 2)
        apply_typicality(pr, 1, 0, t, cols);
    else
        apply_typicality(pr, 0, 0, t, cols);
}

/* `second` receives the second least distances of `rows` rows, if it is not NULL. */
static void make_weights(const rffpk_problem *pr, weigh_rule *weigh, size_t rows, size_t cols,
                         real *memberships, real *second, tile *t, const rffpk_sums *sums)
{
    const int typicality = pr->rule == RFFPK_TYPICALITY;
    const real *present = t->phi + (pr->F + pr->n_views) * t->stride;
    if (typicality)
        make_typical(pr, present, t, cols);
    if (second) {
        second_nearest(pr, t, cols, t->g); /* whose lines are filled later */
        memcpy(second, t->g, rows * sizeof(real));
    }
    weigh(pr, t, cols, memberships, sums->totals);
    if (typicality && pr->present)
        weigh_typicality_of_views(pr, present, t, cols, sums->excess);
    else if (typicality)
        weigh_typicality(pr, t, cols, sums->excess);
}

/* ---- the pass ------------------------------------------------------------------------------ */

/* out[row][line] = lines[line][row] */
static void write_rows(const real *lines, size_t n_lines, size_t rows, size_t stride, real *out)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n_lines; i++)
            out[r * n_lines + i] = lines[i * stride + r];
}

static void write_features(const rffpk_problem *pr, size_t begin, size_t rows, const tile *t,
                           real *out)
{
    out += begin * pr->F;
    if (sparse_columns(pr))
        write_sparse_rows(pr->views, begin, rows, out);
    else
        write_rows(t->phi, pr->F, rows, t->stride, out);
}

static void load_row_weights(const rffpk_problem *pr, size_t begin, size_t rows, size_t cols,
                             tile *t)
{
    const real *weight = pr->weight;
    for (size_t r = 0; r < rows; r++)
        t->p[r] = weight ? weight[begin + r] : 1;
    for (size_t r = rows; r < cols; r++)
        t->p[r] = 0;
}

static int run(const rffpk_problem *pr, const void *prepared, size_t begin, size_t end,
               const rffpk_sums *sums, const rffpk_rows *out, void *workspace)
{
    weigh_rule *weigh = rule_of(pr);
    if (!weigh)
        return RFFPK_UNKNOWN_RULE;

    tile t = lay_out(pr, workspace);
    memset(sums->moments, 0, sums_numbers(pr) * sizeof(double));
    memset(sums->excess, 0, excess_of(pr) * sizeof(double));
    memset(sums->totals, 0, 2 * sizeof(double));
    memset(t.phi, 0, t.lines * t.stride * sizeof(real)); /* for the padding lines */
    const int sparse = sparse_columns(pr);
    const double of_shift = sparse ? squared_shift(pr->views) : 0;
    real *counts = t.phi + (pr->F + pr->n_views) * t.stride;
    if (!sparse)
        fill(counts, 1, t.rows);

    const real *theta = prepared;
    for (size_t l = 0; l < pr->n_views; l++)
        theta += packed_view(&pr->views[l]);
    const real *norms = theta + round_up(pr->k * depth_of(pr), PAD);

    for (; begin < end; begin += t.rows) {
        const size_t rows = end - begin < t.rows ? end - begin : t.rows;
        const size_t cols = round_up(rows, STEP);
        load_row_weights(pr, begin, rows, cols, &t);
        for (size_t l = 0; l < pr->n_views && pr->present; l++)
            load_present(pr, l, begin, rows, cols, counts + l * t.stride);
        if (!sparse)
            make_features(pr, prepared, begin, end, rows, cols, &t, out);
        if (out->features)
            write_features(pr, begin, rows, &t, out->features);
        if (pr->stages & RFFPK_DISTANCES && sparse)
            sparse_distances(pr, theta, of_shift, begin, rows, cols, t.phi, &t);
        else if (pr->stages & RFFPK_DISTANCES)
            make_distances(pr, theta, norms, cols, &t);
        if (out->distances)
            write_rows(t.dist, pr->k, rows, t.stride, (real *)out->distances + begin * pr->k);
        /* memberships overwrite the distances, which are not needed any more */
        if (pr->stages & RFFPK_WEIGHTS)
            make_weights(pr, weigh, rows, cols, out->memberships ? t.dist : NULL,
                         out->second ? (real *)out->second + begin : NULL, &t, sums);
        if (out->memberships)
            write_rows(t.dist, pr->k, rows, t.stride, (real *)out->memberships + begin * pr->k);
        if (out->labels)
            for (size_t r = 0; r < rows; r++)
                out->labels[begin + r] = (int32_t)t.label[r];
        if (out->nearest)
            memcpy((real *)out->nearest + begin, t.q, rows * sizeof(real));
        if (pr->stages & RFFPK_SUMS && sparse)
            sparse_sums(pr, begin, rows, t.phi, &t, sums->moments);
        else if (pr->stages & RFFPK_SUMS && one_hot(pr))
            add_rows(t.label, t.p, t.phi, moments_of(pr), cols, t.stride, sums->moments);
        else if (pr->stages & RFFPK_SUMS)
            add_moments(t.g, pr->k, t.phi, moments_of(pr), cols, t.stride, sums->moments);
    }
    return RFFPK_OK;
}

/* ---- weights from inner products ----------------------------------------------------------- */

/* dist[j] = max(0, ||phi||^2 + ||theta_j||^2 - 2 <phi, theta_j>), 1 beyond the last row */
static void distances_from(const rffpk_problem *pr, const rffpk_gram *gram, size_t n, size_t begin,
                           size_t rows, size_t cols, tile *t)
{
    const real *diagonal = (const real *)gram->diagonal + begin, *squares = gram->squares;
    for (size_t j = 0; j < pr->k; j++) {
        const real *products = (const real *)gram->products + j * n + begin;
        real *d = t->dist + j * t->stride;
        for (size_t r = 0; r < rows; r++) {
            const real squared = diagonal[r] + squares[j] - 2 * products[r];
            d[r] = squared < 0 ? 0 : squared;
        }
        for (size_t r = rows; r < cols; r++)
            d[r] = 1;
    }
}

static int weigh(const rffpk_problem *pr, const rffpk_gram *gram, size_t n, size_t begin,
                 size_t end, double *totals, void *workspace)
{
    weigh_rule *rule = rule_of(pr);
    if (!rule || pr->rule == RFFPK_TYPICALITY)
        return RFFPK_UNKNOWN_RULE;
    tile t = lay_out(pr, workspace);
    memset(totals, 0, 2 * sizeof(double));
    for (; begin < end; begin += t.rows) {
        const size_t rows = end - begin < t.rows ? end - begin : t.rows;
        const size_t cols = round_up(rows, STEP);
        load_row_weights(pr, begin, rows, cols, &t);
        distances_from(pr, gram, n, begin, rows, cols, &t);
        rule(pr, &t, cols, NULL, totals);
        for (size_t j = 0; j < pr->k; j++)
            memcpy((real *)gram->weights + j * n + begin, t.g + j * t.stride, rows * sizeof(real));
        if (gram->labels)
            for (size_t r = 0; r < rows; r++)
                gram->labels[begin + r] = (int32_t)t.label[r];
    }
    return RFFPK_OK;
}

/* ---- products with a stored kernel --------------------------------------------------------- */

static size_t skinny_bytes(size_t lines) { return lines * RFFPK_SKINNY_BYTES; }

static void skinny_pack(const void *coefficients, size_t lines, size_t depth, void *packed)
{
    for (size_t i = 0; i < depth; i += SKINNY_DEPTH) {
        const size_t here = depth - i < SKINNY_DEPTH ? depth - i : SKINNY_DEPTH;
        pack((const real *)coefficients + i, depth, 1, lines, here, 1, (real *)packed + i * lines);
    }
}

static void skinny(const void *packed, const void *matrix, size_t lines, size_t depth,
                   size_t stride, size_t begin, size_t end, void *out, size_t out_stride,
                   void *workspace)
{
    for (; begin < end; begin += SKINNY_COLS) {
        const real *columns = (const real *)matrix + begin;
        const size_t cols = end - begin < SKINNY_COLS ? end - begin : SKINNY_COLS;
        memset(workspace, 0, skinny_bytes(lines));
        for (size_t i = 0; i < depth; i += SKINNY_DEPTH) {
            const size_t here = depth - i < SKINNY_DEPTH ? depth - i : SKINNY_DEPTH;
            const int last = i + 2 * SKINNY_DEPTH > depth;
            const real *b = columns + i * stride, *next = last ? b : b + SKINNY_DEPTH * stride;
            skinny_block((const real *)packed + i * lines, lines, here, b, workspace, here, stride,
                         next);
        }
        for (size_t line = 0; line < lines; line++)
            memcpy((real *)out + line * out_stride + begin,
                   (const real *)workspace + line * SKINNY_COLS, cols * sizeof(real));
    }
}

/* h <= W numbers; in all calls except the last one h is the constant W. */
INLINE void vecmath_step(int which, const real *in, real *out, real *second, size_t h)
{
    vec x = splat(1), y, cosine;
    memcpy(&x, in, h * sizeof(real));
    if (which == 0) {
        sincos_quarters(x, &y, &cosine);
        memcpy(second, &cosine, h * sizeof(real));
    } else
        y = which == 1 ? log2_positive(x) : exp2_nonpositive(x);
    memcpy(out, &y, h * sizeof(real));
}

static void vecmath(int which, const void *in, void *out, size_t n)
{
    const real *x = in;
    real *y = out, *second = y + n;
    size_t i = 0;
    for (; i + W <= n; i += W)
        vecmath_step(which, x + i, y + i, second + i, W);
    if (i < n)
        vecmath_step(which, x + i, y + i, second + i, n - i);
}

static void finish(const rffpk_problem *pr, const double *sums, double *moments)
{
    if (sparse_columns(pr))
        spread_sums(pr, sums, moments);
    else
        memcpy(moments, sums, sums_numbers(pr) * sizeof(double));
}

const rffpk_kernels NAME(RFFPK_ISA, RFFPK_BITS) = {
    prepared_bytes, workspace_bytes, sums_numbers, prepare, run,    finish,
    weigh,          skinny_bytes,    skinny_pack,  skinny,  vecmath};
