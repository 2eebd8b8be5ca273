/* Loops over items that several threads share: the caller, and helper threads that the process
 * keeps.
 *
 * Between loops a helper sleeps on a lock of Python. No thread ever waits by spinning. So the loops
 * cost other work on the machine only the processors that they use. Threads take the items in
 * order, one at a time. The caller takes items, too, so that it never waits for an item that has
 * not begun. At the end of a loop it waits only for the items that are running.
 *
 * A loop has a limit of threads. No helper joins it while as many threads run in loops. Threads of
 * nested loops and of other callers count, too.
 *
 * In builds with OpenMP, loops that run no Python use a team of OpenMP threads in place of helpers.
 * The team has as many threads as may join at the beginning. GNU's OpenMP waits forever for the
 * threads that a forked child lacks, so children use helpers. */
#ifndef RFFPK_THREADS_H
#define RFFPK_THREADS_H

#include <stddef.h>

typedef struct rffpk_loop {
    /* Run an item without the GIL. Items that run at the same time have different values of
     * `thread`, below n_threads, and different buffers if there is something to merge. Return 0, or
     * a positive status that ends the loop. */
    int (*run)(void *context, size_t item, size_t thread, size_t buffer);
    /* Merge a buffer. It is called after each item, in the order of the items, whichever thread ran
     * them. Then the buffer is used again. NULL: nothing to merge. */
    void (*merge)(void *context, size_t buffer);
    void *context;
    size_t n_items, n_threads, n_buffers;
    int signals;      /* 1: the caller is the main thread of Python, which handles signals */
    int calls_python; /* 1: items may run Python, which may fork */

    /* the state of the loop, which only threads.c uses */
    size_t next_item, n_merged, n_free, n_joined, n_helpers;
    size_t *finished, *free;
    int merging, status, in_region;
    struct rffpk_sleeper *waiting;
    struct rffpk_loop *next;
} rffpk_loop;

/* Run a loop. Return 0, the nonzero status of an item, or -1 with a Python exception: out of
 * memory, or an exception of a signal handler, such as KeyboardInterrupt. The caller holds the GIL,
 * which is released during the loop. */
int rffpk_run_loop(rffpk_loop *);

const char *rffpk_threads_by(void); /* "own" or "openmp" */

int rffpk_threads_begin(void);       /* once in a process; -1: out of memory */
void rffpk_threads_after_fork(void); /* in the child, which lacks the helpers */

#endif
