/* A fixed pool of threads for PARALLEL. Who waits, a thread for tasks or the caller for their end, first spins, since most
 * waits are short, then lets others run, and sleeps in the end. Threads are not bound to cores: one that is bound waits where
 * others run, while another core is free. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "portable.h"

enum {
    SPINS = 1000,  /* some 30 us: longer than most pauses between two parallel parts */
    YIELDS = 1000, /* some 0.5 ms: to be woken takes 0.05 ms */
    LINE = 64      /* bytes that go from core to core as one */
};

/* Round, number of tasks and next task in one word: a thread that takes a task can check its round. */
#define TICKET(round, n, next) ((uint64_t)(round) << 32 | (uint64_t)(n) << 16 | (uint64_t)(next))
#define ROUND(ticket) ((uint32_t)((ticket) >> 32))
#define TASKS(ticket) ((int)((ticket) >> 16 & 0xffff))
#define NEXT(ticket) ((int)((ticket)&0xffff))

/* Those who sleep until something has changed. */
struct sleepers {
    fm_condition changed;
    atomic_int n;
};

struct fm_pool {
    int n_workers;
    fm_thread *threads;
    fm_mutex mutex;
    struct sleepers idle, caller;
    atomic_int stop;
    _Alignas(LINE) _Atomic uint64_t ticket; /* with what else a thread reads when it takes its first task of a round */
    fm_task task;
    void *context;
    atomic_int core; /* on which the caller has begun the round */
    atomic_int left; /* tasks that the workers have not done, with all that the caller does */
};

static void wait_briefly(int turns)
{
    if (turns > SPINS)
        fm_yield();
    else
        fm_pause();
}

typedef int (*holds_t)(fm_pool *pool, uint32_t what);

static inline void wait_while(fm_pool *pool, struct sleepers *sleepers, holds_t holds, uint32_t what)
{
    for (int turns = 0; turns < SPINS + YIELDS; turns++) {
        if (!holds(pool, what))
            return;
        wait_briefly(turns);
    }
    fm_lock(&pool->mutex);
    atomic_fetch_add(&sleepers->n, 1); /* before it looks again: who changes something looks for sleepers after that */
    while (holds(pool, what))
        fm_condition_wait(&sleepers->changed, &pool->mutex);
    atomic_fetch_sub(&sleepers->n, 1);
    fm_unlock(&pool->mutex);
}

static void wake(fm_pool *pool, struct sleepers *sleepers)
{
    if (!atomic_load(&sleepers->n))
        return;
    fm_lock(&pool->mutex);
    fm_condition_wake_all(&sleepers->changed);
    fm_unlock(&pool->mutex);
}

static int is_over(fm_pool *pool, uint32_t round)
{
    return ROUND(atomic_load(&pool->ticket)) == round && !atomic_load(&pool->stop);
}

static int is_open(fm_pool *pool, uint32_t own)
{
    return atomic_load(&pool->left) != (int)own;
}

static FM_THREAD_RESULT work(void *argument)
{
    fm_pool *pool = argument;
    uint32_t round = 0; /* the last one that it took part in */
    for (;;) {
        wait_while(pool, &pool->idle, is_over, round);
        if (atomic_load(&pool->stop))
            return 0;
        int taken = atomic_load_explicit(&pool->core, memory_order_relaxed);
        if (taken >= 0 && taken == fm_core())
            fm_leave(taken); /* while another one may be idle */
        for (;;) {
            uint64_t ticket = atomic_fetch_add(&pool->ticket, 1);
            round = ROUND(ticket);
            if (NEXT(ticket) >= TASKS(ticket))
                break;
            pool->task(pool->context, NEXT(ticket));
            atomic_fetch_sub(&pool->left, 1);
            wake(pool, &pool->caller);
        }
    }
}

fm_pool *fm_pool_new(int n_threads)
{
    fm_pool *pool = fm_allocate_aligned(LINE, sizeof *pool);
    if (!pool)
        return 0;
    memset(pool, 0, sizeof *pool);
    pool->threads = calloc((size_t)n_threads, sizeof *pool->threads);
    fm_mutex_new(&pool->mutex);
    fm_condition_new(&pool->idle.changed);
    fm_condition_new(&pool->caller.changed);
    for (int i = 0; pool->threads && i + 1 < n_threads; i++) { /* the caller is the first thread */
        if (!fm_thread_start(&pool->threads[i], work, pool))
            break;
        pool->n_workers++;
    }
    return pool;
}

void fm_pool_free(fm_pool *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->stop, 1);
    wake(pool, &pool->idle);
    for (int i = 0; i < pool->n_workers; i++)
        fm_thread_join(pool->threads[i]);
    fm_mutex_free(&pool->mutex);
    fm_condition_free(&pool->idle.changed);
    fm_condition_free(&pool->caller.changed);
    free(pool->threads);
    fm_free_aligned(pool);
}

void fm_pool_run(fm_pool *pool, fm_task task, void *context, int n)
{
    uint32_t own = 0; /* tasks of the caller */
    pool->task = task;
    pool->context = context;
    atomic_store_explicit(&pool->core, fm_core(), memory_order_relaxed);
    atomic_store(&pool->left, n);
    atomic_store(&pool->ticket, TICKET(ROUND(atomic_load(&pool->ticket)) + 1, n, 1));
    wake(pool, &pool->idle);
    for (int next = 0; next < n; next = NEXT(atomic_fetch_add(&pool->ticket, 1))) { /* the first task is taken */
        task(context, next);
        own++;
    }
    wait_while(pool, &pool->caller, is_open, own);
}
