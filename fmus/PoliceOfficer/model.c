/* A police officer who works from time to time. See readme.md. */
#include "event_unit.h"

enum { IDLE, WORKING };   /* mode, and the message that leads there */

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    fm_Status status = check_event_mode(self);
    return status != FM_OK ? status : check_fraction(self, "idle", (fm_Fraction){v->idle, v->resolution}, 0);
}

void model_schedule(Variables *v)
{
    fm_announce(&v->due, (fm_Fraction){v->mode == IDLE ? v->idle : v->working, v->resolution});
}

void model_outputs(Variables *v)
{
    v->toWork.active = v->due.active && v->mode == IDLE;
    v->toIdle.active = v->due.active && v->mode == WORKING;
    if (v->due.active) v->message = v->mode == IDLE ? WORKING : IDLE;
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    if (!v->due.active) return FM_OK;
    v->mode = v->mode == IDLE ? WORKING : IDLE;
    model_schedule(v);
    return FM_OK;
}
