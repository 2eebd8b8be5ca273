/* Preloaded: one call of malloc, calloc or realloc fails, by its number among all calls
 * that count.
 * Calls count if they ask for many bytes, or come from a range of code addresses. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static long left = -1; /* calls before the call that fails; negative: none fails */
static size_t least;
static uintptr_t low, high;

static int fails(size_t bytes, void *caller)
{
    if (bytes < least && ((uintptr_t)caller < low || (uintptr_t)caller >= high))
        return 0;
    if (__atomic_load_n(&left, __ATOMIC_RELAXED) < 0 ||
        __atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) != 0)
        return 0;
    errno = ENOMEM;
    return 1;
}

void count_calls(size_t bytes, uintptr_t begin, uintptr_t end)
{
    least = bytes;
    low = begin;
    high = end;
}

void fail_after(long calls) { __atomic_store_n(&left, calls, __ATOMIC_RELAXED); }

long calls_left(void) { return __atomic_load_n(&left, __ATOMIC_RELAXED); }

void *malloc(size_t n) { return fails(n, __builtin_return_address(0)) ? NULL : __libc_malloc(n); }

void *calloc(size_t n, size_t size)
{
    return fails(n * size, __builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *memory, size_t n)
{
    return fails(n, __builtin_return_address(0)) ? NULL : __libc_realloc(memory, n);
}
