/* The contract between the tile (C) and the threads (Cython).
 *
 * One call of `run` visits the rows [begin, end) of a problem: features -> distances ->
 * weights -> sums. It allocates nothing and knows neither Python nor threads: the caller owns
 * the rows, the slots that rows are cut into, the workspaces and the order of merging.
 *
 * `real` below is float or double, the type of every `void` array of one problem.
 * F = sum over the views of F_l; F_l = 2 D_l for random Fourier features, d_l for identity. */
#ifndef RFFPK_CONTRACT_H
#define RFFPK_CONTRACT_H

#include <stddef.h>
#include <stdint.h>

/* Rows of a slot. Sums are merged slot by slot in the order of rows, so this number (with the
 * instruction set) fixes the bits of a result and the number of threads does not. All that is not
 * one of the stages below, the merge included, measured 1.2 % of the pass at k F = 2 160 and 0.6 %
 * at 119 000. */
#define RFFPK_SLOT_ROWS 1024

enum rffpk_status { RFFPK_OK = 0, RFFPK_UNKNOWN_RULE = 1 };

/* TYPICALITY is the power mean, or the hard rule where s is -inf, of d' instead of d: with
 * u_j = 1/(1 + (d_j/eta_j)^(1/(m-1))), d'_j = u^m d + (1-u)^m eta. Labels, memberships, nearest and
 * totals are then those of d'; distances stay d. */
enum rffpk_rule { RFFPK_POWER = 0, RFFPK_HARD = 1, RFFPK_TYPICALITY = 2 };

/* The parts of a tile's work, in their order. A benchmark that leaves some out learns the share of
 * each from outside; every other caller asks for all of them. */
enum rffpk_stage {
    RFFPK_LOAD = 1, /* and transpose */
    RFFPK_PROJECT = 2,
    RFFPK_SINCOS = 4, /* for identity features: shift and norms */
    RFFPK_DISTANCES = 8,
    RFFPK_WEIGHTS = 16,
    RFFPK_SUMS = 32,
    RFFPK_ALL_STAGES = 63
};

typedef struct {
    const void *x;     /* (n, d) rows, C order */
    const void *omega; /* (d, D) frequencies, C order; NULL: identity features */
    const void *shift; /* (F_l,) subtracted from every feature vector */
    size_t d, D;
    /* Structured frequencies: omega is then the same matrix written out, which the tile does not
     * read. omega' = scale H S1 H S2 H S3, first d columns, block after block of p rows. */
    const int8_t *signs; /* (ceil(D / p), 3, p): +1 and -1 of S3, S2, S1; NULL: a dense omega */
    double scale;
    size_t p; /* a power of two, at least d and 2 */
} rffpk_view;

typedef struct {
    const rffpk_view *views;
    const double *alpha; /* (n_views,) weights of the views in the distance */
    const void *theta;   /* (k, F) centroids, shifted like the features */
    const void *weight;  /* (n,) row weights p; NULL: all one */
    size_t n_views, k, F;
    enum rffpk_rule rule;
    double s;          /* exponent of the power mean, but for RFFPK_HARD */
    const double *eta; /* (k,) reference distances > 0 and ... */
    double m;          /* ... fuzzifier > 1, for RFFPK_TYPICALITY */
    unsigned stages;   /* RFFPK_ALL_STAGES, but in a profile */
} rffpk_problem;

typedef struct {
    double *moments; /* (k, F + n_views + 1): N_j | Q_j1 .. Q_jL | G_j, with g = p v u^m,
                      * u = 1 without typicality */
    double *excess;  /* (k,): E_j = sum p v (1 - u)^m, 0 without typicality */
    double *totals;  /* (2,): sum p M', sum p d_min */
} rffpk_sums;

/* Per-row results, each NULL unless asked for. */
typedef struct {
    int32_t *labels;   /* (n,) nearest centroid, the first of equals */
    void *memberships; /* (n, k) d_j^s / sum_l d_l^s; one-hot under RFFPK_HARD */
    void *distances;   /* (n, k) squared distances, >= 0 */
    void *nearest;     /* (n,) least squared distance */
    void *features;    /* (n, F) shifted features */
} rffpk_rows;

/* Rows whose inner products with the centroids are known, as an exact kernel gives them. */
typedef struct {
    const void *products; /* (k, n): <phi_i, theta_j> */
    const void *diagonal; /* (n,): ||phi_i||^2 */
    const void *squares;  /* (k,): ||theta_j||^2 */
    void *weights;        /* (k, n) to fill with p v; may be `products` */
    int32_t *labels;      /* (n,) to fill, or NULL */
} rffpk_gram;

/* One compiled variant of the tile: an instruction set and a type. */
typedef struct {
    size_t (*prepared_bytes)(const rffpk_problem *);
    size_t (*workspace_bytes)(const rffpk_problem *); /* of one thread */
    void (*prepare)(const rffpk_problem *, void *prepared);
    int (*run)(const rffpk_problem *, const void *prepared, size_t begin, size_t end,
               const rffpk_sums *, const rffpk_rows *, void *workspace);
    /* the weights alone, of a problem without views; fills the totals (2,): sum p M', sum p d_min
     */
    int (*weigh)(const rffpk_problem *, const rffpk_gram *, size_t n, size_t begin, size_t end,
                 double *totals, void *workspace);
    /* out[:, begin:end] = coefficients matrix[:, begin:end] for a few lines of coefficients (lines,
     * depth), packed before, and a matrix (depth, stride) in memory, aligned, with a stride of
     * whole vectors and SKINNY_BYTES readable beyond each column begin */
    size_t (*skinny_bytes)(size_t lines); /* of workspace */
    void (*skinny_pack)(const void *coefficients, size_t lines, size_t depth, void *packed);
    void (*skinny)(const void *packed, const void *matrix, size_t lines, size_t depth,
                   size_t stride, size_t begin, size_t end, void *out, size_t out_stride,
                   void *workspace);
    /* the bare vector functions, for tests and benchmarks. `which` 0: n sines of quarter turns,
     * then n cosines; 1: log2; 2: exp2 */
    void (*vecmath)(int which, const void *in, void *out, size_t n);
} rffpk_kernels;

/* Numbers that a line of a matrix for `skinny` is a multiple of: 2048 bytes of float. */
#define RFFPK_SKINNY_STRIDE 512

#define RFFPK_ALIGN 64 /* of prepared and workspace: one cache line, the widest vector */

#endif
