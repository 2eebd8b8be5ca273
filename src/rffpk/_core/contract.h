/* The contract between the computation (tile.c) and its callers (_pass.pyx). docs/math.md defines
 * the symbols. The NumPy twin, src/rffpk/_reference.py, uses the symbols of the page, too.
 *
 * One call of `run` visits the rows [begin, end) of a problem: features -> distances -> weights ->
 * sums. It allocates nothing and knows neither Python nor threads. The caller divides the rows into
 * slots, owns all memory, and decides the order of merging.
 *
 * `real` below is float or double, the type of every `void` array of one problem. F is the sum of
 * F_l over the views l. F_l is 2 D_l for random Fourier features, d_l for identity features, and
 * q_l for landmark features. */
#ifndef RFFPK_CONTRACT_H
#define RFFPK_CONTRACT_H

#include "tuning.h"

#include <stddef.h>
#include <stdint.h>

/* Increased by one when a type or function below changes, for packages that are compiled with
 * it. */
#define RFFPK_CONTRACT 3

enum rffpk_status { RFFPK_OK = 0, RFFPK_UNKNOWN_RULE = 1 };

/* How the squared distances d_j of a row become its weights v_j. TYPICALITY first replaces d_j by
 * d'_j = u_j^m d_j + (1-u_j)^m eta_j, with typicalities u_j = 1/(1 + (d_j/eta_j)^(1/(m-1))). The
 * power mean of d' follows, or the hard rule where s is -inf. All results are computed from d',
 * except `distances`, which has d. BOTH is HARD, with the soft total of POWER. */
enum rffpk_rule { RFFPK_POWER = 0, RFFPK_HARD = 1, RFFPK_TYPICALITY = 2, RFFPK_BOTH = 3 };

/* The stages of the work on a tile, in their order. A benchmark omits stages to measure the share
 * of each stage. Every other caller asks for all stages. */
enum rffpk_stage {
    RFFPK_LOAD = 1,    /* and transpose */
    RFFPK_PROJECT = 2, /* structured frequencies also load the rows here */
    RFFPK_SINCOS = 4,  /* identity features: shift and norms. Landmark features: also the nearest
                        * landmarks, their weights and the combination */
    RFFPK_DISTANCES = 8,
    RFFPK_WEIGHTS = 16,
    RFFPK_SUMS = 32,
    RFFPK_ALL_STAGES = 63
};

/* The types of the numbers of dense rows. Small types are widened to `real` while rows are
 * loaded. */
enum rffpk_number {
    RFFPK_REAL = 0,
    RFFPK_FLOAT16 = 1,
    RFFPK_BFLOAT16 = 2,
    RFFPK_INT8 = 3,
    RFFPK_UINT8 = 4
};

/* Landmark features: phi = sum_t z_t C_t over the r nearest landmarks y_t of a row x. The nearest
 * landmark comes first; equally near landmarks are in the order of t. The weights are z_t =
 * exp(-scale ||x - y_t||^2), divided by their sum. Weights below `least_weight` times the largest
 * weight of the row are 0. */
#define RFFPK_MOST_NEIGHBOURS 64
typedef struct {
    const void *points;      /* (n_landmarks, d) landmarks y, C order; NULL: none */
    const void *coordinates; /* (n_landmarks, q) rows C, C order; q is the d of the view */
    size_t n_landmarks, d;   /* d: columns of x and of the points */
    size_t n_neighbours;     /* r, at least 1, at most n_landmarks and RFFPK_MOST_NEIGHBOURS */
    double scale;            /* 0: each row has 1 / (2 mean of its r squared distances) */
    double least_weight;
} rffpk_landmarks;

