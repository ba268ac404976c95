/* A loop that does nothing but wait, and what keeps the lateness of each step of a run. */

#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>

enum { SECOND = 1000000000 }; /* [ns] */

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)SECOND + t.tv_nsec;
}

/* n steps of a period in ns. */
void bare(int n, int64_t period, int64_t *late)
{
    int64_t due = now();
    for (int i = 0; i < n; i++) {
        due += period;
        struct timespec t = {due / SECOND, due % SECOND};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
        late[i] = now() - due;
    }
}

/* In place of a hook of the kernel: *last is the lateness of the step for which it has waited. */

int (*waits)(void *self, void *kernel);
const int64_t *last;
int64_t *kept;

int keep(void *self, void *kernel)
{
    int status = waits(self, kernel);
    *kept++ = *last;
    return status;
}
