/* Four model partitions of Scheduled Execution. See readme.md. */
#include "model.h"

enum { FAST = 1, REQUEST, SLOW, LATER };   /* digits of `order` */

static const int32_t EVERY = 5;             /* activations for one of `fifth` */
static const int32_t OUTCOME = 1000;

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->delay_resolution > 0) return FM_OK;
    return fm_report(self, FM_ERROR, "delay.resolution is 0. It must be above 0.");
}

void model_schedule(Variables *v)
{
}

void model_outputs(Variables *v)
{
}

/* Counts an activation, and every fifth one activates `fifth`. */
static void count(fm_Instance *self, Variables *v, int32_t *ticks)
{
    fm_lock(self);
    (*ticks)++;
    v->total++;
    v->fifth.active = v->total % EVERY == 0;
    fm_unlock(self);
}

static void note_order(Variables *v, int partition)
{
    if (v->time > v->orderTime) v->order = 0;
    v->orderTime = v->time;
    v->order = 10 * v->order + partition;
}

fm_Status model_activate(fm_Instance *self, Variables *v, uint32_t clock)
{
    bool announces = false;
    switch (clock) {
    case VR_fast:
        note_order(v, FAST);
        count(self, v, &v->fastTicks);
        announces = v->time == v->laterAfter;
        if (announces) fm_announce(&v->later, (fm_Fraction){v->delay_counter, v->delay_resolution});
        break;
    case VR_request:
        note_order(v, REQUEST);
        count(self, v, &v->requestTicks);
        v->sum += v->amount;
        break;
    case VR_slow:
        note_order(v, SLOW);
        v->slowTicks++;
        break;
    case VR_later:
        note_order(v, LATER);
        count(self, v, &v->laterTicks);
        v->outcome = OUTCOME;
        break;
    }
    return announces || v->fifth.active ? fm_clock_update(self) : FM_OK;
}

fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    return FM_OK;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return NAN;
}
