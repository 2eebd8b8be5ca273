/* Places of OpenMP. If OMP_PLACES or OMP_PROC_BIND ask for places, the runtime of OpenMP binds the
 * main thread to one place as soon as it is loaded. Threads that start later inherit the
 * binding. */
#ifndef RFFPK_PLACES_H
#define RFFPK_PLACES_H

int rffpk_bound_threads(void); /* threads that OpenMP binds by default; 0: it binds none */
void rffpk_leave_place(void);  /* let this thread run in all places */

#endif
