/* Places of OpenMP. Where OMP_PLACES or OMP_PROC_BIND ask for it, its runtime binds the main thread
 * to one place as soon as it is loaded, and threads that are started inherit this. */
#ifndef RFFPK_PLACES_H
#define RFFPK_PLACES_H

int rffpk_bound_threads(void); /* as many as it binds by default; 0 where it binds none */
void rffpk_leave_place(void);  /* lets this thread run in all places */

#endif
