"""The compiled core: the pass in C, one build per instruction set, and its threads."""

from rffpk._core._pass import (
    HARD,
    MOST_NEIGHBOURS,
    POWER,
    SKINNY_STRIDE,
    SLOT_ROWS,
    STAGES,
    TYPICALITY,
    call_all,
    empty_matrix,
    fused_pass,
    isa,
    isa_levels,
    skinny_product,
    use_isa,
    vecmath,
    weigh_products,
)

__all__ = [
    "HARD",
    "MOST_NEIGHBOURS",
    "POWER",
    "SKINNY_STRIDE",
    "SLOT_ROWS",
    "STAGES",
    "TYPICALITY",
    "call_all",
    "empty_matrix",
    "fused_pass",
    "isa",
    "isa_levels",
    "skinny_product",
    "use_isa",
    "vecmath",
    "weigh_products",
]
