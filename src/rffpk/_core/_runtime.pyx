# cython: language_level=3, freethreading_compatible=True
# cython: cdivision=True
"""Functions that the modules of the core share: the variant in use, loops of several threads, and
arrays that C reads and fills."""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uintptr_t

from rffpk._core.headers cimport *

cdef extern from * nogil:
    """
    #ifndef RFFPK_DEBUG_BOUNDS
    #define RFFPK_DEBUG_BOUNDS 0
    #endif
    """
    enum:
        RFFPK_DEBUG_BOUNDS

import os
import threading
from contextvars import copy_context
from sys import is_finalizing

import numpy as np


cdef const rffpk_variant *variant = NULL  # the variant in use

# The types of small numbers. uint16 holds the bits of bfloat16, which NumPy lacks.
NUMBERS = {
    np.dtype(np.float16): RFFPK_FLOAT16,
    np.dtype(np.uint16): RFFPK_BFLOAT16,
    np.dtype(np.int8): RFFPK_INT8,
    np.dtype(np.uint8): RFFPK_UINT8,
}


def isa_levels():
    """Return the names of the compiled variants that this processor runs, narrowest first."""
    return [
        rffpk_variant_at(i).name.decode()
        for i in range(rffpk_n_variants())
        if rffpk_variant_at(i).runs()
    ]


def isa():
    """Return the name of the variant in use."""
    return variant.name.decode()


def use_isa(str name):
    """Use one of `isa_levels()` from now on. Return the name of the previous variant.

    For tests only: calls that run in other threads may use either variant.
    """
    global variant
    before = variant.name.decode() if variant != NULL else None
    if name not in isa_levels():
        raise ValueError(f"isa={name!r}: must be one of {isa_levels()}")
    for i in range(rffpk_n_variants()):
        if rffpk_variant_at(i).name.decode() == name:
            variant = rffpk_variant_at(i)
    return before


def _level_of_environment():
    """Return the widest level, or the widest level up to RFFPK_ISA."""
    levels = isa_levels()
    cap = os.environ.get("RFFPK_ISA")
    if not cap:
        return levels[-1]
    every = [rffpk_variant_at(i).name.decode() for i in range(rffpk_n_variants())]
    if cap not in every:
        raise ImportError(
            f"RFFPK_ISA={cap!r} names no compiled level; they are: {', '.join(every)}")
    allowed = set(every[: every.index(cap) + 1])
    return [level for level in levels if level in allowed][-1]


use_isa(_level_of_environment())


def _after_fork():
    rffpk_threads_after_fork()


if rffpk_threads_begin():
    raise MemoryError
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


cdef int run_loop(rffpk_loop *loop) except -1:
    """Run a loop. Return the nonzero status of an item, or 0."""
    loop.signals = threading.get_ident() == threading.main_thread().ident
    return rffpk_run_loop(loop)


cdef int share_items(run_item run, void *context, size_t n_items, int n_threads,
                     bint calls_python=False) except -1:
    """Run a loop without a merge. Return the status like `run_loop`."""
    cdef rffpk_loop loop
    loop.run = run
    loop.merge = NULL
    loop.context = context
    loop.n_items = n_items
    loop.n_threads = n_threads
    loop.n_buffers = 0
    loop.calls_python = calls_python
    return run_loop(&loop)


def threads_by():
    """Return who runs the threads of a pass: "own" for the package, or "openmp" for OpenMP."""
    return rffpk_threads_by().decode()


def bound_threads():
    """Return the number of threads that OpenMP binds to places by default; 0 if it binds none. A
    bound thread has an affinity mask with only its place."""
    return rffpk_bound_threads()


cdef double thread_work = RFFPK_THREAD_WORK


def use_thread_work(double work):
    """Set the multiply-adds that each thread of a loop must have. Return the previous number.

    For tests, which want threads in small loops.
    """
    global thread_work
    before, thread_work = thread_work, work
    return before


cdef int threads_for(int n_threads, size_t n_items, double work) noexcept:
    """Return the number of threads, at most `n_threads`, for a loop of `work` multiply-adds."""
    if work < n_threads * thread_work:
        n_threads = <int>(work / thread_work)
    return <int>max(1, min(n_threads, n_items))


cdef int call_item(void *calls, size_t item, size_t thread, size_t buffer) noexcept nogil:
    with gil:
        function, items, contexts, results, errors = <tuple>calls
        try:
            results[item] = contexts[item].run(function, items[item])
        except BaseException as error:
            errors[item] = error
            return 1
    return 0