typedef struct {
    const void *x;     /* (n, d) rows, C order; for sparse rows the values (indptr[n],) of the
                        * entries */
    const void *omega; /* (d, D) frequencies, C order; NULL: identity or structured features */
    const void *shift; /* (F_l,) subtracted from every feature vector */
    size_t d, D;       /* d is q for landmark features */
    /* Structured frequencies: omega' has blocks of p rows. Each block has the first d columns of
     * scale H S1 H S2 H S3. */
    const int8_t *signs; /* (ceil(D / p), 3, p): +1 and -1 of S3, S2, S1; NULL: not structured */
    double scale;
    size_t p;                  /* a power of two, at least d and 2 */
    rffpk_landmarks landmarks; /* points NULL: no landmarks; otherwise omega is NULL */
    /* Compressed sparse rows: row i has the entries indptr[i] to indptr[i + 1] - 1, at most one
     * entry for each column. Sparse rows have no landmarks. */
    const int64_t *indptr;  /* (n + 1,); NULL: the rows are dense */
    const int32_t *indices; /* (indptr[n],) columns of the entries */
    /* For dense rows without landmarks: */
    enum rffpk_number numbers; /* the type of x */
    int unit;                  /* whether rows are scaled to length one, zeros left as they are */
} rffpk_view;

/* Largest number of centroids k, and of landmarks of a view. A tile stores their indices as `real`,
 * and the results have int32_t. */
#define RFFPK_MOST_CENTROIDS_F32 (1 << 24)
#define RFFPK_MOST_CENTROIDS_F64 INT32_MAX

typedef struct {
    const rffpk_view *views;
    const double *alpha;  /* (L,) weights of the views in the distance */
    const void *theta;    /* (k, F) centroids, shifted like the features */
    const void *weight;   /* (n,) row weights p; NULL: all one */
    size_t n_views, k, F; /* n_views is L */
    enum rffpk_rule rule;
    double s;          /* exponent of the power mean; RFFPK_HARD ignores it */
    const double *eta; /* (k,) reference distances > 0, for RFFPK_TYPICALITY only */
    double m;          /* fuzzifier > 1, for RFFPK_TYPICALITY only */
    unsigned stages;   /* bits of rffpk_stage */
    /* (n, ceil(L / 8)): bit l % 8 of byte l / 8 of a row is 1 if the row has view l. NULL: all rows
     * have all views. A view that a row lacks adds nothing to its distances and sums, whatever x
     * has there. `eta` is then (L,): a reference distance for each view, shared by all centroids. A
     * row has the sum of alpha_l eta_l over its views. */
    const uint8_t *present;
    /* Lower bounds of distances (bounds.h), for RFFPK_HARD or _BOTH, many centroids, and one dense
     * view of weight 1. `basis` has orthonormal directions (q, F). `coordinates` (k, q + 1) has the
     * coordinates of the centroids, and the lengths of the remainders, rounded up. Distances beyond
     * `reach`, at least 1, times the least distance of the row are replaced by lower bounds. They
     * have no part in the power mean of the row. NULL: all distances are computed. */
    const void *basis, *coordinates;
    size_t q;
    double reach;
} rffpk_problem;

/* Whether the rule gives each row to a single cluster. */
static inline int rffpk_is_hard(const rffpk_problem *pr)
{
    return pr->rule == RFFPK_HARD || pr->rule == RFFPK_BOTH;
}

/* The number of lines of a tile that count rows: one, or one for each view if views are missing.
 * Each cluster has as many sums of counts. */
static inline size_t rffpk_counts(const rffpk_problem *pr) { return pr->present ? pr->n_views : 1; }

/* Sums over the rows, with g = p v u^m. u is 1 except for RFFPK_TYPICALITY. */
typedef struct {
    double *moments; /* (k, F + L + 1): N_j = sum g_j phi | Q_j1 .. Q_jL, Q_jl = sum g_j ||phi_l||^2
                      * | G_j = sum g_j. If views are missing: (k, F + 2 L), with G_j1 .. G_jL, sums
                      * over the rows that have the view. If the features are the columns of sparse
                      * rows: in an order that only `finish` knows */
    double *excess;  /* (k,): E_j = sum p v_j (1 - u_j)^m, 0 without typicality. If views are
                      * missing: (L,), sums over all j and the rows that have the view */
    double *totals;  /* (2,): the soft objective sum p M', the hard objective sum p min_j d_j */
} rffpk_sums;

