/* Loops over items that several threads share: the caller and helpers, which the process keeps.
 *
 * A helper sleeps on a lock of Python between the loops; nobody ever waits by spinning, so that
 * other work on the machine costs no more than the processors that it takes. Threads take the items
 * in their order, one at a time. The caller takes items like the helpers, so that it waits for
 * none that has not begun: at the end of a loop for the items that are running, and for nothing
 * else. A helper joins no loop while as many threads as that loop may have run in loops, which
 * counts those of nested loops and of other callers.
 *
 * Built with OpenMP, loops that run no Python have a team of its threads in place of helpers, as
 * many as may join at the beginning. GNU's OpenMP waits for ever for the threads that the child of
 * a fork lacks, so children have helpers. */
#ifndef RFFPK_THREADS_H
#define RFFPK_THREADS_H

#include <stddef.h>

typedef struct rffpk_loop {
    /* Runs an item without the GIL. Of the items that run at once each has another `thread`,
     * below n_threads, and, where there is something to merge, another `buffer`. Returns 0, or a
     * status above 0 that ends the loop. */
    int (*run)(void *context, size_t item, size_t thread, size_t buffer);
    /* Called after each item, in the order of the items, whichever thread ran them; then the buffer
     * is used again. NULL: nothing to merge. */
    void (*merge)(void *context, size_t buffer);
    void *context;
    size_t n_items, n_threads, n_buffers;
    int signals;      /* 1: the caller is the main thread of Python, which handles signals */
    int calls_python; /* 1: items may run Python, which may fork */

    /* the state, of which only threads.c knows */
    size_t next_item, n_merged, n_free, n_joined, n_helpers;
    size_t *finished, *free;
    int merging, status, in_region;
    struct rffpk_sleeper *waiting;
    struct rffpk_loop *next;
} rffpk_loop;

/* 0, or the status of an item that is not 0, or -1 with an exception of Python: no memory, or one
 * of a handler of signals, such as KeyboardInterrupt. Needs the GIL, and releases it meanwhile. */
int rffpk_run_loop(rffpk_loop *);

const char *rffpk_threads_by(void); /* "own" or "openmp" */

int rffpk_threads_begin(void);       /* once in a process: 0, or -1 without memory */
void rffpk_threads_after_fork(void); /* in the child, which has none of the helpers */

#endif
