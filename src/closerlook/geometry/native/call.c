#include "call.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "parallel.h"
#include "threads.h"

#ifdef __APPLE__ /* there setjmp saves the signal mask too, which takes a system call */
#define setjmp _setjmp
#define longjmp _longjmp
#endif

static const double PATIENCE = 0.05; /* seconds between two looks for signals */

/* A block's header; the numbers of a block follow it. 32 bytes keep the alignment of malloc. */
typedef struct Block {
    struct Block *before, *after;
    Call *call;
    size_t size;
} Block;

struct Call {
    _Atomic int status;
    atomic_flag lock; /* of the list */
    Block list;       /* a ring; its own header belongs to no block */
    Crew *crew;
    void *python;     /* the state of the Python thread that made the call */
    double due;       /* when to look for signals next */
};

static _Thread_local struct {
    Call *call;
    jmp_buf *exit;
    int worker;
} thread;

static struct {
    void *(*release)(void);
    void (*acquire)(void *);
    int (*check)(void);
} python;

static _Atomic int64_t live, countdown;

void engine_attach(void *release_lock, void *acquire_lock, void *check_signals)
{
    python.release = (void *(*)(void))release_lock;
    python.acquire = (void (*)(void *))acquire_lock;
    python.check = (int (*)(void))check_signals;
}

void engine_fail_allocation(int64_t k) { countdown = k; }

int64_t engine_blocks(void) { return live; }

double seconds_now(void) { return clock_seconds(); }

/* ---- leaving a call ---- */

static void leave(void) { longjmp(*thread.exit, 1); }

static void fail(Call *call, int status)
{
    int none = COMPLETED;
    atomic_compare_exchange_strong(&call->status, &none, status); /* the first reason counts */
}

Call *call_current(void) { return thread.call; }

void call_own_crew(Crew *crew) { thread.call->crew = crew; }

void call_ask(void)
{
    Call *call = thread.call;
    if (!python.check || atomic_load_explicit(&call->status, memory_order_relaxed)) return;
    double now = seconds_now();
    if (now < call->due) return;
    python.acquire(call->python);
    if (python.check()) fail(call, STOPPED);
    call->python = python.release();
    call->due = now + PATIENCE;
}

void check_stop(void)
{
    if (thread.worker == 0) call_ask();
    if (atomic_load_explicit(&thread.call->status, memory_order_relaxed)) leave();
}

void call_attempt(Call *call, int worker, Body body, void *arguments)
{
    jmp_buf here, *volatile outside = thread.exit;
    thread.call = call, thread.worker = worker, thread.exit = &here;
    if (!setjmp(here)) body(arguments);
    thread.exit = outside;
}

Status call_run(Call *call, Body body, void *arguments)
{
    if (call->status) return call->status;
    if (python.release) call->python = python.release();
    call_attempt(call, 0, body, arguments);
    thread.call = NULL;
    if (python.acquire) python.acquire(call->python);
    return call->status;
}

Status call_single(Body body, void *arguments)
{
    Call *call = call_new();
    if (!call) return OUT_OF_MEMORY;
    Status status = call_run(call, body, arguments);
    call_free(call);
    return status;
}

/* ---- memory ---- */

/* Whether this allocation is to fail: there are too many bytes, or a test asked for it. */
static int refuse(int64_t count, size_t size)
{
    if (countdown > 0 && atomic_fetch_sub(&countdown, 1) == 1) return 1;
    return count < 0 || (uint64_t)count > (PTRDIFF_MAX - sizeof(Block)) / size;
}

static void lock(Call *call)
{
    while (atomic_flag_test_and_set_explicit(&call->lock, memory_order_acquire)) {
    }
}

static void unlock(Call *call) { atomic_flag_clear_explicit(&call->lock, memory_order_release); }

/* Put a block in the list of its call. */
static void *enlist(Call *call, Block *block)
{
    if (!block) fail(call, OUT_OF_MEMORY), leave();
    block->call = call;
    lock(call);
    block->before = &call->list, block->after = call->list.after;
    block->before->after = block->after->before = block;
    unlock(call);
    live++;
    return block + 1;
}

static void unlist(Block *block)
{
    lock(block->call);
    block->before->after = block->after, block->after->before = block->before;
    unlock(block->call);
    live--;
}

void *allocate(int64_t count, size_t size)
{
    return enlist(thread.call, refuse(count, size) ? NULL : malloc(sizeof(Block) + (size_t)count * size));
}

void *allocate_zeros(int64_t count, size_t size)
{
    return enlist(thread.call, refuse(count, size) ? NULL : calloc(1, sizeof(Block) + (size_t)count * size));
}

void *reallocate(void *block, int64_t count, size_t size)
{
    if (!block) return allocate(count, size);
    Block *old = (Block *)block - 1, *new = NULL;
    Call *call = old->call;
    if (!refuse(count, size)) {
        unlist(old);
        new = realloc(old, sizeof(Block) + (size_t)count * size);
        if (!new) enlist(call, old);
    }
    return enlist(call, new);
}

void release(void *block)
{
    if (!block) return;
    unlist((Block *)block - 1);
    free((Block *)block - 1);
}

Call *call_new(void)
{
    Call *call = refuse(1, sizeof *call) ? NULL : calloc(1, sizeof *call);
    if (!call) return NULL;
    atomic_flag_clear(&call->lock);
    call->list.before = call->list.after = &call->list;
    live++;
    return call;
}

void call_free(Call *call)
{
    if (call->crew) crew_end(call->crew);
    while (call->list.after != &call->list) release(call->list.after + 1);
    free(call);
    live--;
}
