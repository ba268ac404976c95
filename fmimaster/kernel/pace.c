/* A run in real time: each step waits until its time has come. The same as fmimaster/program/real_time.py. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "portable.h"

#define SLICE INT64_C(50000000) /* ns of a sleep: so soon it is seen that the run must end */

static const double SECOND = 1e9, /* ns */
    NEVER = 4e9;                  /* s: after so many, no clock of 64 bits shows the time */

/* When the wall clock shows the time of the run that has been reached. */
static int64_t due_at(const fm_real_time_data *d, double time)
{
    double seconds = (time - *d->began_at) / d->factor;
    return seconds < NEVER ? d->numbers[FM_PACE_SINCE] + (int64_t)(seconds * SECOND) : INT64_MAX;
}

int fm_keep_real_time(void *self, fm_kernel *k)
{
    const fm_real_time_data *d = self;
    int64_t *n = d->numbers, ready = fm_nanoseconds(), now = ready;
    if (!n[FM_PACE_SINCE]) /* the clock starts when the first step is ready */
        n[FM_PACE_SINCE] = ready;
    int64_t due = due_at(d, k->end);
    n[FM_PACE_STEPS]++;
    n[FM_PACE_LATE] += ready > due;
    while (now < due && !fm_load(d->ends)) {
        fm_sleep_until(due - now < SLICE ? due : now + SLICE);
        now = fm_nanoseconds();
    }
    if (k->tuner) /* it measures what steps take */
        k->tuner->since += (double)(now - ready) / SECOND;
    int64_t late = now > due ? now - due : 0;
    n[FM_PACE_WAITED] += now - ready;
    n[FM_PACE_LAST] = late;
    n[FM_PACE_SUM] += late;
    if (late > n[FM_PACE_LARGEST])
        n[FM_PACE_LARGEST] = late;
    return late > d->limit ? d->too_late->call(d->too_late->self, k) : FM_OK;
}
