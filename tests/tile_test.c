/* The pass in C against direct formulas in double precision, without Python: any machine that
 * compiles C can run it. Compiled with tile.c and its flags: one program per instruction set and
 * type. */
#include "contract.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __unix__
#include <sys/mman.h>
#endif
#ifdef _WIN32 /* whose C library has other names */
#include <malloc.h>
#define aligned_alloc(alignment, bytes) _aligned_malloc(bytes, alignment)
#define free _aligned_free
#endif

#if RFFPK_BITS == 32
typedef float real;
static const double eps = FLT_EPSILON, most_off = 5e-5; /* TOLERANCE in src/rffpk/_reference.py */
#else
typedef double real;
static const double eps = DBL_EPSILON, most_off = 2e-13;
#endif

#define JOIN3(a, b, c) a##_##b##_f##c
#define NAME(isa, bits) JOIN3(rffpk, isa, bits)
extern const rffpk_kernels NAME(RFFPK_ISA, RFFPK_BITS);
static const rffpk_kernels *const core = &NAME(RFFPK_ISA, RFFPK_BITS);

/* The second of two runs begins at row CUT and takes more than a tile. */
enum {
    ROWS = 365,
    CUT = 61,
    MOST_d = 100,
    MOST_D = 200,
    MOST_F = 400,
    MOST_p = 128,
    MOST_k = 7,
    MANY = 37
};

/* d, D and whether structured, of one or two views; D = 0: identity features. The structured ones
 * have p = 2, 4, 64 and 128, in whole blocks and in parts of one. */
static const size_t shapes[][6] = {
    {1, 0, 0}, {3, 0, 0}, {50, 0, 0},  {1, 5, 0},     {3, 11, 0},           {50, 37, 0},
    {1, 3, 1}, {3, 6, 1}, {50, 37, 1}, {100, 200, 1}, {3, 0, 0, 50, 37, 0}, {50, 150, 1, 3, 11, 0}};
/* Landmarks, their neighbours and columns of x of one view; its features are the columns d. */
static const size_t landmark_shapes[][4] = {
    {1, 1, 1, 1}, {17, 16, 3, 5}, {100, 5, 50, 37}, {700, 8, 3, 5}};
enum { MOST_POINTS = 700 };
static const double alpha[] = {0.3, 0.7};
static const struct {
    enum rffpk_rule rule;
    double s, m; /* m = 1: formulas of typicality with u = 1 */
} rules[] = {{RFFPK_POWER, -3, 1},          {RFFPK_POWER, -1, 1},
             {RFFPK_POWER, -1.7, 1},        {RFFPK_HARD, -INFINITY, 1},
             {RFFPK_TYPICALITY, -3, 2},     {RFFPK_TYPICALITY, -1, 1.5},
             {RFFPK_TYPICALITY, -1.7, 3.5}, {RFFPK_TYPICALITY, -INFINITY, 2}};

/* How rows are stored, and whether they are scaled to length one. */
static const struct {
    enum rffpk_number numbers;
    int unit;
    double largest; /* number of a row */
} kinds[] = {{RFFPK_REAL, 0, 1},     {RFFPK_REAL, 1, 1},
#if RFFPK_BITS == 32
             {RFFPK_FLOAT16, 0, 2},  {RFFPK_FLOAT16, 1, 1}, {RFFPK_BFLOAT16, 0, 2},
             {RFFPK_BFLOAT16, 1, 1}, {RFFPK_INT8, 0, 128},  {RFFPK_INT8, 1, 1},
             {RFFPK_UINT8, 0, 255},  {RFFPK_UINT8, 1, 1}
#endif
};
static size_t kind;

/* The current problem ... */
static real x[2][ROWS * MOST_d], omega[2][MOST_d * MOST_D], shift[2][MOST_F];
static real theta[MOST_k * MOST_F], weight[ROWS];
static double eta[MOST_k];
static char small[2][ROWS * MOST_d * 2]; /* the same numbers as x, of a small type */
static uint8_t present[ROWS];            /* of two views, where pr.present is not NULL */
static int8_t signs[2][3 * (MOST_D + MOST_p)];
static real points[MOST_POINTS * MOST_d], coordinates[MOST_POINTS * MOST_d];
static rffpk_view views[2];
static rffpk_problem pr = {
    .views = views, .alpha = alpha, .theta = theta, .eta = eta, .stages = RFFPK_ALL_STAGES};
static size_t edge[3]; /* columns edge[l] to edge[l + 1] of features and theta are view l's */

/* ... and what is expected of it. */
static double features[ROWS * MOST_F], distances[ROWS * MOST_k], seen[ROWS * MOST_k]; /* d, d' */
static double memberships[ROWS * MOST_k], nearest[ROWS], second_least[ROWS],
    moments[MOST_k * (MOST_F + 4)], excess[MOST_k], totals[2];
static unsigned has = 3; /* the views of the row, as bits */
static int checks, failures;

/* The hard rule needs one nearest centroid: with this seed the next is 6e-5 farther or more. */
static real draw(double low, double high)
{
    static uint64_t state = 19;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (real)(low + (high - low) * ldexp((double)(state >> 40), -24));
}

