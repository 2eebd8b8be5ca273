"""The compiled core: the pass in C, one build per instruction set, and its threads."""

from rffpk._core._pass import BOTH as BOTH
from rffpk._core._pass import HARD as HARD
from rffpk._core._pass import MOST_NEIGHBOURS as MOST_NEIGHBOURS
from rffpk._core._pass import POWER as POWER
from rffpk._core._pass import SLOT_ROWS as SLOT_ROWS
from rffpk._core._pass import STAGES as STAGES
from rffpk._core._pass import TYPICALITY as TYPICALITY
from rffpk._core._pass import fused_pass as fused_pass
from rffpk._core._products import SKINNY_STRIDE as SKINNY_STRIDE
from rffpk._core._products import empty_matrix as empty_matrix
from rffpk._core._products import skinny_product as skinny_product
from rffpk._core._products import weigh_products as weigh_products
from rffpk._core._runtime import bound_threads as bound_threads
from rffpk._core._runtime import call_all as call_all
from rffpk._core._runtime import isa as isa
from rffpk._core._runtime import isa_levels as isa_levels
from rffpk._core._runtime import threads_by as threads_by
from rffpk._core._runtime import use_isa as use_isa
from rffpk._core._runtime import use_thread_work as use_thread_work
from rffpk._core._runtime import vecmath as vecmath
from rffpk._core._steps import CELL_BLOCK as CELL_BLOCK
from rffpk._core._steps import count_distinct as count_distinct
from rffpk._core._steps import near_pass as near_pass
from rffpk._core._steps import nearest_in_cells as nearest_in_cells
from rffpk._core._steps import squares_of_pairs as squares_of_pairs
from rffpk._core._steps import take_steps as take_steps
