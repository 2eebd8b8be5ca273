/* The contract between the computation (tile.c) and its callers (_pass.pyx). docs/math.md defines
 * the symbols; they are those of the NumPy twin, src/rffpk/_reference.py.
 *
 * One call of `run` visits the rows [begin, end) of a problem: features -> distances ->
 * weights -> sums. It allocates nothing and knows neither Python nor threads: the caller owns
 * the rows, the slots that the rows are divided into, the workspaces and the order of merging.
 *
 * `real` below is float or double, the type of every `void` array of one problem. F is the sum of
 * F_l over the views l; F_l = 2 D_l for random Fourier features, d_l for identity features, q_l for
 * landmark features. */
#ifndef RFFPK_CONTRACT_H
#define RFFPK_CONTRACT_H

#include "tuning.h"

#include <stddef.h>
#include <stdint.h>

/* Raised by one when a type or function below changes, for packages that are compiled with it. */
#define RFFPK_CONTRACT 3

enum rffpk_status { RFFPK_OK = 0, RFFPK_UNKNOWN_RULE = 1 };

/* How the squared distances d_j of a row become its weights v_j. TYPICALITY is the power mean, or
 * the hard rule where s is -inf, of d' in place of d: with the typicalities
 * u_j = 1/(1 + (d_j/eta_j)^(1/(m-1))), d'_j = u_j^m d_j + (1-u_j)^m eta_j. Labels, memberships,
 * nearest, second and totals are then those of d'; distances stay d. BOTH is HARD, with the soft
 * total of POWER. */
enum rffpk_rule { RFFPK_POWER = 0, RFFPK_HARD = 1, RFFPK_TYPICALITY = 2, RFFPK_BOTH = 3 };

/* The parts of the work on a tile, in their order. A benchmark omits some to measure the share of
 * each; every other caller asks for all of them. */
enum rffpk_stage {
    RFFPK_LOAD = 1,    /* and transpose */
    RFFPK_PROJECT = 2, /* on structured frequencies: and load */
    RFFPK_SINCOS = 4,  /* for identity features: shift and norms; for landmark features also the
                        * nearest landmarks, their weights and the combination */
    RFFPK_DISTANCES = 8,
    RFFPK_WEIGHTS = 16,
    RFFPK_SUMS = 32,
    RFFPK_ALL_STAGES = 63
};

/* The types of the numbers of dense rows. Small ones are widened to `real` as they are loaded. */
enum rffpk_number {
    RFFPK_REAL = 0,
    RFFPK_FLOAT16 = 1,
    RFFPK_BFLOAT16 = 2,
    RFFPK_INT8 = 3,
    RFFPK_UINT8 = 4
};

/* Landmark features: phi = sum_t z_t C_t over the r nearest landmarks y_t of a row x, nearest first
 * and the smaller t of equals, with the weights z_t = exp(-scale ||x - y_t||^2) over their sum.
 * Weights below `least_weight` times the largest of the row are 0. */
#define RFFPK_MOST_NEIGHBOURS 64
typedef struct {
    const void *points;      /* (n_landmarks, d) landmarks y, C order; NULL: none */
    const void *coordinates; /* (n_landmarks, q) rows C, C order; q is the d of the view */
    size_t n_landmarks, d;   /* d: columns of x and of the points */
    size_t n_neighbours;     /* r, at least 1, at most n_landmarks and RFFPK_MOST_NEIGHBOURS */
    double scale;            /* 0: of each row 1 / (2 mean of its r squared distances) */
    double least_weight;
} rffpk_landmarks;

typedef struct {
    const void *x;     /* (n, d) rows, C order; of sparse rows the values (indptr[n],) of entries */
    const void *omega; /* (d, D) frequencies, C order; NULL: identity or structured features */
    const void *shift; /* (F_l,) subtracted from every feature vector */
    size_t d, D;       /* of landmark features, d is q */
    /* Structured frequencies: omega' = scale H S1 H S2 H S3, its first d columns, in blocks of p
     * rows. */
    const int8_t *signs; /* (ceil(D / p), 3, p): +1 and -1 of S3, S2, S1; NULL: not structured */
    double scale;
    size_t p;                  /* a power of two, at least d and 2 */
    rffpk_landmarks landmarks; /* without points: none; with them omega is NULL */
    /* Compressed sparse rows, each of whose columns occurs once: row i has the entries indptr[i] to
     * indptr[i + 1] - 1. They have no landmarks. */
    const int64_t *indptr;  /* (n + 1,); NULL: the rows are dense */
    const int32_t *indices; /* (indptr[n],) columns of the entries */
    /* Of dense rows without landmarks: */
    enum rffpk_number numbers; /* the type of x */
    int unit;                  /* whether rows are scaled to length one, zeros left as they are */
} rffpk_view;

/* Most centroids k, and most landmarks of a view. A tile keeps their indices in numbers of type
 * `real`, and they leave it as int32_t. */
