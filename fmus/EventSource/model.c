/* Emits events at given times. See readme.md. */
#define EVENT_UNIT_MOVES
#include "event_unit.h"

#include <stdio.h>

enum { MOST_EVENTS = sizeof ((Variables *)0)->times / sizeof *((Variables *)0)->times };

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->count < 0 || v->count > MOST_EVENTS)
        return fm_report(self, FM_ERROR, "count is %d. It must be 0 to %d.", v->count, MOST_EVENTS);
    for (int k = 1; k < v->count; k++)
        if (v->times[k] < v->times[k - 1])
            return fm_report(self, FM_ERROR, "times[%d] is less than times[%d]. Times must not decrease.", k, k - 1);
    fm_Status status = check_event_mode(self);
    return status != FM_OK ? status : check_fraction(self, "times[0]", (fm_Fraction){v->times[0], v->resolution}, 0);
}

void model_schedule(Variables *v)
{
    if (v->count > 0) fm_announce(&v->due, (fm_Fraction){v->times[0], v->resolution});
}

void model_outputs(Variables *v)
{
    v->ramp = v->time;
    v->event.active = v->due.active;
    if (!v->due.active || v->done >= MOST_EVENTS) return;
    v->value = v->values[v->done];
    snprintf(v->text.text, sizeof v->text.text, "event %d: %g", v->done + 1, v->value);
    v->data.size = (size_t)v->done + 1;
    v->data.bytes[v->done] = (uint8_t)(v->done + 1);
}

fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    v->ramp = v->time + *h;
    return FM_OK;
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    if (!v->due.active) return FM_OK;
    model_outputs(v);
    v->held = v->value;
    v->done++;
    if (v->done < v->count)
        fm_announce(&v->due, (fm_Fraction){v->times[v->done] - v->times[v->done - 1], v->resolution});
    return FM_OK;
}