static void draw_all(real *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = draw(-1, 1);
}

/* A number of 16 bits, stored at `to`, by what its bits mean: one of 16 exponents from `least` on,
 * of which 0 is that of subnormal numbers. */
static real draw_half(char *to, int fraction_bits, int bias, int least)
{
    const int exponent = least + (int)draw(0, 16), one = 1 << fraction_bits;
    const int fraction = (int)draw(0, one), negative = draw(-1, 1) < 0;
    const uint16_t bits = (uint16_t)(negative << 15 | exponent << fraction_bits | fraction);
    memcpy(to, &bits, sizeof bits);
    const double size = ldexp(exponent ? one + fraction : fraction,
                              (exponent ? exponent : 1) - bias - fraction_bits);
    return (real)(negative ? -size : size);
}

/* A number of the current kind, also stored at `to` if it is small. */
static real draw_number(char *to)
{
    switch (kinds[kind].numbers) {
    case RFFPK_FLOAT16: return draw_half(to, 10, 15, 0);
    case RFFPK_BFLOAT16: return draw_half(to, 7, 127, 112);
    case RFFPK_INT8: return *(int8_t *)to = (int8_t)draw(-128, 127);
    case RFFPK_UINT8: return *(uint8_t *)to = (uint8_t)draw(0, 255);
    default: return draw(-1, 1);
    }
}

/* Rows of a view, as they are stored. If they are scaled to length one, the first is zero, and of
 * `real` numbers the squares of the next two overflow and underflow. */
static const void *draw_rows(size_t l, size_t d)
{
    const enum rffpk_number numbers = kinds[kind].numbers;
    const size_t size = numbers == RFFPK_FLOAT16 || numbers == RFFPK_BFLOAT16 ? 2 : 1;
    for (size_t i = 0; i < ROWS * d; i++)
        x[l][i] = draw_number(small[l] + i * size);
    for (size_t i = 0; i < d && kinds[kind].unit; i++) {
        x[l][i] = 0;
        memset(small[l] + i * size, 0, size);
        x[l][i + d] *= (real)(numbers == RFFPK_REAL ? 1e30 : 1);
        x[l][i + 2 * d] *= (real)(numbers == RFFPK_REAL ? 1e-30 : 1);
    }
    return numbers == RFFPK_REAL ? (const void *)x[l] : small[l];
}

/* What a row is multiplied by. */
static double row_scale(const real *row, size_t d)
{
    double square = 0;
    for (size_t i = 0; i < d; i++)
        square += (double)row[i] * row[i];
    return kinds[kind].unit && square > 0 ? 1 / sqrt(square) : 1;
}

/* y <- H S y; H_ab = (-1)^(ones that a and b have in common) */
static void hadamard(const int8_t *S, double *y, size_t p)
{
    double sum[MOST_p] = {0};
    for (size_t a = 0; a < p; a++)
        for (size_t b = 0; b < p; b++) {
            double term = S[b] * y[b];
            for (size_t common = a & b; common; common &= common - 1)
                term = -term;
            sum[a] += term;
        }
    memcpy(y, sum, p * sizeof *y);
}

/* omega' = scale H S1 H S2 H S3, column by column of each block; float holds the entries */
static void draw_structured(rffpk_view *v, int8_t *S, real *out)
{
    for (v->p = 2; v->p < v->d;)
        v->p *= 2;
    v->scale = 0.75 / (double)v->p / kinds[kind].largest;
    v->signs = S;
    for (size_t i = 0; i < sizeof signs[0]; i++)
        S[i] = draw(-1, 1) < 0 ? -1 : 1;
    for (size_t i = 0; i < v->d; i++)
        for (size_t first = 0; first < v->D; first += v->p) {
            double y[MOST_p] = {0};
            y[i] = v->scale;
            for (size_t t = 0; t < 3; t++)
                hadamard(S + 3 * first + t * v->p, y, v->p);
            for (size_t r = 0; r < v->p && first + r < v->D; r++)
                out[i * v->D + first + r] = (real)y[r];
        }
}

static double feature(size_t l, size_t row, size_t f)
{
    const size_t d = views[l].d, D = views[l].D;
    const real *from = x[l] + row * d;
    const double scale = row_scale(from, d);
    if (!D)
        return from[f] * scale - shift[l][f];
    double phase = 0;
    for (size_t i = 0; i < d; i++)
        phase += from[i] * scale * omega[l][i * D + f % D];
    return (f < D ? sin(phase) : cos(phase)) / sqrt((double)D) - shift[l][f];
}

/* Entries of theta are larger than all features: weights of a row close to a centroid would need a
 * tolerance of their own. */
