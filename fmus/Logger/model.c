/* Writes down what is present at a trigger. See readme.md. */
#include "event_unit.h"

#include <stdio.h>

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return check_event_mode(self);
}

void model_outputs(Variables *v)
{
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    if (!v->write.active) return FM_OK;
    v->count++;
    int size = snprintf(v->line.text, sizeof v->line.text, "%d at %g s: u = %.10g, %s", v->count, v->time, v->u, v->text.text);
    v->bytes = v->data;
    if (size < (int)sizeof v->line.text) return FM_OK;
    return fm_report(self, FM_WARNING, "Line %d is cut after %d bytes.", v->count, (int)sizeof v->line.text - 1);
}
