/* A variable that three units write. See readme.md. */
#include "event_unit.h"

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return check_event_mode(self);
}

void model_outputs(Variables *v)
{
}

static void write(Variables *v, double value)
{
    v->x = value;
    v->count++;
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    if (v->a_tick.active) write(v, v->a);
    if (v->b_tick.active) write(v, v->b);
    if (v->c_tick.active) write(v, v->c);
    return FM_OK;
}