static void draw_view(size_t l, size_t d, size_t D, size_t structured)
{
    const double largest = kinds[kind].largest;
    const double unit = D ? 1 / sqrt((double)D) : largest; /* largest feature before its shift */
    const void *rows = draw_rows(l, d);
    for (size_t i = 0; i < d * D; i++)
        omega[l][i] = (real)(draw(-1, 1) / largest);
    views[l] = (rffpk_view){rows, D ? omega[l] : NULL, shift[l], d, D, NULL, 0, 0, {0}};
    views[l].numbers = kinds[kind].numbers;
    views[l].unit = kinds[kind].unit;
    if (structured)
        draw_structured(&views[l], signs[l], omega[l]);
    for (size_t f = 0; edge[l] + f < edge[l + 1]; f++) {
        shift[l][f] = draw(unit / 4, unit / 2);
        for (size_t row = 0; row < ROWS; row++)
            features[row * pr.F + edge[l] + f] = feature(l, row, f);
        for (size_t j = 0; j < MOST_k; j++) {
            const double t = draw(-unit, unit);
            theta[j * pr.F + edge[l] + f] = (real)(t + (t < 0 ? -2 : 2) * unit);
        }
    }
}

/* Features of one row: the r nearest landmarks, one after the other, the first of equals. */
static void expect_landmarks(const rffpk_landmarks *lm, const real *row, size_t q, double *out)
{
    double d[MOST_POINTS], chosen[RFFPK_MOST_NEIGHBOURS], mean = 0, total = 0;
    size_t at[RFFPK_MOST_NEIGHBOURS];
    for (size_t t = 0; t < lm->n_landmarks; t++) {
        d[t] = 0;
        for (size_t i = 0; i < lm->d; i++)
            d[t] += pow((double)row[i] - points[t * lm->d + i], 2);
    }
    for (size_t s = 0; s < lm->n_neighbours; s++) {
        at[s] = 0;
        for (size_t t = 1; t < lm->n_landmarks; t++)
            at[s] = d[t] < d[at[s]] ? t : at[s];
        chosen[s] = d[at[s]];
        mean += chosen[s] / (double)lm->n_neighbours;
        d[at[s]] = INFINITY;
    }
    for (size_t s = 0; s < lm->n_neighbours; s++)
        total += exp((chosen[0] - chosen[s]) * (lm->scale > 0 ? lm->scale : 1 / (2 * mean)));
    for (size_t f = 0; f < q; f++) {
        out[f] = -shift[0][f];
        for (size_t s = 0; s < lm->n_neighbours; s++)
            out[f] += exp((chosen[0] - chosen[s]) * (lm->scale > 0 ? lm->scale : 1 / (2 * mean))) /
                      total * coordinates[at[s] * q + f];
    }
}

/* In place of the identity features that draw_view made. */
static void draw_landmarks(const size_t *s, double scale)
{
    const rffpk_landmarks lm = {points, coordinates, s[0], s[2], s[1], scale};
    draw_all(points, lm.n_landmarks * lm.d);
    draw_all(coordinates, lm.n_landmarks * s[3]);
    draw_all(x[0], ROWS * lm.d);
    views[0].landmarks = lm;
    for (size_t row = 0; row < ROWS; row++)
        expect_landmarks(&lm, x[0] + row * lm.d, s[3], features + row * pr.F);
}

static void draw_problem(const size_t *s)
{
    pr.n_views = s[3] ? 2 : 1;
    for (size_t l = 0; l < pr.n_views; l++)
        pr.F = edge[l + 1] = edge[l] + (s[3 * l + 1] ? 2 * s[3 * l + 1] : s[3 * l]);
    for (size_t l = 0; l < pr.n_views; l++)
        draw_view(l, s[3 * l], s[3 * l + 1], s[3 * l + 2]);
    for (size_t row = 0; row < ROWS; row++)
        weight[row] = draw(0.1, 3);
}

/* ||phi_l - theta_l||^2, 0 if the row lacks the view; without a centroid ||phi_l||^2 */
static double squared(size_t l, const double *phi, const real *centroid)
{
    double sum = 0;
    for (size_t f = edge[l]; f < edge[l + 1] && has >> l & 1; f++)
        sum += pow(phi[f] - (centroid ? centroid[f] : 0), 2);
    return sum;
}

static double distance(const double *phi, size_t j)
{
    double sum = 0;
    for (size_t l = 0; l < pr.n_views; l++)
        sum += alpha[l] * squared(l, phi, theta + j * pr.F);
    return sum;
}

/* Reference distances below and above most of the distances. */
static void choose_eta(void)
{
    for (size_t j = 0; j < MOST_k; j++)
        eta[j] = (0.5 + 0.3 * (double)j) * distance(features, j);
}

/* eta of the row and of centroid j */
static double reference(size_t j)
{
    double sum = 0;
    for (size_t l = 0; l < 2; l++)
        sum += has >> l & 1 ? alpha[l] * eta[l] : 0;
    return pr.present ? sum : eta[j];
}

/* u = 1/(1 + (d/eta)^(1/(m-1))); 1 without typicality */
static double typicality(double d, size_t j)
{
    return pr.rule == RFFPK_TYPICALITY ? 1 / (1 + pow(d / reference(j), 1 / (pr.m - 1))) : 1;
}

/* Every third row lacks the first view, every third the second; x is NaN there. */
static void take_views(void)
{
    for (size_t row = 0; row < ROWS; row++) {
        present[row] = row % 3 ? (uint8_t)(row % 3) : 3;
        for (size_t l = 0; l < 2; l++) {
            const rffpk_view *v = &views[l];
            const size_t d = v->landmarks.points ? v->landmarks.d : v->d;
            if (present[row] >> l & 1)
                continue;
            for (size_t i = 0; i < d; i++)
                x[l][row * d + i] = NAN;
            for (size_t f = edge[l]; f < edge[l + 1]; f++)
                features[row * pr.F + f] = 0;
        }
    }
    pr.present = present;
}

