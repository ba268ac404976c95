/* Samples an input at the ticks of a periodic clock. See readme.md. */
#include "event_unit.h"

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    fm_Status status = check_event_mode(self);
    return status != FM_OK ? status : check_fraction(self, "interval", v->tick.interval, 1);
}

void model_schedule(Variables *v)
{
    fm_announce(&v->tick, (fm_Fraction){v->interval_counter, v->interval_resolution});
    v->tick.shift = (fm_Fraction){v->shift_counter, v->interval_resolution};
}

void model_outputs(Variables *v)
{
    v->sampled.active = v->tick.active;
    double x = v->u + v->e;   /* e keeps its value while it is absent */
    if (v->tick.active) v->y = v->offset + v->gain * x + v->square * x * x;
}

void model_locate(Variables *v)
{
    /* there are no event indicators */
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    if (!v->tick.active) return FM_OK;
    model_outputs(v);
    v->held = v->y;
    v->count++;
    return FM_OK;
}
