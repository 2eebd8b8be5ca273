"""The compiled core: the pass in C, one build per instruction set, and its threads in Cython."""

from rffpk._core._pass import (
    HARD,
    POWER,
    SKINNY_STRIDE,
    SLOT_ROWS,
    STAGES,
    TYPICALITY,
    empty_matrix,
    fused_pass,
    isa,
    isa_levels,
    max_threads,
    openmp_version,
    skinny_product,
    use_isa,
    vecmath,
    weigh_products,
)

__all__ = [
    "HARD",
    "POWER",
    "SKINNY_STRIDE",
    "SLOT_ROWS",
    "STAGES",
    "TYPICALITY",
    "empty_matrix",
    "fused_pass",
    "isa",
    "isa_levels",
    "max_threads",
    "openmp_version",
    "skinny_product",
    "use_isa",
    "vecmath",
    "weigh_products",
]
