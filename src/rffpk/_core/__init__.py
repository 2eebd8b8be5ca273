"""The compiled core: the pass in C, one build per instruction set, and its threads."""

from rffpk._core._pass import (
    HARD,
    MOST_NEIGHBOURS,
    POWER,
    SLOT_ROWS,
    STAGES,
    TYPICALITY,
    fused_pass,
)
from rffpk._core._products import SKINNY_STRIDE, empty_matrix, skinny_product, weigh_products
from rffpk._core._runtime import (
    bound_threads,
    call_all,
    isa,
    isa_levels,
    threads_by,
    use_isa,
    use_thread_work,
    vecmath,
)
from rffpk._core._steps import count_distinct, take_steps

__all__ = [
    "HARD",
    "MOST_NEIGHBOURS",
    "POWER",
    "SKINNY_STRIDE",
    "SLOT_ROWS",
    "STAGES",
    "TYPICALITY",
    "bound_threads",
    "call_all",
    "count_distinct",
    "empty_matrix",
    "fused_pass",
    "isa",
    "isa_levels",
    "skinny_product",
    "take_steps",
    "threads_by",
    "use_isa",
    "use_thread_work",
    "vecmath",
    "weigh_products",
]