/* Results of each row. NULL: the result is not wanted. */
typedef struct {
    int32_t *labels;         /* (n,) nearest centroid, the first among ties */
    void *memberships;       /* (n, k) d_j^s / sum_l d_l^s; one-hot under RFFPK_HARD and _BOTH */
    void *distances;         /* (n, k) squared distances, >= 0 */
    void *nearest;           /* (n,) least squared distance */
    void *second;            /* (n,) second least squared distance; inf where k is 1 */
    void *features;          /* (n, F) shifted features */
    int32_t *neighbours;     /* (n, R) nearest landmarks of all views with landmarks, side by side:
                              * R is the sum of their n_neighbours */
    void *neighbour_weights; /* (n, R) their weights z */
} rffpk_rows;

/* Rows that are known only by their inner products with the centroids, as with an exact kernel. */
typedef struct {
    const void *products; /* (k, n): <phi_i, theta_j> */
    const void *diagonal; /* (n,): ||phi_i||^2 */
    const void *squares;  /* (k,): ||theta_j||^2 */
    void *weights;        /* (k, n) to fill with p v; may be `products` */
    int32_t *labels;      /* (n,) to fill, or NULL */
} rffpk_gram;

/* Rows with known centroids. Each row is compared only with the centroids near its own centroid.
 * The features are the columns of one view. */
typedef struct {
    const void *x;             /* (n, d) */
    enum rffpk_number numbers; /* the type of x */
    int unit;                  /* whether rows are scaled to length one, zeros left as they are */
    const void *shift;         /* (d,) */
    const void *theta;         /* (k, d), shifted */
    const void *weight;        /* (n,), NULL for ones */
    const int32_t *near;       /* (k, n_near): the centroids that the rows of a cluster are compared
                                * with */
    const int32_t *order;      /* (n,): the rows, cluster by cluster */
    const int64_t *ends;       /* (k + 1,): rows of cluster j are order[ends[j]:ends[j + 1]] */
    size_t d, n_near;
    int32_t *labels; /* (n,) to fill: the nearest compared centroid, the first among ties */
    void *nearest;   /* (n,) to fill: the least squared distance */
    void *second;    /* (n,) to fill: the second least squared distance; inf where n_near is 1 */
    double *stay;    /* (k, d) to fill: sum p x of the rows that keep their centroid */
} rffpk_near;

/* The nearest points of each row, searched in a few cells of the points. Each cell has a center.
 * Its points y, minus the center, are in blocks of RFFPK_CELL_BLOCK. */
#define RFFPK_CELL_BLOCK 64
typedef struct {
    const void *x;          /* (n, d) */
    const void *centers;    /* (c, d) */
    const void *blocks;     /* (b, d, RFFPK_CELL_BLOCK): -2 y, transposed; aligned */
    const void *squares;    /* (b, RFFPK_CELL_BLOCK): ||y||^2, inf where there is no point;
                             * aligned */
    const int32_t *numbers; /* (b, RFFPK_CELL_BLOCK): numbers of the points */
    const int64_t *ends;    /* (c + 1,): cell j has the blocks ends[j] to ends[j + 1] - 1 */
    const int32_t *visits;  /* (n, p): the cells that each row visits, the nearest cell first */
    const int64_t *order;   /* (n,): the rows, in an order that puts rows with equal cells
                             * together */
    size_t n, d, c, p, r;
    int32_t *nearest; /* (n, r) to fill: numbers of the nearest points. The nearest point comes
                       * first; the rest is not sorted. Among ties, points that the row met first.
                       * -1 where the row meets fewer than r points */
} rffpk_cells;

