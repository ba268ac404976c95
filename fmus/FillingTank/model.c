/* A tank that fills, in steps of its own; the importer empties it. See readme.md. */
#include "model.h"

#include <math.h>

static const double AT_THE_END = 1e-10;     /* [s] a step of its own that ends as close as this to the end of a step ends there */

static double rate_of(const Variables *v, double level)
{
    return v->inflow - v->leak * level;
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->leak >= 0.0 && v->internalStep > 0.0) return FM_OK;
    return fm_report(self, FM_ERROR, "leak is %g 1/s, internalStep is %g s. Neither may be negative, and the second not 0.", v->leak,
                     v->internalStep);
}

void model_outputs(Variables *v)
{
    v->rate = rate_of(v, v->level);
    v->full_z_1 = v->height - v->level;
    v->full_dz_1 = -v->rate;
}

fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    double begin = v->level, s = 0.0, wanted = INFINITY;
    for (int k = 1; s < *h; k++) {
        bool returns = wanted < *h && wanted <= k * v->internalStep;
        s = returns ? wanted : k * v->internalStep;
        if (*h - s <= AT_THE_END && !returns) s = *h;
        v->level = begin * exp(-v->leak * s) + v->inflow * (v->leak ? -expm1(-v->leak * s) / v->leak : s);
        model_outputs(v);
        if (returns) break;
        wanted = fmax(fm_intermediate_values(self, v->time + s) - v->time, s);
        if (wanted == s) break;
    }
    *h = s;
    return FM_OK;
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    if (!v->full_in.active) return FM_OK;
    v->level = 0.0;
    v->count++;
    update->states_changed = true;
    return FM_OK;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return NAN;
}
