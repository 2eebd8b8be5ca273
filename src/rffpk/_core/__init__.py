"""The compiled core: the tile (C), its variants by instruction set, and threads (Cython)."""

from rffpk._core._pass import (
    HARD,
    ISA,
    POWER,
    SKINNY_STRIDE,
    SLOT_ROWS,
    STAGES,
    TYPICALITY,
    empty_matrix,
    fused_pass,
    isa_levels,
    max_threads,
    openmp_version,
    skinny_product,
    vecmath,
    weigh_products,
)

__all__ = [
    "HARD",
    "ISA",
    "POWER",
    "SKINNY_STRIDE",
    "SLOT_ROWS",
    "STAGES",
    "TYPICALITY",
    "empty_matrix",
    "fused_pass",
    "isa_levels",
    "max_threads",
    "openmp_version",
    "skinny_product",
    "vecmath",
    "weigh_products",
]
