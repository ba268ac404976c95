/* x' = -k x + u, solved exactly for an input that is held or linear over the step. See readme.md. */
#include "model.h"

#include <math.h>

/* (exp(z) - 1) / z, with its limit at 0 */
static double phi1(double z)
{
    return z == 0.0 ? 1.0 : expm1(z) / z;
}

/* (exp(z) - 1 - z) / z^2, with its limit at 0. Where the difference would cancel: the series sum z^n / (n + 2)!, whose
 * first term left out, 0.5^15 / 17!, is below 1e-19. */
static double phi2(double z)
{
    if (fabs(z) > 0.5) return (expm1(z) - z) / (z * z);
    double sum = 0.0;
    for (int n = 14; n >= 0; n--) sum = 1.0 / (n + 2) * (1.0 + z * sum);
    return sum;
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return isfinite(v->k) ? FM_OK : fm_report(self, FM_ERROR, "k is %g 1/s. It must be finite.", v->k);
}

void model_outputs(Variables *v)
{
    v->dx = -v->k * v->x + v->u;
}

fm_Status model_step(fm_Instance *self, Variables *v, double *length)
{
    double h = *length;
    fm_intermediate_update(self, v->time);
    double begin = v->u;
    fm_intermediate_update(self, v->time + h);
    double slope = v->u_slope + (v->u - begin) / h;   /* FMI 2.0 gives the first, FMI 3.0 the second */
    double end = begin + slope * h;
    double z = -v->k * h;
    v->x = exp(z) * v->x + h * phi1(z) * begin + h * h * phi2(z) * slope;
    v->dx = -v->k * v->x + end;
    return FM_OK;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    if (known != VR_x && known != VR_u) return NAN;
    switch (unknown) {
    case VR_x: return known == VR_x ? 1.0 : 0.0;
    case VR_dx: return known == VR_x ? -v->k : 1.0;
    default: return NAN;
    }
}
