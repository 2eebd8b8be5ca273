/* The first three stages, view by view. Rows are loaded (load.h), and projected on the frequencies
 * Omega. The sines and cosines of their phases, minus c, are the features phi - c. landmarks.h and
 * sparse.h have the stages of landmarks and of sparse rows. */
#ifndef RFFPK_VIEW_FEATURES_H
#define RFFPK_VIEW_FEATURES_H

#include "hadamard.h"
#include "landmarks.h"
#include "load.h"
#include "products.h"
#include "sparse.h"
#include "tile.h"
#include "vecmath.h"

/* ---- computed once a pass: frequencies in quarter turns, and landmarks ----------------------- */

static size_t sign_numbers(const rffpk_view *v) { return round_up(v->D, v->p) * 3; }

static size_t packed_view(const rffpk_view *v)
{
    if (v->landmarks.points)
        return packed_landmarks(&v->landmarks, v->d);
    if (v->signs)
        return round_up(sign_numbers(v), PAD);
    return v->indptr ? 0 : round_up(v->d * v->D, PAD); /* sparse rows use Omega itself */
}

static size_t packed_views(const rffpk_problem *pr)
{
    size_t total = 0;
    for (size_t l = 0; l < pr->n_views; l++)
        total += packed_view(&pr->views[l]);
    return total;
}

/* Pack the signs as numbers of type `real`. The signs of S3 are multiplied by the scale. */
static void pack_signs(const rffpk_view *v, double scale, real *out)
{
    for (size_t i = 0; i < sign_numbers(v); i++)
        out[i] = (real)(v->signs[i] * (i / v->p % 3 ? 1 : scale));
}

static void pack_views(const rffpk_problem *pr, real *out)
{
    for (size_t l = 0; l < pr->n_views; l++) {
        const rffpk_view *v = &pr->views[l];
        if (v->landmarks.points)
            pack_landmarks(&v->landmarks, v->d, out);
        else if (v->signs)
            pack_signs(v, QUARTER_TURNS * v->scale, out);
        else if (v->D && !v->indptr)
            pack(v->omega, 1, v->D, v->D, v->d, QUARTER_TURNS, out);
        out += packed_view(v);
    }
}

/* ---- which views rows have ------------------------------------------------------------------- */

/* Load a line for each view l, which is 1 where a row has the view, else 0. Beyond the last row it
 * is 1. */
static void load_present(const rffpk_problem *pr, tile *t)
{
    const size_t bytes = (pr->n_views + 7) / 8;
    for (size_t l = 0; l < pr->n_views; l++) {
        real *present = counts_of(pr, t) + l * t->stride;
        const uint8_t *at = pr->present + t->begin * bytes + l / 8;
        for (size_t r = 0; r < t->rows; r++)
            present[r] = at[r * bytes] >> l % 8 & 1;
        for (size_t r = t->rows; r < t->cols; r++)
            present[r] = 1;
    }
}

/* ---- load and project ------------------------------------------------------------------------ */

/* Whether `x` holds the rows of the view. It does not if the rows are the features, or if the
 * projection loads the rows. */
static int transposed(const rffpk_view *v)
{
    return v->landmarks.points || (v->D && !v->signs && !v->indptr);
}

/* Load the rows of a tile into lines of out. Later rows, up to `end`, may be prefetched. */
static void load_view(const rffpk_view *v, size_t end, real *out, real *scratch, const tile *t)
{
    if (v->indptr)
        load_sparse(v, out, t);
    else
        load_rows(v, end, out, scratch, t);
}

/* Return the size of the scratch memory of the structured projection: W rows, and the lines where
 * the rows are transformed. */
static size_t structured_scratch(const rffpk_view *v) { return (v->d + v->p) * W; }

/* Compute structured phases. W rows at a time are loaded and transformed, so that they stay in a
 * near cache. signs: for each block of p frequencies, p numbers each of S3 (times the scale), S2
 * and S1. */
static void project_structured(const rffpk_view *v, const real *signs, size_t end, real *phases,
                               real *scratch, const tile *t)
{
    real *x = t->strip + v->p * W;
    for (size_t col = 0; col < t->cols; col += W) {
        const tile part = slice(t, col);
        const real *of_block = signs;
        load_view(v, end, x, scratch, &part);
        for (size_t first = 0; first < v->D; first += v->p, of_block += 3 * v->p)
            hadamard_thrice(of_block, v->p, x, v->d, t->strip, phases + first * t->stride + col,
                            t->stride, v->D - first < v->p ? v->D - first : v->p);
    }
}

