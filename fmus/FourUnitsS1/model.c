/* A mass on a spring and a damper, whose other end has a speed that is given. See readme.md. */
enum { STATES = 2, INPUTS = 1 };
#include "euler.h"

static States get_states(const Variables *v)
{
    return (States){{v->x1, v->x2}};
}

static void set_states(Variables *v, States x)
{
    v->x1 = x.of[0];
    v->x2 = x.of[1];
}

static Inputs get_inputs(const Variables *v)
{
    return (Inputs){{v->u11}};
}

static Inputs get_slopes(const Variables *v)
{
    return (Inputs){{v->u11_slope}};
}

/* Of spring and damper */
static double torque(const Variables *v, States x, double u11)
{
    return v->c * x.of[0] - v->d / v->J1 * x.of[1] + v->d * u11;
}

static States rates(const Variables *v, States x, Inputs u)
{
    return (States){{-x.of[1] / v->J1 + u.of[0], torque(v, x, u.of[0])}};
}

static void calculate_outputs(Variables *v, States x, Inputs u)
{
    States slope = rates(v, x, u);
    v->der_x1 = slope.of[0];
    v->der_x2 = slope.of[1];
    v->y11 = x.of[1] / v->J1;
    v->y12 = torque(v, x, u.of[0]);
}

fm_Status model_check(fm_Instance *self, const Variables *v)
{
    return is_positive(self, "J1", v->J1) ? check_micro_step(self, v) : FM_ERROR;
}

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    if (known != VR_x1 && known != VR_x2 && known != VR_u11) return NAN;
    States x = {{known == VR_x1, known == VR_x2}};
    double u11 = known == VR_u11;
    switch (unknown) {   /* all is linear */
    case VR_x1: return x.of[0];
    case VR_x2: return x.of[1];
    case VR_der_x1: return -x.of[1] / v->J1 + u11;
    case VR_y11: return x.of[1] / v->J1;
    case VR_der_x2:
    case VR_y12: return torque(v, x, u11);
    default: return NAN;
    }
}