static size_t n_counts(void) { return pr.present ? pr.n_views : 1; }

static size_t n_excess(void) { return pr.present ? pr.n_views : pr.k; }

/* M' = (sum_j d'_j^s)^(1/s) and v_j = dM' / dd'_j, or their limits where s = -inf, with
 * d' = u^m d + (1-u)^m eta */
static void expect_row(const double *phi, double p, double *d, double *dd, double *share,
                       double *least, double *second)
{
    const int hard = isinf(pr.s);
    double sum = 0, *out = moments;
    *least = *second = INFINITY;
    for (size_t j = 0; j < pr.k; j++) {
        d[j] = distance(phi, j);
        const double u = typicality(d[j], j);
        dd[j] = pow(u, pr.m) * d[j] + pow(1 - u, pr.m) * reference(j);
        sum += pow(dd[j], pr.s);
        *second = fmin(*second, fmax(*least, dd[j]));
        *least = fmin(*least, dd[j]);
    }
    totals[0] += p * (hard ? *least : pow(sum, 1 / pr.s));
    totals[1] += p * *least;
    for (size_t j = 0; j < pr.k; j++) {
        const double u = typicality(d[j], j);
        share[j] = hard ? dd[j] == *least : pow(dd[j], pr.s) / sum;
        const double v = hard ? share[j] : pow(dd[j], pr.s - 1) * pow(sum, 1 / pr.s - 1);
        const double g = p * v * pow(u, pr.m);
        for (size_t l = 0; l < n_counts(); l++)
            if (has >> l & 1)
                excess[pr.present ? l : j] += p * v * pow(1 - u, pr.m);
        for (size_t f = 0; f < pr.F; f++)
            *out++ += g * phi[f];
        for (size_t l = 0; l < pr.n_views; l++)
            *out++ += g * squared(l, phi, NULL);
        for (size_t l = 0; l < n_counts(); l++)
            *out++ += has >> l & 1 ? g : 0;
    }
}

static void expect(void)
{
    memset(moments, 0, sizeof moments);
    memset(excess, 0, sizeof excess);
    memset(totals, 0, sizeof totals);
    for (size_t row = 0; row < ROWS; row++) {
        has = pr.present ? present[row] : 3;
        expect_row(features + row * pr.F, pr.weight ? weight[row] : 1, distances + row * pr.k,
                   seen + row * pr.k, memberships + row * pr.k, nearest + row, second_least + row);
    }
    has = 3;
}

/* Within `tolerance` of the largest number expected. */
static void compare(const char *name, const real *actual, const double *expected, size_t n,
                    double tolerance)
{
    double largest = 0, worst = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = fabs(actual[i] - expected[i]);
        worst = fmax(worst, isnan(off) ? INFINITY : off);
        largest = fmax(largest, fabs(expected[i]));
    }
    checks++;
    if (worst <= tolerance * largest)
        return;
    failures++;
    printf(
        "%s off by %.2g of %.2g: %zu views, first d = %zu, D = %zu%s; k = %zu, s = %g, m = %g%s\n",
        name, worst, largest, pr.n_views, views[0].d, views[0].D, views[0].p ? " structured" : "",
        pr.k, pr.s, pr.m,
        pr.weight    ? ", weighted"
        : pr.present ? ", views are missing"
                     : "");
}

/* Memory is NaN until it is written, and is there until the rooms are cleared. */
static void *rooms[16];
static size_t n_rooms;

static void *room(size_t bytes)
{
    bytes = (bytes + RFFPK_ALIGN - 1) / RFFPK_ALIGN * RFFPK_ALIGN;
    void *memory = aligned_alloc(RFFPK_ALIGN, bytes);
    if (!memory || n_rooms == sizeof rooms / sizeof *rooms)
        exit(2);
    rooms[n_rooms++] = memory;
    return memset(memory, 0xff, bytes);
}

static void clear_rooms(void)
{
    while (n_rooms)
        free(rooms[--n_rooms]);
}

/* Moments, excess and totals of the rows [begin, end). */
static double *run(size_t begin, size_t end, const rffpk_rows *rows)
{
    const size_t n_moments = pr.k * (pr.F + pr.n_views + n_counts());
    double *out = room((n_moments + n_excess() + 2) * sizeof *out);
    const rffpk_sums sums = {out, out + n_moments, out + n_moments + n_excess()};
    void *prepared = room(core->prepared_bytes(&pr));
    void *workspace = room(core->workspace_bytes(&pr));
    core->prepare(&pr, prepared);
    if (core->run(&pr, prepared, begin, end, &sums, rows, workspace) != RFFPK_OK)
        exit(2);
    return out;
}

/* Of what depends on powers of the distances: they multiply relative errors by their exponents. */
static double tolerance_of_weights(void)
{
    const double steep = isinf(pr.s) ? 0 : fabs(pr.s);
    return most_off * (1 + steep + (pr.rule == RFFPK_TYPICALITY ? 1 / (pr.m - 1) : 0));
}

