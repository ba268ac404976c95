/* Spring and damper between two masses: k dz + d sign(dv) |dv|^(2/(1 + 2 n)), with the differences dz of their positions
 * and dv of their velocities.
 */
#ifndef FM_SUSPENSION_H
#define FM_SUSPENSION_H

#include "model.h"

#include <math.h>

/* [m/s] With an exponent below 1 the damper is infinitely stiff at dv = 0. The derivative is that at this dv or beyond. */
static const double LEAST_DIFFERENCE = 1e-6;

typedef struct { double k, d, n; } Suspension;

static double damper_exponent(Suspension s)
{
    return 2.0 / (1.0 + 2.0 * s.n);
}

static double suspension_force(Suspension s, double dz, double dv)
{
    return s.k * dz + s.d * copysign(pow(fabs(dv), damper_exponent(s)), dv);
}

/* The partial derivative of the force with respect to dv. */
static double suspension_damping(Suspension s, double dv)
{
    double exponent = damper_exponent(s);
    return s.d * exponent * pow(fmax(fabs(dv), LEAST_DIFFERENCE), exponent - 1.0);
}

static fm_Status check_suspension(fm_Instance *self, const char *name, Suspension s)
{
    if (s.k >= 0.0 && s.d >= 0.0 && s.n > -0.5) return FM_OK;
    return fm_report(self, FM_ERROR, "%s: the stiffness is %g N/m, the damping %g and n %g. Stiffness and damping must not "
                     "be negative, and n must be above -0.5.", name, s.k, s.d, s.n);
}

#endif
