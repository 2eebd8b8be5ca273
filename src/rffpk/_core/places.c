#define _GNU_SOURCE /* of sched.h */

#include "places.h"

#ifdef RFFPK_OPENMP
#include <omp.h>
#include <sched.h>

int rffpk_bound_threads(void)
{
    const int processors = omp_get_num_procs(), threads = omp_get_max_threads();
    if (omp_get_proc_bind() == omp_proc_bind_false)
        return 0;
    return processors < threads ? processors : threads;
}

void rffpk_leave_place(void)
{
#ifdef __linux__
    cpu_set_t everywhere;
    int processors[CPU_SETSIZE];
    CPU_ZERO(&everywhere);
    for (int place = 0; place < omp_get_num_places(); place++) {
        const int n = omp_get_place_num_procs(place);
        if (n > CPU_SETSIZE)
            return;
        omp_get_place_proc_ids(place, processors);
        for (int i = 0; i < n; i++)
            CPU_SET(processors[i], &everywhere);
    }
    if (CPU_COUNT(&everywhere))
        sched_setaffinity(0, sizeof everywhere, &everywhere);
#endif
}
#else
int rffpk_bound_threads(void) { return 0; }
void rffpk_leave_place(void) {}
#endif
