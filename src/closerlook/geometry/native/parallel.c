#include "parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { PATIENCE = 2000 }; /* spins, about 20 us, before a thread sleeps: passes follow each other closely */

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
    pthread_t *thread;
    Seat *seat;
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
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

static void *attend(void *argument)
{
    Seat *seat = argument;
    Crew *crew = seat->crew;
    int64_t seen = 0;
    for (;;) {
        for (int i = 0; i < PATIENCE && atomic_load_explicit(&crew->round, memory_order_relaxed) == seen; i++) relax();
        pthread_mutex_lock(&crew->lock);
        while (crew->round == seen && !crew->leaving) pthread_cond_wait(&crew->begin, &crew->lock);
        seen = crew->round;
        int leaving = crew->leaving;
        pthread_mutex_unlock(&crew->lock);
        if (leaving) return NULL;
        call_attempt(crew->call, seat->worker, take_tasks, seat);
        pthread_mutex_lock(&crew->lock);
        if (--crew->busy == 0) pthread_cond_signal(&crew->end);
        pthread_mutex_unlock(&crew->lock);
    }
}

Crew *crew_new(int workers)
{
    Crew *crew = allocate_zeros(1, sizeof *crew);
    crew->thread = allocate_zeros(workers, sizeof *crew->thread);
    crew->seat = allocate_zeros(workers, sizeof *crew->seat);
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->begin, NULL);
    pthread_cond_init(&crew->end, NULL);
    crew->call = call_current();
    crew->seat[0] = (Seat){crew, 0};
    crew->workers = 1;
    call_own_crew(crew);
    for (int i = 1; i < workers; i++) {
        crew->seat[i] = (Seat){crew, i};
        if (pthread_create(&crew->thread[i], NULL, attend, &crew->seat[i])) break; /* fewer threads, same result */
        crew->workers++;
    }
    return crew;
}

void crew_end(Crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->leaving = 1;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->lock);
    for (int i = 1; i < crew->workers; i++) pthread_join(crew->thread[i], NULL);
    pthread_mutex_destroy(&crew->lock);
    pthread_cond_destroy(&crew->begin);
    pthread_cond_destroy(&crew->end);
}

int crew_size(const Crew *crew) { return crew->workers; }

/* Wait until the other threads have ended their tasks; they leave them early if a signal ends the call. */
static void wait_for_others(Crew *crew)
{
    for (int i = 0; i < PATIENCE && atomic_load_explicit(&crew->busy, memory_order_relaxed); i++) relax();
    pthread_mutex_lock(&crew->lock);
    while (crew->busy) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
        pthread_cond_timedwait(&crew->end, &crew->lock, &until);
        pthread_mutex_unlock(&crew->lock);
        call_ask();
        pthread_mutex_lock(&crew->lock);
    }
    pthread_mutex_unlock(&crew->lock);
}

void crew_run(Crew *crew, Work work, void *context, int64_t tasks)
{
    if (tasks <= 1 || crew->workers == 1) {
        for (int64_t task = 0; task < tasks; task++) check_stop(), work(context, task, 0);
        return;
    }
    pthread_mutex_lock(&crew->lock);
    crew->work = work, crew->context = context, crew->tasks = tasks;
    atomic_store(&crew->next, 0);
    crew->busy = crew->workers - 1;
    crew->round++;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->lock);
    call_attempt(crew->call, 0, take_tasks, &crew->seat[0]);
    wait_for_others(crew);
    check_stop();
}
