/* The wheel of a quarter car with its suspension, which takes the velocity of the chassis. See readme.md. */
enum { STATES = 3, INPUTS = 2 };
static const double EULER_INPUTS = 0.0;
#include "micro_steps.h"
#include "suspension.h"

static States get_states(const Variables *v)
{
    return (States){{v->zw, v->vw, v->zc}};
}

static void set_states(Variables *v, States x)
{
    v->zw = x.of[0];
    v->vw = x.of[1];
    v->zc = x.of[2];
}

static Inputs get_inputs(const Variables *v)
{
    return (Inputs){{v->velocity, v->road}};
}

static Inputs get_derivatives(const Variables *v, int order)
{
    return (Inputs){{v->velocity_derivatives[order], v->road_derivatives[order]}};
}

static Suspension suspension(const Variables *v)
{
    return (Suspension){v->kc, v->dc, v->nd};
}

static double force(const Variables *v, States x, Inputs u)
{
    return suspension_force(suspension(v), x.of[2] - x.of[0], u.of[0] - x.of[1]);
}

static double acceleration(const Variables *v, double force, double zw, double road)
{
    return (force - v->kw * (zw - road)) / v->mw;
}

static States rates(const Variables *v, States x, Inputs u)
{
    return (States){{x.of[1], acceleration(v, force(v, x, u), x.of[0], u.of[1]), u.of[0]}};
}

static void calculate_outputs(Variables *v, States x, Inputs u)
{
    States slope = rates(v, x, u);
    v->der_zw = slope.of[0];
    v->der_vw = slope.of[1];
    v->der_zc = slope.of[2];
    v->force = force(v, x, u);
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    if (!is_positive(self, "mw", v->mw)) return FM_ERROR;
    fm_Status status = check_suspension(self, "suspension", suspension(v));
    return status == FM_OK ? check_solver(self, v) : status;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    if (known != VR_zw && known != VR_vw && known != VR_zc && known != VR_velocity && known != VR_road) return NAN;
    double zw = known == VR_zw, vw = known == VR_vw, zc = known == VR_zc, vc = known == VR_velocity;
    double force = v->kc * (zc - zw) + suspension_damping(suspension(v), v->velocity - v->vw) * (vc - vw);
    switch (unknown) {
    case VR_zw: return zw;
    case VR_vw:
    case VR_der_zw: return vw;
    case VR_zc: return zc;
    case VR_der_zc: return vc;
    case VR_der_vw: return acceleration(v, force, zw, known == VR_road);
    case VR_force: return force;
    default: return NAN;
    }
}
