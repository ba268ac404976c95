/* Delays an event by an event iteration. See readme.md. */
#include "event_unit.h"

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return check_event_mode(self);
}

void model_outputs(Variables *v)
{
    v->out_tick.active = v->waiting;
    if (v->waiting) v->out = v->held;
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    v->waiting = v->in_tick.active;
    if (v->waiting) v->held = v->in;
    update->again = v->waiting;
    return FM_OK;
}