/* Rows, and for each row the numbers of r points. The caller has checked the numbers. */
typedef struct {
    const void *x;        /* (n, d) */
    const void *points;   /* (m, d) */
    const int32_t *index; /* (n, r) */
    size_t d, r;
    void *squares; /* (n, r) to fill: squared distances */
} rffpk_pairs;

/* A sparse matrix (n, m) in CSR, times a dense matrix (m, q). */
typedef struct {
    const void *values;     /* of the entries */
    const int32_t *columns; /* of the entries */
    const int64_t *ends;    /* (n + 1,): line i has the entries ends[i] to ends[i + 1] - 1 */
    const void *v;          /* (m, q) */
    void *out;              /* (n, q) to fill */
    size_t q;
} rffpk_csr;

/* The functions compiled for one instruction set and type. */
typedef struct {
    size_t (*prepared_bytes)(const rffpk_problem *);
    size_t (*workspace_bytes)(const rffpk_problem *); /* of one thread */
    size_t (*sums_numbers)(const rffpk_problem *);    /* numbers in the moments that `run` fills */
    void (*prepare)(const rffpk_problem *, void *prepared);
    int (*run)(const rffpk_problem *, const void *prepared, size_t begin, size_t end,
               const rffpk_sums *, const rffpk_rows *, void *workspace);
    /* Convert the moments of `run`, added over all slots, to moments (k, F + L + 1). */
    void (*finish)(const rffpk_problem *, const double *sums, double *moments);
    /* Only the weights, for a problem without views, by RFFPK_POWER or RFFPK_HARD. Fills the totals
     * (2,) of rffpk_sums. */
    int (*weigh)(const rffpk_problem *, const rffpk_gram *, size_t n, size_t begin, size_t end,
                 double *totals, void *workspace);
    /* The skinny product: out[:, begin:end] = coefficients matrix[:, begin:end]. The coefficients
     * (lines, depth), few lines, are packed beforehand. The matrix (depth, stride) is aligned;
     * begin and stride are multiples of RFFPK_SKINNY_STRIDE. */
    size_t (*skinny_bytes)(size_t lines); /* of workspace */
    void (*skinny_pack)(const void *coefficients, size_t lines, size_t depth, void *packed);
    void (*skinny)(const void *packed, const void *matrix, size_t lines, size_t depth,
                   size_t stride, size_t begin, size_t end, void *out, size_t out_stride,
                   void *workspace);
    /* Compare the rows of one cluster with the centroids near its own. */
    size_t (*near_bytes)(const rffpk_near *); /* of workspace */
    void (*near)(const rffpk_near *, size_t cluster, void *workspace);
    /* Find the nearest points in cells, for at most RFFPK_CELL_ROWS rows order[begin:end]. */
    size_t (*cells_bytes)(const rffpk_cells *); /* of workspace */
    void (*cells)(const rffpk_cells *, size_t begin, size_t end, void *workspace);
    /* Compute the distances of the rows begin to end - 1 to the points of each row. */
    void (*pairs)(const rffpk_pairs *, size_t begin, size_t end);
    /* Compute the lines begin to end - 1 of the product of a sparse and a dense matrix. */
    void (*csr)(const rffpk_csr *, size_t begin, size_t end);
    /* The vector functions alone, for tests and benchmarks. `which` is 0: n sines of quarter
     * turns, then n cosines; 1: log2; 2: exp2. */
    void (*vecmath)(int which, const void *in, void *out, size_t n);
} rffpk_kernels;

/* A line of the matrix of `skinny` has a multiple of this many numbers. */
#define RFFPK_SKINNY_STRIDE (RFFPK_SKINNY_BYTES / 4)

#define RFFPK_ALIGN                                                                                \
    64 /* alignment of `prepared`, `workspace` and matrices: a cache line, the widest vector */

#endif
