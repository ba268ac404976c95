/* Functions without a state. See readme.md. */
#include "model.h"

#include <math.h>

typedef enum { POLYNOMIAL, COSINE, TANH, ROOT } Function;   /* the parameter `function` */

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (v->function >= POLYNOMIAL && v->function <= ROOT) return FM_OK;
    return fm_report(self, FM_ERROR, "function is %d. It must be 0 (polynomial), 1 (cosine), 2 (hyperbolic tangent) or "
                     "3 (square root).", v->function);
}

static double function(const Variables *v)
{
    switch ((Function)v->function) {
    case COSINE: return v->c0 + v->c1 * cos(v->u);
    case TANH: return v->c0 + v->c1 * tanh(v->u);
    case ROOT: return v->c0 + v->c1 * sqrt(v->u);
    case POLYNOMIAL: break;
    }
    return v->c0 + v->u * (v->c1 + v->u * (v->c2 + v->u * v->c3));
}

static double derivative(const Variables *v)
{
    switch ((Function)v->function) {
    case COSINE: return -v->c1 * sin(v->u);
    case TANH: return v->c1 * (1.0 - tanh(v->u) * tanh(v->u));
    case ROOT: return v->c1 / (2.0 * sqrt(v->u));
    case POLYNOMIAL: break;
    }
    return v->c1 + v->u * (2.0 * v->c2 + v->u * 3.0 * v->c3);
}

static double step(const Variables *v)
{
    return v->u > v->threshold ? v->high : v->low;
}

void model_outputs(Variables *v)
{
    v->y = function(v);
    v->step = step(v);
    v->inverse = !v->q;
    v->latch = v->set || (v->q && !v->reset);
}

/* With Event Mode, a discrete output changes there. */
fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    if (fm_uses_event_mode(self)) {
        v->y = function(v);
        v->memory.event_waits = v->step != step(v);
    } else {
        model_outputs(v);
    }
    return FM_OK;
}

fm_Status model_update(fm_Instance *self, Variables *v, fm_Update *update)
{
    return FM_OK;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return unknown == VR_y && known == VR_u ? derivative(v) : NAN;
}