/* phases <- Omega' x in quarter turns. `x` holds the rows, unless frequencies are structured or
 * rows are sparse. */
static void project(const rffpk_view *v, const real *packed, size_t end, real *phases,
                    real *scratch, tile *t)
{
    if (v->signs)
        project_structured(v, packed, end, phases, scratch, t);
    else if (v->indptr)
        project_sparse(v, phases, t);
    else
        product(packed, v->D, v->d, t->x, phases, t->cols, t->stride);
}

/* ---- sines and cosines ----------------------------------------------------------------------- */

/* phi <- features. On entry the last D lines of phi hold the phases. norm += ||phi||^2 */
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

/* norm += ||phi - shift||^2, and phi <- phi - shift, for h lines of phi. h is a constant. */
INLINE void shift_lines(const int h, const real *shift, real *phi, real *norm, size_t cols,
                        size_t stride)
{
    for (size_t col = 0; col < cols; col += W) {
        vec sum = load(norm + col);
        UNROLL
        for (int i = 0; i < h; i++) {
            const vec y = load(phi + i * stride + col) - shift[i];
            store(phi + i * stride + col, y);
            sum += y * y;
        }
        store(norm + col, sum);
    }
}

/* norm += ||phi - shift||^2, and phi <- phi - shift, for identity features in phi. */
static void shift_features(const rffpk_view *v, real *phi, real *norm, size_t cols, size_t stride)
{
    enum { AT_ONCE = 4 };
    const real *shift = v->shift;
    size_t f = 0;
    for (; f + AT_ONCE <= v->d; f += AT_ONCE)
        shift_lines(AT_ONCE, shift + f, phi + f * stride, norm, cols, stride);
    for (; f < v->d; f++)
        shift_lines(1, shift + f, phi + f * stride, norm, cols, stride);
}

/* lines <- 0 in the rows that lack a view, whatever numbers the rows have there */
static void clear_missing(const real *present, real *lines, size_t n_lines, size_t cols,
                          size_t stride)
{
    for (size_t i = 0; i < n_lines; i++)
        for (size_t col = 0; col < cols; col += W) {
            real *line = lines + i * stride + col;
            store(line, SELECT(load(present + col) > 0, load(line), splat(0)));
        }
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* phi <- phi_l - c_l of view l, and norm <- its squared norm. Later rows, up to `end`, may be
 * prefetched. */
static void view_features(const rffpk_problem *pr, size_t l, const real *packed, size_t end,
                          real *phi, real *norm, tile *t, const rffpk_rows *out)
{
    const rffpk_view *v = &pr->views[l];
    if (pr->stages & RFFPK_LOAD && (transposed(v) || !v->D))
        load_view(v, end, transposed(v) ? t->x : phi, norm, t);
    if (v->landmarks.points) {
        landmark_features(&v->landmarks, v->d, (const real *)rows_of(v, t), packed, pr->stages, phi,
                          t);
        write_neighbours(pr, l, t, out);
    }
    if (v->D && pr->stages & RFFPK_PROJECT)
        project(v, packed, end, phi + v->D * t->stride, norm, t);
    fill(norm, 0, t->cols);
    if (pr->stages & RFFPK_SINCOS)
        (v->D ? fourier : shift_features)(v, phi, norm, t->cols, t->stride);
}

/* Compute the features of all views, their squared norms, and sum_l alpha_l ||phi_l||^2. */
static void make_features(const rffpk_problem *pr, const real *packed, size_t end, tile *t,
                          const rffpk_rows *out)
{
    real *phi = t->phi;
    fill(t->norm, 0, t->cols);
    for (size_t l = 0; l < pr->n_views; l++) {
        const rffpk_view *v = &pr->views[l];
        real *norm = t->phi + (pr->F + l) * t->stride;
        view_features(pr, l, packed, end, phi, norm, t, out);
        if (pr->present) {
            const real *present = counts_of(pr, t) + l * t->stride;
            clear_missing(present, phi, features_of(v), t->cols, t->stride);
            clear_missing(present, norm, 1, t->cols, t->stride);
        }
        for (size_t col = 0; col < t->cols; col += W)
            store(t->norm + col, load(t->norm + col) + load(norm + col) * (real)pr->alpha[l]);
        packed += packed_view(v);
        phi += features_of(v) * t->stride;
    }
}

#endif
