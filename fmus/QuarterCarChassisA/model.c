/* The chassis of a quarter car without its suspension: a mass under a force. See readme.md. */
enum { STATES = 2, INPUTS = 1 };
static const double EULER_INPUTS = 0.5;   /* exact for a force that is linear over a step */
#include "micro_steps.h"

static States get_states(const Variables *v)
{
    return (States){{v->zc, v->vc}};
}

static void set_states(Variables *v, States x)
{
    v->zc = x.of[0];
    v->vc = x.of[1];
}

static Inputs get_inputs(const Variables *v)
{
    return (Inputs){{v->force}};
}

static Inputs get_derivatives(const Variables *v, int order)
{
    return (Inputs){{v->force_derivatives[order]}};
}

static States rates(const Variables *v, States x, Inputs u)
{
    return (States){{x.of[1], u.of[0] / v->mc}};
}

static void calculate_outputs(Variables *v, States x, Inputs u)
{
    States slope = rates(v, x, u);
    v->der_zc = slope.of[0];
    v->der_vc = slope.of[1];
    v->velocity = x.of[1];
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return is_positive(self, "mc", v->mc) ? check_solver(self, v) : FM_ERROR;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    if (known != VR_zc && known != VR_vc && known != VR_force) return NAN;
    switch (unknown) {
    case VR_zc: return known == VR_zc;
    case VR_vc:
    case VR_der_zc:
    case VR_velocity: return known == VR_vc;
    case VR_der_vc: return known == VR_force ? 1.0 / v->mc : 0.0;
    default: return NAN;
    }
}
