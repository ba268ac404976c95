/* The wheel of a quarter car without its suspension: a mass under a force, on a tyre. See readme.md. */
enum { STATES = 2, INPUTS = 2 };
static const double EULER_INPUTS = 0.0;
#include "micro_steps.h"

static States get_states(const Variables *v)
{
    return (States){{v->zw, v->vw}};
}

static void set_states(Variables *v, States x)
{
    v->zw = x.of[0];
    v->vw = x.of[1];
}

static Inputs get_inputs(const Variables *v)
{
    return (Inputs){{v->force, v->road}};
}

static Inputs get_derivatives(const Variables *v, int order)
{
    return (Inputs){{v->force_derivatives[order], v->road_derivatives[order]}};
}

static double acceleration(const Variables *v, double zw, double force, double road)
{
    return (-force - v->kw * (zw - road)) / v->mw;
}

static States rates(const Variables *v, States x, Inputs u)
{
    return (States){{x.of[1], acceleration(v, x.of[0], u.of[0], u.of[1])}};
}

static void calculate_outputs(Variables *v, States x, Inputs u)
{
    States slope = rates(v, x, u);
    v->der_zw = slope.of[0];
    v->der_vw = slope.of[1];
    v->velocity = x.of[1];
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return is_positive(self, "mw", v->mw) ? check_solver(self, v) : FM_ERROR;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    if (known != VR_zw && known != VR_vw && known != VR_force && known != VR_road) return NAN;
    switch (unknown) {
    case VR_zw: return known == VR_zw;
    case VR_vw:
    case VR_der_zw:
    case VR_velocity: return known == VR_vw;
    case VR_der_vw: return acceleration(v, known == VR_zw, known == VR_force, known == VR_road);
    default: return NAN;
    }
}
