/* Switches a heating on and off. See readme.md. */
#include "model.h"

#include <math.h>

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->lower < v->upper) return FM_OK;
    return fm_report(self, FM_ERROR, "lower is %g, upper is %g degC. lower must be below upper.", v->lower, v->upper);
}

void model_outputs(Variables *v)
{
}

static void decide(Variables *v)
{
    if (v->q && v->x >= v->upper) v->q = false;
    else if (!v->q && v->x <= v->lower) v->q = true;
}

fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    if (!fm_uses_event_mode(self)) decide(v);
    return FM_OK;
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    bool before = v->q;
    if (v->sample.active) decide(v);
    update->again = v->q != before;   /* others are to see it in this event */
    return FM_OK;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return NAN;
}
