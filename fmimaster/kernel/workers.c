/* A fixed pool of threads for PARALLEL. Its first part wakes them; then they spin briefly and yield, until they may rest.
 * They are not bound to cores: one that is bound waits where others run, while another core is free. */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernel.h"

enum { SPINS = 2000 }; /* some 10 us: longer than most pauses between two parallel parts */

/* Round, number of tasks and next task in one word: a thread that takes a task can check its round. */
#define TICKET(round, n) ((uint64_t)(round) << 32 | (uint64_t)(n) << 16)
#define ROUND(ticket) ((uint32_t)((ticket) >> 32))
#define TASKS(ticket) ((int)((ticket) >> 16 & 0xffff))
#define NEXT(ticket) ((int)((ticket)&0xffff))

struct fm_pool {
    int n_workers;
    pthread_t *threads;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    atomic_int awake; /* whether a program runs */
    atomic_int stop;
    _Atomic uint64_t ticket;
    atomic_int left; /* tasks that are not done */
    fm_task task;
    void *context;
};

static void pause_briefly(int spins)
{
    if (spins > SPINS) {
        sched_yield();
        return;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void do_tasks(fm_pool *pool)
{
    for (;;) {
        uint64_t ticket = atomic_fetch_add(&pool->ticket, 1);
        if (NEXT(ticket) >= TASKS(ticket))
            return;
        pool->task(pool->context, NEXT(ticket));
        atomic_fetch_sub(&pool->left, 1);
    }
}

static void *work(void *argument)
{
    fm_pool *pool = argument;
    uint32_t seen = ROUND(atomic_load(&pool->ticket));
    for (int spins = 0;; spins++) {
        if (atomic_load(&pool->stop))
            return 0;
        if (!atomic_load(&pool->awake)) {
            pthread_mutex_lock(&pool->mutex);
            while (!atomic_load(&pool->awake) && !atomic_load(&pool->stop))
                pthread_cond_wait(&pool->wake, &pool->mutex);
            pthread_mutex_unlock(&pool->mutex);
            spins = 0;
        }
        uint32_t round = ROUND(atomic_load(&pool->ticket));
        if (round != seen) {
            seen = round;
            do_tasks(pool);
            spins = 0;
        }
        pause_briefly(spins);
    }
}

fm_pool *fm_pool_new(int n_threads)
{
    fm_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return 0;
    pool->threads = calloc((size_t)n_threads, sizeof *pool->threads);
    pthread_mutex_init(&pool->mutex, 0);
    pthread_cond_init(&pool->wake, 0);
    for (int i = 0; pool->threads && i + 1 < n_threads; i++) { /* the caller is the first thread */
        if (pthread_create(&pool->threads[i], 0, work, pool))
            break;
        pool->n_workers++;
    }
    return pool;
}

void fm_pool_free(fm_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->stop, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->n_workers; i++)
        pthread_join(pool->threads[i], 0);
    pthread_mutex_destroy(&pool->mutex);
    pthread_cond_destroy(&pool->wake);
    free(pool->threads);
    free(pool);
}

static void wake(fm_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->awake, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

void fm_pool_rest(fm_pool *pool)
{
    atomic_store(&pool->awake, 0);
}

void fm_pool_run(fm_pool *pool, fm_task task, void *context, int n)
{
    if (!atomic_load(&pool->awake))
        wake(pool);
    pool->task = task;
    pool->context = context;
    atomic_store(&pool->left, n);
    atomic_store(&pool->ticket, TICKET(ROUND(atomic_load(&pool->ticket)) + 1, n));
    do_tasks(pool);
    for (int spins = 0; atomic_load(&pool->left); spins++)
        pause_briefly(spins);
}
