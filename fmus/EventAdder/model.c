/* Adds those of two events that are present. See readme.md. */
#include "event_unit.h"

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return check_event_mode(self);
}

void model_outputs(Variables *v)
{
    v->s_tick.active = v->e1_tick.active || v->e2_tick.active;
    if (v->s_tick.active) v->s = (v->e1_tick.active ? v->e1 : 0.0) + (v->e2_tick.active ? v->e2 : 0.0);
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    model_outputs(v);
    if (v->s_tick.active) v->held = v->s;
    v->s_tick.active = false;
    return FM_OK;
}
