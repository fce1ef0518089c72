/*
 * A call from Python: the one place that allocates memory, and the one way out of a call that cannot go on.
 *
 * Every block of memory belongs to the call that allocated it, and all of them are released together when the call ends. If an
 * allocation fails or Python reports a signal, the thread jumps back to call_run() or to its crew, the other threads follow at
 * their next check_stop(), and the call returns the reason. Nothing between needs to test a pointer or pass an error code.
 */
#ifndef CLOSERLOOK_CALL_H
#define CLOSERLOOK_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"

typedef struct Call Call;
typedef void (*Body)(void *arguments);

Call *call_new(void);      /* NULL: out of memory */
void call_free(Call *call); /* ends its threads and releases its blocks */

/* Run a part of a call; returns a status. After a failure, every later part returns the same status at once. */
Status call_run(Call *call, Body body, void *arguments);

/* Run a call of one part; returns a status. */
Status call_single(Body body, void *arguments);

/* Blocks of `count` items; the call ends if there is no memory. Negative counts are refused in the same way. */
void *allocate(int64_t count, size_t size);
void *allocate_zeros(int64_t count, size_t size);
void *reallocate(void *block, int64_t count, size_t size);
void release(void *block); /* before the end of the call; NULL is allowed */

/* Leave the call if it has to end. To be called at least every few milliseconds, by every thread; costs about 50 ns. */
void check_stop(void);

double seconds_now(void); /* a clock that never goes back */

/* ---- for parallel.c ---- */
typedef struct Crew Crew;

Call *call_current(void);
void call_own_crew(Crew *crew);                                   /* the current call ends this crew's threads */
void call_attempt(Call *call, int worker, Body body, void *arguments); /* return here if the body has to be left */
void call_ask(void);                                              /* look for signals, without leaving */

#endif