/* N, Q and G of a cluster differ in size: each is compared with its own. */
static void compare_sums(const real *sums, double tolerance)
{
    const size_t width = pr.F + pr.n_views + n_counts();
    for (const double *m = moments; m < moments + pr.k * width; m += width, sums += width) {
        compare("N", sums, m, pr.F, tolerance);
        compare("Q", sums + pr.F, m + pr.F, pr.n_views, tolerance);
        compare("G", sums + width - n_counts(), m + width - n_counts(), n_counts(), tolerance);
    }
    compare("excess", sums, excess, n_excess(), tolerance);
    compare("totals", sums + n_excess(), totals, 2, tolerance);
}

static void check_runs(void)
{
    static struct {
        int32_t labels[ROWS];
        real memberships[ROWS * MOST_k], distances[ROWS * MOST_k], nearest[ROWS], second[ROWS];
        int32_t neighbours[ROWS * RFFPK_MOST_NEIGHBOURS];
        real features[ROWS * MOST_F], shares[ROWS * RFFPK_MOST_NEIGHBOURS],
            sums[MOST_k * (MOST_F + 5) + 4];
    } out;
    const rffpk_rows rows = {out.labels, out.memberships, out.distances,  out.nearest,
                             out.second, out.features,    out.neighbours, out.shares};
    const double tolerance = tolerance_of_weights();
    memset(&out, 0xff, sizeof out);
    double *first = run(0, CUT, &rows), *second = run(CUT, ROWS, &rows);
    for (size_t i = 0; i < pr.k * (pr.F + pr.n_views + n_counts()) + n_excess() + 2; i++)
        out.sums[i] = (real)(first[i] + second[i]);
    clear_rooms();
    compare_sums(out.sums, tolerance);
    compare("features", out.features, features, ROWS * pr.F, most_off);
    compare("distances", out.distances, distances, ROWS * pr.k, most_off);
    compare("nearest", out.nearest, nearest, ROWS, tolerance);
    if (pr.k > 1)
        compare("second", out.second, second_least, ROWS, tolerance);
    compare("memberships", out.memberships, memberships, ROWS * pr.k, tolerance);
    for (size_t row = 0, r = views[0].landmarks.n_neighbours; r && row < ROWS; row++) {
        real sum = 0;
        for (size_t s = 0; s < r; s++)
            sum += out.neighbours[row * r + s] < MOST_POINTS ? out.shares[row * r + s] : INFINITY;
        if (pr.present && !(present[row] & 1))
            continue; /* the numbers of no neighbours are valid ones, and were read */
        compare("sum of the neighbours' weights", &sum, (double[]){1}, 1, 20 * eps);
    }
    for (size_t row = 0; row < ROWS; row++) { /* a label is the nearest, or a tie to rounding */
        const size_t label = (size_t)out.labels[row];
        out.nearest[row] = (real)(label < pr.k ? seen[row * pr.k + label] : INFINITY);
    }
    compare("distance of the label", out.nearest, nearest, ROWS, most_off);
}

#if SIZE_MAX > UINT32_MAX && defined __unix__ && !defined RFFPK_NO_FAR_ROWS
/* Memory of n lines. Lines from AWAY on are written; the system provides no other lines. */
enum { BEFORE = 100 };
static const size_t AWAY = ((size_t)1 << 31) - BEFORE; /* so that rows lie on both sides of 2^31 */