#define RFFPK_MOST_CENTROIDS_F32 (1 << 24)
#define RFFPK_MOST_CENTROIDS_F64 INT32_MAX

typedef struct {
    const rffpk_view *views;
    const double *alpha;  /* (L,) weights of the views in the distance */
    const void *theta;    /* (k, F) centroids, shifted like the features */
    const void *weight;   /* (n,) row weights p; NULL: all one */
    size_t n_views, k, F; /* n_views is L */
    enum rffpk_rule rule;
    double s;          /* exponent of the power mean; not used by RFFPK_HARD */
    const double *eta; /* (k,) reference distances > 0 and ... */
    double m;          /* ... fuzzifier > 1, both used by RFFPK_TYPICALITY only */
    unsigned stages;   /* a set of rffpk_stage */
    /* (n, ceil(L / 8)): bit l % 8 of byte l / 8 of a row is 1 where it has view l; NULL: all rows
     * have all views. A view that a row lacks adds nothing to its distances and sums, whatever x
     * has there. Reference distances are then (L,), those of the views and of all centroids: a row
     * has the sum of alpha_l eta_l over its views. */
    const uint8_t *present;
    /* With RFFPK_HARD or _BOTH and many centroids of one dense view whose weight is 1: orthonormal
     * directions (q, F), and (k, q + 1) coordinates of the centroids with the lengths of what is
     * left of them, at least. Distances of a row beyond `reach`, at least 1, times its least are
     * then replaced by lower bounds, and have no part in its power mean. NULL: all are computed.
     */
    const void *basis, *coordinates;
    size_t q;
    double reach;
} rffpk_problem;

/* Whether rows have the weight of one cluster alone by their rule. */
static inline int rffpk_is_hard(const rffpk_problem *pr)
{
    return pr->rule == RFFPK_HARD || pr->rule == RFFPK_BOTH;
}

/* Lines of a tile, and sums of each cluster, that count rows: one, or one of each view. */
static inline size_t rffpk_counts(const rffpk_problem *pr) { return pr->present ? pr->n_views : 1; }

/* Sums over the rows, with g = p v u^m; u = 1 except for RFFPK_TYPICALITY. */
typedef struct {
    double *moments; /* (k, F + L + 1): N_j = sum g_j phi | Q_j1 .. Q_jL, Q_jl = sum g_j ||phi_l||^2
                      * | G_j = sum g_j. If views are missing (k, F + 2 L), with G_j1 .. G_jL, the
                      * sums over the rows that have the view. Where the features are the columns of
                      * sparse rows the moments are in another order, which `finish` knows */
    double *excess;  /* (k,): E_j = sum p v_j (1 - u_j)^m, 0 without typicality. If views are
                      * missing (L,): the sums over all j and the rows that have the view */
    double *totals;  /* (2,): the soft objective sum p M', the hard objective sum p min_j d_j */
} rffpk_sums;

/* Results of each row; NULL for those that are not wanted. */
typedef struct {
    int32_t *labels;         /* (n,) nearest centroid, the first of equals */
    void *memberships;       /* (n, k) d_j^s / sum_l d_l^s; one-hot under RFFPK_HARD and _BOTH */
    void *distances;         /* (n, k) squared distances, >= 0 */
    void *nearest;           /* (n,) least squared distance */
    void *second;            /* (n,) second least squared distance; inf where k is 1 */
    void *features;          /* (n, F) shifted features */
    int32_t *neighbours;     /* (n, R) nearest landmarks, of all views that have some side by side:
                              * R is the sum of their n_neighbours */
    void *neighbour_weights; /* (n, R) their weights z */
} rffpk_rows;

/* Rows of which only the inner products with the centroids are known, as with an exact kernel. */
typedef struct {
    const void *products; /* (k, n): <phi_i, theta_j> */
    const void *diagonal; /* (n,): ||phi_i||^2 */
    const void *squares;  /* (k,): ||theta_j||^2 */
    void *weights;        /* (k, n) to fill with p v; may be `products` */
    int32_t *labels;      /* (n,) to fill, or NULL */
} rffpk_gram;

/* Rows whose centroids are known, each of which is compared with few: those near its own. The
 * features are columns of one view. */
typedef struct {
    const void *x;             /* (n, d) */
    enum rffpk_number numbers; /* the type of x */
    int unit;                  /* whether rows are scaled to length one, zeros left as they are */
    const void *shift;         /* (d,) */
    const void *theta;         /* (k, d), shifted */
    const void *weight;        /* (n,), NULL for ones */
    const int32_t *near;  /* (k, n_near): the centroids that rows of a cluster are compared with */
    const int32_t *order; /* (n,): the rows, cluster by cluster */
    const int64_t *ends;  /* (k + 1,): rows of cluster j are order[ends[j]:ends[j + 1]] */
    size_t d, n_near;
    int32_t *labels; /* (n,) to fill: the nearest of those centroids, the first of equals */
    void *nearest;   /* (n,) to fill: its squared distance, ... */
    void *second;    /* ... and the second least, inf if there is no second */
    double *stay;    /* (k, d) to fill: sum p x of the rows whose centroid stays the same */
} rffpk_near;

