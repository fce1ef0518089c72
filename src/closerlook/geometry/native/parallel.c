#include "parallel.h"

#include <stdatomic.h>

#include "sizes.h"
#include "threads.h"

enum { PATIENCE = SIZE(2000, 0) }; /* spins, about 20 us, before a thread sleeps: passes follow each other closely */

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

typedef struct {
    Crew *crew;
    int worker;
} Seat;

struct Crew {
    Call *call;
    int workers, leaving;
    int64_t tasks;
    _Atomic int busy;
    _Atomic int64_t round, next;
    Work work;
    void *context;
    Thread *thread;
    Seat *seat;
    Lock lock;
    Condition begin, end;
};

static void take_tasks(void *argument)
{
    const Seat *seat = argument;
    Crew *crew = seat->crew;
    for (;;) {
        int64_t task = atomic_fetch_add(&crew->next, 1);
        if (task >= crew->tasks) return;
        check_stop();
        crew->work(crew->context, task, seat->worker);
    }
}

THREAD_FUNCTION(attend, argument)
{
    Seat *seat = argument;
    Crew *crew = seat->crew;
    int64_t seen = 0;
    for (;;) {
        for (int i = 0; i < PATIENCE && atomic_load_explicit(&crew->round, memory_order_relaxed) == seen; i++) relax();
        lock_take(&crew->lock);
        while (crew->round == seen && !crew->leaving) condition_wait(&crew->begin, &crew->lock);
        seen = crew->round;
        int leaving = crew->leaving;
        lock_give(&crew->lock);
        if (leaving) return THREAD_RESULT;
        call_attempt(crew->call, seat->worker, take_tasks, seat);
        lock_take(&crew->lock);
        if (--crew->busy == 0) condition_tell(&crew->end);
        lock_give(&crew->lock);
    }
}

Crew *crew_new(int workers)
{
    Crew *crew = allocate_zeros(1, sizeof *crew);
    crew->thread = allocate_zeros(workers, sizeof *crew->thread);
    crew->seat = allocate_zeros(workers, sizeof *crew->seat);
    lock_new(&crew->lock);
    condition_new(&crew->begin);
    condition_new(&crew->end);
    crew->call = call_current();
    crew->seat[0] = (Seat){crew, 0};
    crew->workers = 1;
    call_own_crew(crew);
    for (int i = 1; i < workers; i++) {
        crew->seat[i] = (Seat){crew, i};
        if (thread_start(&crew->thread[i], attend, &crew->seat[i])) break; /* fewer threads, same result */
        crew->workers++;
    }
    return crew;
}

void crew_end(Crew *crew)
{
    lock_take(&crew->lock);
    crew->leaving = 1;
    condition_tell(&crew->begin);
    lock_give(&crew->lock);
    for (int i = 1; i < crew->workers; i++) thread_join(crew->thread[i]);
    lock_free(&crew->lock);
    condition_free(&crew->begin);
    condition_free(&crew->end);
}

int crew_size(const Crew *crew) { return crew->workers; }

/* Wait until the other threads have ended their tasks; they leave them early if a signal ends the call. */
static void wait_for_others(Crew *crew)
{
    for (int i = 0; i < PATIENCE && atomic_load_explicit(&crew->busy, memory_order_relaxed); i++) relax();
    lock_take(&crew->lock);
    while (crew->busy) {
        condition_wait_for(&crew->end, &crew->lock, 50);
        lock_give(&crew->lock);
        call_ask();
        lock_take(&crew->lock);
    }
    lock_give(&crew->lock);
}

void crew_run(Crew *crew, Work work, void *context, int64_t tasks)
{
    if (tasks <= 1 || crew->workers == 1) {
        for (int64_t task = 0; task < tasks; task++) check_stop(), work(context, task, 0);
        return;
    }
    lock_take(&crew->lock);
    crew->work = work, crew->context = context, crew->tasks = tasks;
    atomic_store(&crew->next, 0);
    crew->busy = crew->workers - 1;
    crew->round++;
    condition_tell(&crew->begin);
    lock_give(&crew->lock);
    call_attempt(crew->call, 0, take_tasks, &crew->seat[0]);
    wait_for_others(crew);
    check_stop();
}
