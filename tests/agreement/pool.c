/* Rounds of tasks on the pool of threads, for the thread sanitizer. Each task leaves something in memory, which is read when
 * the round is done. Exit status 1 if a task was left out or done twice. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"

#include <time.h>

enum { THREADS = 3, TASKS = 5, ROUNDS = 20, PARTS = 10 };

static const struct timespec SHORT = {0, 100000}; /* long enough that others take the next task */
static const struct timespec LONG = {0, 3000000}; /* whoever waits sleeps */

struct work {
    long round; /* written between the rounds */
    long done[TASKS];
};

static void task(void *context, int i)
{
    struct work *w = context;
    nanosleep(i + 1 == TASKS && w->round + 1 == TASKS ? &LONG : &SHORT, 0);
    w->done[i] += w->round;
}

int main(void)
{
    fm_pool *pool = fm_pool_new(THREADS);
    struct work w = {0};
    long expected[TASKS] = {0};
    for (int part = 0; part < PARTS; part++) {
        for (int round = 0; round < ROUNDS; round++) {
            int n = 1 + round % TASKS;
            w.round = round;
            fm_pool_run(pool, task, &w, n);
            for (int i = 0; i < TASKS; i++) {
                expected[i] += i < n ? round : 0;
                if (w.done[i] != expected[i])
                    return 1;
            }
        }
        nanosleep(&LONG, 0);
    }
    fm_pool_free(pool);
    return 0;
}
