/* The variants of the pass in this build, by instruction set. */
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

#endif
