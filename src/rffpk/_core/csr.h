/* The product of a sparse matrix and a dense matrix. */
#ifndef RFFPK_CSR_H
#define RFFPK_CSR_H

#include "simd.h"

/* Vectors of a line that are computed at a time, and how many entries ahead lines are fetched. */
enum { CSR_VECTORS = 4, CSR_AHEAD = 8 };

/* Compute `count` vectors, at the columns `at`, of the lines begin to end - 1. count is a constant
 * at every call. Terms are added in the order of the entries. */
INLINE void csr_columns(const int count, const rffpk_csr *pr, size_t begin, size_t end,
                        const size_t *at)
{
    const real *values = pr->values, *v = pr->v;
    for (size_t i = begin; i < end; i++) {
        vec sum[CSR_VECTORS];
        UNROLL
        for (int j = 0; j < count; j++)
            sum[j] = splat(0);
        for (int64_t e = pr->ends[i]; e < pr->ends[i + 1]; e++) {
            const real *line = v + (size_t)pr->columns[e] * pr->q, value = values[e];
            if (e + CSR_AHEAD < pr->ends[end]) {
                const real *ahead = v + (size_t)pr->columns[e + CSR_AHEAD] * pr->q;
                UNROLL
                for (int j = 0; j < count; j++)
                    PREFETCH(ahead + at[j]);
            }
            UNROLL
            for (int j = 0; j < count; j++)
                sum[j] += load_anywhere(line + at[j]) * value;
        }
        UNROLL
        for (int j = 0; j < count; j++)
            memcpy((real *)pr->out + i * pr->q + at[j], &sum[j], sizeof sum[j]);
    }
}

/* Compute lines that have fewer columns than a vector has numbers. */
INLINE void csr_narrow(const size_t q, const rffpk_csr *pr, size_t begin, size_t end)
{
    const real *values = pr->values, *v = pr->v;
    for (size_t i = begin; i < end; i++) {
        real sum[W] = {0};
        for (int64_t e = pr->ends[i]; e < pr->ends[i + 1]; e++)
            for (size_t f = 0; f < q; f++)
                sum[f] += values[e] * v[(size_t)pr->columns[e] * q + f];
        memcpy((real *)pr->out + i * q, sum, q * sizeof(real));
    }
}

/* Compute the lines begin to end - 1. The last vector of a line ends with the line, and may overlap
 * the vector before it. */
static void csr_lines(const rffpk_csr *pr, size_t begin, size_t end)
{
    if (pr->q < W) {
        if (pr->q == 1)
            csr_narrow(1, pr, begin, end);
        else
            csr_narrow(pr->q, pr, begin, end);
        return;
    }
    for (size_t from = 0; from < pr->q; from += CSR_VECTORS * W) {
        size_t at[CSR_VECTORS];
        int count = 0;
        for (size_t col = from; col < pr->q && count < CSR_VECTORS; col += W)
            at[count++] = col + W <= pr->q ? col : pr->q - W;
        switch (count) {
        case 1: csr_columns(1, pr, begin, end, at); break;
        case 2: csr_columns(2, pr, begin, end, at); break;
        case 3: csr_columns(3, pr, begin, end, at); break;
        case 4: csr_columns(4, pr, begin, end, at); break;
        }
    }
}

#endif