def call_all(function, list items, int n_threads):
    """Return [function(item) for item in items], computed by threads. The threads have the context
    variables of the caller, such as NumPy's handling of floating-point errors.

    If items fail, an interrupt is raised if there is one, else the error of the first failed item.
    """
    if is_finalizing():  # at exit threads cannot run Python
        n_threads = 1
    contexts = [copy_context() for _ in items]
    results, errors = [None] * len(items), [None] * len(items)
    calls = function, items, contexts, results, errors
    n_threads = max(1, min(n_threads, len(items)))
    if share_items(call_item, <void *>calls, len(items), n_threads, calls_python=True):
        raised = [error for error in errors if error is not None]
        raise next((error for error in raised if not isinstance(error, Exception)), raised[0])
    return results


cdef const rffpk_kernels *kernels_for(dtype) except NULL:
    if dtype == np.float32:
        return variant.f32
    if dtype == np.float64:
        return variant.f64
    raise TypeError(f"dtype must be float32 or float64, not {dtype}")


cdef int check_centroids(size_t k, dtype, str name="n_clusters") except -1:
    cdef size_t most = RFFPK_MOST_CENTROIDS_F64
    if dtype == np.float32:
        most = RFFPK_MOST_CENTROIDS_F32
    if k > most:
        raise ValueError(f"{name}={k}: must be <= {most} for {np.dtype(dtype)}")
    return 0


cdef const void *address(array) except? NULL:
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    PyBuffer_Release(&view)
    return view.buf


cdef const void *data(array, str name, dtype, tuple shape) except? NULL:
    """Return the address of an array. Check that C can read it with this dtype and shape."""
    flags = array.flags
    if array.dtype != dtype or array.shape != shape or not (flags.c_contiguous and flags.aligned):
        raise ValueError(
            f"{name} must be an aligned C-contiguous {np.dtype(dtype)} array of shape {shape}, "
            f"not {array.dtype} {array.shape}"
        )
    return address(array)


cdef const void *dense_rows(x, str name, dtype, size_t n, rffpk_number *numbers) except? NULL:
    """Return the address of dense rows, and set the type of their numbers, which may be small."""
    shape = n, x.shape[1]
    if not hasattr(x, "stored"):
        numbers[0] = RFFPK_REAL
        return data(x, name, dtype, shape)
    if dtype != x.dtype:
        raise ValueError(f"{name} has small numbers, must be {dtype}")
    numbers[0] = NUMBERS[x.stored.dtype]
    return data(x.stored, f"{name}.stored", x.stored.dtype, shape)


cdef void *filled(array, str name, dtype, tuple shape) except? NULL:
    """Return the address of an array that C fills, checked like `data`; NULL for None."""
    if array is None:
        return NULL
    if not array.flags.writeable:
        raise ValueError(f"{name} must be writeable")
    return <void *>data(array, name, dtype, shape)


DEBUG_BOUNDS = bool(RFFPK_DEBUG_BOUNDS)  # whether the next two functions check anything


cdef int check_indices(array, str name, size_t n) except -1:
    """Check that indices are from 0 to n - 1, because C reads and writes at these indices."""
    if RFFPK_DEBUG_BOUNDS and array.size and not (0 <= array.min() and array.max() < n):
        raise IndexError(f"{name} has {array.min()} to {array.max()}, must be from 0 to {n} - 1")
    return 0


cdef int check_ends(array, str name, size_t n) except -1:
    """Check that the ends of slices rise from 0 to at most n."""
    if RFFPK_DEBUG_BOUNDS and not (
            array[0] == 0 and array[-1] <= n and (array[1:] >= array[:-1]).all()):
        raise IndexError(f"{name} must rise from 0 to at most {n}")
    return 0


cdef void *aligned(array) except? NULL:
    cdef uintptr_t first = <uintptr_t>address(array)
    return <void *>((first + RFFPK_ALIGN - 1) // RFFPK_ALIGN * RFFPK_ALIGN)


cdef size_t padded(size_t n_bytes) noexcept:
    return (n_bytes + RFFPK_ALIGN - 1) // RFFPK_ALIGN * RFFPK_ALIGN


def vecmath(str name, array, out=None):
    """Compute "sincos" of quarter turns (2, n), "log2" or "exp2" of an array (n,), with the
    functions of the pass."""
    which = ("sincos", "log2", "exp2").index(name)
    shape = array.shape if which else (2, *array.shape)
    out = np.empty(shape, dtype=array.dtype) if out is None else out
    kernels_for(array.dtype).vecmath(
        which, data(array, "array", array.dtype, array.shape),
        filled(out, "out", array.dtype, shape), array.size)
    return out
