/* The variants of the pass in this build, by instruction set, and what OpenMP gives. */
#ifndef RFFPK_DISPATCH_H
#define RFFPK_DISPATCH_H

#include "contract.h"

typedef struct {
    const char *name;
    int (*runs)(void); /* 1 where the processor and the operating system support it */
    const rffpk_kernels *f32, *f64;
} rffpk_variant;

size_t rffpk_n_variants(void); /* narrowest first; the first runs everywhere */
const rffpk_variant *rffpk_variant_at(size_t i);

int rffpk_openmp_version(void);     /* the _OPENMP date, 0 without OpenMP */
int rffpk_openmp_max_threads(void); /* 1 without OpenMP */
int rffpk_thread_number(void);      /* 0 without OpenMP */

/* total[i] += slots[0][i] + slots[1][i] + ..., in that order, for i in [from, to) */
void rffpk_merge(double *total, const double *slots, size_t n_slots, size_t width, size_t from,
                 size_t to);

#endif
