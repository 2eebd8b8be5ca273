"""The compiled core: the tile (C), its variants by instruction set, and threads (Cython)."""

from rffpk._core._pass import (
    HARD,
    ISA,
    POWER,
    SLOT_ROWS,
    STAGES,
    TYPICALITY,
    fused_pass,
    isa_levels,
    max_threads,
    openmp_version,
    vecmath,
    weigh_products,
)

__all__ = [
    "HARD",
    "ISA",
    "POWER",
    "SLOT_ROWS",
    "STAGES",
    "TYPICALITY",
    "fused_pass",
    "isa_levels",
    "max_threads",
    "openmp_version",
    "vecmath",
    "weigh_products",
]
