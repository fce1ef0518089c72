/* A pool of threads: one call runs a function for every task number. */
#ifndef CLOSERLOOK_PARALLEL_H
#define CLOSERLOOK_PARALLEL_H

#include <stdint.h>

#include "call.h"

typedef void (*Work)(void *context, int64_t task, int worker);

Crew *crew_new(int workers); /* workers includes the calling thread; the current call ends the crew */
void crew_end(Crew *crew);
int crew_size(const Crew *crew);
void crew_run(Crew *crew, Work work, void *context, int64_t tasks);

#endif
