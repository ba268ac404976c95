/* The chassis of a quarter car without its suspension, and with the suspension of a seat on it. See readme.md. */
enum { STATES = 3, INPUTS = 2 };
static const double EULER_INPUTS = 0.0;
#include "micro_steps.h"

static States get_states(const Variables *v)
{
    return (States){{v->zc, v->vc, v->zs}};
}

static void set_states(Variables *v, States x)
{
    v->zc = x.of[0];
    v->vc = x.of[1];
    v->zs = x.of[2];
}

static Inputs get_inputs(const Variables *v)
{
    return (Inputs){{v->seat_velocity, v->wheel_force}};
}

static Inputs get_derivatives(const Variables *v, int order)
{
    return (Inputs){{v->seat_velocity_derivatives[order], v->wheel_force_derivatives[order]}};
}

static double seat_force(const Variables *v, States x, double seat_velocity)
{
    return v->ks * (x.of[2] - x.of[0]) + v->ds * (seat_velocity - x.of[1]);
}

static States rates(const Variables *v, States x, Inputs u)
{
    return (States){{x.of[1], (u.of[1] + seat_force(v, x, u.of[0])) / v->mc, u.of[0]}};
}

static void calculate_outputs(Variables *v, States x, Inputs u)
{
    States slope = rates(v, x, u);
    v->der_zc = slope.of[0];
    v->der_vc = slope.of[1];
    v->der_zs = slope.of[2];
    v->seat_force = seat_force(v, x, u.of[0]);
    v->wheel_velocity = x.of[1];
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return is_positive(self, "mc", v->mc) ? check_solver(self, v) : FM_ERROR;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    if (known != VR_zc && known != VR_vc && known != VR_zs && known != VR_seat_velocity && known != VR_wheel_force)
        return NAN;
    States x = {{known == VR_zc, known == VR_vc, known == VR_zs}};
    Inputs u = {{known == VR_seat_velocity, known == VR_wheel_force}};
    States slope = rates(v, x, u);   /* all is linear */
    switch (unknown) {
    case VR_zc: return x.of[0];
    case VR_vc:
    case VR_wheel_velocity: return x.of[1];
    case VR_zs: return x.of[2];
    case VR_der_zc: return slope.of[0];
    case VR_der_vc: return slope.of[1];
    case VR_der_zs: return slope.of[2];
    case VR_seat_force: return seat_force(v, x, u.of[0]);
    default: return NAN;
    }
}
