/* Fires an interval after a trigger. See readme.md. */
#include "event_unit.h"

enum { RESTART = 1, QUEUE };   /* policy */
enum { MOST_WAITING = sizeof ((Variables *)0)->queue / sizeof *((Variables *)0)->queue };

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->policy != RESTART && v->policy != QUEUE)
        return fm_report(self, FM_ERROR, "policy is %d. It must be %d or %d.", (int)v->policy, RESTART, QUEUE);
    if (v->times < 0 || v->times > MOST_WAITING)
        return fm_report(self, FM_ERROR, "times is %d. It must be 0 to %d.", v->times, MOST_WAITING);
    fm_Status status = check_event_mode(self);
    fm_Fraction interval = {v->interval_counter, v->interval_resolution};
    return status != FM_OK ? status : check_fraction(self, "interval", interval, 0);
}

/* The present time as a multiple of 1 s / interval.resolution: what it is in exact time, not only as a double. */
static uint64_t now(const Variables *v)
{
    return (uint64_t)llround(v->time * (double)v->interval_resolution);
}

/* delta_ext: fires `times` times from now on. False if too many wait. */
static bool trigger(Variables *v)
{
    int count = v->times > 0 ? v->times : 1;
    if (v->policy == RESTART) v->waiting = 0;
    if (v->waiting + count > MOST_WAITING) return false;
    for (int k = 1; k <= count; k++) v->queue[v->waiting++] = now(v) + (uint64_t)k * v->interval_counter;
    return true;
}

/* delta_int: the first of the queue has fired. */
static void fire(Variables *v)
{
    v->count++;
    v->waiting--;
    for (int k = 0; k < v->waiting; k++) v->queue[k] = v->queue[k + 1];
    if (v->times == 0) v->queue[v->waiting++] = now(v) + v->interval_counter;
}

static void announce(Variables *v)
{
    fm_announce(&v->due, (fm_Fraction){v->queue[0] - now(v), v->interval_resolution});
}

void model_schedule(Variables *v)
{
    v->waiting = 0;
    if (v->startsItself && v->times <= MOST_WAITING && trigger(v)) announce(v);
}

void model_outputs(Variables *v)
{
    v->fire.active = v->due.active;
    if (v->due.active) v->fired = v->count + 1;
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    bool is_idle = v->waiting == 0;
    uint64_t announced = v->queue[0];
    if (v->due.active) fire(v);
    if (v->start.active && !trigger(v))
        return fm_report(self, FM_ERROR, "A trigger at t = %.17g s: more than %d firings wait.", v->time, MOST_WAITING);
    bool is_new = v->due.active || is_idle || v->queue[0] != announced;   /* a queueing trigger changes nothing else */
    if (v->waiting > 0 && is_new) announce(v);
    return FM_OK;
}
