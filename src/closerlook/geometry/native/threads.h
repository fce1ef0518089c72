/* Threads, locks and conditions of the system: those of Windows, and POSIX threads elsewhere. */
#ifndef CLOSERLOOK_THREADS_H
#define CLOSERLOOK_THREADS_H

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <process.h>
#include <windows.h>

typedef HANDLE Thread;
typedef SRWLOCK Lock;
typedef CONDITION_VARIABLE Condition;
#define THREAD_FUNCTION(name, argument) static unsigned __stdcall name(void *argument)
#define THREAD_RESULT 0

static inline int thread_start(Thread *thread, unsigned(__stdcall *function)(void *), void *argument)
{
    *thread = (HANDLE)_beginthreadex(NULL, 0, function, argument, 0, NULL);
    return *thread == NULL;
}

static inline void thread_join(Thread thread) { WaitForSingleObject(thread, INFINITE), CloseHandle(thread); }
static inline void lock_new(Lock *lock) { InitializeSRWLock(lock); }
static inline void lock_free(Lock *lock) { (void)lock; }
static inline void lock_take(Lock *lock) { AcquireSRWLockExclusive(lock); }
static inline void lock_give(Lock *lock) { ReleaseSRWLockExclusive(lock); }
static inline void condition_new(Condition *condition) { InitializeConditionVariable(condition); }
static inline void condition_free(Condition *condition) { (void)condition; }
static inline void condition_tell(Condition *condition) { WakeAllConditionVariable(condition); }
static inline void condition_wait(Condition *condition, Lock *lock) { SleepConditionVariableSRW(condition, lock, INFINITE, 0); }
static inline void condition_wait_for(Condition *condition, Lock *lock, int milliseconds)
{
    SleepConditionVariableSRW(condition, lock, (DWORD)milliseconds, 0);
}

static inline double clock_seconds(void)
{
    LARGE_INTEGER ticks, frequency;
    QueryPerformanceCounter(&ticks), QueryPerformanceFrequency(&frequency);
    return (double)ticks.QuadPart / (double)frequency.QuadPart;
}

#else
#include <pthread.h>
#include <time.h>

typedef pthread_t Thread;
typedef pthread_mutex_t Lock;
typedef pthread_cond_t Condition;
#define THREAD_FUNCTION(name, argument) static void *name(void *argument)
#define THREAD_RESULT NULL

static inline int thread_start(Thread *thread, void *(*function)(void *), void *argument)
{
    return pthread_create(thread, NULL, function, argument);
}

static inline void thread_join(Thread thread) { pthread_join(thread, NULL); }
static inline void lock_new(Lock *lock) { pthread_mutex_init(lock, NULL); }
static inline void lock_free(Lock *lock) { pthread_mutex_destroy(lock); }
static inline void lock_take(Lock *lock) { pthread_mutex_lock(lock); }
static inline void lock_give(Lock *lock) { pthread_mutex_unlock(lock); }
static inline void condition_free(Condition *condition) { pthread_cond_destroy(condition); }
static inline void condition_tell(Condition *condition) { pthread_cond_broadcast(condition); }
static inline void condition_wait(Condition *condition, Lock *lock) { pthread_cond_wait(condition, lock); }

static inline double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#ifdef __APPLE__
static inline void condition_new(Condition *condition) { pthread_cond_init(condition, NULL); }
static inline void condition_wait_for(Condition *condition, Lock *lock, int milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    pthread_cond_timedwait_relative_np(condition, lock, &time);
}
#else
static inline void condition_new(Condition *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static inline void condition_wait_for(Condition *condition, Lock *lock, int milliseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += milliseconds / 1000, until.tv_nsec += milliseconds % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) until.tv_nsec -= 1000000000L, until.tv_sec++;
    pthread_cond_timedwait(condition, lock, &until);
}
#endif
#endif

#endif
