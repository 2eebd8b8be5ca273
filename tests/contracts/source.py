"""Where rows come from, which of them starts see, and what is kept of them."""

# Centroids that a start begins with follow a distribution.
from rffpk.anneal import starts

# Principal components leave out a bounded part of the cost.
from rffpk.anneal.decompositions import compressed

# Rows that only kernel values tell, whose coordinates keep to the memory limit.
from rffpk.anneal.kernel_steps import KernelRows

# Workers of Dask have as many threads as a fit may have, and leave its configuration as it was.
# Blocks are read ahead in a thread that ends, and digests see the order of rows.
from rffpk.rows import dask_workers, source

# Samples are uniform or follow the weights, and smaller ones are parts of larger ones.
from rffpk.rows.sample import Sampling, sample_tables

# How many bytes a fit may keep.
from rffpk.rows.store import Storage

# A file of rows is read exactly, or an error names it.
from rffpk.rows.table_files import read_table

__all__ = ["KernelRows", "Sampling", "Storage", "compressed", "dask_workers",
           "read_table", "sample_tables", "source", "starts"]  # fmt: skip