static char *far_away(const void *rows, size_t line_bytes)
{
    char *memory = mmap(NULL, (AWAY + ROWS) * line_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        exit(2);
    if (rows)
        memcpy(memory + AWAY * line_bytes, rows, ROWS * line_bytes);
    return memory;
}

/* Rows with indices around 2^31 have the results of the same rows at the begin of their arrays. */
static void check_far_rows(void)
{
    const size_t shape[6] = {3, 11, 0};
    draw_problem(shape);
    pr.k = MOST_k;
    pr.rule = RFFPK_POWER;
    pr.s = -3;
    pr.weight = weight;
    expect();
    const size_t number = sizeof(real), width = pr.F * number, wide = pr.k * number;
    views[0].x = far_away(x[0], 3 * number);
    pr.weight = far_away(weight, number);
    char *labels = far_away(NULL, sizeof(int32_t)), *least = far_away(NULL, number),
         *next = far_away(NULL, number);
    char *shares = far_away(NULL, wide), *apart = far_away(NULL, wide),
         *phi = far_away(NULL, width);
    const rffpk_rows rows = {(int32_t *)labels, shares, apart, least, next, phi, NULL, NULL};
    double *sums = run(AWAY, AWAY + ROWS, &rows);
    const double tolerance = tolerance_of_weights();
    compare("far features", (real *)(phi + AWAY * width), features, ROWS * pr.F, most_off);
    compare("far distances", (real *)(apart + AWAY * wide), distances, ROWS * pr.k, most_off);
    compare("far nearest", (real *)(least + AWAY * number), nearest, ROWS, tolerance);
    compare("far second", (real *)(next + AWAY * number), second_least, ROWS, tolerance);
    compare("far memberships", (real *)(shares + AWAY * wide), memberships, ROWS * pr.k, tolerance);
    for (size_t row = 0; row < ROWS; row++) {
        const int32_t label = ((int32_t *)labels)[AWAY + row];
        const real found = (real)distances[row * pr.k + (size_t)label];
        compare("far label", &found, nearest + row, 1, most_off);
    }
    const real soft = (real)sums[pr.k * (pr.F + 3)];
    compare("far objective", &soft, totals, 1, tolerance);
    clear_rooms();
}
#else
static void check_far_rows(void) {}
#endif

/* Weights from inner products equal the weights of a pass over equal features and centroids. */
static void check_weights(void)
{
    static real products[MOST_k * ROWS], diagonal[ROWS], squares[MOST_k], weights[MOST_k * ROWS];
    static double expected[MOST_k];
    const double tolerance = 10 * tolerance_of_weights();
    const rffpk_gram gram = {products, diagonal, squares, weights, NULL};
    double found[2], second[2];
    memset(weights, 0xff, sizeof weights);
    for (size_t row = 0; row < ROWS; row++)
        diagonal[row] = 0;
    for (size_t j = 0; j < pr.k; j++) { /* any split of a distance into its parts will do */
        squares[j] = (real)(1 + j);
        for (size_t row = 0; row < ROWS; row++)
            products[j * ROWS + row] = (real)((1 + j - distances[row * pr.k + j]) / 2);
    }
    rffpk_problem given = pr;
    given.n_views = given.F = 0;
    void *workspace = room(core->workspace_bytes(&given));
    const int status = core->weigh(&given, &gram, ROWS, 0, CUT, found, workspace) |
                       core->weigh(&given, &gram, ROWS, CUT, ROWS, second, workspace);
    clear_rooms();
    const real refused = status == RFFPK_UNKNOWN_RULE;
    compare("refusal of typicality", &refused, (double[]){pr.rule == RFFPK_TYPICALITY}, 1, 0);
    if (status != RFFPK_OK)
        return;
    const real both[2] = {(real)(found[0] + second[0]), (real)(found[1] + second[1])};
    compare("totals of weights", both, totals, 2, tolerance);
    for (size_t j = 0; j < pr.k; j++) {
        expected[j] = moments[(j + 1) * (pr.F + pr.n_views + 1) - 1]; /* G_j */
        double sum = 0;
        for (size_t row = 0; row < ROWS; row++)
            sum += weights[j * ROWS + row];
        squares[j] = (real)sum;
    }
    compare("weights", squares, expected, pr.k, tolerance);
}

/* The nearest of many centroids are the same bits with and without their distances. */
static void check_many(void)
{
    static real many[MANY * MOST_F], near[2][ROWS], apart[ROWS * MANY];
    static int32_t labels[2][ROWS];
    double sums[2][2];
    rffpk_problem given = pr;
    given.theta = many;
    given.rule = RFFPK_HARD;
    given.s = -INFINITY;
    for (size_t i = 0; i < MANY * pr.F; i++) /* multiples of the drawn ones */
        many[i] = theta[i % (MOST_k * pr.F)] * (real)(1 + i / (MOST_k * pr.F));
    for (given.k = MANY - 12; given.k <= MANY; given.k += 6) {
        double *found = room(core->sums_numbers(&given) * sizeof(double)), more[MANY];
        void *prepared = room(core->prepared_bytes(&given));
        void *workspace = room(core->workspace_bytes(&given));
        core->prepare(&given, prepared);
        for (int asked = 0; asked < 2; asked++) {
            const rffpk_sums to = {found, more, sums[asked]};
            const rffpk_rows out = {
                .labels = labels[asked], .nearest = near[asked], .distances = asked ? apart : NULL};
            core->run(&given, prepared, 0, ROWS, &to, &out, workspace);
        }
        checks++;
        if (memcmp(labels[0], labels[1], sizeof labels[0]) ||
            memcmp(near[0], near[1], sizeof near[0]) || memcmp(sums[0], sums[1], sizeof sums[0])) {
            printf("nearest of %zu: differ with distances\n", given.k);
            failures++;
        }
        clear_rooms();
    }
}

/* All numbers of centroids and rules, for the rows that were drawn. */
static void check_rules(void)
{
    for (pr.k = 1; pr.k <= MOST_k; pr.k += 3) /* the last one is above ONE_HOT_CLUSTERS */
        for (size_t i = 0; i < 2 * sizeof rules / sizeof *rules; i++) {
            pr.rule = rules[i / 2].rule;
            pr.s = rules[i / 2].s;
            pr.m = rules[i / 2].m;
            pr.weight = i % 2 ? weight : NULL;
            expect();
            check_runs();
            if (!pr.present)
                check_weights();
        }
}

/* Rows whose features are their columns, each compared with the centroids near its own. */
static void check_near(void)
{
    enum { NEAR = 3 };
    static int32_t near[MOST_k * NEAR], order[ROWS], labels[ROWS];
    static int64_t ends[MOST_k + 1];
    static real found[ROWS], next[ROWS], sums[MOST_k * MOST_F];
    static double stay[MOST_k * MOST_F], expected[MOST_k * MOST_F];
    const rffpk_view *v = views;
    const rffpk_near given = {v->x, v->numbers, v->unit, v->shift, theta, weight, near, order,
                              ends, v->d,       NEAR,    labels,   found, next,   stay};
    pr.k = MOST_k;
    pr.weight = weight;
    expect();
    memset(expected, 0, sizeof expected);
    for (size_t j = 0, at = 0; j < pr.k; j++) { /* the last cluster is empty */
        for (size_t i = 0; i < NEAR; i++)
            near[j * NEAR + i] = (int32_t)((j + i) % pr.k);
        for (size_t row = j; j + 1 < pr.k && row < ROWS; row += pr.k - 1)
            order[at++] = (int32_t)row;
        ends[j + 1] = (int64_t)at;
    }
    void *workspace = room(core->near_bytes(&given));
    for (size_t j = 0; j < pr.k; j++)
        core->near(&given, j, workspace);
    clear_rooms();
    for (size_t row = 0; row < ROWS; row++) {
        const size_t j = row % (pr.k - 1);
        size_t best = j;
        nearest[row] = second_least[row] = INFINITY;
        for (size_t i = 0; i < NEAR; i++) {
            const size_t other = (size_t)near[j * NEAR + i];
            const double d = distances[row * pr.k + other] / alpha[0];
            best = d < nearest[row] ? other : best;
            second_least[row] = fmin(second_least[row], fmax(nearest[row], d));
            nearest[row] = fmin(nearest[row], d);
        }
        for (size_t f = 0; best == j && f < pr.F; f++)
            expected[j * pr.F + f] += weight[row] * features[row * pr.F + f];
    }
    for (size_t i = 0; i < pr.k * pr.F; i++)
        sums[i] = (real)stay[i];
    compare("nearest of few", found, nearest, ROWS, most_off);
    compare("second of few", next, second_least, ROWS, most_off);
    compare("sums of rows that stay", sums, expected, pr.k * pr.F, most_off);
}

static void check_problem(const size_t *s, const size_t *landmarks, double scale)
{
    draw_problem(s);
    if (landmarks)
        draw_landmarks(landmarks, scale);
    choose_eta();
    check_rules();
    if (pr.n_views == 1 && !views[0].D && !landmarks)
        check_near();
    check_many();
    if (pr.n_views == 2) {
        take_views();
        check_rules();
        pr.present = NULL;
    }
}

/* Shapes on both sides of panels, vectors and blocks; the matrix ends where its memory does. */
static void check_skinny(void)
{
    static const size_t sizes[][3] = {
        {1, 1, 1}, {5, 127, 63}, {6, 128, 512}, {7, 129, 513}, {20, 300, 1025}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t lines = sizes[i][0], depth = sizes[i][1], n = sizes[i][2];
        const size_t stride =
            (n + RFFPK_SKINNY_STRIDE - 1) / RFFPK_SKINNY_STRIDE * RFFPK_SKINNY_STRIDE;
        real *matrix = room(depth * stride * sizeof(real)), *out = room(lines * n * sizeof(real));
        real *coefficients = room(lines * depth * sizeof(real));
        real *packed = room(lines * depth * sizeof(real));
        double *expected = room(lines * n * sizeof(double));
        void *workspace = room(core->skinny_bytes(lines));
        for (size_t at = 0; at < depth * stride; at++)
            matrix[at] = at % stride < n ? draw(-1, 1) : 0;
        draw_all(coefficients, lines * depth);
        for (size_t at = 0; at < lines * n; at++) {
            expected[at] = 0;
            for (size_t d = 0; d < depth; d++)
                expected[at] +=
                    (double)coefficients[at / n * depth + d] * matrix[d * stride + at % n];
        }
        core->skinny_pack(coefficients, lines, depth, packed);
        for (size_t begin = 0; begin < n; begin += RFFPK_SKINNY_STRIDE) {
            const size_t end = begin + RFFPK_SKINNY_STRIDE < n ? begin + RFFPK_SKINNY_STRIDE : n;
            core->skinny(packed, matrix, lines, depth, stride, begin, end, out, n, workspace);
        }
        compare("skinny product", out, expected, lines * n, 100 * eps);
        clear_rooms();
    }
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Rows that look for their nearest points in two of three cells, whose last blocks are not full. */
static void check_cells_of(size_t d)
{
    enum { CELLS = 3, OWN = RFFPK_CELL_BLOCK + 16, VISITS = 2, NEAREST = 70 };
    enum { PLACES = CELLS * 2 * RFFPK_CELL_BLOCK };
    static int32_t numbers[PLACES], visits[ROWS * VISITS], found[ROWS * NEAREST];
    static int64_t order[ROWS], ends[CELLS + 1] = {0, 2, 4, 6};
    static real far[ROWS * NEAREST];
    static double expected[ROWS * NEAREST];
    real *rows = room(ROWS * d * sizeof(real)), *at = room(CELLS * OWN * d * sizeof(real));
    real *centers = room(CELLS * d * sizeof(real)), *blocks = room(PLACES * d * sizeof(real));
    real *squares = room(PLACES * sizeof(real));
    const rffpk_cells given = {rows,  centers, blocks, squares, numbers, ends,    visits,
                               order, ROWS,    d,      CELLS,   VISITS,  NEAREST, found};
    draw_all(rows, ROWS * d);
    draw_all(at, CELLS * OWN * d);
    draw_all(centers, CELLS * d);
    for (size_t i = 0; i < PLACES; i++) {
        const size_t cell = i / (2 * RFFPK_CELL_BLOCK), own = i % (2 * RFFPK_CELL_BLOCK);
        real *to = blocks + i / RFFPK_CELL_BLOCK * RFFPK_CELL_BLOCK * d + i % RFFPK_CELL_BLOCK;
        numbers[i] = own < OWN ? (int32_t)(cell * OWN + own) : -1;
        squares[i] = own < OWN ? 0 : (real)INFINITY;
        for (size_t f = 0; f < d; f++, to += RFFPK_CELL_BLOCK) {
            const real y = own < OWN ? at[(cell * OWN + own) * d + f] - centers[cell * d + f] : 0;
            *to = -2 * y;
            squares[i] += y * y;
        }
    }
    for (size_t row = 0; row < ROWS; row++) {
        double here[VISITS * OWN];
        order[row] = (int64_t)(ROWS - 1 - row);
        for (size_t s = 0; s < VISITS; s++)
            visits[row * VISITS + s] = (int32_t)((row + s) % CELLS);
        for (size_t i = 0; i < VISITS * OWN; i++) {
            const real *y = at + ((row + i / OWN) % CELLS * OWN + i % OWN) * d;
            here[i] = 0;
            for (size_t f = 0; f < d; f++)
                here[i] += ((double)rows[row * d + f] - y[f]) * ((double)rows[row * d + f] - y[f]);
        }
        qsort(here, VISITS * OWN, sizeof *here, by_size);
        memcpy(expected + row * NEAREST, here, NEAREST * sizeof *here);
    }
    void *workspace = room(core->cells_bytes(&given));
    for (size_t begin = 0; begin < ROWS; begin += RFFPK_CELL_ROWS)
        core->cells(&given, begin, begin + RFFPK_CELL_ROWS < ROWS ? begin + RFFPK_CELL_ROWS : ROWS,
                    workspace);
    const rffpk_pairs pairs = {rows, at, found, d, NEAREST, far};
    core->pairs(&pairs, 0, CUT);
    core->pairs(&pairs, CUT, ROWS);
    for (size_t row = 0; row < ROWS; row++) { /* the nearest is the first already */
        double here[NEAREST];
        for (size_t i = 0; i < NEAREST; i++)
            here[i] = far[row * NEAREST + i];
        qsort(here + 1, NEAREST - 1, sizeof *here, by_size);
        for (size_t i = 0; i < NEAREST; i++)
            far[row * NEAREST + i] = (real)here[i];
    }
    compare("nearest in cells", far, expected, ROWS * NEAREST, 100 * eps);
    clear_rooms();
}

/* A sparse matrix of i % 20 entries in line i. */
static void check_csr_of(size_t q)
{
    enum { COLUMNS = 30, ENTRIES = ROWS * 20 };
    static int32_t columns[ENTRIES];
    static int64_t ends[ROWS + 1];
    real *values = room(ENTRIES * sizeof(real)), *v = room(COLUMNS * q * sizeof(real));
    real *out = room(ROWS * q * sizeof(real));
    double *expected = memset(room(ROWS * q * sizeof(double)), 0, ROWS * q * sizeof(double));
    draw_all(v, COLUMNS * q);
    for (size_t i = 0; i < ROWS; i++) {
        ends[i + 1] = ends[i] + (int64_t)(i % 20);
        for (int64_t e = ends[i]; e < ends[i + 1]; e++) {
            columns[e] = (int32_t)((i + 7 * (size_t)(e - ends[i])) % COLUMNS);
            values[e] = draw(-1, 1);
            for (size_t f = 0; f < q; f++)
                expected[i * q + f] += (double)values[e] * v[(size_t)columns[e] * q + f];
        }
    }
    const rffpk_csr given = {values, columns, ends, v, out, q};
    core->csr(&given, 0, CUT);
    core->csr(&given, CUT, ROWS);
    compare("sparse product", out, expected, ROWS * q, 100 * eps);
    clear_rooms();
}

int main(void)
{
    for (kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            check_problem(shapes[i], NULL, 0);
    kind = 0;
    for (size_t i = 0; i < 2 * sizeof landmark_shapes / sizeof *landmark_shapes; i++) {
        const size_t *s = landmark_shapes[i / 2];
        const size_t alone[6] = {s[3], 0, 0}, beside[6] = {s[3], 0, 0, 3, 11, 0};
        check_problem(i % 2 ? beside : alone, s, i % 2 ? 0.7 : 0);
    }
    check_far_rows();
    check_skinny();
    for (size_t d = 1; d < 60; d += 16) {
        check_cells_of(d);
        check_csr_of(d);
    }
    printf("%s: %d checks, %d failed\n", failures ? "failed" : "ok", checks, failures);
    return failures != 0;
}