/* Rows that look for their nearest points in a few cells of these. Each cell has a center, and its
 * points y, less the center, in blocks of RFFPK_CELL_BLOCK. */
#define RFFPK_CELL_BLOCK 64
typedef struct {
    const void *x;          /* (n, d) */
    const void *centers;    /* (c, d) */
    const void *blocks;     /* (b, d, RFFPK_CELL_BLOCK): -2 y, transposed; aligned */
    const void *squares;    /* (b, RFFPK_CELL_BLOCK): ||y||^2, inf where there is none; aligned */
    const int32_t *numbers; /* (b, RFFPK_CELL_BLOCK) of the points */
    const int64_t *ends;    /* (c + 1,): cell j has the blocks ends[j] to ends[j + 1] - 1 */
    const int32_t *visits;  /* (n, p): cells in which each row looks, the nearest first */
    const int64_t *order;   /* (n,): the rows, those that visit the same cells together */
    size_t n, d, c, p, r;
    int32_t *nearest; /* (n, r) to fill: numbers of the nearest points, of equals of those that are
                       * met first, the nearest one first; -1 where a row sees fewer */
} rffpk_cells;

/* Rows and the numbers of some points of each, that are valid. */
typedef struct {
    const void *x;        /* (n, d) */
    const void *points;   /* (m, d) */
    const int32_t *index; /* (n, r) */
    size_t d, r;
    void *squares; /* (n, r) to fill: squared distances */
} rffpk_pairs;

/* A sparse matrix (n, m), line by line, times a dense one. */
typedef struct {
    const void *values;     /* of the entries */
    const int32_t *columns; /* of the entries */
    const int64_t *ends;    /* (n + 1,): those of line i are ends[i] to ends[i + 1] - 1 */
    const void *v;          /* (m, q) */
    void *out;              /* (n, q) to fill */
    size_t q;
} rffpk_csr;

/* The functions compiled for one instruction set and type. */
typedef struct {
    size_t (*prepared_bytes)(const rffpk_problem *);
    size_t (*workspace_bytes)(const rffpk_problem *); /* of one thread */
    size_t (*sums_numbers)(const rffpk_problem *);    /* in the moments that `run` fills */
    void (*prepare)(const rffpk_problem *, void *prepared);
    int (*run)(const rffpk_problem *, const void *prepared, size_t begin, size_t end,
               const rffpk_sums *, const rffpk_rows *, void *workspace);
    /* moments (k, F + L + 1) = the moments of `run`, of all slots together */
    void (*finish)(const rffpk_problem *, const double *sums, double *moments);
    /* The weights alone, of a problem without views, by RFFPK_POWER or RFFPK_HARD; fills the
     * totals (2,) of rffpk_sums. */
    int (*weigh)(const rffpk_problem *, const rffpk_gram *, size_t n, size_t begin, size_t end,
                 double *totals, void *workspace);
    /* The skinny product: out[:, begin:end] = coefficients matrix[:, begin:end]. The few
     * coefficients (lines, depth) are packed beforehand. The matrix (depth, stride) is aligned;
     * begin and stride are multiples of RFFPK_SKINNY_STRIDE. */
    size_t (*skinny_bytes)(size_t lines); /* of workspace */
    void (*skinny_pack)(const void *coefficients, size_t lines, size_t depth, void *packed);
    void (*skinny)(const void *packed, const void *matrix, size_t lines, size_t depth,
                   size_t stride, size_t begin, size_t end, void *out, size_t out_stride,
                   void *workspace);
    /* The rows of one cluster beside the centroids near its own. */
    size_t (*near_bytes)(const rffpk_near *); /* of workspace */
    void (*near)(const rffpk_near *, size_t cluster, void *workspace);
    /* Nearest points in cells, of the rows order[begin:end], at most RFFPK_CELL_ROWS. */
    size_t (*cells_bytes)(const rffpk_cells *); /* of workspace */
    void (*cells)(const rffpk_cells *, size_t begin, size_t end, void *workspace);
    /* Distances of the rows begin to end - 1 to some points each. */
    void (*pairs)(const rffpk_pairs *, size_t begin, size_t end);
    /* The lines begin to end - 1 of a sparse matrix times a dense one. */
    void (*csr)(const rffpk_csr *, size_t begin, size_t end);
    /* The vector functions alone, for tests and benchmarks. `which` is 0: n sines of quarter
     * turns, then n cosines; 1: log2; 2: exp2. */
    void (*vecmath)(int which, const void *in, void *out, size_t n);
} rffpk_kernels;

/* Numbers that the length of a line of a matrix for `skinny` is a multiple of. */
#define RFFPK_SKINNY_STRIDE (RFFPK_SKINNY_BYTES / 4)

#define RFFPK_ALIGN                                                                                \
    64 /* of `prepared`, `workspace` and matrices: a cache line, the widest vector */

#endif
