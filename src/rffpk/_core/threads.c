/* Loops run by threads of the package by default, and by OpenMP in builds with -Dthreads=openmp.
 *
 * Threads of the package sleep while they wait. Threads of OpenMP spin while they wait: on a busy
 * machine short loops of two threads then take many times as long as one thread
 * (docs/maintainers/benchmarks.md). A forked child starts its own threads, where GNU's OpenMP waits
 * forever for threads of the parent. Nested loops and several callers share one limit of threads,
 * while each caller of OpenMP has a team. The package loads no second OpenMP runtime beside the
 * runtime of scikit-learn or BLAS. Both builds give equal bits, because results are merged in the
 * order of the items. */
#include <Python.h> /* Python.h must come first; its locks and threads are portable */

#include "places.h"
#include "threads.h"

#include <stdint.h>
#include <stdlib.h>

#ifdef RFFPK_OPENMP
#include <omp.h>
enum { HAS_OPENMP = 1 };
static double seconds(void) { return omp_get_wtime(); }
#else
#ifdef _WIN32
#include <windows.h>
#else
#include <time.h>
#endif
enum { HAS_OPENMP = 0 };
/* Return the wall time of a clock that never goes back. clock() would sum the times of all
 * threads. */
static double seconds(void)
{
#ifdef _WIN32 /* POSIX clocks would need another library there */
    return (double)GetTickCount64() / 1000;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#endif
}
#endif

/* Statuses of a loop. LOST: a forked child lacks the helpers. PAUSED: the threads of OpenMP leave
 * their region. */
enum { LOST = -2, PAUSED = -3 };
#define SECONDS_BETWEEN_SIGNALS 0.05

/* A thread that waits until another thread releases its lock. */
typedef struct rffpk_sleeper {
    PyThread_type_lock wake;
    struct rffpk_sleeper *next;
} sleeper;

/* The lock of all variables below, and of the state of loops. It is held for less than a
 * microsecond, and no thread waits for the GIL while it holds the lock. */
static PyThread_type_lock guard;
static rffpk_loop *loops; /* loops that helpers may join */
static sleeper *idle;     /* helpers without work */
static size_t n_helpers;  /* in all */
static size_t n_running;  /* threads inside loops */
static int forked;        /* this process is the child of a fork */

static void lock(void) { PyThread_acquire_lock(guard, WAIT_LOCK); }
static void unlock(void) { PyThread_release_lock(guard); }

static PyThread_type_lock new_wake(void)
{
    PyThread_type_lock wake = PyThread_allocate_lock();
    if (wake)
        PyThread_acquire_lock(wake, WAIT_LOCK);
    return wake;
}

static void wait_in(sleeper **list, sleeper *self)
{
    self->next = *list;
    *list = self;
    unlock();
    PyThread_acquire_lock(self->wake, WAIT_LOCK);
    lock();
}

static void wake(sleeper **list, size_t most)
{
    for (; *list && most; most--) {
        sleeper *first = *list;
        *list = first->next;
        PyThread_release_lock(first->wake);
    }
}

/* ---- items ----------------------------------------------------------------------------------- */

/* Record that an item has finished. Its results wait until all earlier items are merged. One thread
 * merges at a time, without the guard. */
static void finish(rffpk_loop *loop, size_t item, size_t buffer)
{
    loop->finished[item % loop->n_buffers] = buffer + 1;
    if (loop->merging)
        return;
    loop->merging = 1;
    for (;;) {
        size_t *place = &loop->finished[loop->n_merged % loop->n_buffers];
        size_t first = *place;
        if (!first)
            break;
        *place = 0;
        unlock();
        loop->merge(loop->context, first - 1);
        lock();
        loop->n_merged++;
        loop->free[loop->n_free++] = first - 1; /* used next, because it is in the cache */
        wake(&loop->waiting, SIZE_MAX);
    }
    loop->merging = 0;
}

static int check_signals(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    int status = PyErr_CheckSignals();
    PyGILState_Release(state);
    return status;
}

static int is_time(double *last)
{
    const double now = seconds();
    if (now - *last < SECONDS_BETWEEN_SIGNALS)
        return 0;
    *last = now;
    return 1;
}

/* Run items until none is left. The guard is held before and after. */
static void run_items(rffpk_loop *loop, sleeper *self, size_t thread)
{
    int signals = loop->signals && thread == 0;
    double last = signals ? seconds() : 0;
    while (!loop->status && loop->next_item < loop->n_items) {
        size_t item, buffer = 0;
        int status, pause = 0;
        if (loop->merge) {
            if (!loop->n_free) { /* wait until the slowest item is merged */
                wait_in(&loop->waiting, self);
                continue;
            }
            buffer = loop->free[--loop->n_free];
        }
        item = loop->next_item++;
        unlock();
        status = loop->run(loop->context, item, thread, buffer);
        if (signals && !status && is_time(&last)) {
            pause = loop->in_region;
            status = pause ? 0 : check_signals();
        }
        lock();
        if (!status && loop->merge)
            finish(loop, item, buffer);
        if (pause && !loop->status)
            loop->status = PAUSED;
        if (status && loop->status != -1) /* -1: a Python exception is set */
            loop->status = status;
        if (loop->status)
            wake(&loop->waiting, SIZE_MAX);
    }
}

/* ---- OpenMP ---------------------------------------------------------------------------------- */

#ifdef RFFPK_OPENMP
static void run_in_region(rffpk_loop *loop, sleeper *caller)
{
    const int thread = omp_get_thread_num();
    sleeper other = {NULL, NULL};
    if (thread && !(other.wake = new_wake()))
        return; /* out of memory: the other threads take all items */
    lock();
    run_items(loop, thread ? &other : caller, (size_t)thread);
    unlock();
    if (thread)
        PyThread_free_lock(other.wake);
}

