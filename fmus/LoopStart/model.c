/* A state and a parameter that are calculated in Initialization Mode. See readme.md. */
#include "model.h"

#include <math.h>

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return FM_OK;
}

/* Called in Initialization Mode only: this FMU has no Event Mode. */
void model_outputs(Variables *v)
{
    v->x = v->a * v->u + v->b;
    v->y = v->x;
    v->der_x = 0.0;
    v->q = v->g * v->p + v->o;
}

fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    return FM_OK;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return NAN;
}
