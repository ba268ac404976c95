/* A room with a heating that is on or off. See readme.md. */
#include "model.h"

#include <math.h>

static const double HOT = 30.0;             /* [degC] what the room goes to while the heating is on; else 0 */
static const double AT_THE_END = 1e-10;     /* [s] an event as close as this to the end of a step is there */

static double target(const Variables *v)
{
    return v->q ? HOT : 0.0;
}

static double indicator(const Variables *v)
{
    return v->q ? v->upper - v->x : v->x - v->lower;
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->alpha > 0.0 && v->lower > 0.0 && v->lower < v->upper && v->upper < HOT) return FM_OK;
    return fm_report(self, FM_ERROR, "alpha is %g 1/s, lower is %g, upper is %g degC. alpha must be positive, and "
                     "0 < lower < upper < 30.", v->alpha, v->lower, v->upper);
}

void model_outputs(Variables *v)
{
    v->dx = -v->alpha * (v->x - target(v));
    v->crossing_z_1 = indicator(v);
    v->crossing_dz_1 = v->q ? -v->dx : v->dx;
}

static bool has_reached(const Variables *v, double x)
{
    return v->q ? x >= v->upper : x <= v->lower;
}

/* From v->x until it crosses upper or lower. */
static double crossing_time(const Variables *v)
{
    double limit = v->q ? v->upper : v->lower;
    return log((target(v) - v->x) / (target(v) - limit)) / v->alpha;
}

fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    fm_EventMemory *event = &v->memory.event[EVENT_crossing];
    double end = target(v) + (v->x - target(v)) * exp(-v->alpha * *h);
    double until = indicator(v) > 0.0 ? crossing_time(v) : INFINITY;
    bool stops = fm_stopping(self) == FM_BY_RETURN;
    /* Rounding must not put the crossing behind a step that ends at it: the next step begins with z[1] = 0. */
    event->located = until <= *h + (stops ? AT_THE_END : 0.0) || (isfinite(until) && has_reached(v, end));
    if (event->located) {
        fm_count(&v->crossing_out);
        fm_report(self, FM_OK, "Event 'crossing' at t = %.15g s.", v->time + until);
    }
    if (event->located && stops) {
        if (*h - until > AT_THE_END) *h = until;
        /* Rounding must not put the room before the limit: a controller that compares would not switch. */
        end = v->q ? fmax(v->upper, v->x) : fmin(v->lower, v->x);
        v->memory.event_waits = true;
    }
    v->x = end;
    model_outputs(v);
    return FM_OK;
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    return FM_OK;   /* its event changes nothing here: the controller acts */
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return NAN;
}