/* Signal handlers may fork, and a child would wait at the end of the region for threads that it
 * lacks. So handlers run outside the region, and all threads leave the region when it is time to
 * check for signals. */
static void run_by_team(rffpk_loop *loop, sleeper *self)
{
    size_t others;
    lock();
    others = loop->n_threads > n_running ? loop->n_threads - n_running : 0;
    n_running += others;
    unlock();
    loop->in_region = 1;
    do {
        loop->status = 0;
#pragma omp parallel num_threads((int)others + 1)
        run_in_region(loop, self);
    } while (loop->status == PAUSED && !(loop->status = check_signals()) && !forked);
    lock();
    loop->in_region = 0;
    if (forked) /* a handler has forked: the child goes on alone */
        run_items(loop, self, 0);
    else
        n_running -= others;
    unlock();
}

#else
static void run_by_team(rffpk_loop *loop, sleeper *self) { (void)loop, (void)self; }
#endif

/* ---- helpers --------------------------------------------------------------------------------- */

static rffpk_loop *loop_to_join(void)
{
    rffpk_loop *loop;
    for (loop = loops; loop; loop = loop->next)
        if (!loop->status && loop->next_item < loop->n_items && loop->n_joined < loop->n_threads &&
            n_running < loop->n_threads)
            break;
    return loop;
}

static void helper(void *argument)
{
    sleeper *self = argument;
    rffpk_leave_place();
    lock();
    for (;;) {
        rffpk_loop *loop = loop_to_join();
        if (!loop) {
            wait_in(&idle, self);
            continue;
        }
        n_running++;
        loop->n_helpers++;
        run_items(loop, self, loop->n_joined++);
        n_running--;
        loop->n_helpers--;
        wake(&loop->waiting, SIZE_MAX);
    }
}

static int start_helper(void)
{
    sleeper *self = malloc(sizeof *self);
    if (!self)
        return 0;
    self->wake = new_wake();
    if (self->wake) {
        if (PyThread_start_new_thread(helper, self) != PYTHREAD_INVALID_THREAD_ID) {
            n_helpers++;
            return 1;
        }
        PyThread_free_lock(self->wake);
    }
    free(self);
    return 0;
}

/* Open the loop to helpers. If there are fewer helpers than the loop may have, it only takes
 * longer. */
static void open_loop(rffpk_loop *loop)
{
    loop->next = loops;
    loops = loop;
    while (n_helpers < loop->n_threads - 1 && start_helper())
        ;
    if (n_running < loop->n_threads)
        wake(&idle, loop->n_threads - n_running);
}

static void close_loop(rffpk_loop *loop, sleeper *self)
{
    rffpk_loop **place = &loops;
    while (*place && *place != loop)
        place = &(*place)->next;
    if (*place) /* not after a fork */
        *place = loop->next;
    while (loop->n_helpers)
        wait_in(&loop->waiting, self);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Initialize the state of a loop. Return 0 if there is no memory. */
static int begin_loop(rffpk_loop *loop)
{
    loop->next_item = loop->n_merged = loop->n_free = loop->n_helpers = 0;
    loop->n_joined = 1;
    loop->merging = loop->status = loop->in_region = 0;
    loop->waiting = NULL;
    loop->finished = calloc(2 * loop->n_buffers + 1, sizeof *loop->finished);
    if (!loop->finished)
        return 0;
    loop->free = loop->finished + loop->n_buffers;
    while (loop->n_free < loop->n_buffers) {
        loop->free[loop->n_free] = loop->n_buffers - 1 - loop->n_free;
        loop->n_free++;
    }
    return 1;
}

int rffpk_run_loop(rffpk_loop *loop)
{
    sleeper self = {NULL, NULL};
    PyThreadState *python;
    int alone = loop->n_threads < 2;
    int team = HAS_OPENMP && !alone && !loop->calls_python && !forked;
    if (!alone)
        self.wake = new_wake();
    if (!begin_loop(loop) || !(alone || self.wake)) {
        loop->status = -1;
        PyErr_NoMemory();
        goto end;
    }
    lock();
    n_running++;
    if (!alone && !team)
        open_loop(loop);
    unlock();
    python = PyEval_SaveThread();
    if (team)
        run_by_team(loop, &self);
    lock();
    if (!team)
        run_items(loop, &self, 0);
    if (!alone && !team)
        close_loop(loop, &self);
    if (n_running) /* not after a fork */
        n_running--;
    if (loops)
        wake(&idle, 1);
    unlock();
    PyEval_RestoreThread(python);
    if (loop->status == LOST) {
        loop->status = -1;
        PyErr_SetString(PyExc_RuntimeError, "a signal handler forked the process inside a loop: "
                                            "the child lacks the threads that shared it");
    }
end:
    if (self.wake)
        PyThread_free_lock(self.wake);
    free(loop->finished);
    return loop->status;
}

int rffpk_threads_begin(void)
{
    guard = PyThread_allocate_lock();
    return guard ? 0 : -1;
}

void rffpk_threads_after_fork(void)
{
    rffpk_threads_begin();
    for (rffpk_loop *loop = loops; loop; loop = loop->next) {
        loop->status = LOST;
        loop->n_helpers = 0;
    }
    loops = NULL;
    idle = NULL;
    n_helpers = n_running = 0;
    forked = 1;
}

const char *rffpk_threads_by(void) { return HAS_OPENMP ? "openmp" : "own"; }
